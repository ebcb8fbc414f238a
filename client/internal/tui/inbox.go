package tui

import (
	"context"
	"sync"
	"time"
)

// frameEvery is the least time between two batches, and so between two frames, unless a key is waited for.
const frameEvery = 16 * time.Millisecond

// inbox gathers what comes from the keyboard, the daemon and the shell for the event loop, which handles it at most once in
// frameEvery, or when somebody waits for it, so that a burst of output or of small chunks is drawn once. push never waits.
type inbox struct {
	wake   chan struct{} // capacity 1, as urgent: something is queued
	urgent chan struct{} // something is queued that somebody waits for

	mu    sync.Mutex
	queue []any // guarded by mu
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
}

// push queues msg.
func (b *inbox) push(msg any) {
	b.mu.Lock()
	b.queue = append(b.queue, msg)
	if job, ok := msg.(jobOutput); ok { // joined with the piece before it, which may end within a line
		if n := len(b.queue) - 2; n >= 0 {
			if before, ok := b.queue[n].(jobOutput); ok {
				b.queue = append(b.queue[:n], jobOutput{append(before.data, job.data...)})
			}
		}
	}
	b.mu.Unlock()
	wake := b.wake
	switch msg.(type) {
	case *keyEvent, then:
		wake = b.urgent
	}
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run has handle handle what is queued, in order, until it returns true or ctx ends.
func (b *inbox) run(ctx context.Context, handle func(msgs ...any) (quit bool)) {
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.urgent:
		case <-b.wake:
			select {
			case <-ctx.Done():
				return
			case <-b.urgent:
			case <-time.After(frameEvery - time.Since(last)):
			}
		}
		b.mu.Lock()
		q := b.queue
		b.queue = nil
		b.mu.Unlock()
		if handle(q...) {
			return
		}
		last = time.Now()
	}
}
