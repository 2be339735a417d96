package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const keyApiVersions = 18

// Table says which versions of which APIs are offered. Fill it before the first
// connection; it is read without a lock afterwards. The zero value offers
// nothing.
type Table struct {
	apis []api // by key
}

type api struct {
	ok       bool
	min, max int16
	// flexFrom is the first flexible version of the request (KIP-482), above max
	// when none is. Response headers follow it too, ApiVersions excepted.
	flexFrom int16
}

// Add offers versions min to max of an API. It panics on a key that kmsg does
// not know, and on versions newer than kmsg's.
func (t *Table) Add(key, min, max int16) {
	req := kmsg.RequestForKey(key)
	if req == nil || min < 0 || min > max || max > req.MaxVersion() {
		panic(fmt.Sprintf("BUG: version table: key %d versions %d to %d", key, min, max))
	}
	for int(key) >= len(t.apis) {
		t.apis = append(t.apis, api{})
	}
	a := api{ok: true, min: min, max: max, flexFrom: req.MaxVersion() + 1}
	for v := int16(0); v <= req.MaxVersion(); v++ {
		req.SetVersion(v)
		if req.IsFlexible() {
			a.flexFrom = v
			break
		}
	}
	t.apis[key] = a
}

// Range returns the versions offered of an API; ok is false when it is not
// offered at all.
func (t *Table) Range(key int16) (min, max int16, ok bool) {
	a := t.api(key)
	return a.min, a.max, a.ok
}

// Each calls fn for every offered API in ascending order of keys.
func (t *Table) Each(fn func(key, min, max int16)) {
	for key, a := range t.apis {
		if a.ok {
			fn(int16(key), a.min, a.max)
		}
	}
}

func (t *Table) api(key int16) api {
	if key < 0 || int(key) >= len(t.apis) {
		return api{}
	}
	return t.apis[key]
}

// flexibleResponse says whether the response header ends with tagged fields.
// ApiVersions never has them: a client that does not yet know the broker's
// versions must be able to read it (KIP-511).
func (a api) flexibleResponse(key, version int16) bool {
	return key != keyApiVersions && version >= a.flexFrom
}
