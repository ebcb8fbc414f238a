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

// Size returns the approximate bytes of m in memory.
func Size(m wire.Message) int {
	const head = 256
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		return head + len(m.Chunk.Text) + len(m.Chunk.Arguments) + len(m.Chunk.Data)
	case *wire.CommandOutput:
		return head + len(m.Data)
	case *wire.CommandResult:
		return head + len(m.Command) + len(m.Output) + len(m.OutputTail)
	case *wire.TurnStarted:
		return head + len(m.Prompt)
	case *wire.AgentComplete:
		return head + len(m.Summary)
	case *wire.ConfirmationRequest:
		return head + len(m.Command) + len(m.Arguments) + len(m.Preview.Content)
	}
	return head
}

// liveSize returns the size of live output, and 0 for other messages.
func liveSize(m wire.Message) int {
	if !wire.Live(m) {
		return 0
	}
	return Size(m)
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
