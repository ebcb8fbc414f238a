package lease

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// blocking is the smallest driver there can be: a mutex, and a lender that always says yes at once.
type blocking struct {
	mu sync.Mutex
	m  *Manager
}

func (b *blocking) acquire(wake chan struct{}) *Lease {
	b.mu.Lock()
	l := new(Lease)
	effects := b.m.Request(time.Now(), l, Request{ID: "x", Owner: wake})
	granted := b.drive(effects, l)
	b.mu.Unlock()
	if !granted {
		<-wake
	}
	return l
}

func (b *blocking) release(l *Lease) {
	b.mu.Lock()
	b.drive(b.m.Release(time.Now(), l), l)
	b.mu.Unlock()
}

// drive grants whatever is offered; it wakes the waiter unless that is the caller itself.
func (b *blocking) drive(effects []Effect, self *Lease) (granted bool) {
	for _, e := range effects {
		if e.Do != Offer {
			continue
		}
		b.m.Acquired(e.Lease.Asked, e.Ref)
		if e.Lease == self {
			granted = true
		} else {
			e.Lease.Owner.(chan struct{}) <- struct{}{}
		}
		break
	}
	return granted
}

// BenchmarkHandover is L1 (nobody waits) and L2 (many wait) of the goals, next to a channel as lock and to what the
// standard way costs.
func BenchmarkHandover(b *testing.B) {
	for _, waiters := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("lease/", waiters), func(b *testing.B) {
			b.ReportAllocs()
			d := &blocking{m: NewManager(new(Fences))}
			among(b, waiters, func(wake chan struct{}) { d.release(d.acquire(wake)) })
		})
		b.Run(fmt.Sprint("chan/", waiters), func(b *testing.B) {
			b.ReportAllocs()
			lock := make(chan struct{}, 1)
			among(b, waiters, func(chan struct{}) { lock <- struct{}{}; <-lock })
		})
		b.Run(fmt.Sprint("chan with deadline/", waiters), func(b *testing.B) {
			b.ReportAllocs()
			lock := make(chan struct{}, 1)
			among(b, waiters, func(chan struct{}) {
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				select {
				case lock <- struct{}{}:
					<-lock
				case <-ctx.Done():
				}
				cancel()
			})
		})
	}
}

// among runs do b.N times, spread over n goroutines.
func among(b *testing.B, n int, do func(wake chan struct{})) {
	var wg sync.WaitGroup
	for i := range n {
		times := b.N / n
		if i < b.N%n {
			times++
		}
		wg.Go(func() {
			wake := make(chan struct{}, 1)
			for range times {
				do(wake)
			}
		})
	}
	wg.Wait()
}
