//go:build compat

package diff

// JSON into a kmsg request: every struct starts from kmsg's defaults.

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// fill sets v, an addressable kmsg value, from decoded JSON (numbers as
// json.Number; ids as [16]byte).
func fill(v reflect.Value, in any, at string) error {
	if in == nil {
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice:
			v.SetZero()
			return nil
		}
		return fmt.Errorf("%s cannot be null", at)
	}
	if _, ok := in.(dummy); ok {
		fillDummy(v)
		return nil
	}
	wrong := func() error { return fmt.Errorf("%s: %v (%T) does not fit %s", at, in, in, v.Type()) }
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setDefault(v.Elem())
		return fill(v.Elem(), in, at)
	case reflect.Struct:
		m, ok := in.(map[string]any)
		if !ok {
			return wrong()
		}
		for k, x := range m {
			f := v.FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, k) })
			if !f.IsValid() {
				return fmt.Errorf("%s has no field %s", v.Type(), k)
			}
			if err := fill(f, x, at+"."+k); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			b, err := fillBytes(in)
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			v.SetBytes(b)
			return nil
		}
		list, ok := in.([]any)
		if !ok {
			return wrong()
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, x := range list {
			setDefault(v.Index(i))
			if err := fill(v.Index(i), x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Array:
		switch x := in.(type) {
		case [16]byte:
			v.Set(reflect.ValueOf(x))
			return nil
		case string:
			b, err := hex.DecodeString(strings.ReplaceAll(x, "-", ""))
			if err != nil || len(b) != v.Len() {
				return wrong()
			}
			reflect.Copy(v, reflect.ValueOf(b))
			return nil
		}
		return wrong()
	case reflect.String:
		s, ok := in.(string)
		if !ok {
			return wrong()
		}
		v.SetString(s)
		return nil
	case reflect.Bool:
		b, ok := in.(bool)
		if !ok {
			return wrong()
		}
		v.SetBool(b)
		return nil
	case reflect.Float64:
		n, ok := in.(json.Number)
		if !ok {
			return wrong()
		}
		f, err := n.Float64()
		v.SetFloat(f)
		return err
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32:
		n, err := integer(in)
		if err != nil {
			return wrong()
		}
		if v.CanInt() {
			v.SetInt(n)
		} else {
			v.SetUint(uint64(n))
		}
		return nil
	}
	return wrong()
}

// dummy stands for a value that is known only when the scenario plays.
type dummy struct{}

func fillDummy(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillDummy(v.Elem())
	case v.Kind() == reflect.String:
		v.SetString("dummy")
	case v.CanInt():
		v.SetInt(1)
	case v.Kind() == reflect.Array:
		v.Index(0).SetUint(1)
	}
}

func integer(in any) (int64, error) {
	switch n := in.(type) {
	case json.Number:
		return n.Int64()
	case string:
		return json.Number(n).Int64()
	case int64:
		return n, nil
	}
	return 0, fmt.Errorf("%T is no number", in)
}

func setDefault(v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
		d.Default()
	}
}

// fillBytes makes the bytes of a field: text, {"hex"}, {"batch"}, {"sub": topics} (a
// consumer's subscription), or several of them one behind the other.
func fillBytes(in any) ([]byte, error) {
	switch x := in.(type) {
	case string:
		return []byte(x), nil
	case []any:
		out := []byte{}
		for _, e := range x {
			b, err := fillBytes(e)
			if err != nil {
				return nil, err
			}
			out = append(out, b...)
		}
		return out, nil
	case map[string]any:
		if h, ok := x["hex"].(string); ok {
			return hex.DecodeString(h)
		}
		if s, ok := x["batch"]; ok {
			return makeBatch(s)
		}
		if s, ok := x["sub"].([]any); ok {
			b := []byte{0, 0}
			b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
			for _, t := range s {
				b = binary.BigEndian.AppendUint16(b, uint16(len(t.(string))))
				b = append(b, t.(string)...)
			}
			return append(b, 0xff, 0xff, 0xff, 0xff), nil
		}
	}
	return nil, fmt.Errorf("no bytes in %v", in)
}
