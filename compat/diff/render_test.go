//go:build compat

package diff

// A kmsg answer as a tree that two brokers can be compared by.

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ordinal is a value that only matters by being the same or another: it is numbered
// when it first comes.
type ordinal struct{ kind, raw string }

// masks numbers the ordinals of one scenario on one broker.
type masks struct{ seen map[ordinal]string }

func newMasks() *masks { return &masks{seen: make(map[ordinal]string)} }

func (m *masks) name(o ordinal) string {
	n, ok := m.seen[o]
	if !ok {
		count := 1
		for k := range m.seen {
			if k.kind == o.kind {
				count++
			}
		}
		n = fmt.Sprintf("<%s %d>", o.kind, count)
		m.seen[o] = n
	}
	return n
}

// masked are fields whose value is the broker's own affair.
var masked = map[string]string{
	"Host": "<host>", "Port": "<port>", "ClusterID": "<cluster>", "Dir": "<dir>", "TotalBytes": "<bytes>", "UsableBytes": "<bytes>",
	"ErrorMessage": "<text>", "Documentation": "<text>", "FinalizedFeaturesEpoch": "<epoch>",
}

var maskedIn = map[string]string{
	"DescribeQuorumResponse.HighWatermark": "<offset>", "DescribeQuorumResponse.LogEndOffset": "<offset>", "DescribeQuorumResponse.LeaderEpoch": "<epoch>",
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// stamp masks a time near now.
func stamp(ms int64) any {
	if d := time.Since(time.UnixMilli(ms)); d.Abs() < 2*time.Hour {
		return "<now>"
	}
	return ms
}

// renderer turns one answer into a tree of map[string]any, []any and scalars.
// Zero values are left out, but for an empty list where null is possible too.
type renderer struct {
	kind   string // DescribeQuorumResponse
	prefix string // names of this scenario
	raw    bool   // nothing masked or left out: for `let` and `until`
}

// listed are the lists of an answer that may hold what other scenarios made.
var listed = []string{"Topics", "Groups", "ConfigResources"}

func (r *renderer) value(name string, v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if v.Elem().Kind() == reflect.String && !r.raw && v.Elem().String() == "" {
			return `""`
		}
		return r.value(name, v.Elem())
	case reflect.Struct:
		out := make(map[string]any)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "Version" || f.Name == "UnknownTags" {
				continue
			}
			x := r.value(f.Name, v.Field(i))
			if !r.raw && isZero(x) {
				continue
			}
			out[f.Name] = x
		}
		return out
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if v.IsNil() && !r.raw {
				return nil
			}
			if name == "RecordBatches" && !r.raw {
				return showBatches(v.Bytes())
			}
			if r.raw {
				return string(v.Bytes())
			}
			return r.text(showBytes(v.Bytes()))
		}
		if v.IsNil() {
			return nil
		}
		out := []any{}
		for i := range v.Len() {
			x := r.value("", v.Index(i))
			if !r.raw && slices.Contains(listed, name) && r.foreign(v.Index(i)) {
				continue
			}
			out = append(out, x)
		}
		return out
	case reflect.Array:
		id := v.Interface().([16]byte)
		switch {
		case r.raw:
			return id
		case id == [16]byte{}:
			return nil
		}
		return ordinal{"id", hex.EncodeToString(id[:])}
	case reflect.String:
		if r.raw {
			return v.String()
		}
		if name == "Value" {
			return places.ReplaceAllString(v.String(), "<place>")
		}
		return r.mask(name, r.text(v.String()), v.String() == "")
	case reflect.Bool:
		return v.Bool()
	case reflect.Float64:
		return v.Float()
	}
	var n int64
	if v.CanInt() {
		n = v.Int()
	} else {
		n = int64(v.Uint())
	}
	switch {
	case r.raw:
		return n
	case name == "ErrorCode" && n != 0:
		return fmt.Sprintf("%d %s", n, errorName(int16(n)))
	case name == "ProducerID" && n >= 0:
		return ordinal{"pid", fmt.Sprint(n)}
	case name == "SessionID" && n > 0:
		return ordinal{"session", fmt.Sprint(n)}
	case v.Kind() == reflect.Int64:
		if s, ok := stamp(n).(string); ok {
			return s
		}
	}
	return r.mask(name, n, n <= 0)
}

