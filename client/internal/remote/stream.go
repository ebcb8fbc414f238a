package remote

import (
	"context"
	"sync"

	"sublet/wire"
)

// liveBound is how many bytes of live output may wait for a slow consumer, such as a pager, before more is dropped: as many as the
// spool of a shell keeps. The rest is not bounded, since it is a turn's text and the reader must not block.
const liveBound = 64 << 20

// stream is the messages that follow one request, in order, for a consumer that may be slow.
type stream struct {
	wake chan struct{} // capacity 1

	mu sync.Mutex
	// guarded by mu
	queue  []wire.Message
	live   int // bytes of live output in queue
	closed bool
}

func newStream() *stream { return &stream{wake: make(chan struct{}, 1)} }

func (s *stream) push(m wire.Message) {
	s.mu.Lock()
	if n := liveSize(m); n == 0 || s.live+n <= liveBound {
		s.live += n
		s.queue = append(s.queue, m)
	}
	s.mu.Unlock()
	s.signal()
}

// Live reports whether m is a preview that may be dropped, since a later message has the content: output of what runs, or arguments as
// the model writes them. The result of a command has only both ends of a long output; a jump in CommandOutput.Offset shows the gap.
func Live(m wire.Message) bool { return liveSize(m) > 0 }

// liveSize returns the approximate bytes of m in memory if it is live output, else 0.
func liveSize(m wire.Message) int {
	const head = 256
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		if m.Chunk.Type == wire.ChunkToolOutput || m.Chunk.Type == wire.ChunkToolCallDelta {
			return head + len(m.Chunk.Data) + len(m.Chunk.Text)
		}
	case *wire.CommandOutput:
		return head + len(m.Data)
	}
	return 0
}

func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next waits for a message. It returns ErrDisconnected after the last one of a broken link, and context.Cause(ctx).
func (s *stream) next(ctx context.Context) (wire.Message, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			m := s.queue[0]
			s.queue[0] = nil
			s.queue = s.queue[1:]
			s.live -= liveSize(m)
			s.mu.Unlock()
			return m, nil
		}
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return nil, ErrDisconnected
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
