//go:build compat

package diff

// Steps against one broker.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is how long an answer may take; then it is "silence".
const patience = 10 * time.Second

// asked is a request whose answer is due.
type asked struct {
	corr int32
	req  kmsg.Request // nil: raw
}

// conn is one connection of a scenario.
type conn struct {
	c       net.Conn
	client  string
	corr    int32
	pending []asked
}

// player plays a scenario on one broker.
type player struct {
	addr    string
	prefix  string
	conns   map[string]*conn
	vars    map[string]any
	masks   *masks
	last    any               // the last answer, unmasked
	texts   map[string]string // error texts by path, of the last answer
	records []record

	problems []string // of steps that are not compared
}

// record is what one step was answered.
type record struct {
	name    string
	version int16
	answer  any
	texts   map[string]string
}

func newPlayer(addr, scenario string) *player {
	return &player{addr: addr, prefix: namePrefix + scenario + "-", conns: make(map[string]*conn), vars: make(map[string]any), masks: newMasks()}
}

// namePrefix begins the names of everything scenarios make.
const namePrefix = "d-"

func (p *player) close() {
	for _, c := range p.conns {
		if c.c != nil {
			c.c.Close()
		}
	}
}

func (p *player) play(steps []step) []record {
	defer p.close()
	for i := range steps {
		s := &steps[i]
		if s.change != nil || s.serial > 0 {
			p.masks = newMasks() // steps of a sweep do not depend on those before
		}
		p.texts = nil
		since := time.Now()
		answer, err := p.step(s)
		if took := time.Since(since); took > time.Second && *verbose {
			fmt.Printf("%v %s: %s v%d\n", took.Round(time.Millisecond), p.addr, s.name, s.version)
		}
		if err != nil {
			answer = "not played: " + err.Error()
		}
		if s.quiet && err != nil {
			p.problems = append(p.problems, fmt.Sprintf("%s: %v", s.name, err))
		}
		if !s.quiet {
			p.records = append(p.records, record{s.name, s.version, answer, p.texts})
		}
	}
	return p.records
}

func (p *player) lookup(name string) (any, error) {
	if v, ok := p.vars[name]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("$%s is not known", name)
}

func (p *player) step(s *step) (any, error) {
	switch s.op {
	case opTopic:
		return nil, p.makeTopic(s)
	case opClient:
		p.conn(s.conn).client = strings.Join(s.words, " ")
		return nil, nil
	case opClose:
		p.conn(s.conn).drop()
		return nil, nil
	case opSleep:
		time.Sleep(s.wait)
		return nil, nil
	case opLet:
		v, ok := pick(p.last, s.words[1])
		if !ok {
			return nil, fmt.Errorf("%s = %s: no such value", s.words[0], s.words[1])
		}
		p.vars[s.words[0]] = v
		return nil, nil
	case opTake:
		return p.take(p.conn(s.conn), patience), nil
	case opStill:
		return p.take(p.conn(s.conn), s.wait), nil
	case opRaw:
		c := p.conn(s.conn)
		if err := c.write(p.addr, binary.BigEndian.AppendUint32(nil, uint32(len(s.frame))), s.frame); err != nil {
			return nil, err
		}
		c.pending = append(c.pending, asked{})
		return p.take(c, patience), nil
	}
	req, err := s.request(p.lookup, p.prefix)
	if err != nil {
		return nil, err
	}
	s.change.apply(req)
	c := p.conn(s.conn)
	if s.op == opSend {
		return nil, c.send(p.addr, req, s.change)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(15 * time.Millisecond) {
		if err := c.send(p.addr, req, s.change); err != nil {
			return nil, err
		}
		mark := *p.masks
		mark.seen = make(map[ordinal]string, len(p.masks.seen))
		for k, v := range p.masks.seen {
			mark.seen[k] = v
		}
		answer := p.take(c, patience)
		if s.until == nil || time.Now().After(deadline) {
			return answer, nil
		}
		got, _ := pick(p.last, s.until.path)
		if fmt.Sprint(got) == s.until.value {
			return answer, nil
		}
		p.masks = &mark // what an answer too early said does not count
	}
}

func (p *player) conn(name string) *conn {
	c := p.conns[name]
	if c == nil {
		c = &conn{client: "diff-" + name}
		p.conns[name] = c
	}
	return c
}

func (c *conn) drop() {
	if c.c != nil {
		c.c.Close()
	}
	c.c, c.pending = nil, nil
}

func (c *conn) write(addr string, parts ...[]byte) error {
	if c.c == nil {
		n, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			return err
		}
		c.c = n
	}
	c.c.SetWriteDeadline(time.Now().Add(patience))
	c.c.Write(bytes.Join(parts, nil)) // a broker that closed shows when the answer is read
	return nil
}

// send writes a request. Behind a Produce with acks=0, which has no answer, goes an
// ApiVersions, so that nobody waits for nothing.
func (c *conn) send(addr string, req kmsg.Request, ch *change) error {
	c.corr++
	body := req.AppendTo(nil)
	if ch != nil && ch.body != nil {
		body = ch.body(body)
	}
	head := binary.BigEndian.AppendUint16(nil, uint16(req.Key()))
	head = binary.BigEndian.AppendUint16(head, uint16(req.GetVersion()))
	head = binary.BigEndian.AppendUint32(head, uint32(c.corr))
	head = binary.BigEndian.AppendUint16(head, uint16(len(c.client)))
	head = append(head, c.client...)
	if req.IsFlexible() {
		head = append(head, 0)
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(head)+len(body)))
	c.pending = append(c.pending, asked{c.corr, req})
	parts := [][]byte{frame, head, body}
	if pr, ok := req.(*kmsg.ProduceRequest); ok && pr.Acks == 0 {
		parts = append(parts, []byte{0, 0, 0, 10, 0, 18, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff})
	}
	return c.write(addr, parts...)
}

