package lender

import "sync"

// liveBound is how many bytes of live output may wait for a slow screen or daemon. Older ones are left out: it is the
// tail that a person looks at, and the command's result has what the model sees.
const liveBound = 256 << 10

// outbox delivers events in order from a goroutine of its own, so that neither the shell nor the daemon's reader ever
// waits for the screen. Neighbouring output merges.
type outbox struct {
	to   Observer
	wake chan struct{} // capacity 1

	mu sync.Mutex
	// guarded by mu
	queue  []any
	closed bool
}

func newOutbox(to Observer) *outbox { return &outbox{to: to, wake: make(chan struct{}, 1)} }

// shown is closed when all that was put before it is delivered.
type shown chan struct{}

// put queues an event; data in it is the outbox's from now on.
func (o *outbox) put(event any) {
	o.mu.Lock()
	n := len(o.queue)
	switch e := event.(type) {
	case LeasedOutput:
		if n > 0 {
			if last, ok := o.queue[n-1].(LeasedOutput); ok && last.ExecutionID == e.ExecutionID {
				last.Data = bounded(append(last.Data, e.Data...))
				o.queue[n-1] = last
				o.mu.Unlock()
				return
			}
		}
	case Unowned:
		if n > 0 {
			if last, ok := o.queue[n-1].(Unowned); ok {
				last.Data = bounded(append(last.Data, e.Data...))
				o.queue[n-1] = last
				o.mu.Unlock()
				return
			}
		}
	case LeaseChanged:
		if n > 0 {
			if _, ok := o.queue[n-1].(LeaseChanged); ok {
				o.queue[n-1] = e
				o.mu.Unlock()
				return
			}
		}
	}
	o.queue = append(o.queue, event)
	o.mu.Unlock()
	o.stir()
}

// bounded keeps the end of b, at a line's start where there is one near.
func bounded(b []byte) []byte {
	if len(b) <= 2*liveBound {
		return b // cut rarely, and then by half: each cut is a copy
	}
	cut := len(b) - liveBound
	for i := cut; i < min(cut+1024, len(b)); i++ {
		if b[i] == '\n' {
			cut = i + 1
			break
		}
	}
	return append([]byte(nil), b[cut:]...)
}

func (o *outbox) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.stir()
}

// run delivers until close, and then what is left.
func (o *outbox) run() {
	for {
		o.mu.Lock()
		batch, closed := o.queue, o.closed
		o.queue = nil
		o.mu.Unlock()
		for _, event := range batch {
			if all, ok := event.(shown); ok {
				close(all)
				continue
			}
			o.to.Observe(event)
		}
		if len(batch) > 0 {
			continue
		}
		if closed {
			return
		}
		<-o.wake
	}
}
