package tui

import (
	"context"
	"sync"
	"time"

	"sublet/client/internal/lender"
)

// frameEvery is the least time between two batches, and so between two frames, unless a key is waited for.
const frameEvery = 16 * time.Millisecond

// maxMerged bounds output that waits to be shown, in bytes for each command. Beyond it the middle is left out of the
// live part; the command's result stays complete.
const maxMerged = 512 << 10

// inbox gathers what comes from the keyboard, the daemon and the shell for the event loop, which handles it at most once in
// frameEvery, or when somebody waits for it, so that a burst of output or of small chunks is drawn once. Adjacent pieces of one
// output become one. push never waits.
type inbox struct {
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	queue  []any
	urgent bool // somebody waits until it is handled
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// push queues msg.
func (b *inbox) push(msg any) {
	b.mu.Lock()
	switch msg.(type) {
	case *keyEvent, drawnEvent, then, sizeChanged, shellExited, stopAsked:
		b.urgent = true
	}
	if n := len(b.queue); n == 0 || !merge(&b.queue[n-1], msg) {
		b.queue = append(b.queue, msg)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
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
		case <-b.wake:
		}
		for wait := frameEvery - time.Since(last); wait > 0 && !b.hurried(); wait = frameEvery - time.Since(last) {
			select {
			case <-ctx.Done():
				return
			case <-b.wake:
			case <-time.After(wait):
			}
		}
		b.mu.Lock()
		q := b.queue
		b.queue, b.urgent = nil, false
		b.mu.Unlock()
		if len(q) > 0 && handle(q...) {
			return
		}
		last = time.Now()
	}
}

// hurried reports whether somebody waits until the queue is handled.
func (b *inbox) hurried() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.urgent
}

// merge joins msg to the message before it where both are pieces of one output.
func merge(last *any, msg any) bool {
	switch m := msg.(type) {
	case jobOutput:
		if l, ok := (*last).(jobOutput); ok {
			*last = jobOutput{appendBounded(l.data, m.data)}
			return true
		}
	case lender.LeasedOutput:
		if l, ok := (*last).(lender.LeasedOutput); ok && l.ExecutionID == m.ExecutionID {
			l.Data = appendBounded(l.Data, m.Data)
			*last = l
			return true
		}
	}
	return false
}

// appendBounded appends p and, beyond maxMerged, drops the older half.
func appendBounded(dst, p []byte) []byte {
	dst = append(dst, p...)
	if len(dst) > maxMerged {
		dst = append([]byte(nil), dst[len(dst)-maxMerged/2:]...)
	}
	return dst
}
