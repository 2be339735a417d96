//go:build compat

package diff

// Sweeps: a request, and the same with one field changed at a time.

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// change is one way to spoil a request. Either the field at path is set, or the
// encoded body is.
type change struct {
	path []int // field and element indexes
	set  func(reflect.Value)
	body func([]byte) []byte
}

func (c *change) apply(req kmsg.Request) {
	if c == nil || c.set == nil {
		return
	}
	v := reflect.ValueOf(req).Elem()
	for _, i := range c.path {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() == reflect.Slice {
			v = v.Index(i)
		} else {
			v = v.Field(i)
		}
	}
	c.set(v)
}

func newRequest(key, version int16, body any) (kmsg.Request, error) {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	v := reflect.ValueOf(req).Elem()
	setDefault(v)
	req.SetVersion(version)
	return req, fill(v, body, kmsg.NameForKey(key))
}

func (p *parser) sweep(head string, lines []block) error {
	words := strings.Fields(head)
	key, ok := apiKeys[strings.ToLower(words[1])]
	if !ok {
		return fmt.Errorf("no API %s", words[1])
	}
	conn := "sweep"
	var body any = map[string]any{}
	var skip []string
	var before, but []string
	wanted := "v*"
	for _, l := range lines {
		word, rest, _ := strings.Cut(l.text, " ")
		switch word {
		case "base":
			var err error
			if body, err = decodeJSON(rest); err != nil {
				return fmt.Errorf("line %d: %w", l.line, err)
			}
		case "skip":
			skip = append(skip, strings.Fields(rest)...)
		case "but":
			but = append(but, rest)
		case "versions":
			wanted = rest
		case "before":
			before = append(before, rest)
		default:
			return fmt.Errorf("line %d: %q in a sweep", l.line, l.text)
		}
	}
	if _, ok := p.both[key]; !ok {
		return nil
	}
	from, to, err := p.versions(key, wanted)
	if err != nil {
		return err
	}
	type named struct {
		name   string
		change *change
	}
	seen := make(map[string]bool)
	var all []named
	plain := make(map[int16][]byte)
	for v := from; v <= to; v++ {
		s := step{key: key, version: v, body: body}
		req, err := s.request(func(string) (any, error) { return dummy{}, nil }, "x-")
		if err != nil {
			return err
		}
		plain[v] = req.AppendTo(nil)
		walk(reflect.ValueOf(req).Elem(), "", nil, skip, func(name string, c *change) {
			if !seen[name] {
				seen[name] = true
				all = append(all, named{name, c})
			}
		})
	}
	all = append([]named{{"as it is", nil}}, all...)
	all = append(all,
		named{"a byte short", &change{body: func(b []byte) []byte { return b[:max(0, len(b)-1)] }}},
		named{"a byte long", &change{body: func(b []byte) []byte { return append(b, 0) }}})
	for _, n := range all {
		if slices.Contains(but, n.name) {
			continue
		}
		for v := from; v <= to; v++ {
			s := step{op: opAsk, name: words[1] + " " + n.name, conn: conn, key: key, version: v, body: body, change: n.change}
			if n.change != nil && n.change.set != nil {
				req, err := s.request(func(string) (any, error) { return dummy{}, nil }, "x-")
				if err != nil {
					return err
				}
				n.change.apply(req)
				if bytes.Equal(req.AppendTo(nil), plain[v]) {
					continue // not in this version
				}
			}
			p.serial++
			s.serial = p.serial
			for _, b := range before {
				at := len(p.steps)
				if err := p.statement(b); err != nil {
					return err
				}
				for i := at; i < len(p.steps); i++ {
					p.steps[i].serial, p.steps[i].quiet = p.serial, true
				}
			}
			p.add(s)
		}
	}
	return nil
}

// walk finds the fields of a request and what each can be changed to. Of a list only
// the first element is changed.
func walk(v reflect.Value, name string, path []int, skip []string, found func(string, *change)) {
	add := func(what string, set func(reflect.Value)) {
		found(name+what, &change{path: slices.Clone(path), set: set})
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "Version" || f.Name == "UnknownTags" || slices.Contains(skip, f.Name) {
				continue
			}
			walk(v.Field(i), strings.TrimPrefix(name+"."+f.Name, "."), append(path, i), skip, found)
		}
	case reflect.Pointer:
		add("=null", func(v reflect.Value) { v.SetZero() })
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			walk(v.Elem(), name, path, skip, found)
			return
		}
		elem := v.Type().Elem()
		if elem.Kind() != reflect.String {
			return
		}
		for _, s := range strangeStrings {
			add(s.what, func(v reflect.Value) { v.Set(reflect.ValueOf(&s.value)) })
		}
	case reflect.Slice:
		add("=null", func(v reflect.Value) { v.SetZero() })
		add("=[]", func(v reflect.Value) { v.Set(reflect.MakeSlice(v.Type(), 0, 0)) })
		if v.Type().Elem().Kind() == reflect.Uint8 {
			add("=junk", func(v reflect.Value) { v.SetBytes([]byte("junk")) })
			return
		}
		if v.Len() == 0 {
			return
		}
		add(" twice", func(v reflect.Value) { v.Set(reflect.Append(v, v.Index(0))) })
		walk(v.Index(0), name+"[0]", append(path, 0), skip, found)
	case reflect.Array:
		add("=0", func(v reflect.Value) { v.SetZero() })
		add("=unknown", func(v reflect.Value) {
			for i := range v.Len() {
				v.Index(i).SetUint(0x77)
			}
		})
	case reflect.String:
		for _, s := range strangeStrings {
			add(s.what, func(v reflect.Value) { v.SetString(s.value) })
		}
	case reflect.Bool:
		add(" turned", func(v reflect.Value) { v.SetBool(!v.Bool()) })
	default:
		if !v.CanInt() {
			return
		}
		top := int64(math.MaxInt64) >> (64 - v.Type().Bits())
		for _, n := range []int64{-2, -1, 0, 1, top} {
			add(fmt.Sprintf("=%d", n), func(v reflect.Value) { v.SetInt(n) })
		}
	}
}

var strangeStrings = []struct{ what, value string }{
	{`=""`, ""}, {"=unknown", "unknown-name"}, {"=bad", "bad name/!"}, {"=long", strings.Repeat("x", 300)},
}
