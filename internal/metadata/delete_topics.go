package metadata

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// deleteTopics serves DeleteTopics 0-6: v5 messages, v6 by id as well.
func (c *Controller) deleteTopics(req *kmsg.DeleteTopicsRequest) (*kmsg.DeleteTopicsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	if req.Version < 6 {
		asked = make([]kmsg.DeleteTopicsRequestTopic, len(req.TopicNames))
		for i := range asked {
			asked[i].Topic = &req.TopicNames[i]
		}
	}
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, 0, len(asked))

	var disabled *failure
	if c.cfg.Defaults(c.img()).TopicsUndeletable {
		disabled = fail(kafka.ErrTopicDeletionDisabled, "Topic deletion is disabled.")
		if req.Version < 3 {
			disabled.code = kafka.ErrInvalidRequest
		}
	}
	names, ids := map[string]int{}, map[kafka.TopicID]int{}
	for i := range asked {
		if t := &asked[i]; t.Topic != nil {
			names[*t.Topic]++
		} else {
			ids[t.TopicID]++
		}
	}
	var rs []Record
	for i := range asked {
		t := &asked[i]
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		var f *failure
		switch {
		case disabled != nil:
			f = disabled
		case t.Topic != nil && !kafka.TopicID(t.TopicID).IsZero():
			f = fail(kafka.ErrInvalidRequest, "You may not specify both topic name and topic id.")
		case t.Topic == nil && kafka.TopicID(t.TopicID).IsZero():
			f = fail(kafka.ErrInvalidRequest, "Neither topic name nor id were specified.")
		case t.Topic != nil:
			n := names[*t.Topic]
			if n == 0 {
				continue // a name given twice is answered once
			}
			topic, ok := c.img().Topic(*t.Topic)
			if n > 1 {
				names[*t.Topic] = 0
				f = fail(kafka.ErrInvalidRequest, "Duplicate topic name.")
			} else if !ok {
				f = fail(kafka.ErrUnknownTopicOrPartition, "This server does not host this topic-partition.")
			} else if ids[topic.ID] > 0 {
				out.TopicID = topic.ID
				f = fail(kafka.ErrInvalidRequest, "The provided topic name maps to an ID that was already supplied.")
			} else {
				out.TopicID = topic.ID
				rs = append(rs, &TopicRemovedRecord{ID: topic.ID})
			}
		default:
			id := kafka.TopicID(t.TopicID)
			n := ids[id]
			if n < 0 {
				continue
			}
			topic, ok := c.img().TopicByID(id)
			if n > 1 {
				ids[id] = -1
				f = fail(kafka.ErrInvalidRequest, "Duplicate topic id.")
			} else if !ok {
				f = fail(kafka.ErrUnknownTopicID, "This server does not host this topic ID.")
			} else if names[topic.Name] > 0 {
				continue // refused by its name
			} else {
				out.Topic = &topic.Name
				rs = append(rs, &TopicRemovedRecord{ID: id})
			}
		}
		out.ErrorCode, out.ErrorMessage = f.parts()
		resp.Topics = append(resp.Topics, out)
	}
	return resp, rs
}