const probeCorrelation = 0x7fffffff

// take reads the next answer of a connection.
func (p *player) take(c *conn, wait time.Duration) any {
	p.last = nil
	if c.c == nil {
		return "not connected"
	}
	c.c.SetReadDeadline(time.Now().Add(wait))
	var size [4]byte
	_, err := io.ReadFull(c.c, size[:])
	var body []byte
	if err == nil {
		n := int32(binary.BigEndian.Uint32(size[:]))
		if n < 4 || n > 64<<20 {
			return fmt.Sprintf("a frame of %d bytes", n)
		}
		body = make([]byte, n)
		_, err = io.ReadFull(c.c, body)
	}
	var ne net.Error
	switch {
	case errors.As(err, &ne) && ne.Timeout():
		if wait == patience {
			c.drop() // whatever comes late would confuse
		}
		return "silence"
	case err != nil:
		c.drop()
		return "closed"
	}
	corr := int32(binary.BigEndian.Uint32(body))
	if corr == probeCorrelation {
		c.pending = c.pending[1:]
		return "no answer"
	}
	if len(c.pending) == 0 {
		return "an answer nobody asked for"
	}
	a := c.pending[0]
	c.pending = c.pending[1:]
	if a.req == nil {
		return fmt.Sprintf("x'%x' and more: %t", body[:min(len(body), 6)], len(body) > 6)
	}
	if a.corr != corr {
		return fmt.Sprintf("correlation id %d where %d was due", corr, a.corr)
	}
	resp, err := decode(a.req, body[4:])
	if err != nil {
		return err.Error()
	}
	p.last = rawTree(resp)
	p.texts = make(map[string]string)
	findTexts(p.last, "", p.texts)
	return render(p.masks, resp, p.prefix)
}

// decode reads an answer to its last byte, and checks that kmsg would have written it
// the same.
func decode(req kmsg.Request, b []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && req.Key() != 18 {
		if len(b) == 0 || b[0] != 0 {
			return nil, fmt.Errorf("undecodable: tags in the response header")
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("undecodable: %v: %x", err, b[:min(len(b), 200)])
	}
	if again := resp.AppendTo(nil); len(again) != len(b) {
		return nil, fmt.Errorf("undecodable: %d bytes, of which kmsg makes %d: %x", len(b), len(again), b[:min(len(b), 200)])
	}
	return resp, nil
}

// makeTopic makes a topic and waits until all of it is led, as Kafka answers before.
func (p *player) makeTopic(s *step) error {
	name, err := expand(s.words[0], p.lookup, p.prefix, s.serial)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(s.words[1])
	if err != nil {
		return err
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 5, 15000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name.(string), int32(n), 1
	for _, kv := range s.words[2:] {
		k, v, _ := strings.Cut(kv, "=")
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	got, err := ask[*kmsg.CreateTopicsResponse](p, req)
	if err != nil {
		return err
	}
	if code := got.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("making topic %s: %d %s", name, code, errorName(code))
	}
	return p.settle(name.(string), n)
}

func (p *player) settle(name string, partitions int) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 5, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = name
	for n := range partitions {
		tp := kmsg.NewListOffsetsRequestTopicPartition()
		tp.Partition, tp.Timestamp, tp.CurrentLeaderEpoch = int32(n), -1, -1
		t.Partitions = append(t.Partitions, tp)
	}
	req.Topics = append(req.Topics, t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got, err := ask[*kmsg.ListOffsetsResponse](p, req)
		if err != nil {
			return err
		}
		bad := int16(0)
		for _, tp := range got.Topics[0].Partitions {
			if tp.ErrorCode != 0 {
				bad = tp.ErrorCode
			}
		}
		if bad == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("topic %s is not led: %d", name, bad)
		}
	}
}

// ask is for the harness's own requests.
func ask[R kmsg.Response](p *player, req kmsg.Request) (R, error) {
	var none R
	c := p.conn("harness")
	if err := c.send(p.addr, req, nil); err != nil {
		return none, err
	}
	c.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return none, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.c, body); err != nil {
		return none, err
	}
	c.pending = nil
	resp, err := decode(req, body[4:])
	if err != nil {
		return none, err
	}
	return resp.(R), nil
}

var pathPart = regexp.MustCompile(`([A-Za-z]+)|\[(\d+)\]|\[([A-Za-z]+)=([^\]]*)\]`)

// pick finds a value in an unmasked tree: Topics[0].TopicID, Members[MemberID=x].ClientID,
// len(Topics) is written Topics.len.
func pick(v any, path string) (any, bool) {
	for _, m := range pathPart.FindAllStringSubmatch(path, -1) {
		switch x := v.(type) {
		case map[string]any:
			if m[1] == "" {
				return nil, false
			}
			var ok bool
			if v, ok = x[m[1]]; !ok {
				return nil, false
			}
		case []any:
			if m[1] == "len" {
				v = len(x)
				continue
			}
			if m[2] != "" {
				i, _ := strconv.Atoi(m[2])
				if i >= len(x) {
					return nil, false
				}
				v = x[i]
				continue
			}
			found := false
			for _, e := range x {
				if fe, ok := e.(map[string]any); ok && m[3] != "" && fmt.Sprint(fe[m[3]]) == m[4] {
					v, found = e, true
					break
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

func findTexts(v any, at string, out map[string]string) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if s, ok := e.(string); ok && k == "ErrorMessage" {
				out[at] = s
			}
			findTexts(e, at+"."+k, out)
		}
	case []any:
		for i, e := range x {
			findTexts(e, fmt.Sprintf("%s[%d]", at, i), out)
		}
	}
}
