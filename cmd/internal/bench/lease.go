package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"sublet/lease"
)

// leaseRows compares the lease with the simplest thing that lends in order: a channel of one, which knows no deadlines,
// no fences and no holder.
func leaseRows(*site) ([]row, error) {
	const n = 200_000
	rows := []row{{
		id: "L1", name: "lease: acquire and release, nobody waits", unit: "us", baseline: "a channel of one", goal: 4, rounds: 9,
		ours: func() (float64, error) {
			m, l := lease.NewManager(new(lease.Fences)), new(lease.Lease)
			now := time.Now()
			return work(n, func() error {
				m.Request(now, l, lease.Request{ID: "l", Holder: "agent"})
				m.Acquired(now, l.Ref())
				m.Release(now, l)
				m.Gone(now, l.Ref(), lease.Released)
				return nil
			})
		},
		base: func() (float64, error) {
			c := make(chan struct{}, 1)
			return work(n, func() error {
				c <- struct{}{}
				<-c
				return nil
			})
		},
	}}
	// Each waiter is a goroutine with a bound on its wait. Who has the lease lets the others run before it is given back, so
	// that all of them want it and each grant is a hand-over from one to the next.
	for i, waiters := range []int{2, 100, 10_000} {
		rows = append(rows, row{
			id: fmt.Sprintf("L2%c", 'a'+i), name: fmt.Sprintf("lease: one grant, %d want it", waiters), unit: "us", baseline: "a channel of one", goal: 3.5, rounds: 7,
			ours: func() (float64, error) {
				d := &lending{m: lease.NewManager(new(lease.Fences))}
				return among(n, waiters, func() func() {
					l, wake := new(lease.Lease), make(chan struct{}, 1)
					return func() {
						d.acquire(l, wake)
						runtime.Gosched()
						d.release(l)
					}
				})
			},
			base: func() (float64, error) {
				c := make(chan struct{}, 1)
				return among(n, waiters, func() func() {
					return func() {
						c <- struct{}{}
						runtime.Gosched()
						<-c
					}
				})
			},
		})
	}
	return rows, nil
}

// lending is a minimal driver of a Manager: a mutex, and a lender that always lends at once.
type lending struct {
	mu sync.Mutex
	m  *lease.Manager
}

func (d *lending) acquire(l *lease.Lease, wake chan struct{}) {
	d.mu.Lock()
	d.grantLocked(d.m.Request(time.Now(), l, lease.Request{ID: "x", Owner: wake}))
	d.mu.Unlock()
	<-wake
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

// among has n goroutines do total things together, each what borrower gives it, and returns the microseconds of processor
// time of one.
func among(total, n int, borrower func() func()) (float64, error) {
	var borrowers sync.WaitGroup
	took, err := work(1, func() error {
		for range n {
			borrowers.Go(func() {
				do := borrower()
				for range total / n {
					do()
				}
			})
		}
		borrowers.Wait()
		return nil
	})
	return took / float64(total/n*n), err
}
