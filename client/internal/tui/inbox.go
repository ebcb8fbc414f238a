package tui

import (
	"context"
	"sync"
	"time"

	"sublet/client/internal/lender"
	"sublet/wire"
)

// maxMerged bounds output that waits to be shown, in bytes for each command. Beyond it the middle is left out of the
// live picture; the command's result is not touched.
const maxMerged = 512 << 10

// batch is what arrived since the last one, in order.
type batch []any

// inbox gathers what comes from the daemon and the shell and hands it to the event loop at most once in frameEvery, so
// that a burst of output or of small chunks costs one round of drawing (bubbletea draws after every message). Adjacent
// pieces of one text or of one command's output become one. push never waits.
type inbox struct {
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	queue []any
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// push queues msg.
func (b *inbox) push(msg any) {
	b.mu.Lock()
	if n := len(b.queue); n == 0 || !merge(&b.queue[n-1], msg) {
		b.queue = append(b.queue, msg)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run delivers batches until ctx ends. deliver may wait for the event loop.
func (b *inbox) run(ctx context.Context, deliver func(batch)) {
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		if wait := frameEvery - time.Since(last); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		b.mu.Lock()
		q := b.queue
		b.queue = nil
		b.mu.Unlock()
		if len(q) > 0 {
			deliver(q)
		}
		last = time.Now()
	}
}

// merge joins msg to the message before it where both are pieces of one stream. Messages are copied before they change:
// others may hold them. Their bytes are the receiver's.
func merge(last *any, msg any) bool {
	switch m := msg.(type) {
	case lender.LeasedOutput:
		l, ok := (*last).(lender.LeasedOutput)
		if !ok || l.ExecutionID != m.ExecutionID {
			return false
		}
		l.Data = appendBounded(l.Data, m.Data)
		*last = l
		return true
	case *wire.AgentStreamChunk:
		l, ok := (*last).(*wire.AgentStreamChunk)
		if !ok || l.Agent != m.Agent || l.TurnID != m.TurnID || l.SessionID != m.SessionID || l.Chunk.Type != m.Chunk.Type {
			return false
		}
		switch m.Chunk.Type {
		case wire.ChunkText, wire.ChunkReasoning:
			if m.SeqFirst > l.Seq+1 || m.Seq < l.Seq { // a gap or a repetition: the reader must see both
				return false
			}
			c := *l
			c.Chunk.Text += m.Chunk.Text
			c.Seq, c.AtMS = m.Seq, m.AtMS
			*last = &c
			return true
		case wire.ChunkToolOutput:
			if l.Chunk.ExecutionID != m.Chunk.ExecutionID {
				return false
			}
			c := *l
			c.Chunk.Data = appendBounded(l.Chunk.Data, m.Chunk.Data)
			c.Seq, c.AtMS = m.Seq, m.AtMS
			*last = &c
			return true
		}
	}
	return false
}

// appendBounded appends and, beyond maxMerged, forgets the older half.
func appendBounded(dst, p []byte) []byte {
	dst = append(dst, p...)
	if len(dst) > maxMerged {
		dst = append([]byte(nil), dst[len(dst)-maxMerged/2:]...)
	}
	return dst
}
