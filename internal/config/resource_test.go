package config

// Shows: settings of groups and of client metrics subscriptions are checked and
// described by Kafka 4.4's names, types, sources and bounds.

import (
	"errors"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

func TestValidateResource(t *testing.T) {
	v := mustView(t)
	f := func(group bool, key, val string, want kafka.Error) {
		t.Helper()
		err := ValidateClientMetrics(key, &val)
		if group {
			err = v.ValidateGroup(key, &val)
		}
		got := kafka.NoError
		var r *Refusal
		if errors.As(err, &r) {
			got = r.Code
		}
		if got != want {
			t.Errorf("%s=%s: %v (%v), want %v", key, val, got, err, want)
		}
	}
	f(true, "consumer.session.timeout.ms", "50000", kafka.NoError)
	f(true, "consumer.session.timeout.ms", "44999", kafka.ErrInvalidConfig)
	f(true, "consumer.session.timeout.ms", "60001", kafka.ErrInvalidConfig)
	f(true, "consumer.session.timeout.ms", "long", kafka.ErrInvalidConfig)
	f(true, "share.isolation.level", "read_committed", kafka.NoError)
	f(true, "share.isolation.level", "x", kafka.ErrInvalidConfig)
	f(true, "junk", "1", kafka.ErrInvalidConfig)
	f(false, "interval.ms", "100", kafka.NoError)
	f(false, "interval.ms", "99", kafka.ErrInvalidRequest)
	f(false, "interval.ms", "3600001", kafka.ErrInvalidRequest)
	f(false, "metrics", "org.apache.kafka.", kafka.NoError)
	f(false, "junk", "1", kafka.ErrInvalidRequest)
}

func TestDescribeResource(t *testing.T) {
	for _, e := range mustView(t).DescribeGroup(map[string]string{"consumer.session.timeout.ms": "50000", "junk": "1"}) {
		switch e.Name {
		case "consumer.session.timeout.ms":
			if e.Value != "50000" || e.Source != SourceGroup || e.Type != int8(Int) || len(e.Synonyms) != 2 || e.Synonyms[1].Name != "group.consumer.session.timeout.ms" {
				t.Errorf("%+v", e)
			}
		case "junk":
			t.Error("an unknown key is described")
		default:
			if e.Source != SourceDefault || len(e.Synonyms) != 1 || e.Synonyms[0].Value != e.Value {
				t.Errorf("%+v", e)
			}
		}
	}
	got := DescribeClientMetrics(map[string]string{"interval.ms": "60000"})
	if len(got) != 3 || got[0].Value != "60000" || got[0].Source != SourceClientMetrics || got[1].Source != SourceDefault || got[1].Synonyms != nil {
		t.Errorf("%+v", got)
	}
}

// Every default that a broker key gives is the one of the table.
func TestGroupDefaults(t *testing.T) {
	for _, k := range groupConfigKeys {
		if b := groupSynonym(k.Name); b != nil && (b.Default != k.Default || b.Type != k.Type && k.Name != "streams.assignor.name") {
			t.Errorf("%s: %s %s, its broker key %s %s", k.Name, k.Type, k.Default, b.Type, b.Default)
		}
	}
}

func mustView(t *testing.T) *View {
	t.Helper()
	s, _, err := Load(Source{})
	if err != nil {
		t.Fatal(err)
	}
	return s.With(nil, nil)
}
