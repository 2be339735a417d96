package commitlog

// What is left after kills, power cuts and damage. Field cases B012 (damage after a
// kill), B130 (side files), B131 (epoch 0), B132 (strays).

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// edit rewrites a file of the log, which must be closed.
func (w *world) edit(name string, change func(b []byte) []byte) {
	w.Helper()
	path := filepath.Join(w.cfg.Dir, name)
	b, err := w.fs.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	f, err := w.fs.Create(path)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(change(b), 0); err != nil {
		w.Fatal(err)
	}
}

func zeros(b []byte) []byte { return make([]byte, len(b)) }
func cut(n int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:max(0, len(b)-n)] }
}

func TestDamageAfterKill(t *testing.T) {
	const last = "00000000000000000000"
	for name, tc := range map[string]struct {
		do   func(w *world)
		end  kafka.Offset
		warn bool
	}{
		"nothing":              {func(w *world) {}, 1000, false},
		"tail cut":             {func(w *world) { w.edit(last+logExt, cut(7)) }, 999, true},
		"last batch flipped":   {func(w *world) { w.edit(last+logExt, func(b []byte) []byte { b[len(b)-9] ^= 1; return b }) }, 999, true},
		"61 zeros behind":      {func(w *world) { w.edit(last+logExt, func(b []byte) []byte { return append(b, make([]byte, 61)...) }) }, 1000, true},
		"5 bytes behind":       {func(w *world) { w.edit(last+logExt, func(b []byte) []byte { return append(b, 1, 2, 3, 4, 5) }) }, 1000, true},
		"zero offset index":    {func(w *world) { w.edit(last+indexExt, zeros) }, 1000, false},
		"zero time index":      {func(w *world) { w.edit(last+timeExt, zeros) }, 1000, false},
		"time index gone":      {func(w *world) { w.fs.Remove(w.cfg.Dir + "/" + last + timeExt) }, 1000, false},
		"offset index gone":    {func(w *world) { w.fs.Remove(w.cfg.Dir + "/" + last + indexExt) }, 1000, false},
		"index cut oddly":      {func(w *world) { w.edit(last+indexExt, cut(3)) }, 1000, false},
		"time index cut oddly": {func(w *world) { w.edit(last+timeExt, cut(5)) }, 1000, false},
	} {
		for _, clean := range []bool{false, true} {
			for _, flushed := range []bool{false, true} {
				if clean && (name == "last batch flipped" || name == "tail cut") {
					continue // no crash does that to a log closed in order: see TestLostSynced
				}
				t.Run(fmt.Sprintf("%s/clean=%v/flushed=%v", name, clean, flushed), func(t *testing.T) {
					w := newWorld(t, func(o *Options) { o.IndexIntervalBytes = 300 })
					w.fillTo(950, 60)
					if flushed {
						if _, err := w.l.Flush(); err != nil {
							t.Fatal(err)
						}
					}
					w.fillTo(1000, 60)
					if err := w.l.active().fileIndex(false); err != nil {
						t.Fatal(err)
					}
					if err := w.l.Close(clean); err != nil {
						t.Fatal(err)
					}
					w.cfg.Clean, w.cfg.RecoveryPoint = clean, w.l.Flushed()
					tc.do(w)
					w.open()
					if w.l.End() != tc.end {
						t.Fatalf("end %d, want %d; log:\n%s", w.l.End(), tc.end, w.logs.String())
					}
					if n := strings.Count(w.logs.String(), "bytes_dropped"); n > 1 || (n == 1) != tc.warn {
						t.Fatalf("%d warnings of dropped bytes:\n%s", n, w.logs.String())
					}
					if tc.warn && !strings.Contains(w.logs.String(), "partition="+w.cfg.TP.String()) {
						t.Fatalf("the warning does not name the partition:\n%s", w.logs.String())
					}
					w.wantRange(0, tc.end)
					for _, off := range []kafka.Offset{0, 1, 500, 998} {
						got, ok, err := w.l.OffsetForTime(t0.UnixMilli()+int64(off), w.l.End())
						if err != nil || !ok || got.Offset != off {
							t.Fatalf("time of %d: %+v %v %v", off, got, ok, err)
						}
					}
					if a := w.append(recs(t0.UnixMilli(), 1, 10)); a.Base != tc.end {
						t.Fatalf("next append went to %d", a.Base)
					}
				})
			}
		}
	}
}

