package main

// The calls of kafka-go's Client.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/weirmq/weir/compat/clients/judge"
)

func is(what string, err error, code kafka.Error) error {
	if errors.Is(err, code) {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, err, code)
}

func topics() {
	ctx := context.Background()
	var name string
	judge.Check("admin: topics", func() (err error) {
		if name, err = topic("admin", 2); err != nil {
			return err
		}
		got, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: 1, ReplicationFactor: 1},
			{Topic: name + "x", NumPartitions: 1, ReplicationFactor: 7}, {Topic: "a b", NumPartitions: 1, ReplicationFactor: 1}}})
		if err != nil {
			return err
		}
		md, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name, name + "none"}})
		if err != nil || len(md.Topics) != 2 || len(md.Topics[0].Partitions) != 2 || len(md.Brokers) != 1 || md.ClusterID == "" {
			return fmt.Errorf("Metadata: %+v %w", md, err)
		}
		return errors.Join(is("again", got.Errors[name], kafka.TopicAlreadyExists), is("RF 7", got.Errors[name+"x"], kafka.InvalidReplicationFactor),
			is("a b", got.Errors["a b"], kafka.InvalidTopic), is("Metadata", md.Topics[1].Error, kafka.UnknownTopicOrPartition))
	})
	judge.Check("admin: partitions", func() error {
		ask := func(n int32) error {
			got, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: n}}})
			if err != nil {
				return err
			}
			return got.Errors[name]
		}
		if err := ask(4); err != nil {
			return err
		}
		return is("CreatePartitions", ask(2), kafka.InvalidPartitionNumber)
	})
	judge.Check("admin: configs", func() error {
		alter, err := client.AlterConfigs(ctx, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: name,
			Configs: []kafka.AlterConfigRequestConfig{{Name: "retention.ms", Value: "777000"}}}}})
		if err != nil {
			return fmt.Errorf("AlterConfigs: %w", err)
		}
		for _, err := range alter.Errors {
			if err != nil {
				return fmt.Errorf("AlterConfigs: %w", err)
			}
		}
		inc, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: name, Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "segment.bytes", Value: "7770000", ConfigOperation: kafka.ConfigOperationSet}}}}})
		if err != nil || inc.Resources[0].Error != nil {
			return fmt.Errorf("IncrementalAlterConfigs: %+v %w", inc, err)
		}
		return judge.Until(5*time.Second, "both values", func() (string, bool) {
			got, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{IncludeSynonyms: true, IncludeDocumentation: true,
				Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}}})
			if err != nil || got.Resources[0].Error != nil {
				return fmt.Sprint(got, err), false
			}
			is := map[string]string{}
			for _, e := range got.Resources[0].ConfigEntries {
				is[e.ConfigName] = e.ConfigValue
			}
			return fmt.Sprint(len(is), is["retention.ms"], is["segment.bytes"]), len(is) > 25 && is["retention.ms"] == "777000" && is["segment.bytes"] == "7770000"
		})
	})
	judge.Check("admin: leaders, reassignments, quotas, acls", func() error {
		e, err := client.ElectLeaders(ctx, &kafka.ElectLeadersRequest{Topic: name, Partitions: []int{0}, Timeout: 5 * time.Second})
		if err != nil || len(e.PartitionResults) != 1 {
			return fmt.Errorf("ElectLeaders: %+v %w", e, err)
		}
		if err := is("ElectLeaders", e.PartitionResults[0].Error, kafka.ElectionNotNeeded); err != nil {
			return err
		}
		if l, err := client.ListPartitionReassignments(ctx, &kafka.ListPartitionReassignmentsRequest{Timeout: 5 * time.Second,
			Topics: map[string]kafka.ListPartitionReassignmentsRequestTopic{name: {PartitionIndexes: []int{0}}}}); err != nil || l.Error != nil {
			return fmt.Errorf("ListPartitionReassignments: %+v %w", l, err)
		}
		if q, err := client.DescribeClientQuotas(ctx, &kafka.DescribeClientQuotasRequest{}); err != nil || q.Error != nil {
			return fmt.Errorf("DescribeClientQuotas: %+v %w", q, err)
		}
		a, err := client.DescribeACLs(ctx, &kafka.DescribeACLsRequest{Filter: kafka.ACLFilter{ResourceTypeFilter: kafka.ResourceTypeAny, ResourcePatternTypeFilter: kafka.PatternTypeAny,
			Operation: kafka.ACLOperationTypeAny, PermissionType: kafka.ACLPermissionTypeAny}})
		if err != nil {
			return fmt.Errorf("DescribeACLs: %w", err)
		}
		return is("DescribeACLs", a.Error, kafka.SecurityDisabled)
	})
	judge.Check("admin: producer ids", func() error {
		a, err := client.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1})
		if err != nil {
			return err
		}
		b, err := client.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1})
		if err != nil || errors.Join(a.Error, b.Error) != nil || a.Producer.ProducerID == b.Producer.ProducerID {
			return fmt.Errorf("%+v %+v %w", a, b, err)
		}
		return nil
	})
	judge.Check("admin: delete topics", func() error {
		ask := func() error {
			got, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{name}})
			if err != nil {
				return err
			}
			return got.Errors[name]
		}
		if err := ask(); err != nil {
			return err
		}
		return is("DeleteTopics", ask(), kafka.UnknownTopicOrPartition)
	})
}

