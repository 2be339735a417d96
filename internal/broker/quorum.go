package broker

// QuorumStatus is the metadata quorum's state as DescribeQuorum tells it.
type QuorumStatus struct {
	Leader        int32
	Epoch         int32
	HighWatermark int64
}
