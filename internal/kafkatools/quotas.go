package kafkatools

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var quotaKinds = map[string]string{"users": "user", "clients": "client-id", "ips": "ip"}

// alterQuotas sets quotas of users, clients and addresses.
func (f *configFlags) alterQuotas(c *call, k *cluster, add []keyValue) error {
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for _, en := range f.entities {
		x := kmsg.NewAlterClientQuotasRequestEntryEntity()
		x.Type = quotaKinds[en.kind]
		if en.named {
			x.Name = kmsg.StringPtr(en.name)
		}
		e.Entity = append(e.Entity, x)
	}
	for _, kv := range add {
		v, err := strconv.ParseFloat(kv.value, 64)
		if err != nil {
			if strings.HasPrefix(kv.key, "SCRAM-") {
				return &exit{code: 1, stderr: "SCRAM credentials wait for users, which Weir does not serve yet\n"}
			}
			return illegalArgument("Cannot parse quota configuration value for %s: %s", kv.key, kv.value)
		}
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Value = kv.key, v
		e.Ops = append(e.Ops, op)
	}
	for _, key := range f.toDelete() {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Remove = key, true
		e.Ops = append(e.Ops, op)
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = append(req.Entries, e)
	resp, err := ask[*kmsg.AlterClientQuotasResponse](k, "alterClientQuotas", req)
	if err != nil {
		return inFuture(err)
	}
	for _, r := range resp.Entries {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return inFuture(err)
		}
	}
	first := f.entities[0]
	if first.named {
		c.printf("Completed updating config for %s %s.\n", entityWords[first.kind], first.name)
	} else {
		c.printf("Completed updating default config for %s in the cluster.\n", first.kind)
	}
	return nil
}

// describeQuotas shows quotas.
func (f *configFlags) describeQuotas(c *call, k *cluster) error {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = true
	for _, en := range f.entities {
		x := kmsg.NewDescribeClientQuotasRequestComponent()
		x.EntityType = quotaKinds[en.kind]
		switch {
		case en.named:
			x.MatchType, x.Match = kmsg.QuotasMatchTypeExact, kmsg.StringPtr(en.name)
		case en.defaults:
			x.MatchType = kmsg.QuotasMatchTypeDefault
		default:
			x.MatchType = kmsg.QuotasMatchTypeAny
		}
		req.Components = append(req.Components, x)
	}
	resp, err := ask[*kmsg.DescribeClientQuotasResponse](k, "describeClientQuotas", req)
	if err != nil {
		return inFuture(err)
	}
	if err := answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return inFuture(err)
	}
	for _, e := range resp.Entries {
		names := map[string]*string{}
		for _, x := range e.Entity {
			names[x.Type] = x.Name
		}
		var who []string
		for _, kind := range []string{"user", "client-id", "ip"} {
			if name, has := names[kind]; has && name == nil {
				who = append(who, "the default "+kind)
			} else if has {
				who = append(who, kind+" '"+*name+"'")
			}
		}
		values := map[string]float64{}
		var keys []string
		for _, v := range e.Values {
			keys = append(keys, v.Key)
			values[v.Key] = v.Value
		}
		var set []string
		for _, key := range hashOrder(keys) {
			set = append(set, key+"="+javaDouble(values[key]))
		}
		c.printf("Quota configs for %s are %s\n", strings.Join(who, ", "), strings.Join(set, ", "))
	}
	return nil
}