// TestOldIndexDamaged: indexes of segments that no recovery touches are checked at
// their first use.
func TestOldIndexDamaged(t *testing.T) {
	for _, ext := range []string{indexExt, timeExt} {
		for name, do := range map[string]func(w *world, file string){
			"zero": func(w *world, file string) { w.edit(file, zeros) },
			"gone": func(w *world, file string) { w.fs.Remove(w.cfg.Dir + "/" + file) },
			"odd":  func(w *world, file string) { w.edit(file, cut(1)) },
			"page": func(w *world, file string) {
				w.edit(file, func(b []byte) []byte { clear(b[len(b)/2:]); return b })
			},
		} {
			t.Run(name+ext, func(t *testing.T) {
				w := newWorld(t, func(o *Options) { o.IndexIntervalBytes = 300; o.SegmentBytes = 20_000 })
				w.fillTo(1000, 60)
				if err := w.l.Close(true); err != nil {
					t.Fatal(err)
				}
				w.cfg.Clean, w.cfg.RecoveryPoint = true, w.l.Flushed()
				do(w, fileName(0, ext))
				w.open()
				w.wantRange(0, 1000)
				got, ok, err := w.l.OffsetForTime(t0.UnixMilli()+77, 1000)
				if err != nil || !ok || got.Offset != 77 {
					t.Fatalf("%+v %v %v", got, ok, err)
				}
			})
		}
	}
}

func TestSideFiles(t *testing.T) {
	for _, file := range []string{epochFile, metadataFile, fileName(30, snapshotExt)} {
		for name, do := range map[string]func(w *world){
			"empty": func(w *world) { w.edit(file, func([]byte) []byte { return nil }) },
			"zeros": func(w *world) { w.edit(file, zeros) },
			"cut":   func(w *world) { w.edit(file, cut(5)) },
			"gone":  func(w *world) { w.fs.Remove(w.cfg.Dir + "/" + file) },
			"wrong count": func(w *world) {
				w.edit(file, func(b []byte) []byte { return bytes.Replace(b, []byte("\n3\n"), []byte("\n4\n"), 1) })
			},
			"tmp beside": func(w *world) { w.fs.WriteAtomic(w.cfg.Dir+"/"+file+tmpExt, []byte("x")) },
		} {
			for _, clean := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/clean=%v", file, name, clean), func(t *testing.T) {
					w := newWorld(t, nil)
					for i := range 30 {
						e := []kafka.Epoch{0, 1, 3}[i/10]
						if _, err := w.l.Append(t0, fromProducer(t0.UnixMilli(), 5, 0, int32(i), 1, false), e); err != nil {
							t.Fatal(err)
						}
					}
					if err := w.l.Checkpoint(t0); err != nil {
						t.Fatal(err)
					}
					if _, err := w.l.Flush(); err != nil {
						t.Fatal(err)
					}
					if err := w.l.Close(clean); err != nil {
						t.Fatal(err)
					}
					w.cfg.Clean, w.cfg.RecoveryPoint = clean, w.l.Flushed()
					do(w)
					w.open()
					for _, tc := range [][3]int64{{0, 0, 10}, {1, 1, 20}, {2, 1, 20}, {3, 3, 30}} { // B131
						e, end := w.l.EndOfEpoch(kafka.Epoch(tc[0]))
						if int64(e) != tc[1] || int64(end) != tc[2] {
							t.Fatalf("EndOfEpoch(%d) = %d, %d", tc[0], e, end)
						}
					}
					if id, err := ReadTopicID(w.fs, w.cfg.Dir); err != nil || id != w.cfg.ID {
						t.Fatal(id, err)
					}
					play2(w, 30)
					if names := listNames(w); strings.Contains(names, tmpExt) {
						t.Fatal(names)
					}
				})
			}
		}
	}
}

