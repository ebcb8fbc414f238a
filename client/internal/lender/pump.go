package lender

import (
	"sync"

	"sublet/wire"
)

// liveBound is how many bytes of live output are kept for a slow daemon once twice as many wait: the newest. The command's result does
// not depend on the others.
const liveBound = 256 << 10

// outputFrame is the most live output in one message, in bytes.
const outputFrame = 32 << 10

// pump sends a command's live output to the daemon. It merges pieces while the daemon is slower than the command, and drops the
// oldest when too many wait (then the offset jumps). The shell never waits for it.
type pump struct {
	send func(wire.Message) bool
	ref  wire.LeaseRef
	id   wire.ExecutionID
	wake chan struct{} // capacity 1
	done chan struct{} // closed when run has returned

	mu sync.Mutex
	// guarded by mu
	buf     []byte
	offset  int64 // of buf[0], in bytes since the command's start
	running bool  // run starts with the first output, since most commands print little
	closed  bool
}

func newPump(send func(wire.Message) bool, ref wire.LeaseRef, id wire.ExecutionID) *pump {
	return &pump{send: send, ref: ref, id: id, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (p *pump) add(data []byte) {
	p.mu.Lock()
	p.buf = append(p.buf, data...)
	if len(p.buf) > 2*liveBound {
		cut := len(p.buf) - liveBound
		p.offset += int64(cut)
		p.buf = append([]byte(nil), p.buf[cut:]...)
	}
	if !p.running {
		p.running = true
		go p.run() // ends with close
	}
	p.mu.Unlock()
	p.signal()
}

func (p *pump) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close sends what is left and waits until it is queued, so that the command's end follows it. add must not be called after.
func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	running := p.running
	p.mu.Unlock()
	if running {
		p.signal()
		<-p.done
	}
}

// run sends until close.
func (p *pump) run() {
	defer close(p.done)
	for {
		p.mu.Lock()
		n := min(len(p.buf), outputFrame)
		data, at, closed := p.buf[:n:n], p.offset, p.closed
		p.buf = p.buf[n:]
		p.offset += int64(n)
		if len(p.buf) == 0 {
			p.buf = nil
		}
		p.mu.Unlock()
		if n > 0 {
			p.send(&wire.CommandOutput{LeaseRef: p.ref, ExecutionID: p.id, Offset: at, Data: data})
			continue
		}
		if closed {
			return
		}
		<-p.wake
	}
}
