package wiretest

import (
	"io"
	"sync"
)

// Pipe returns the two ends of a connection in memory. Like a socket it holds 64 KiB in each direction before a writer
// waits, and it wakes whoever waits when either end closes. It may be used inside a testing/synctest bubble.
func Pipe() (a, b io.ReadWriteCloser) {
	x, y := newStream(), newStream()
	return &end{r: x, w: y}, &end{r: y, w: x}
}

type end struct{ r, w *stream }

func (e *end) Read(p []byte) (int, error)  { return e.r.read(p) }
func (e *end) Write(p []byte) (int, error) { return e.w.write(p) }

func (e *end) Close() error {
	e.w.finish()
	e.r.abandon()
	return nil
}

// stream is one direction.
type stream struct {
	mu       sync.Mutex
	changed  *sync.Cond
	buf      []byte
	finished bool // nothing more is written
	gone     bool // nobody reads
}

const streamHolds = 64 << 10

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.buf) == 0 && !s.finished && !s.gone {
		s.changed.Wait()
	}
	switch {
	case s.gone:
		return 0, io.ErrClosedPipe
	case len(s.buf) == 0:
		return 0, io.EOF
	}
	n := copy(p, s.buf)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.changed.Broadcast()
	return n, nil
}

func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		for len(s.buf) >= streamHolds && !s.finished && !s.gone {
			s.changed.Wait()
		}
		if s.finished || s.gone {
			return written, io.ErrClosedPipe
		}
		n := min(len(p), streamHolds-len(s.buf))
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		written += n
		s.changed.Broadcast()
	}
	return written, nil
}

func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.changed.Broadcast()
}

func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.buf = nil
	s.changed.Broadcast()
}
