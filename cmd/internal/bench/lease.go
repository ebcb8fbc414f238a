package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"sublet/lease"
)

// leaseRows compare the lease with the simplest thing that lends in order: a channel of one, which knows no deadlines, no
// fences and no holder. Each borrower is a goroutine. Who has the lease lets the others run before it is given back, so that
// all of them want it and each grant is a hand-over from one to the next.
func leaseRows(*site) (rows []row) {
	for i, borrowers := range []int{1, 2, 100, 10_000} {
		rows = append(rows, row{
			fmt.Sprintf("L%d", i+1), fmt.Sprintf("lease: one grant, %d want it", borrowers), "us", 3.5, 7,
			func() float64 {
				d := &lending{m: lease.NewManager(new(lease.Fences))}
				return among(borrowers, func() (acquire, release func()) {
					l, wake := new(lease.Lease), make(chan struct{}, 1)
					return func() { d.acquire(l, wake) }, func() { d.release(l) }
				})
			},
			"a channel of one", func() float64 {
				c := make(chan struct{}, 1)
				return among(borrowers, func() (acquire, release func()) {
					return func() { c <- struct{}{} }, func() { <-c }
				})
			},
		})
	}
	return rows
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

// among has n borrowers borrow 200,000 times together, and returns the processor time of one grant.
func among(n int, borrower func() (acquire, release func())) float64 {
	const grants = 200_000
	begun := processorTime()
	var borrowers sync.WaitGroup
	for range n {
		borrowers.Go(func() {
			acquire, release := borrower()
			for range grants / n {
				acquire()
				runtime.Gosched()
				release()
			}
		})
	}
	borrowers.Wait()
	return (processorTime() - begun) / grants
}
