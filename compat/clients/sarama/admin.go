package main

// The calls of sarama's ClusterAdmin.

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/weirmq/weir/compat/clients/judge"
)

func ptr[T any](v T) *T { return &v }

// is wants err to be the code.
func is(err error, code sarama.KError) error {
	if errors.Is(err, code) {
		return nil
	}
	return fmt.Errorf("got %v, want %v", err, code)
}

func topics(client sarama.Client, admin sarama.ClusterAdmin) {
	var name string
	judge.Check("admin: create and list topics", func() (err error) {
		if name, err = topic(admin, "admin", 2); err != nil {
			return err
		}
		if err := judge.Until(5*time.Second, "ListTopics", func() (string, bool) { // Kafka's own shows it a little later
			all, err := admin.ListTopics()
			return fmt.Sprint(all[name], err), err == nil && all[name].NumPartitions == 2
		}); err != nil {
			return err
		}
		if err := is(admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false), sarama.ErrTopicAlreadyExists); err != nil {
			return err
		}
		if err := is(admin.CreateTopic(name+"x", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 7}, false), sarama.ErrInvalidReplicationFactor); err != nil {
			return err
		}
		if err := admin.CreateTopic(name+"dry", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, true); err != nil {
			return err
		}
		md, err := admin.DescribeTopics([]string{name, name + "dry"})
		if err != nil || len(md) != 2 || len(md[0].Partitions) != 2 || md[1].Err != sarama.ErrUnknownTopicOrPartition {
			return fmt.Errorf("DescribeTopics: %+v %w", md, err)
		}
		return client.RefreshMetadata(name)
	})
	judge.Check("admin: partitions", func() error {
		if err := admin.CreatePartitions(name, 4, nil, false); err != nil {
			return err
		}
		return is(admin.CreatePartitions(name, 2, nil, false), sarama.ErrInvalidPartitions)
	})
	judge.Check("admin: cluster", func() error {
		brokers, controller, err := admin.DescribeCluster()
		if err != nil || len(brokers) != 1 || brokers[0].ID() != controller {
			return fmt.Errorf("%v, controller %d: %w", brokers, controller, err)
		}
		_, err = admin.Controller()
		return err
	})
	judge.Check("admin: configs", func() error {
		r := sarama.ConfigResource{Type: sarama.TopicResource, Name: name}
		if err := admin.AlterConfig(sarama.TopicResource, name, map[string]*string{"retention.ms": ptr("777000")}, false); err != nil {
			return err
		}
		value := func(want string) error {
			return judge.Until(5*time.Second, "retention.ms="+want, func() (string, bool) {
				got, err := admin.DescribeConfig(r)
				for _, e := range got {
					if e.Name == "retention.ms" && len(got) > 25 {
						return e.Value, e.Value == want
					}
				}
				return fmt.Sprintf("%d entries, %v", len(got), err), false
			})
		}
		if err := value("777000"); err != nil {
			return err
		}
		if version.IsAtLeast(sarama.V2_3_0_0) {
			if err := admin.IncrementalAlterConfig(sarama.TopicResource, name, map[string]sarama.IncrementalAlterConfigsEntry{
				"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: ptr("888000")}}, false); err != nil {
				return err
			}
			if err := value("888000"); err != nil {
				return err
			}
		}
		broker, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.BrokerResource, Name: fmt.Sprint(client.Brokers()[0].ID())}},
			sarama.DescribeConfigsOptions{IncludeSynonyms: true, IncludeDocumentation: version.IsAtLeast(sarama.V2_6_0_0)})
		if err != nil || len(broker) != 1 || len(broker[0].Configs) < 100 {
			return fmt.Errorf("broker configs: %d %w", len(broker), err)
		}
		return nil
	})
	judge.Check("admin: list offsets, delete records", func() error {
		if err := produce(name, "d", 400, nil); err != nil {
			return err
		}
		if err := admin.DeleteRecords(name, map[int32]int64{0: 7}); err != nil {
			return err
		}
		at, err := admin.ListOffsets(map[string]map[int32]int64{name: {0: sarama.OffsetOldest, 1: sarama.OffsetNewest}}, nil)
		if err != nil || at[name][0] == nil || at[name][0].Offset != 7 || at[name][1].Offset < 10 {
			return fmt.Errorf("ListOffsets: %+v %+v %w", at[name][0], at[name][1], err)
		}
		return is(admin.DeleteRecords(name, map[int32]int64{0: 1e9}), sarama.ErrOffsetOutOfRange)
	})
	judge.Check("admin: log dirs, leaders, reassignments, quotas", func() error {
		dirs, err := admin.DescribeLogDirs([]int32{client.Brokers()[0].ID()})
		if err != nil || len(dirs) != 1 {
			return fmt.Errorf("DescribeLogDirs: %v %w", dirs, err)
		}
		if version.IsAtLeast(sarama.V2_4_0_0) {
			got, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{name: {0}})
			if err != nil || got[name][0].ErrorCode != sarama.ErrElectionNotNeeded {
				return fmt.Errorf("ElectLeaders: %v %w", got, err)
			}
			if _, err := admin.ListPartitionReassignments(name, []int32{0}); err != nil {
				return fmt.Errorf("ListPartitionReassignments: %w", err)
			}
		}
		if version.IsAtLeast(sarama.V2_6_0_0) {
			if _, err := admin.DescribeClientQuotas(nil, false); err != nil {
				return fmt.Errorf("DescribeClientQuotas: %w", err)
			}
		}
		if _, err := admin.ListAcls(sarama.AclFilter{ResourceType: sarama.AclResourceAny, ResourcePatternTypeFilter: sarama.AclPatternAny,
			PermissionType: sarama.AclPermissionAny, Operation: sarama.AclOperationAny}); err != nil {
			return is(err, sarama.ErrSecurityDisabled)
		}
		return nil
	})
	judge.Check("admin: delete topics", func() error {
		if err := admin.DeleteTopic(name); err != nil {
			return err
		}
		return is(admin.DeleteTopic(name), sarama.ErrUnknownTopicOrPartition)
	})
}

