package batch

// Shows: every codec gives back what it was given at sizes around its blocks;
// the forms that other writers produce are read; output stays within its bound,
// and memory within a small multiple of what is really there.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// texts are inputs that pack well, badly and not at all, around block sizes.
func texts() [][]byte {
	out := [][]byte{{}, {'x'}, bytes.Repeat([]byte("hello kafka "), 10)}
	r := pcg(1)
	for _, n := range []int{32<<10 - 1, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		out = append(out, make([]byte, n), noise, bytes.Repeat([]byte("0123456789abcde\n"), n/16+1)[:n])
	}
	return out
}

func TestCodecs(t *testing.T) {
	levels := map[Codec][]int{NoCodec: {0}, Gzip: {0, -1, 1, 9, 99}, Snappy: {0}, LZ4: {0, 1, 9, 17}, Zstd: {0, -5, 3, 22}}
	for _, c := range everyCodec {
		for _, level := range levels[c] {
			for _, text := range texts() {
				if len(text) > 100_000 && level != 0 {
					continue // slow, and shows nothing new
				}
				packed, err := Compress(c, level, text)
				if err != nil {
					t.Fatalf("%s level %d, %d bytes: %v", c, level, len(text), err)
				}
				got, err := Decompress(c, packed, len(text))
				if err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%s level %d, %d bytes: %v", c, level, len(text), err)
				}
				if len(text) > 0 {
					if _, err := Decompress(c, packed, len(text)-1); !errors.Is(err, ErrTooLarge) {
						t.Fatalf("%s, %d bytes: past the bound: %v", c, len(text), err)
					}
				}
				for _, cut := range []int{1, len(packed) / 2, len(packed) - 1} {
					if c == NoCodec || cut >= len(packed) {
						continue
					}
					// A cut stream is refused, except where the format cannot tell.
					if got, err := Decompress(c, packed[:cut], len(text)); err == nil && (c != Snappy || !bytes.HasPrefix(text, got)) {
						t.Fatalf("%s level %d, %d bytes cut to %d of %d: taken", c, level, len(text), cut, len(packed))
					}
				}
			}
		}
	}
	if _, err := Compress(5, 0, nil); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
	if _, err := Decompress(7, nil, 1); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
}