func groups() {
	judge.Check("B024 admin: groups", func() error {
		to, err := topic("groups", 1)
		if err != nil {
			return err
		}
		id := prefix + "-groups"
		if err := produce(to, "g", 10); err != nil {
			return err
		}
		ctx, cancel := patience()
		defer cancel()
		r := group(id, to)
		defer r.Close()
		m, err := r.FetchMessage(ctx)
		if err == nil {
			err = r.CommitMessages(ctx, m)
		}
		if err != nil {
			return err
		}
		l, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
		found := false
		if err == nil {
			for _, g := range l.Groups {
				found = found || g.GroupID == id && g.ProtocolType == "consumer"
			}
		}
		if !found {
			return fmt.Errorf("ListGroups lacks it: %w", err)
		}
		d, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{id}})
		if err != nil || len(d.Groups) != 1 || d.Groups[0].GroupState != "Stable" || len(d.Groups[0].Members) != 1 {
			return fmt.Errorf("DescribeGroups: %+v %w", d, err)
		}
		if a := d.Groups[0].Members[0].MemberAssignments.Topics; len(a) != 1 || a[0].Topic != to {
			return fmt.Errorf("assignment %+v", a)
		}
		none, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{id + "-none"}})
		if err != nil || len(none.Groups) != 1 || none.Groups[0].GroupState != "Dead" {
			return fmt.Errorf("DescribeGroups of none: %+v %w", none, err)
		}
		remove := func() error {
			got, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{id}})
			if err != nil {
				return err
			}
			return got.Errors[id]
		}
		if err := is("DeleteGroups", remove(), kafka.NonEmptyGroup); err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		c, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: id, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{to: {{Partition: 0, Offset: 5, Metadata: "m"}}}})
		if err != nil || c.Topics[to][0].Error != nil {
			return fmt.Errorf("OffsetCommit: %+v %w", c, err)
		}
		f, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: id, Topics: map[string][]int{to: {0}}})
		if err != nil || f.Topics[to][0].CommittedOffset != 5 || f.Topics[to][0].Metadata != "m" {
			return fmt.Errorf("OffsetFetch: %+v %w", f, err)
		}
		o, err := client.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{GroupID: id, Topics: map[string][]int{to: {0}}})
		if err != nil || o.Error != nil || o.Topics[to][0].Error != nil {
			return fmt.Errorf("OffsetDelete: %+v %w", o, err)
		}
		// Kafka drops a simple group with its last offset, so it may be gone already.
		if err := remove(); err != nil {
			return is("DeleteGroups", err, kafka.GroupIdNotFound)
		}
		return is("DeleteGroups", remove(), kafka.GroupIdNotFound)
	})
}
