package lend

import (
	"bytes"
	"sync"
	"time"
)

// batch gathers live output, which arrives in pieces of at most 4 KiB, and passes it on at most every batchEvery, so that
// a program that prints without end does not cost a message for each piece. It never blocks the shell: what passes the
// bound between two rounds is left out, live output being only for the eye.
type batch struct {
	to   func([]byte)
	wake chan struct{} // one token: something was added
	end  chan struct{}
	done sync.WaitGroup

	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

const (
	batchEvery = 30 * time.Millisecond
	batchMost  = 64 << 10
)

func newBatch(to func([]byte)) *batch {
	b := &batch{to: to, wake: make(chan struct{}, 1), end: make(chan struct{})}
	b.done.Go(b.pass) // ends with close, which waits for it
	return b
}

func (b *batch) add(p []byte) {
	b.mu.Lock()
	if b.buf.Len()+len(p) <= batchMost {
		b.buf.Write(p)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *batch) pass() {
	pause := time.NewTimer(batchEvery)
	defer pause.Stop()
	for open := true; open; {
		select {
		case <-b.wake:
		case <-b.end:
			open = false
		}
		b.mu.Lock()
		data := bytes.Clone(b.buf.Bytes())
		b.buf.Reset()
		b.mu.Unlock()
		if len(data) > 0 {
			b.to(data)
		}
		if open {
			pause.Reset(batchEvery)
			select {
			case <-pause.C:
			case <-b.end:
			}
		}
	}
}

func (b *batch) close() {
	close(b.end)
	b.done.Wait()
}
