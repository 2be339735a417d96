package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/tools"
)

// kind is which of Java's clients a tool has: it shows in what it says.
type kind struct {
	failed string // what its constructor throws
	log    string // how its log lines begin
	id     string // client.id by default
}

var (
	adminKind    = kind{"Failed to create new KafkaAdminClient", "AdminClient clientId=", "adminclient-1"}
	producerKind = kind{"Failed to construct kafka producer", "Producer clientId=", "producer-1"}
	consumerKind = kind{"Failed to construct kafka consumer", "Consumer clientId=", "consumer-1"}
)

// cluster is a client that is connected, or tries to.
type cluster struct {
	cl   *kgo.Client
	ctx  context.Context // ends with the tool, or for admin tools at default.api.timeout.ms
	stop func()
}

var hostPort = regexp.MustCompile(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?\[?([0-9a-zA-Z\-._%:]*)\]?:([0-9]+)$`)

// bootstrap checks a list of servers as the Java clients do: the form of each,
// and that one of the names is known.
func bootstrap(list string) ([]string, error) {
	var good []string
	resolved := false
	for _, s := range splitList(list) {
		m := hostPort.FindStringSubmatch(s)
		if m == nil {
			return nil, configError("Invalid url in bootstrap.servers: %s", s)
		}
		addr := net.JoinHostPort(m[1], m[2])
		good = append(good, addr)
		if !resolved && (net.ParseIP(m[1]) != nil || m[1] == "localhost") {
			resolved = true
		}
	}
	if !resolved {
		for _, addr := range good {
			host, _, _ := net.SplitHostPort(addr)
			if _, err := net.LookupHost(host); err == nil {
				resolved = true
				break
			}
		}
	}
	if !resolved {
		return nil, configError("No resolvable bootstrap urls given in bootstrap.servers")
	}
	return good, nil
}

// validServers says that every server has a host and a port.
func validServers(list string) bool {
	all := splitList(list)
	return len(all) > 0 && !slices.ContainsFunc(all, func(s string) bool { return !hostPort.MatchString(s) })
}

// connect makes a client; nothing is asked of the cluster yet. servers wins over
// the properties' bootstrap.servers. close must be called.
func (c *call) connect(k kind, servers string, p properties, opts ...kgo.Opt) (*cluster, error) {
	wrap := func(err error) error {
		return &javaError{class: "org.apache.kafka.common.KafkaException", message: k.failed, cause: java("", err)}
	}
	if servers == "" {
		servers = p.get("bootstrap.servers", "")
	}
	seeds, err := bootstrap(servers)
	if err != nil {
		return nil, wrap(err)
	}
	request, err := p.number("request.timeout.ms", 32, 30000, 0)
	if err != nil {
		return nil, err
	}
	api, err := p.number("default.api.timeout.ms", 32, 60000, 0)
	if err != nil {
		return nil, err
	}
	dial, mechanism, err := tools.Security(p, 10*time.Second)
	if err != nil {
		return nil, wrap(configError("%s", err.Error()))
	}
	id := p.get("client.id", k.id)
	all := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID(id),
		kgo.SoftwareNameAndVersion("weir", "1"),
		kgo.Dialer(dial),
		kgo.DialTimeout(10 * time.Second),
		kgo.RequestTimeoutOverhead(time.Duration(min(max(request, 1000), 600000)) * time.Millisecond),
		kgo.RequestRetries(math.MaxInt32),
		kgo.RetryTimeout(time.Duration(api) * time.Millisecond),
		kgo.RetryBackoffFn(func(n int) time.Duration {
			return min(50*time.Millisecond<<min(n, 5), time.Second)
		}),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.DisableClientMetrics(),
		kgo.WithHooks(&warner{c: c, prefix: k.log + id}),
	}
	if mechanism != nil {
		all = append(all, kgo.SASL(mechanism))
	}
	cl, err := kgo.NewClient(append(all, opts...)...)
	if err != nil {
		return nil, wrap(configError("%s", err.Error()))
	}
	k2 := &cluster{cl: cl, ctx: c.ctx, stop: func() {}}
	if k == adminKind {
		k2.ctx, k2.stop = context.WithTimeout(c.ctx, time.Duration(api)*time.Millisecond)
	}
	return k2, nil
}

// admin is connect for a tool that asks and is done, with the properties of a file.
func (c *call) admin(servers, file string) (*cluster, error) {
	p, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	return c.connect(adminKind, servers, p)
}

func (k *cluster) close() {
	k.cl.CloseAllowingRebalance()
	k.stop()
}

// ask sends one request; doing is the Java client's name of it.
func ask[R kmsg.Response](k *cluster, doing string, req kmsg.Request) (R, error) {
	var none R
	resp, err := k.cl.Request(k.ctx, req)
	if err != nil {
		return none, java(doing, err)
	}
	return resp.(R), nil
}

// unsupported tells that the cluster does not know a request at all.
func (k *cluster) unsupported(key kmsg.Key) bool {
	resp, err := k.cl.Request(k.ctx, versionsRequest())
	if err != nil {
		return false // the next request says why
	}
	for _, a := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		if a.ApiKey == key.Int16() {
			return false
		}
	}
	return true
}

// metadata asks for topics by name; nil asks for all.
func (k *cluster) metadata(doing string, names []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	if names != nil {
		req.Topics = []kmsg.MetadataRequestTopic{}
		for _, n := range names {
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(n)
			req.Topics = append(req.Topics, t)
		}
	}
	return ask[*kmsg.MetadataResponse](k, doing, req)
}

// warner tells on stderr of every address that cannot be reached, once a second,
// as the Java clients' log does.
type warner struct {
	c      *call
	prefix string

	mu   sync.Mutex
	last time.Time
}

// OnBrokerConnect is called by the client for each attempt.
func (w *warner) OnBrokerConnect(m kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil || errors.Is(err, context.Canceled) || w.c.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.last) < time.Second {
		return
	}
	w.last = time.Now()
	node := m.NodeID
	if node < 0 {
		node = -1
	}
	w.c.errorf("%s", logLine("WARN", fmt.Sprintf("[%s] Connection to node %d (%s/%s) could not be established. Node may not be available: %s.",
		w.prefix, node, m.Host, net.JoinHostPort(m.Host, fmt.Sprint(m.Port)), tools.DialReason(err, 10*time.Second)), "org.apache.kafka.clients.NetworkClient"))
}