// places are what config values hold of the machine the brokers run on.
var places = regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]{4}|/[^,]*/(weir-data|node-1/data)`)

func (r *renderer) mask(name string, v any, plain bool) any {
	if plain {
		return v
	}
	if m, ok := masked[name]; ok {
		return m
	}
	if m, ok := maskedIn[r.kind+"."+name]; ok {
		return m
	}
	return v
}

// text makes ordinals of uuids within a text.
func (r *renderer) text(s string) any {
	if at := uuid.FindStringIndex(s); at != nil {
		return ordinal{"member " + s[:at[0]], s[at[0]:]}
	}
	return s
}

// foreign says whether a list's element belongs to another scenario.
func (r *renderer) foreign(v reflect.Value) bool {
	for _, f := range []string{"Topic", "Group", "Name"} {
		if x := reflect.Indirect(v).FieldByName(f); x.IsValid() {
			if x.Kind() == reflect.Pointer {
				x = x.Elem()
			}
			return x.Kind() == reflect.String && strings.HasPrefix(x.String(), namePrefix) && !strings.HasPrefix(x.String(), r.prefix)
		}
	}
	return false
}

func isZero(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case int64:
		return x == 0
	case float64:
		return x == 0
	case string:
		return x == ""
	}
	return false
}

func showBytes(b []byte) string {
	if utf8.Valid(b) && !strings.ContainsFunc(string(b), func(c rune) bool { return c < ' ' }) {
		return string(b)
	}
	return "x'" + hex.EncodeToString(b) + "'"
}

func errorName(code int16) string {
	var ke *kerr.Error
	if e, ok := kerr.ErrorForCode(code).(*kerr.Error); ok {
		ke = e
		return ke.Message
	}
	return "?"
}

// render gives the masked tree of an answer.
func render(m *masks, resp kmsg.Response, prefix string) any {
	v := reflect.ValueOf(resp).Elem()
	r := &renderer{kind: v.Type().Name(), prefix: prefix}
	return m.resolve(m.sorted(r.value("", v)))
}

// rawTree gives the tree with every value as it came.
func rawTree(resp kmsg.Response) any {
	v := reflect.ValueOf(resp).Elem()
	return (&renderer{raw: true}).value("", v)
}

// sorted puts arrays of structs in an order that does not depend on the broker's.
func (m *masks) sorted(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = m.sorted(x[k])
		}
	case []any:
		for i := range x {
			x[i] = m.sorted(x[i])
		}
		if len(x) > 0 {
			if e, ok := x[0].(map[string]any); ok && e["Base"] == nil { // batches keep their order
				if _, batch := e["LastDelta"]; !batch {
					slices.SortStableFunc(x, func(a, b any) int { return strings.Compare(m.order(a), m.order(b)) })
				}
			}
		}
	}
	return v
}

// order is the text to sort by: ordinals that were not seen before do not count.
func (m *masks) order(v any) string {
	switch x := v.(type) {
	case ordinal:
		return m.seen[x]
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b string) int { return strings.Compare(keyRank(a)+a, keyRank(b)+b) })
		var out strings.Builder
		for _, k := range keys {
			out.WriteString(k + "=" + m.order(x[k]) + ";")
		}
		return out.String()
	case []any:
		var out strings.Builder
		for _, e := range x {
			out.WriteString(m.order(e) + ",")
		}
		return out.String()
	case int64:
		return fmt.Sprintf("%020d", x)
	}
	return fmt.Sprint(v)
}

// identities are the fields that name an element of a list.
var identities = []string{"Topic", "TopicID", "Group", "Partition", "Name", "ResourceName", "ConfigName", "ApiKey", "MemberID", "InstanceID", "NodeID", "Key", "ReplicaID", "ProducerID"}

func keyRank(k string) string {
	if i := slices.Index(identities, k); i >= 0 {
		return fmt.Sprintf("%02d", i)
	}
	return "99"
}

// resolve replaces ordinals by their numbers.
func (m *masks) resolve(v any) any {
	switch x := v.(type) {
	case ordinal:
		return m.name(x)
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			x[k] = m.resolve(x[k])
		}
	case []any:
		for i := range x {
			x[i] = m.resolve(x[i])
		}
	}
	return v
}

func asJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// difference is one place where two trees differ. "" stands for nothing there.
type difference struct{ path, a, b string }

// treeDiff lists where two trees differ; what only one has is one difference, whole.
// Elements of a list go by what names them.
func treeDiff(a, b any, at string, out []difference) []difference {
	x, xok := children(a, at)
	y, yok := children(b, at)
	if !xok || !yok {
		if asJSON(a) != asJSON(b) {
			out = append(out, difference{at, asJSON(a), asJSON(b)})
		}
		return out
	}
	keys := make([]string, 0, len(x))
	for k := range x {
		keys = append(keys, k)
	}
	for k := range y {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		path := k
		if at != "" && k[0] != '[' {
			path = at + "." + k
		} else {
			path = at + k
		}
		l, inA := x[k]
		r, inB := y[k]
		switch {
		case !inB:
			out = append(out, difference{path, asJSON(l), ""})
		case !inA:
			out = append(out, difference{path, "", asJSON(r)})
		default:
			out = treeDiff(l, r, path, out)
		}
	}
	return out
}

// children gives the named parts of a map or of a list; a list of nothing has none.
func children(v any, at string) (map[string]any, bool) {
	switch x := v.(type) {
	case map[string]any:
		return x, true
	case []any:
		out := make(map[string]any, len(x))
		for i, e := range x {
			key := fmt.Sprint(i)
			if m, ok := e.(map[string]any); ok {
				key = nameOf(m, at, i)
			}
			name := "[" + key + "]"
			for n := 2; ; n++ {
				if _, taken := out[name]; !taken {
					break
				}
				name = fmt.Sprintf("[%s#%d]", key, n)
			}
			out[name] = e
		}
		return out, true
	}
	return nil, false
}

func nameOf(m map[string]any, at string, i int) string {
	for _, id := range identities {
		if n, ok := m[id]; ok {
			return fmt.Sprint(n)
		}
		if id == "Partition" && strings.HasSuffix(at, "Partitions") || id == "ApiKey" && strings.HasSuffix(at, "ApiKeys") {
			return "0"
		}
	}
	return fmt.Sprint(i)
}
