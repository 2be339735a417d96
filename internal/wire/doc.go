// Package wire turns TCP connections into requests and responses into bytes.
//
// Owns: the length prefix, request and response headers, the version table,
// listeners and their limits, the connection loops, frame memory and its budget,
// sendfile.
// Does not know: what any request means. The only answers it gives by itself are
// the closing of a connection and the v0 ApiVersions reply to a version it does
// not offer (KIP-511).
//
// Goroutines: one accept loop per Serve call, one sweeper per Server (idle,
// stalled and unread connections), one read goroutine per connection, and one
// write goroutine per connection that returned a Pending and has not rested since
// (rest.go). Server.Close stops and waits for all of them.
//
// The read goroutine calls Handler.Handle inline. While nothing is queued it
// also owns the out buffer: it appends ready responses and writes them before
// it blocks in the next read. As soon as one response is Pending, everything
// after it goes through the queue and the write goroutine owns the out buffer
// until the queue has run empty.
//
// Invariants:
//   - Responses leave in the order in which requests arrived, per connection.
//   - Conn.queued is raised by the read goroutine only and lowered by the write
//     goroutine only, after the bytes of that response were handed to the
//     kernel. Zero seen by the read goroutine therefore stays zero, and gives it
//     the out buffer without a lock.
//   - Every Pending gets exactly one of Response and Cancel; every Raw gets its
//     Release exactly once, also when the connection dies.
//   - Memory of a frame grows with the bytes that arrived. A length prefix alone
//     allocates at most what the same connection has used before.
//   - A frame's memory is nobody's once it is answered: not even the connection's
//     own Request may point into it until the next one comes.
//
// Sources: the protocol guide (framing, headers), KIP-482 (flexible versions),
// KIP-511 (ApiVersions). Kafka's SocketServer for the meaning of its keys.
//
// Tested: golden bytes for headers, loops under synctest over net.Pipe, TCP
// tests for sendfile, limits and descriptors, fuzzing of frames and headers.
package wire
