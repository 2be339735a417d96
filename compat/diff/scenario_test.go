//go:build compat

package diff

// The scenario language: text to steps. doc.go describes it.

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type op int

const (
	opAsk op = iota
	opSend
	opTake
	opStill
	opRaw
	opTopic
	opClient
	opClose
	opLet
	opSleep
)

// step is one thing to do. Steps with the same name and several versions are one
// line of a scenario.
type step struct {
	op      op
	name    string // as written; of a sweep: API and what is changed
	conn    string
	key     int16
	version int16 // -1: none
	body    any   // decoded JSON
	words   []string
	wait    time.Duration
	frame   []byte
	quiet   bool
	until   *condition
	change  *change // of a sweep
	serial  int     // of a sweep's step, for @x#
}

type condition struct{ path, value string }

// ranges are the versions that both brokers serve.
type ranges map[int16][2]int16

type parser struct {
	both   ranges
	steps  []step
	serial int
}

var apiKeys = func() map[string]int16 {
	m := make(map[string]int16)
	for k := int16(0); k <= kmsg.MaxKey; k++ {
		if kmsg.RequestForKey(k) != nil {
			m[strings.ToLower(kmsg.NameForKey(k))] = k
		}
	}
	return m
}()

func parse(text string, both ranges) ([]step, error) {
	p := &parser{both: both}
	blocks := splitBlocks(text)
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		var err error
		if strings.HasPrefix(b.text, "sweep ") {
			n := i + 1
			for n < len(blocks) && blocks[n].text != "end" {
				n++
			}
			err = p.sweep(b.text, blocks[i+1:min(n, len(blocks))])
			i = n
		} else {
			err = p.statement(b.text)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", b.line, b.text, err)
		}
	}
	return p.steps, nil
}

type block struct {
	line int
	text string
}

func splitBlocks(text string) []block {
	var out []block
	for i, l := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(l)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case l[0] == ' ' || l[0] == '\t':
			if len(out) > 0 {
				out[len(out)-1].text += " " + trimmed
			}
		default:
			out = append(out, block{i + 1, trimmed})
		}
	}
	return out
}

var versions = regexp.MustCompile(`^v(\*|(\d+)(-(\d+))?)$`)

func (p *parser) statement(text string) error {
	s := step{name: text, version: -1}
	if rest, ok := strings.CutPrefix(text, "quiet "); ok {
		s.quiet, text = true, rest
	}
	words := strings.Fields(text)
	switch words[0] {
	case "topic":
		s.op, s.words, s.quiet = opTopic, words[1:], true
		if len(words) < 3 {
			return fmt.Errorf("topic NAME PARTITIONS [key=value ...]")
		}
		p.add(s)
		return nil
	case "client":
		s.op, s.conn, s.words, s.quiet = opClient, words[1], words[2:], true
		p.add(s)
		return nil
	case "let":
		if len(words) != 4 || words[2] != "=" {
			return fmt.Errorf("let NAME = PATH")
		}
		s.op, s.words, s.quiet = opLet, []string{words[1], words[3]}, true
		p.add(s)
		return nil
	case "until":
		path, value, ok := strings.Cut(strings.TrimPrefix(text, "until "), " = ")
		if !ok || len(p.steps) == 0 {
			return fmt.Errorf("until PATH = VALUE behind a request")
		}
		name := p.steps[len(p.steps)-1].name
		for i := len(p.steps) - 1; i >= 0 && p.steps[i].name == name; i-- {
			p.steps[i].until = &condition{path, value}
		}
		return nil
	case "sleep":
		d, err := time.ParseDuration(words[1])
		s.op, s.wait, s.quiet = opSleep, d, true
		p.add(s)
		return err
	}
	if len(words) == 1 && strings.HasSuffix(words[0], "<") {
		s.op, s.conn = opTake, strings.TrimSuffix(words[0], "<")
		p.add(s)
		return nil
	}
	if len(words) == 2 && strings.HasSuffix(words[0], "~") {
		d, err := time.ParseDuration(words[1])
		s.op, s.conn, s.wait = opStill, strings.TrimSuffix(words[0], "~"), d
		p.add(s)
		return err
	}
	if len(words) == 2 && words[1] == "close" {
		s.op, s.conn, s.quiet = opClose, words[0], true
		p.add(s)
		return nil
	}
	if len(words) == 3 && words[1] == "raw" {
		b, err := hex.DecodeString(words[2])
		s.op, s.conn, s.frame = opRaw, words[0], b
		p.add(s)
		return err
	}
	if len(words) < 3 {
		return fmt.Errorf("not a step")
	}
	s.op, s.conn = opAsk, words[0]
	if c, ok := strings.CutSuffix(s.conn, ">"); ok {
		s.op, s.conn, s.quiet = opSend, c, true
	}
	key, ok := apiKeys[strings.ToLower(words[1])]
	if !ok {
		return fmt.Errorf("no API %s", words[1])
	}
	s.key = key
	_, body, _ := strings.Cut(text, words[2])
	var err error
	if s.body, err = decodeJSON(body); err != nil {
		return err
	}
	from, to, err := p.versions(key, words[2])
	if err != nil {
		return err
	}
	for v := from; v <= to; v++ {
		s.version = v
		if err := s.check(); err != nil {
			return err
		}
		p.add(s)
	}
	return nil
}

