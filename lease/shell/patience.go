package shell

import (
	"context"
	"sync"
	"time"
)

// Patience is a bound on what others take: a shell to end, a program to die. The clock alone does not tell it: where the
// machine stood still (a paused virtual machine, a frozen container, a processor given to others), so did they, and what
// would have come in time must not be killed for being late. So it is counted in parts, and one that took longer counts once.
const patienceParts = 20

// Patiently bounds a context by d, in time in which others could run too. Its cause is context.DeadlineExceeded then. The
// caller calls stop.
func Patiently(ctx context.Context, d time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var timer *time.Timer
	left := patienceParts
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d/patienceParts, func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left > 0 {
			timer.Reset(d / patienceParts)
		} else {
			cancel(context.DeadlineExceeded)
		}
	})
	return ctx, func() {
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		left = 0
		timer.Stop()
	}
}

// until looks, every so often, whether something is so, and gives it d, as Patiently does.
func until(d, every time.Duration, is func() bool) bool {
	var spent elapsed
	for !is() {
		if spent.add(d/patienceParts) >= d {
			return false
		}
		time.Sleep(every)
	}
	return true
}

// elapsed adds up time that is looked at again and again.
type elapsed struct {
	sum  time.Duration
	last time.Time
}

// add adds the time since the last call, but no more than most, and returns the sum.
func (e *elapsed) add(most time.Duration) time.Duration {
	now := time.Now()
	if !e.last.IsZero() {
		e.sum += min(now.Sub(e.last), most)
	}
	e.last = now
	return e.sum
}