func TestCodecNames(t *testing.T) {
	for name, want := range map[string]Codec{"none": NoCodec, "uncompressed": NoCodec, "gzip": Gzip, "snappy": Snappy, "lz4": LZ4, "zstd": Zstd, "producer": TargetProducer} {
		if got, err := ParseCodec(name); err != nil || got != want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	if _, err := ParseCodec("brotli"); err == nil {
		t.Error("brotli is taken")
	}
}

func TestSnappyForms(t *testing.T) {
	text := bytes.Repeat([]byte("some text, "), 9000)
	plain := s2.EncodeSnappy(nil, text)
	framed, _ := Compress(Snappy, 0, text)
	if !bytes.HasPrefix(framed, xerialHeader) {
		t.Error("not framed")
	}
	one := append(bytes.Clone(xerialHeader), binary.BigEndian.AppendUint32(nil, uint32(len(plain)))...)
	one = append(one, plain...)
	for name, c := range map[string]struct {
		src  []byte
		want []byte
	}{
		"plain":                   {plain, text},
		"framed":                  {framed, text},
		"one large block":         {one, text},
		"two streams":             {append(bytes.Clone(framed), framed...), append(bytes.Clone(text), text...)},
		"header alone":            {xerialHeader, nil},
		"other version in header": {append(append(bytes.Clone(xerialHeader[:8]), 0, 0, 0, 9, 0, 0, 0, 1), framed[16:]...), text},
	} {
		got, err := Decompress(Snappy, c.src, 1<<20)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestLZ4Forms(t *testing.T) {
	text := append(bytes.Repeat([]byte("some text, "), 90000), texts()[4]...)
	made := func(opts ...lz4.Option) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(opts...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	all := made(lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(text))))
	oldSum := bytes.Clone(all)
	oldSum[14] = byte(xxh32(oldSum[:14]) >> 8)
	for name, src := range map[string][]byte{
		"4 MiB blocks, content checksum": made(),
		"256 KiB blocks":                 made(lz4.BlockSizeOption(lz4.Block256Kb)),
		"all options":                    all,
		"Kafka's old header checksum":    oldSum,
		"two frames":                     append(made(), lz4Header...),
	} {
		if name == "two frames" {
			src = append(src, 0, 0, 0, 0)
		}
		got, err := Decompress(LZ4, src, len(text))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for at, name := range map[int]string{0: "magic", 4: "version", 14: "header checksum", 40: "block", len(all) - 1: "content checksum"} {
		bad := bytes.Clone(all)
		bad[at] ^= 0x80
		if _, err := Decompress(LZ4, bad, len(text)); err == nil {
			t.Errorf("%s changed: taken", name)
		}
	}
	// The library's reader reads ours.
	mine, _ := Compress(LZ4, 0, text)
	var back bytes.Buffer
	if _, err := back.ReadFrom(lz4.NewReader(bytes.NewReader(mine))); err != nil || !bytes.Equal(back.Bytes(), text) {
		t.Errorf("the library reads %d bytes of ours: %v", back.Len(), err)
	}
}

// Linked blocks refer to the output before them. No writer at hand makes them, so
// the second block is made by hand: copy 16 bytes from 20 back.
func TestLZ4LinkedBlocks(t *testing.T) {
	first := []byte("abcdefghijklmnopqrst")
	frame := []byte{0x04, 0x22, 0x4d, 0x18, lz4Version, 0x40}
	frame = append(frame, byte(xxh32(frame[4:])>>8))
	frame = binary.LittleEndian.AppendUint32(frame, lz4Stored|uint32(len(first)))
	frame = append(frame, first...)
	block := []byte{0x0c, 20, 0, 0x50, 'v', 'w', 'x', 'y', 'z'} // match of 4+12, then 5 literals
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(block)))
	frame = append(append(frame, block...), 0, 0, 0, 0)
	got, err := Decompress(LZ4, frame, 1000)
	if want := string(first) + "abcdefghijklmnopvwxyz"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestXXH32(t *testing.T) {
	// Values of the reference implementation.
	for text, want := range map[string]uint32{
		"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff, "Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxh32([]byte(text)); got != want {
			t.Errorf("%q: %08x, want %08x", text, got, want)
		}
	}
}

// Zstd frames without a stated size, as Java's client writes them, and several
// frames in a row.
func TestZstdForms(t *testing.T) {
	text := bytes.Repeat([]byte("some text, "), 90000)
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for rest := text; len(rest) > 0; rest = rest[11*1000:] {
		if _, err := w.Write(rest[:11*1000]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string][]byte{"one": out.Bytes(), "two": append(bytes.Clone(out.Bytes()), out.Bytes()...)} {
		n := len(text) * map[string]int{"one": 1, "two": 2}[name]
		got, err := Decompress(Zstd, src, n)
		if err != nil || len(got) != n || !bytes.HasPrefix(got, text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := Decompress(Zstd, src, n-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A few bytes that claim to hold much are refused before memory is taken.
func TestClaims(t *testing.T) {
	snappy := append(binary.AppendUvarint(nil, 1<<30), 0, 'x')
	framed := append(append(bytes.Clone(xerialHeader), 0, 0, 0, byte(len(snappy))), snappy...)
	for name, c := range map[string]struct {
		codec Codec
		src   []byte
	}{
		"snappy of 1 GiB":             {Snappy, snappy},
		"framed snappy of 1 GiB":      {Snappy, framed},
		"snappy block of 4 GiB":       {Snappy, append(bytes.Clone(xerialHeader), 0xff, 0xff, 0xff, 0xff, 1)},
		"lz4 block of 2 GiB":          {LZ4, append(bytes.Clone(lz4Header), 0xff, 0xff, 0xff, 0x7f, 1)},
		"zstd frame that states 1 GB": {Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1, 0, 0}},
		"zstd window of 1 GiB":        {Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 1, 0, 0}},
	} {
		if n := allocated(func() {
			if out, err := Decompress(c.codec, c.src, 2<<30); err == nil && len(out) > 0 {
				t.Errorf("%s: taken", name)
			}
		}); n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is large is unpacked as well, byte for byte, up to the limit and not past
// it; and what is past the limit takes no memory of the limit's size.
func TestLargeUnpacks(t *testing.T) {
	text := make([]byte, 3*countFrom+12345)
	for i := range len(text) / 1000 {
		text[i*1000] = byte(i)
	}
	packed := map[Codec][]byte{}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	e, _ := zstd.NewWriter(nil)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Compress(LZ4, 0, text)
	if err != nil {
		t.Fatal(err)
	}
	packed[Gzip], packed[Zstd], packed[LZ4] = z.Bytes(), e.EncodeAll(text, nil), l
	for c, src := range packed {
		for _, limit := range []int{len(text), len(text) + 1, 1 << 30} {
			if got, err := Decompress(c, src, limit); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%v with limit %d: %d bytes, %v", c, limit, len(got), err)
			}
		}
		for _, limit := range []int{countFrom, len(text) - 1} {
			if _, err := Decompress(c, src, limit); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v with limit %d: %v", c, limit, err)
			}
		}
		if _, err := Decompress(c, src[:len(src)-20], 1<<30); err == nil {
			t.Errorf("%v: cut short and taken", c)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Decompress(c, src, len(text)-1)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 5*countFrom {
			t.Errorf("%v: %d MiB allocated on the way to a limit of %d", c, n>>20, (len(text)-1)>>20)
		}
	}
}
