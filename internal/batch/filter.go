package batch

import (
	"fmt"
	"math"
)

// NoHorizon leaves a batch's delete horizon as it is.
const NoHorizon int64 = math.MinInt64

// Filter makes of v a new batch with only the records that keep returns true
// for, as compaction does: base and last offset, epoch, producer and sequences
// stay, so offsets keep their gaps and the producer's last sequence its place. A
// horizonMs other than NoHorizon becomes the delete horizon of a batch that has
// none yet (KIP-534). The result may hold no records at all; whether such a batch
// is worth keeping is the caller's to say. Records are packed again at the
// codec's default level. Errors wrap ErrCorrupt, or are keep's.
func Filter(v View, horizonMs int64, keep func(r *Record) (bool, error)) (out View, kept int, err error) {
	bits := uint8(v.Attributes())
	base := v.BaseTimestamp()
	shift := int64(0)
	if _, has := v.DeleteHorizon(); !has && horizonMs != NoHorizon {
		bits |= attrDeleteHorizon
		base, shift = horizonMs, v.BaseTimestamp()-horizonMs
	}
	latest := NoTimestamp
	raw := make([]byte, HeaderLen, len(v))
	err = v.Each(func(r *Record) error {
		yes, err := keep(r)
		if err != nil || !yes {
			return err
		}
		latest = max(latest, v.Timestamp(r))
		raw = appendRecord(raw, r.OffsetDelta, r.TimestampDelta+shift, r.Key, r.Value, r.Headers)
		kept++
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if v.AppendTime() {
		latest = v.MaxTimestamp()
	}
	out = raw
	if c := v.Codec(); c != NoCodec && kept > 0 {
		if out, err = appendCompressed(make([]byte, HeaderLen, HeaderLen+len(raw)/2), c, 0, raw[HeaderLen:]); err != nil {
			return nil, 0, fmt.Errorf("batch: packing again: %w", err)
		}
	} else if kept == 0 {
		bits &^= attrCodec // nothing is left to unpack
	}
	copy(out, v[:HeaderLen])
	out.put32(atLength, int32(len(out)-lengthAfter))
	out.putAttributes(bits)
	out.put64(atBaseTimestamp, base)
	out.put64(atMaxTimestamp, latest)
	out.put32(atCount, int32(kept))
	out.seal()
	return out, kept, nil
}
