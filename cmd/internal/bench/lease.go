package main

import (
	"time"

	"sublet/lease"
)

// leaseRows compares the lease with the simplest thing that lends in order.
func leaseRows(string) ([]row, func(), error) {
	const n = 200_000
	return []row{{
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
	}}, func() {}, nil
}
