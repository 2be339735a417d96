package tools

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A format is a line of output compiled once: literals and fields in turn.
// Nothing is allocated for a record but what append needs.
type format struct {
	ops  []op
	null string // what a null key or value prints
}

type op struct {
	field   byte // 0: literal
	literal []byte
}

const formatHelp = `Format tokens (-f), as in kcat:
  %s value     %S its length, -1 for null     %R its length as 4 bytes, big-endian
  %k key       %K its length, -1 for null     %h headers as name=value,name=value
  %t topic     %p partition     %o offset     %T timestamp in ms     %% a percent sign
  \n \t \r \0 \\ \xHH are the usual bytes. Nothing is added behind the format.`

// compileFormat reads kcat's format tokens.
func compileFormat(s, null string) (*format, error) {
	raw, err := unescape(s)
	if err != nil {
		return nil, err
	}
	f := &format{null: null}
	var lit []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] != '%' {
			lit = append(lit, raw[i])
			continue
		}
		if i++; i == len(raw) {
			return nil, fmt.Errorf("format %q ends in %%: write %%%% for a percent sign", s)
		}
		switch raw[i] {
		case '%':
			lit = append(lit, '%')
			continue
		case 's', 'S', 'R', 'k', 'K', 'h', 't', 'p', 'o', 'T':
		default:
			return nil, fmt.Errorf("format %q has %%%c: the tokens are %%s %%S %%R %%k %%K %%h %%t %%p %%o %%T %%%%", s, raw[i])
		}
		if len(lit) > 0 {
			f.ops = append(f.ops, op{literal: lit})
			lit = nil
		}
		f.ops = append(f.ops, op{field: raw[i]})
	}
	if len(lit) > 0 {
		f.ops = append(f.ops, op{literal: lit})
	}
	return f, nil
}

// lineFormat is the output without -f: value and delimiter, before them key
// and key delimiter when there is one.
func lineFormat(keyDelim *string, delim, null string) *format {
	f := &format{null: null}
	if keyDelim != nil {
		f.ops = append(f.ops, op{field: 'k'}, op{literal: []byte(*keyDelim)})
	}
	f.ops = append(f.ops, op{field: 's'})
	if delim != "" {
		f.ops = append(f.ops, op{literal: []byte(delim)})
	}
	return f
}

func (f *format) append(b []byte, r *kgo.Record) []byte {
	for i := range f.ops {
		switch o := &f.ops[i]; o.field {
		case 0:
			b = append(b, o.literal...)
		case 's':
			b = f.bytes(b, r.Value)
		case 'k':
			b = f.bytes(b, r.Key)
		case 'S':
			b = appendLen(b, r.Value)
		case 'K':
			b = appendLen(b, r.Key)
		case 'R':
			n := int32(len(r.Value))
			if r.Value == nil {
				n = -1
			}
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		case 't':
			b = append(b, r.Topic...)
		case 'p':
			b = strconv.AppendInt(b, int64(r.Partition), 10)
		case 'o':
			b = strconv.AppendInt(b, r.Offset, 10)
		case 'T':
			b = strconv.AppendInt(b, r.Timestamp.UnixMilli(), 10)
		case 'h':
			for j := range r.Headers {
				if j > 0 {
					b = append(b, ',')
				}
				b = append(b, r.Headers[j].Key...)
				b = append(b, '=')
				b = f.bytes(b, r.Headers[j].Value)
			}
		}
	}
	return b
}

func (f *format) bytes(b, v []byte) []byte {
	if v == nil {
		return append(b, f.null...)
	}
	return append(b, v...)
}

func appendLen(b, v []byte) []byte {
	if v == nil {
		return append(b, "-1"...)
	}
	return strconv.AppendInt(b, int64(len(v)), 10)
}

const envelopeHelp = `JSON envelope (-J), one object a line: topic, partition, offset, tstype ("create"
or "logappend"), ts (ms), headers (a flat list: name, value, name, value …; only
when there are some), key, payload. Null is null. What is not UTF-8 stands base64 in
key_base64, payload_base64 or headers_base64 (names as they are, values base64).`

// appendEnvelope writes a record as kcat's -J does.
func appendEnvelope(b []byte, r *kgo.Record) []byte {
	b = append(b, `{"topic":`...)
	b = appendString(b, []byte(r.Topic))
	b = append(b, `,"partition":`...)
	b = strconv.AppendInt(b, int64(r.Partition), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, r.Offset, 10)
	if r.Attrs.TimestampType() == 1 {
		b = append(b, `,"tstype":"logappend","ts":`...)
	} else {
		b = append(b, `,"tstype":"create","ts":`...)
	}
	b = strconv.AppendInt(b, r.Timestamp.UnixMilli(), 10)
	if len(r.Headers) > 0 {
		b = appendHeaders(b, r.Headers)
	}
	b = appendField(b, "key", r.Key)
	b = appendField(b, "payload", r.Value)
	return append(b, '}', '\n')
}

func appendHeaders(b []byte, headers []kgo.RecordHeader) []byte {
	plain := true
	for _, h := range headers {
		plain = plain && utf8.Valid(h.Value)
	}
	if plain {
		b = append(b, `,"headers":[`...)
	} else {
		b = append(b, `,"headers_base64":[`...)
	}
	for i, h := range headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, []byte(h.Key))
		b = append(b, ',')
		b = appendBytes(b, h.Value, plain)
	}
	return append(b, ']')
}

func appendField(b []byte, name string, v []byte) []byte {
	plain := utf8.Valid(v)
	b = append(b, ',', '"')
	b = append(b, name...)
	if !plain {
		b = append(b, "_base64"...)
	}
	b = append(b, '"', ':')
	return appendBytes(b, v, plain)
}

func appendBytes(b, v []byte, plain bool) []byte {
	switch {
	case v == nil:
		return append(b, "null"...)
	case plain:
		return appendString(b, v)
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendString writes v, which is UTF-8, as a JSON string. Broken bytes (in a
// header's name) become the replacement character.
func appendString(b, v []byte) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(v[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, v[from:i]...), `\ufffd`...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, v[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	b = append(b, v[from:]...)
	return append(b, '"')
}

// unescape reads the backslash forms that a shell leaves in an argument.
func unescape(s string) (string, error) {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		if i++; i == len(s) {
			return "", fmt.Errorf("%q ends in a backslash: write \\\\ for one", s)
		}
		switch s[i] {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case '0':
			b = append(b, 0)
		case '\\', '"', '\'':
			b = append(b, s[i])
		case 'x':
			if i+2 >= len(s) {
				return "", fmt.Errorf("%q: \\x wants two hexadecimal digits", s)
			}
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf("%q: \\x wants two hexadecimal digits", s)
			}
			b = append(b, byte(n))
			i += 2
		default:
			return "", fmt.Errorf("%q has \\%c: the escapes are \\n \\t \\r \\0 \\\\ \\xHH", s, s[i])
		}
	}
	return string(b), nil
}