func play2(w *world, next int32) {
	w.Helper()
	a, err := w.l.Append(t0, fromProducer(t0.UnixMilli(), 5, 0, next-1, 1, false), 3)
	if err != nil || !a.Duplicate {
		w.Fatalf("resend: %+v %v", a, err)
	}
	if _, err = w.l.Append(t0, fromProducer(t0.UnixMilli(), 5, 0, next+1, 1, false), 3); err != kafka.ErrOutOfOrderSequenceNumber {
		w.Fatalf("gap: %v", err)
	}
}

func listNames(w *world) string {
	entries, _ := w.fs.ReadDir(w.cfg.Dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestOtherTopicID(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	w.cfg.ID[0]++
	if _, err := Open(w.cfg); !errors.Is(err, kafka.ErrInconsistentTopicID) {
		t.Fatal(err)
	}
}

func TestStrays(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = 2000 })
	w.fillTo(60, 100)
	if err := w.l.Close(false); err != nil {
		t.Fatal(err)
	}
	second := w.l.segments()[1].base
	third := w.l.segments()[2].base
	first, err := w.fs.ReadFile(w.l.path(0, logExt))
	if err != nil {
		t.Fatal(err)
	}
	// A finished compaction of the first two segments: every second batch of them.
	mid, err := w.fs.ReadFile(w.l.path(second, logExt))
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	for i, b := 0, append(first, mid...); len(b) > 0; i++ {
		v, rest, err := batch.Next(b)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 || len(rest) == 0 {
			kept = append(kept, v...)
		}
		b = rest
	}
	put := func(name string, b []byte) {
		f, err := w.fs.Create(w.cfg.Dir + "/" + name)
		if err == nil {
			_, err = f.WriteAt(b, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	put(fileName(0, logExt+swapExt), kept)
	put(fileName(third, logExt+cleanedExt), []byte("half"))
	put(fileName(third, indexExt+cleanedExt), []byte("half"))
	put(fileName(7, logExt+deletedExt), []byte("old"))
	put(fileName(9, indexExt), []byte("no log"))
	put(fileName(9, timeExt+tmpExt), nil)
	w.open()
	names := listNames(w)
	for _, bad := range []string{swapExt, cleanedExt, deletedExt, tmpExt, fileName(9, ""), fileName(second, logExt)} {
		if strings.Contains(names, bad) {
			t.Errorf("%s left in %s", bad, names)
		}
	}
	if w.l.End() != 60 || w.l.segments()[0].size != int64(len(kept)) {
		t.Fatalf("end %d, first segment %d of %d bytes", w.l.End(), w.l.segments()[0].size, len(kept))
	}
	offs := w.readAll(0, 60, 1<<20)
	if offs[1] != 2 || offs[len(offs)-1] != 59 {
		t.Fatal(offs)
	}
}

// TestDamageBelowRecoveryPoint: what was synced and is no longer whole is an error,
// never a silent cut.
func TestReadDamage(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = 20_000 })
	w.fillTo(500, 60)
	w.reopen(true)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	w.edit(fileName(0, logExt), func(b []byte) []byte { clear(b[len(b)/2:]); return b })
	w.open()
	var ce *CorruptError
	for off := kafka.Offset(0); ; off++ {
		_, err := w.l.Read(off, 500, 10, true)
		if errors.As(err, &ce) {
			break
		}
		if err != nil || off == 200 {
			t.Fatalf("offset %d: %v", off, err)
		}
	}
	w.wantRange(w.l.segments()[1].base, 500)
}

// crashSeeds is how many worlds TestCrash lives through.
var crashSeeds = uint64(150)

// TestCrash does random things, cuts the power at random and opens what is left:
// the log is a prefix, and holds what was flushed.
func TestCrash(t *testing.T) {
	for seed := range crashSeeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := disk.NewMem(seed)
		w := worldOn(t, mem, func(o *Options) { o.SegmentBytes = 3000; o.IndexIntervalBytes = 200; o.FileDeleteDelayMs = 0 })
		if err := mem.SyncDir("."); err != nil {
			t.Fatal(err)
		}
		want := map[kafka.Offset]string{} // offset to value
		var seq int32
		epoch := kafka.Epoch(0)
		for round := range 6 {
			for range 1 + rng.IntN(30) {
				switch rng.IntN(12) {
				case 0:
					if _, err := w.l.Flush(); err != nil {
						t.Fatal(err)
					}
					w.cfg.RecoveryPoint = w.l.Flushed()
				case 1:
					epoch++
				case 2:
					if err := w.l.Checkpoint(t0); err != nil {
						t.Fatal(err)
					}
				case 3:
					if rng.IntN(3) == 0 {
						if _, err := w.l.DeleteBefore(w.l.LogStart() + kafka.Offset(rng.Int64N(int64(w.l.End()-w.l.LogStart())+1))); err != nil {
							t.Fatal(err)
						}
						w.cfg.LogStart = w.l.LogStart()
						if err := w.l.Sweep(t0); err != nil {
							t.Fatal(err)
						}
					}
				case 4:
					if rng.IntN(4) == 0 && w.l.End() > 0 {
						to := w.l.LogStart() + kafka.Offset(rng.Int64N(int64(w.l.End()-w.l.LogStart())+1))
						if err := w.l.TruncateTo(to); err != nil {
							t.Fatal(err)
						}
						seq = -1
						w.cfg.RecoveryPoint = min(w.cfg.RecoveryPoint, w.l.End())
						w.cfg.LogStart = min(w.cfg.LogStart, w.l.LogStart())
						for o := range want {
							if o >= w.l.End() {
								delete(want, o)
							}
						}
					}
				default:
					n := 1 + rng.IntN(3)
					ps := w.l.Producers(t0)
					if len(ps) > 0 && seq < 0 {
						seq = ps[0].LastSequence + 1
					}
					if len(ps) == 0 {
						seq = 0
					}
					b := fromProducer(t0.UnixMilli()+int64(w.l.End()), 5, 0, seq, n, false)
					a, err := w.l.Append(t0, b, epoch)
					if err != nil {
						t.Fatalf("seed %d round %d: %v", seed, round, err)
					}
					if a.Duplicate {
						t.Fatalf("seed %d: duplicate at %d", seed, a.Base)
					}
					for o := a.Base; o <= a.Last; o++ {
						want[o] = fmt.Sprintf("%d/%d", seq, epoch)
					}
					seq += int32(n)
				}
			}
			w.wantRange(w.l.LogStart(), w.l.End())
			w.sameBatches(want)
			flushed, end, start := w.l.Flushed(), w.l.End(), w.l.LogStart()
			clone := mem.CrashClone()
			if round%2 == 0 { // a kill: nothing is lost
				if err := w.l.Close(false); err != nil {
					t.Fatal(err)
				}
				w.open()
				if w.l.End() != end || w.l.LogStart() != start {
					t.Fatalf("seed %d: after a kill %d..%d, want %d..%d\n%s", seed, w.l.LogStart(), w.l.End(), start, end, w.logs.String())
				}
				w.wantRange(start, end)
				continue
			}
			mem = clone
			w.fs, w.cfg.FS = mem, mem
			if err := w.l.Close(false); err != nil {
				t.Fatal(err)
			}
			before := w.cfg.RecoveryPoint
			w.open()
			got := w.l.End()
			if got > end || got < flushed || w.l.LogStart() > max(start, got) {
				t.Fatalf("seed %d round %d: end %d after a power cut, flushed %d (saved %d) of %d\n%s", seed, round, got, flushed, before, end, w.logs.String())
			}
			w.wantRange(w.l.LogStart(), got)
			w.sameBatches(want)
			seq = -1
			for o := range want {
				if o >= got {
					delete(want, o)
				}
			}
		}
		w.reopen(true)
		w.wantRange(w.l.LogStart(), w.l.End())
	}
}

