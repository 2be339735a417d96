package commitlog

import (
	"errors"
	"strings"
	"testing"
)

func TestDump(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.IndexIntervalBytes = 1000 })
	busyLog(w)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	dump := func(name string, o DumpOptions) (string, error) {
		var b strings.Builder
		err := Dump(&b, w.fs, w.cfg.Dir+"/"+name, o)
		return b.String(), err
	}
	for name, want := range map[string]string{
		fileName(0, logExt):         "baseOffset: 25 lastOffset: 27 count: 3 baseSequence: 0 lastSequence: 2 producerId: 7 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 2591 CreateTime: 1700000000062 size: 100 magic: 2 compresscodec: none crc: ",
		fileName(0, indexExt):       "offset: 11 position: 1143",
		fileName(0, timeExt):        "timestamp: 1700000000031 offset: 11",
		fileName(0, txnExt):         "version: 0 producerId: 7 firstOffset: 25 lastOffset: 28 lastStableOffset: 29",
		fileName(1471, snapshotExt): "producerId: 7 producerEpoch: 29 coordinatorEpoch: 1 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 1700000002960 firstSequence: 0 lastSequence: 2 lastOffset: 1450 offsetDelta: 2",
		epochFile:                   "0\n3\n0 0\n1 490\n2 980\n",
		metadataFile:                "topic_id: AQIDAAAAAAAAAAAAAAAAAA",
		"other":                     "Ignoring unknown file",
	} {
		got, err := dump(name, DumpOptions{})
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%.800s", name, err, got)
		}
	}
	for _, ext := range []string{indexExt, timeExt} {
		for _, o := range []DumpOptions{{VerifyIndex: true}, {IndexCheck: true}} {
			if got, err := dump(fileName(0, ext), o); err != nil || strings.Contains(got, "Mismatch") {
				t.Error(err, got)
			}
		}
	}
	w.edit(fileName(0, indexExt), func(b []byte) []byte { b[15]++; return b })
	w.edit(fileName(0, logExt), cut(5))
	var ce *CorruptError
	if _, err := dump(fileName(0, indexExt), DumpOptions{VerifyIndex: true}); !errors.As(err, &ce) {
		t.Error(err)
	}
	if got, err := dump(fileName(0, logExt), DumpOptions{Deep: true}); !errors.As(err, &ce) || !strings.Contains(got, "endTxnMarker: ABORT coordinatorEpoch: 1") {
		t.Error(err)
	}
	for _, name := range []string{fileName(5000, indexExt), fileName(5000, timeExt)} {
		if err := w.fs.WriteAtomic(w.cfg.Dir+"/"+name, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := dump(name, DumpOptions{}); err != nil || !strings.HasSuffix(got, "/"+name+" is empty.\n") {
			t.Errorf("%v %q", err, got)
		}
	}
}

// TestDumpChecksum: a wrong checksum is told by the error too, the first one, and
// what is behind it is shown all the same.
func TestDumpChecksum(t *testing.T) {
	w := newWorld(t, nil)
	for range 3 {
		w.append(recs(1, 3, 10))
	}
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	size := len(recs(1, 3, 10))
	w.edit(fileName(0, logExt), func(b []byte) []byte { b[2*size-1] ^= 1; b[3*size-1] ^= 1; return b })
	for _, o := range []DumpOptions{{}, {Deep: true}, {Data: true}, {SkipMetadata: true}} {
		var b strings.Builder
		err := Dump(&b, w.fs, w.cfg.Dir+"/"+fileName(0, logExt), o)
		var ce *CorruptError
		if !errors.As(err, &ce) || ce.Position != int64(size) || ce.Err != errChecksum {
			t.Errorf("%+v: %v", o, err)
		}
		if got := strings.Count(b.String(), "isvalid: false"); got != 2 && !o.SkipMetadata || strings.Count(b.String(), "isvalid: true") != 1 && !o.SkipMetadata {
			t.Errorf("%+v: %s", o, b.String())
		}
	}
}
