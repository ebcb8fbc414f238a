package wire

import (
	"io"
	"net"
	"syscall"
)

// atOnce writes what a socket takes without waiting, in the goroutine that sends. A message that somebody waits for is on
// its way then without the writer being woken for it, which takes longer than the write: on a machine with work to do,
// several times as long.
type atOnce struct {
	raw syscall.RawConn
	try func(fd uintptr) bool
	p   []byte
	n   int
}

// newAtOnce returns nil where rw is not a socket itself: others may wait in the write.
func newAtOnce(rw io.ReadWriteCloser) *atOnce {
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
		return nil // it is closed: the first write tells
	}
	w := &atOnce{raw: raw}
	w.try = func(fd uintptr) bool {
		w.n, _ = syscall.Write(int(fd), w.p) // what fails here fails in the writer as well, which tells
		return true                          // whatever it took: never wait for more
	}
	return w
}

// write returns how many bytes of p went out. Nothing else may write meanwhile.
func (w *atOnce) write(p []byte) int {
	w.p, w.n = p, 0
	_ = w.raw.Write(w.try) // fails where the socket is closed: nothing went out
	w.p = nil
	return max(0, w.n)
}

// awaited reports whether somebody may be waiting for m: a request, an answer, a message of a lease. What belongs to a
// stream is written with its neighbours instead.
func awaited(m Message) bool {
	if _, output := m.(*CommandOutput); output {
		return false
	}
	_, event := m.(EventMessage)
	return !event
}