func groups(admin sarama.ClusterAdmin) {
	judge.Check("B024 admin: groups", func() error {
		to, err := topic(admin, "groups", 1)
		if err != nil {
			return err
		}
		group := prefix + "-groups"
		if err := produce(to, "g", 10, nil); err != nil {
			return err
		}
		ctx := judge.Signalled()
		joined, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			n := 0
			ended <- consume(ctx, group, to, func(m *sarama.ConsumerMessage) bool {
				if n++; n == 9 { // while it still runs
					close(joined)
				}
				if n == 10 {
					<-leave
				}
				return n == 10
			})
		}()
		select {
		case <-joined:
		case err := <-ended:
			return fmt.Errorf("the member ended: %w", err)
		case <-time.After(30 * time.Second):
			return errors.New("no member within 30 s")
		}
		all, err := admin.ListConsumerGroups()
		if err != nil || all[group] != "consumer" {
			return fmt.Errorf("ListConsumerGroups: %q %w", all[group], err)
		}
		d, err := admin.DescribeConsumerGroups([]string{group, group + "-none"})
		if err != nil || len(d) != 2 {
			return fmt.Errorf("DescribeConsumerGroups: %v %w", d, err)
		}
		if d[0].GroupId != group { // Kafka answers in any order
			d[0], d[1] = d[1], d[0]
		}
		if d[0].State != "Stable" || len(d[0].Members) != 1 || (d[1].State != "Dead" && d[1].Err != sarama.ErrGroupIDNotFound) {
			return fmt.Errorf("DescribeConsumerGroups: %+v, %+v", d[0], d[1])
		}
		for _, m := range d[0].Members {
			if a, err := m.GetMemberAssignment(); err != nil || len(a.Topics[to]) != 1 {
				return fmt.Errorf("assignment: %+v %w", a, err)
			}
		}
		if err := is(admin.DeleteConsumerGroup(group), sarama.ErrNonEmptyGroup); err != nil {
			return err
		}
		close(leave)
		if err := <-ended; err != nil {
			return err
		}
		if c, err := admin.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{to: {0: {Offset: 5, LeaderEpoch: -1}}}, nil); err != nil {
			return fmt.Errorf("AlterConsumerGroupOffsets: %+v %w", c, err)
		}
		got, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{to: {0}})
		if err != nil || got.GetBlock(to, 0) == nil || got.GetBlock(to, 0).Offset != 5 {
			return fmt.Errorf("ListConsumerGroupOffsets: %+v %w", got, err)
		}
		if version.IsAtLeast(sarama.V2_4_0_0) {
			if err := admin.DeleteConsumerGroupOffset(group, to, 0); err != nil {
				return fmt.Errorf("DeleteConsumerGroupOffset: %w", err)
			}
		}
		if err := admin.DeleteConsumerGroup(group); err != nil {
			return err
		}
		return is(admin.DeleteConsumerGroup(group), sarama.ErrGroupIDNotFound)
	})
}

// leave lets the member of the group under description go.
var leave = make(chan struct{})
