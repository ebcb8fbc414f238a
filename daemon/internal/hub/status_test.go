package hub

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease"
	"sublet/wire"
)

// Who has a shell is told with for how long, and so is who waits: the borrower, the user as far as somebody waits for them or
// their window said so, and a window that does not answer.
func TestLeaseStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(t, newHub(t))
		ln := w.c.lender
		defer ln.close(lease.NoShell)
		check := func(name string, use *usage, want wire.LeaseStatus) {
			t.Helper()
			want.ClientPID = 1
			if want.Queue == nil {
				want.Queue = []wire.LeaseWaiter{}
			}
			if got := ln.status(time.Now(), use); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
		said := &usage{&wire.ShellUseReply{Holder: "user", HeldMS: 3000}}
		check("nobody", nil, wire.LeaseStatus{})
		check("the user, by their window's word", said, wire.LeaseStatus{Holder: "user", HeldMS: 3000})
		check("a silent window", &usage{}, wire.LeaseStatus{Silent: true})
		first := ln.ask(t.Context(), wish{holder: "engineer", purpose: "make", wait: time.Hour, term: time.Minute})
		id := wire.LeaseID(first.lease.ID)
		ref := wire.LeaseRef{LeaseID: id, Fence: first.lease.Fence}
		w.says(&wire.ShellLeaseQueued{LeaseRef: ref, Holder: "user", HeldMS: 5000})
		time.Sleep(2 * time.Second)
		waits := wire.LeaseWaiter{LeaseID: id, Agent: "engineer", Purpose: "make", WaitedMS: 2000}
		check("the user, whom somebody waits for", said, wire.LeaseStatus{Holder: "user", HeldMS: 7000, Queue: []wire.LeaseWaiter{waits}})
		if !ln.busy() {
			t.Error("not busy with one who waits")
		}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref})
		next := ln.ask(t.Context(), wish{holder: "lease run", purpose: "ls", wait: time.Hour})
		time.Sleep(time.Second)
		check("lent", &usage{}, wire.LeaseStatus{
			LeaseID: id, Holder: "engineer", Purpose: "make", HeldMS: 1000, TermMS: 60_000,
			Queue: []wire.LeaseWaiter{{LeaseID: wire.LeaseID(next.lease.ID), Agent: "lease run", Purpose: "ls", WaitedMS: 1000}},
		})
	})
}

// A window that is away is listed while somebody waits for it or has its shell, and connections are counted by what they are.
func TestWhatIsListed(t *testing.T) {
	h := newHub(t)
	w := openWindow(t, h)
	asker := &Client{hub: h, peer: deaf{}, session: &session{}}
	ln := w.c.lender
	defer ln.close(lease.NoShell)
	b := ln.ask(t.Context(), wish{holder: "engineer", wait: time.Hour})
	ln.unlink(w.c)
	if st := asker.status("r", nil); len(st.Leases) != 1 || len(st.Leases[0].Queue) != 1 {
		t.Errorf("away, and waited for: listed are %+v", st.Leases)
	}
	ln.giveBack(b)
	if st := asker.status("r", nil); len(st.Leases) != 0 {
		t.Errorf("away: listed are %+v", st.Leases)
	}
	of := func(name string, shell bool) *Client {
		c := &Client{info: wire.ClientInfo{Name: name}}
		if shell {
			c.lender = ln
		}
		return c
	}
	h.clients = map[*Client]struct{}{of("sublet", true): {}, of("sublet", false): {}, of("sublet", false): {}, of("acp", false): {}}
	defer func() { h.clients = nil }()
	want := []wire.Connections{{Name: "acp", Count: 1}, {Name: "sublet", Count: 2}, {Name: "sublet", Shell: true, Count: 1}}
	for range 20 { // a map has no order
		if got := h.connectionsLocked(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

// A stop that somebody asks for is bounded, and asked of whoever can stop.
func TestShutdownIsBounded(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h, peer: deaf{}, session: &session{}, requests: map[wire.RequestID]func(*stopped){}}
	if _, _, err := c.Shutdown(&wire.ShutdownRequest{RequestID: "r1"}); !errors.Is(err, ErrNotYours) {
		t.Errorf("a daemon that cannot stop itself: got %v", err)
	}
	var drains []time.Duration
	h.opts.Stop = func(drain time.Duration) { drains = append(drains, drain) }
	for id, ms := range map[wire.RequestID]int64{"r2": 1000, "r3": int64(time.Hour / time.Millisecond)} {
		_, stop, err := c.Shutdown(&wire.ShutdownRequest{RequestID: id, DrainMS: ms})
		if err != nil {
			t.Fatal(err)
		}
		drains = nil
		stop()
		if want := min(time.Duration(ms)*time.Millisecond, maxDrain); len(drains) != 1 || drains[0] != want {
			t.Errorf("drains for %v, want %v", drains, want)
		}
	}
}
