package lender

import (
	"sync"

	"sublet/wire"
)

// liveBound is how many bytes of live output may wait for a slow daemon. Older ones are left out: it is the tail that a person
// looks at, and the command's result has what the model sees.
const liveBound = 256 << 10

// outputFrame is the most live output that one message carries.
const outputFrame = 32 << 10

// pump sends a command's live output to the daemon: merged while the daemon is slower than the command, and thinned
// when more than liveBound waits (then the offset jumps). The shell never waits for it.
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
	running bool  // most commands print nothing or little: run starts with the first of it
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
	p.stir()
}

func (p *pump) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close sends what is left and waits until it is on its way, so that the command's end follows it. Nothing is added after it.
func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	running := p.running
	p.mu.Unlock()
	if running {
		p.stir()
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
