package broker

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// ApiVersions, versions 0 to 5. 3: flexible, client software name (KIP-511),
// features (KIP-584). 4: features with a lowest level of 0. 5: cluster and node id
// (KIP-1242), by which a client finds out that it reached another cluster.

// softwareName is what KIP-511 allows.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func (b *Broker) apiVersions(r *wire.Request, req *kmsg.ApiVersionsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 {
		if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
			resp.ErrorCode = int16(kafka.ErrInvalidRequest)
			return respond(resp)
		}
		r.Conn.SetSoftware(req.ClientSoftwareName, req.ClientSoftwareVersion)
	}
	img := b.o.Quorum.Image()
	if req.Version >= 5 && (req.ClusterID == nil) != (req.NodeID == -1) {
		resp.ErrorCode = int16(kafka.ErrInvalidRequest) // both say where the client means to be, or none
		return respond(resp)
	}
	if req.Version >= 5 && req.ClusterID != nil && *req.ClusterID != img.ClusterID() {
		resp.ErrorCode = int16(kafka.ErrRebootstrapRequired)
		return respond(resp)
	}
	if req.Version >= 5 && req.NodeID >= 0 && kafka.BrokerID(req.NodeID) != b.o.Self {
		resp.ErrorCode = int16(kafka.ErrRebootstrapRequired)
		return respond(resp)
	}
	b.table.Each(func(key, min, max int16) {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = key, min, max
		resp.ApiKeys = append(resp.ApiKeys, k)
	})
	resp.FinalizedFeaturesEpoch = -1
	if req.Version >= 3 {
		for _, f := range features {
			if f.min == 0 && req.Version < 4 {
				continue // older clients cannot read a lowest level of 0 (KIP-1022)
			}
			s := kmsg.NewApiVersionsResponseSupportedFeature()
			s.Name, s.MinVersion, s.MaxVersion = f.name, f.min, f.max
			resp.SupportedFeatures = append(resp.SupportedFeatures, s)
			if f.level == 0 {
				continue
			}
			z := kmsg.NewApiVersionsResponseFinalizedFeature()
			z.Name, z.MinVersionLevel, z.MaxVersionLevel = f.name, f.level, f.level
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, z)
		}
		resp.FinalizedFeaturesEpoch = max(img.Offset(), 0)
	}
	return respond(resp)
}

// features are Kafka's feature levels (KIP-584) as far as this broker keeps what
// they promise. A level of 0 is the feature left off.
var features = []struct {
	name            string
	min, max, level int16
}{
	{"kraft.version", 0, 0, 0},
	{"metadata.version", 7, metadataVersion, metadataVersion},
}

// metadataVersion is the level that Kafka 4.4 finalizes for a new cluster.
const metadataVersion = 33
