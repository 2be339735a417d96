package weir_test

// Keys whose effect only the kernel shows: the broker runs in this process, so its
// sockets are found among our own descriptors.

import (
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// socket finds the descriptor bound to local and connected to peer (not valid: a
// listener).
func socket(t *testing.T, local, peer netip.AddrPort) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	is := func(a unix.Sockaddr, want netip.AddrPort) bool {
		in, ok := a.(*unix.SockaddrInet4)
		return ok && netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)) == want
	}
	for _, e := range fds {
		fd, _ := strconv.Atoi(e.Name())
		a, err := unix.Getsockname(fd)
		if err != nil || !is(a, local) {
			continue
		}
		p, err := unix.Getpeername(fd)
		if !peer.IsValid() && err != nil || peer.IsValid() && err == nil && is(p, peer) {
			return fd
		}
	}
	t.Fatalf("no socket at %v from %v", local, peer)
	return -1
}

func TestSocketKeys(t *testing.T) {
	t.Parallel()
	f := func(set string, want int, see func(listener, conn int) (int, error)) {
		t.Helper()
		n := run(t, t.TempDir(), set)
		c, _ := n.alive(n.s.Addr())
		at := netip.MustParseAddrPort(n.s.Addr())
		got, err := see(socket(t, at, netip.AddrPort{}), socket(t, at, netip.MustParseAddrPort(c.LocalAddr().String())))
		if err != nil || got != want {
			t.Errorf("%s: %d, want %d, %v", set, got, want, err)
		}
	}
	option := func(name int) func(_, conn int) (int, error) {
		return func(_, conn int) (int, error) { return unix.GetsockoptInt(conn, unix.SOL_SOCKET, name) }
	}
	f("socket.send.buffer.bytes=20000", 40000, option(unix.SO_SNDBUF)) // the kernel doubles it
	f("socket.receive.buffer.bytes=20000", 40000, option(unix.SO_RCVBUF))
	f("socket.listen.backlog.size=7", 7, func(l, _ int) (int, error) {
		info, err := unix.GetsockoptTCPInfo(l, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return 0, err
		}
		return int(info.Sacked), nil // of a listener: the most that may wait
	})
}

func TestPreallocate(t *testing.T) {
	t.Parallel()
	n := run(t, t.TempDir(), "log.segment.bytes=1048576")
	blocks := func(topic string) int64 {
		n.send(topic, records(10, 0, 0))
		st, err := os.Stat(n.files(topic, ".log")[0])
		if err != nil {
			t.Fatal(err)
		}
		return st.Sys().(*syscall.Stat_t).Blocks * 512
	}
	n.create("plain", 1, nil)
	n.set("log.preallocate", "true")
	n.create("whole", 1, nil)
	if plain, whole := blocks("plain"), blocks("whole"); plain >= 1<<20 || whole < 1<<20 {
		t.Errorf("log.preallocate=true: %d bytes of disk, without it %d", whole, plain)
	}
}
