package main

import (
	"fmt"
	"sync"
	"time"

	"sublet/lease"
)

// leaseRows compares the lease with the simplest thing that lends in order: a channel of one, which knows no deadlines,
// no fences and no holder.
func leaseRows(string) ([]row, func(), error) {
	const n = 200_000
	rows := []row{{
		id: "L1", name: "lease: acquire and release, nobody waits", unit: "us", baseline: "a channel of one", goal: 4, rounds: 9,
		ours: func() (float64, error) {
			m := lease.NewManager(new(lease.Fences))
			now := time.Now()
			return each(n, func() error {
				l, _ := m.Request(now, lease.Request{ID: "l", Holder: "agent"})
				m.Acquired(now, l.Ref())
				m.Release(now, l)
				m.Gone(now, l.Ref(), lease.Released)
				return nil
			})
		},
		base: func() (float64, error) {
			c := make(chan struct{}, 1)
			return each(n, func() error {
				c <- struct{}{}
				<-c
				return nil
			})
		},
	}}
	// Each waiter is a goroutine with a bound on its wait; a grant is a hand-over from one to the next.
	for i, waiters := range []int{2, 100, 10_000} {
		rows = append(rows, row{
			id: fmt.Sprintf("L2%c", 'a'+i), name: fmt.Sprintf("lease: one grant, %d want it", waiters), unit: "us", baseline: "a channel of one", goal: 3.5, rounds: 7,
			ours: func() (float64, error) {
				d := &lending{m: lease.NewManager(new(lease.Fences))}
				return among(n, waiters, func(wake chan struct{}) { d.release(d.acquire(wake)) }), nil
			},
			base: func() (float64, error) {
				c := make(chan struct{}, 1)
				return among(n, waiters, func(chan struct{}) { c <- struct{}{}; <-c }), nil
			},
		})
	}
	return rows, func() {}, nil
}

// lending is the smallest driver of a Manager: a mutex, and a lender that always says yes at once.
type lending struct {
	mu sync.Mutex
	m  *lease.Manager
}

func (d *lending) acquire(wake chan struct{}) *lease.Lease {
	d.mu.Lock()
	l, effects := d.m.Request(time.Now(), lease.Request{ID: "x", Owner: wake})
	d.grantLocked(effects)
	d.mu.Unlock()
	<-wake
	return l
}

func (d *lending) release(l *lease.Lease) {
	d.mu.Lock()
	d.grantLocked(d.m.Release(time.Now(), l))
	d.mu.Unlock()
}

func (d *lending) grantLocked(effects []lease.Effect) {
	for _, e := range effects {
		if e.Do == lease.Offer {
			d.m.Acquired(e.Lease.Asked, e.Ref)
			e.Lease.Owner.(chan struct{}) <- struct{}{}
			return
		}
	}
}

// among runs do total times, spread over n goroutines, and returns the microseconds that each took.
func among(total, n int, do func(wake chan struct{})) float64 {
	var work sync.WaitGroup
	begun := time.Now()
	for range n {
		work.Go(func() {
			wake := make(chan struct{}, 1)
			for range total / n {
				do(wake)
			}
		})
	}
	work.Wait()
	return float64(time.Since(begun).Microseconds()) / float64(total/n*n)
}
