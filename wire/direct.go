package wire

import (
	"io"
	"net"
	"syscall"
)

// directWriter makes one non-blocking write to a socket from the goroutine that calls Send. It saves waking the writer
// goroutine, which takes longer than the write itself.
type directWriter struct {
	raw syscall.RawConn
	try func(fd uintptr) bool
	p   []byte
	n   int
}

// newDirectWriter returns nil unless rw is a Unix or TCP socket: a write to any other transport may block.
func newDirectWriter(rw io.ReadWriteCloser) *directWriter {
	var raw syscall.RawConn
	var err error
	switch c := rw.(type) {
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	default:
		return nil
	}
	if err != nil {
		return nil // rw is closed; the first write will report that
	}
	w := &directWriter{raw: raw}
	w.try = func(fd uintptr) bool {
		w.n, _ = syscall.Write(int(fd), w.p) // an error comes again in the writer goroutine, which reports it
		return true                          // do not wait until the socket takes the rest
	}
	return w
}

// write returns how many bytes of p the socket accepted, 0 after an error. No other write may run at the same time.
func (w *directWriter) write(p []byte) int {
	w.p, w.n = p, 0
	_ = w.raw.Write(w.try) // an error means that the socket is closed
	w.p = nil
	return max(0, w.n)
}

// isAwaited reports whether the peer may be waiting for m: a request, an answer or a message of a lease. Events and
// output belong to a stream and are written in batches instead.
func isAwaited(m Message) bool {
	if _, output := m.(*CommandOutput); output {
		return false
	}
	_, event := m.(EventMessage)
	return !event
}
