//go:build !linux

package wire

// fileSender: elsewhere than on Linux regions are copied. macOS and the BSDs have
// a sendfile with other rules; no broker that needs the speed runs there.
type fileSender struct{}

func (c *Conn) sendInit() {}

func (c *Conn) sendFile(uintptr, int64, int64) (bool, error) { return false, nil }

func (c *Conn) writeMore(b []byte) error {
	_, err := c.nc.Write(b)
	return err
}
