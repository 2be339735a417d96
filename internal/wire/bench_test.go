//go:build unix

package wire

import (
	"bufio"
	"encoding/binary"
	"log/slog"
	"strconv"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/disk"
)

// cpu is the process's CPU time in seconds.
func cpu() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkEcho is the cost of a small request, client included: depth requests
// are written at once and their responses read.
func BenchmarkEcho(b *testing.B) {
	for _, depth := range []int{1, 5, 50} {
		b.Run("depth="+strconv.Itoa(depth), func(b *testing.B) {
			raw := &Raw{Parts: []Part{{Bytes: []byte{0, 0, 0, 0, 0, 0, 0}}}}
			s := NewServer(handlerFunc(func(*Request) Response { return Response{Raw: raw} }), testTable(), Options{Log: slog.New(slog.DiscardHandler)})
			nc := dial(b, listen(b, s))
			var batch []byte
			for i := range depth {
				batch = append(batch, heartbeat(4, int32(i))...)
			}
			r := bufio.NewReaderSize(nc, 64<<10)
			b.ReportAllocs()
			start := cpu()
			n := 0
			for b.Loop() {
				if _, err := nc.Write(batch); err != nil {
					b.Fatal(err)
				}
				for range depth {
					head, err := r.Peek(4)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := r.Discard(4 + int(binary.BigEndian.Uint32(head))); err != nil {
						b.Fatal(err)
					}
				}
				n += depth
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/request")
			b.ReportMetric((cpu()-start)*1e9/float64(n), "cpu-ns/request")
		})
	}
}

// BenchmarkFetch sends responses of regions of a file in the page cache, as many
// as a consumer would ask for, and reads them in pieces of 256 KiB.
func BenchmarkFetch(b *testing.B) {
	for _, size := range []int64{4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20} {
		for _, regions := range []int64{1, 6} {
			for _, sndbuf := range []int{-1, 100 << 10} {
				b.Run("region="+strconv.Itoa(int(size>>10))+"K/n="+strconv.Itoa(int(regions))+"/sndbuf="+strconv.Itoa(sndbuf), func(b *testing.B) {
					f := tempFile(b, int(size*regions))
					head := make([]byte, 60)
					raw := &Raw{}
					for i := range regions {
						raw.Parts = append(raw.Parts, Part{Bytes: head}, Part{Region: disk.Region{File: f, Off: i * size, Len: size}})
					}
					s := NewServer(handlerFunc(func(*Request) Response { return Response{Raw: raw} }), testTable(), Options{SendBuf: sndbuf})
					nc := dial(b, listen(b, s))
					req := heartbeat(4, 1)
					total := 4 + 5 + regions*(size+60)
					buf := make([]byte, min(total, 256<<10))
					b.SetBytes(regions * size)
					b.ReportAllocs()
					start := cpu()
					for b.Loop() {
						if _, err := nc.Write(req); err != nil {
							b.Fatal(err)
						}
						for left := total; left > 0; {
							n, err := nc.Read(buf[:min(left, int64(len(buf)))])
							if err != nil {
								b.Fatal(err)
							}
							left -= int64(n)
						}
					}
					b.ReportMetric((cpu()-start)*1e9/float64(b.N)/float64(regions*size)*1e3, "cpu-ns/KB")
				})
			}
		}
	}
}

// BenchmarkProduce reads large requests, depth of them in flight.
func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{16 << 10, 100 << 10, 1<<20 + 200} {
		b.Run("frame="+strconv.Itoa(size>>10)+"K", func(b *testing.B) {
			raw := &Raw{Parts: []Part{{Bytes: make([]byte, 60)}}}
			s := NewServer(handlerFunc(func(*Request) Response { return Response{Raw: raw} }), testTable(), Options{})
			nc := dial(b, listen(b, s))
			frame := heartbeat(4, 1)
			frame = append(frame, make([]byte, size-len(frame))...)
			binary.BigEndian.PutUint32(frame, uint32(size-4))
			const depth = 5
			window := make(chan struct{}, depth)
			done := make(chan error, 1)
			go func() {
				buf := make([]byte, 64<<10)
				for got := 0; ; {
					n, err := nc.Read(buf)
					if err != nil {
						done <- err
						return
					}
					for got += n; got >= 69; got -= 69 {
						<-window
					}
				}
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			start := cpu()
			for b.Loop() {
				window <- struct{}{}
				if _, err := nc.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpu()-start)*1e9/float64(b.N)/float64(size)*1e3, "cpu-ns/KB")
			_ = nc.Close()
			<-done
		})
	}
}