func decodeJSON(text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		text = "{}"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more behind the JSON")
	}
	return v, nil
}

// versions cuts v3, v3-7 or v* to what both serve and kmsg knows.
func (p *parser) versions(key int16, word string) (from, to int16, err error) {
	m := versions.FindStringSubmatch(word)
	if m == nil {
		return 0, 0, fmt.Errorf("%q is no version", word)
	}
	both, ok := p.both[key]
	if !ok {
		return 0, -1, nil
	}
	if m[1] == "*" {
		return both[0], both[1], nil
	}
	a, _ := strconv.Atoi(m[2])
	b := a
	if m[4] != "" {
		b, _ = strconv.Atoi(m[4])
	}
	return max(int16(a), both[0]), min(int16(b), both[1]), nil
}

func (p *parser) add(s step) { p.steps = append(p.steps, s) }

// check fills the request once with stand-ins, so that a typing mistake shows before
// any broker is asked.
func (s *step) check() error {
	_, err := s.request(func(string) (any, error) { return dummy{}, nil }, "x-")
	return err
}

// request makes the kmsg request of a step.
func (s *step) request(lookup func(string) (any, error), prefix string) (kmsg.Request, error) {
	body, err := expand(s.body, lookup, prefix, s.serial)
	if err != nil {
		return nil, err
	}
	return newRequest(s.key, s.version, body)
}

var names = regexp.MustCompile(`@([a-z0-9.-]+)(#?)`)
var dollar = regexp.MustCompile(`\$([a-z0-9]+)`)

// expand replaces @names and $variables. A string that is one variable becomes its
// value, whatever the type.
func expand(v any, lookup func(string) (any, error), prefix string, serial int) (any, error) {
	switch x := v.(type) {
	case string:
		if m := dollar.FindStringSubmatch(x); m != nil && m[0] == x {
			return lookup(m[1])
		}
		s := names.ReplaceAllStringFunc(x, func(n string) string {
			if c, ok := strings.CutSuffix(n, "#"); ok {
				return prefix + c[1:] + strconv.Itoa(serial)
			}
			return prefix + n[1:]
		})
		var err error
		s = dollar.ReplaceAllStringFunc(s, func(n string) string {
			val, e := lookup(n[1:])
			if e != nil {
				err = e
			}
			return fmt.Sprint(val)
		})
		return s, err
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			n, err := expand(e, lookup, prefix, serial)
			if err != nil {
				return nil, err
			}
			if _, ok := n.(dummy); ok && k == "PID" {
				n = json.Number("1") // within a batch
			}
			out[k] = n
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			var err error
			if out[i], err = expand(e, lookup, prefix, serial); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}
