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
	to func([]byte)

	sending sync.Mutex // held while to is called, so that what is passed on stays in order

	mu sync.Mutex
	// below: guarded by mu
	buf    bytes.Buffer
	passed time.Time   // when something was passed on last
	timer  *time.Timer // passes on what is there; nil: nothing is
}

const (
	batchEvery = 30 * time.Millisecond
	batchMost  = 64 << 10
)

func (b *batch) add(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len()+len(p) <= batchMost {
		b.buf.Write(p)
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(batchEvery-time.Since(b.passed), b.pass)
	}
}

// pass passes on what is there. It is called once more after the last piece, and nothing is passed on after that.
func (b *batch) pass() {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.mu.Lock()
	if b.timer != nil {
		b.timer.Stop()
	}
	data := bytes.Clone(b.buf.Bytes())
	b.buf.Reset()
	b.passed, b.timer = time.Now(), nil
	b.mu.Unlock()
	if len(data) > 0 {
		b.to(data)
	}
}