// sameBatches compares sequence and epoch of every batch with what was appended.
func (w *world) sameBatches(want map[kafka.Offset]string) {
	w.Helper()
	for _, s := range w.l.segments() {
		err := w.l.walk(s, w.l.LogStart(), func(b found) error {
			if got := fmt.Sprintf("%d/%d", b.BaseSequence(), b.LeaderEpoch()); got != want[b.BaseOffset()] {
				return fmt.Errorf("batch %v: sequence/epoch %s, want %s", b, got, want[b.BaseOffset()])
			}
			if e := w.l.EpochAt(max(b.BaseOffset(), w.l.LogStart())); e != b.LeaderEpoch() {
				return fmt.Errorf("batch %v: epoch chain says %d", b, e)
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

func TestDiskFull(t *testing.T) {
	f := disk.NewFaulty(disk.NewMem(1))
	w := worldOn(t, f, func(o *Options) { o.SegmentBytes = 2000 })
	w.fillTo(10, 100)
	for torn := range 150 {
		hits := f.Inject(disk.Fault{Op: disk.OpWrite, Path: logExt, Err: syscall.ENOSPC, Torn: torn, Times: 1})
		_, err := w.l.Append(t0, recs(1, 1, 100), 0)
		if hits(true) != 1 || !disk.IsNoSpace(err) {
			t.Fatalf("torn %d: %v", torn, err)
		}
		w.append(recs(t0.UnixMilli(), 1, 100))
	}
	for _, op := range []disk.Op{disk.OpOpen, disk.OpWrite, disk.OpRename} { // in a roll
		for skip := range 4 {
			w.fillTo(w.l.End()+3, 100)
			f.Inject(disk.Fault{Op: op, Err: syscall.ENOSPC, Skip: skip})
			for range 60 {
				if _, err := w.l.Append(t0, recs(1, 1, 100), 0); err != nil && !disk.IsNoSpace(err) {
					t.Fatalf("%s: %v", op, err)
				}
			}
			f.Clear()
			w.append(recs(t0.UnixMilli(), 1, 100))
		}
	}
	w.wantRange(0, w.l.End())
	end := w.l.End()
	w.reopen(false)
	if w.l.End() != end {
		t.Fatalf("end %d, want %d\n%s", w.l.End(), end, w.logs.String())
	}
	w.wantRange(0, end)
}

func TestFailedSyncSticks(t *testing.T) {
	f := disk.NewFaulty(disk.NewMem(1))
	w := worldOn(t, f, nil)
	w.fillTo(5, 100)
	if _, err := w.l.Flush(); err != nil {
		t.Fatal(err)
	}
	w.fillTo(10, 100)
	f.Inject(disk.Fault{Op: disk.OpSync, Path: logExt, Err: syscall.EIO, Times: 1})
	var fe *FailedError
	for range 2 { // the second sync would succeed, and say nothing about the lost pages
		if off, err := w.l.Flush(); !errors.As(err, &fe) || !errors.Is(err, syscall.EIO) || off != 5 {
			t.Fatal(off, err)
		}
	}
	if _, err := w.l.Append(t0, recs(1, 1, 10), 0); !errors.As(err, &fe) {
		t.Fatal(err)
	}
	w.wantRange(0, 10)
	if err := w.l.Close(true); !errors.As(err, &fe) {
		t.Fatal(err)
	}
}

func TestFailedWriteSticks(t *testing.T) {
	f := disk.NewFaulty(disk.NewMem(1))
	w := worldOn(t, f, nil)
	w.fillTo(5, 100)
	f.Inject(disk.Fault{Op: disk.OpWrite, Path: logExt, Err: syscall.EIO, Torn: 30, Times: 1})
	var fe *FailedError
	if _, err := w.l.Append(t0, recs(1, 1, 10), 0); !errors.As(err, &fe) {
		t.Fatal(err)
	}
	if _, err := w.l.Append(t0, recs(1, 1, 10), 0); !errors.As(err, &fe) {
		t.Fatal(err)
	}
	w.reopen(false)
	w.wantRange(0, 5)
}

func FuzzRecover(f *testing.F) {
	whole := append(append([]byte(nil), recs(1, 2, 20)...), recs(2, 1, 10)...)
	batch.View(whole).Stamp(0, 0)
	f.Add(whole, []byte{}, []byte{}, true)
	f.Add(whole[:len(whole)-3], []byte{0, 0, 0, 1, 0, 0, 0, 0}, make([]byte, 12), false)
	f.Add(append(whole, make([]byte, 100)...), make([]byte, 7), make([]byte, 24), false)
	f.Add(append([]byte{'1'}, whole...), []byte{}, []byte{}, false) // a whole batch behind damage
	f.Fuzz(func(t *testing.T, log, index, times []byte, clean bool) {
		mem := disk.NewMem(1)
		if err := mem.MkdirAll("d/t-0"); err != nil {
			t.Fatal(err)
		}
		for ext, b := range map[string][]byte{logExt: log, indexExt: index, timeExt: times} {
			if err := mem.WriteAtomic("d/t-0/"+fileName(0, ext), b); err != nil {
				t.Fatal(err)
			}
		}
		cfg := Config{FS: mem, Dir: "d/t-0", TP: kafka.TopicPartition{Topic: "t"}, Options: DefaultOptions(), Now: t0, Clean: clean}
		l, err := Open(cfg)
		var ce *CorruptError
		switch {
		case errors.As(err, &ce) && clean:
			return // damage in what a clean close vouched for
		case errors.As(err, &ce):
			// Damage with whole batches behind it is refused, and the way out the error names opens the log.
			if !strings.Contains(err.Error(), acceptFile) {
				t.Fatalf("the error names no way out: %v", err)
			}
			if err := mem.WriteAtomic("d/t-0/"+acceptFile, nil); err != nil {
				t.Fatal(err)
			}
			if l, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
		case err != nil:
			t.Fatal(err)
		}
		end, size := l.End(), l.Size()
		if _, err := walkLog(l, l.LogStart(), end, 1000); err != nil && !clean && !errors.Is(err, batch.ErrCorrupt) {
			var bad *batch.Invalid
			if !errors.As(err, &bad) && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "batch") {
				t.Fatal(err)
			}
		}
		if _, err := l.Append(t0, recs(5, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(false); err != nil {
			t.Fatal(err)
		}
		if clean {
			return
		}
		// What recovery left it accepts without a further cut.
		l, err = Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if l.End() != end+1 || l.Size() <= size {
			t.Fatalf("end %d then %d, size %d then %d", end, l.End(), size, l.Size())
		}
	})
}

func FuzzSideFiles(f *testing.F) {
	f.Add([]byte("0\n1\n0 0\n"))
	f.Add([]byte("0\n2\nt 0 5\nu 1 7\n"))
	f.Add([]byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"))
	f.Add(encodeSnapshot([]snapshotEntry{{ID: 1}}))
	f.Add(encodeTxn(nil, AbortedTxn{1, 2, 3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if chain, err := parseEpochs(b); err == nil {
			if again, err := parseEpochs(encodeEpochs(chain)); err != nil || fmt.Sprint(again) != fmt.Sprint(chain) {
				t.Fatal(chain, again, err)
			}
		}
		if txns, err := parseTxns(b); err == nil {
			var out []byte
			for _, x := range txns {
				out = encodeTxn(out, x)
			}
			if !bytes.Equal(out, b) {
				t.Fatalf("%x became %x", b, out)
			}
		}
		if entries, err := parseSnapshot(b); err == nil && !bytes.Equal(encodeSnapshot(entries), b) {
			t.Fatalf("%x", b)
		}
		if offsets, err := parseCheckpoint(b); err == nil {
			mem := disk.NewMem(1)
			if err := WriteCheckpoint(mem, "c", offsets); err != nil {
				t.Fatal(err)
			}
			if again, err := ReadCheckpoint(mem, "c"); err != nil || fmt.Sprint(again) != fmt.Sprint(offsets) {
				t.Fatal(again, offsets, err)
			}
		}
		_, _ = parseTopicID(b)
		_, _ = parseOffsets(0, b, 1<<31)
		_, _ = parseTimes(0, b)
	})
}

// TestStartBehindEnd: a saved log start behind the end costs no record. A log that was
// closed in order keeps its own start; after a crash the offsets up to the saved start
// may be known to clients, so the log begins there and the segments are set aside.
func TestStartBehindEnd(t *testing.T) {
	for _, tc := range []struct {
		name         string
		clean, point bool
		cut          bool
		saved        kafka.Offset
		start, end   kafka.Offset
	}{
		{"closed in order", true, true, false, 99_999_999, 0, 500},
		{"closed in order, by one", true, true, false, 501, 0, 500},
		{"closed in order, recovery point lost", true, false, false, 99_999_999, 0, 500},
		{"closed in order, at the end", true, true, false, 500, 500, 500},
		{"killed", false, false, false, 99_999_999, 99_999_999, 99_999_999},
		{"deleted up to an end that was lost", false, false, true, 500, 500, 500},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.SegmentBytes = 20_000 })
			w.fillTo(500, 60)
			size := w.l.Size()
			if err := w.l.Close(tc.clean); err != nil {
				t.Fatal(err)
			}
			if tc.cut {
				w.edit(fileName(w.l.active().base, logExt), cut(70))
			}
			w.cfg.Clean, w.cfg.RecoveryPoint, w.cfg.LogStart = tc.clean, 0, tc.saved
			if tc.point {
				w.cfg.RecoveryPoint = 500
			}
			for range 2 {
				w.open()
				if w.l.LogStart() != tc.start || w.l.End() != tc.end {
					t.Fatalf("log %d..%d, want %d..%d\n%s", w.l.LogStart(), w.l.End(), tc.start, tc.end, w.logs.String())
				}
				w.wantRange(tc.start, tc.end)
				var kept int64
				entries, err := w.fs.ReadDir(w.cfg.Dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					if strings.HasSuffix(e.Name, logExt) || strings.HasSuffix(e.Name, asideExt) {
						kept += e.Size
					}
				}
				if kept < size-200 {
					t.Fatalf("%d bytes of %d left: %s", kept, size, listNames(w))
				}
				if warned := strings.Contains(w.logs.String(), "saved"); warned != (tc.saved > 500 || tc.cut) {
					t.Errorf("said:\n%s", w.logs.String())
				}
				if err := w.l.Close(tc.clean); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestBadSwap: a .swap or .cleaned file that is empty or broken destroys no segment
// that is there.
func TestBadSwap(t *testing.T) {
	for _, ext := range []string{swapExt, cleanedExt} {
		for name, tc := range map[string]struct {
			content func(log []byte) []byte
			old     bool // the segment it is to replace is there
			refused bool
		}{
			"empty":              {func([]byte) []byte { return nil }, true, false},
			"short":              {func(b []byte) []byte { return b[:20] }, true, false},
			"a letter":           {func(b []byte) []byte { return bytes.Repeat([]byte("x"), 200) }, true, false},
			"zeros":              {func(b []byte) []byte { return make([]byte, 200) }, true, false},
			"cut":                {func(b []byte) []byte { return b[:len(b)-5] }, true, false},
			"a flipped bit":      {func(b []byte) []byte { b[80] ^= 1; return b }, true, false},
			"a flipped bit, old": {func(b []byte) []byte { b[80] ^= 1; return b }, false, true},
			"short, old":         {func(b []byte) []byte { return b[:20] }, false, true},
		} {
			if ext == cleanedExt && tc.refused {
				continue
			}
			for _, clean := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ext, clean), func(t *testing.T) {
					w := newWorld(t, func(o *Options) { o.SegmentBytes = 2000 })
					w.fillTo(60, 100)
					if err := w.l.Close(true); err != nil {
						t.Fatal(err)
					}
					w.cfg.Clean, w.cfg.RecoveryPoint = clean, 60
					log, err := w.fs.ReadFile(w.l.path(0, logExt))
					if err != nil {
						t.Fatal(err)
					}
					path := w.l.path(0, logExt)
					if err := w.fs.WriteAtomic(path+ext, tc.content(log)); err != nil {
						t.Fatal(err)
					}
					if !tc.old {
						if err := w.fs.Rename(path, path+deletedExt); err != nil {
							t.Fatal(err)
						}
					}
					if tc.refused {
						var ce *CorruptError
						if _, err := Open(w.cfg); !errors.As(err, &ce) || !strings.HasSuffix(ce.File, swapExt) {
							t.Fatalf("open: %v", err)
						}
						if _, err := w.fs.Stat(path + deletedExt); err != nil {
							t.Error("the last copy went")
						}
						return
					}
					w.open()
					w.wantRange(0, 60)
					if names := listNames(w); strings.Contains(names, ext) {
						t.Error(names)
					}
				})
			}
		}
	}
}
