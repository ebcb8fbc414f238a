package hub

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
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
		check("asked for meanwhile", &usage{}, wire.LeaseStatus{Queue: []wire.LeaseWaiter{{LeaseID: id, Agent: "engineer", Purpose: "make"}}})
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

// A client's word on who has its shell counts once, by the connection that was asked: a second one neither counts nor waits.
func TestShellUseCountsOnce(t *testing.T) {
	w := openWindow(t, newHub(t))
	ln := w.c.lender
	ln.tellsUse = true
	answer, forget := ln.askUse()
	replaced := &Client{hub: ln.hub, lender: ln}
	for _, c := range []*Client{replaced, w.c, w.c, w.c} {
		if err := c.ShellUse(&wire.ShellUseReply{Nonce: 1, Holder: map[bool]string{true: "user\x1b[2J", false: "nobody"}[c == w.c], HeldMS: -1}); err != nil {
			t.Error(err)
		}
	}
	if r := <-answer; strings.ContainsRune(r.Holder, 0x1b) || !strings.HasPrefix(r.Holder, "user") || r.HeldMS != 0 {
		t.Errorf("got %+v", r)
	}
	if len(answer) > 0 || len(ln.asked) > 0 {
		t.Error("an answer counted twice")
	}
	forget()
	if _, forget = ln.askUse(); len(ln.asked) != 1 {
		t.Error("it was not asked")
	}
	if forget(); len(ln.asked) != 0 {
		t.Error("what nobody waits for is remembered")
	}
	ln.unlink(w.c)
	if answer, _ := ln.askUse(); answer != nil {
		t.Error("a window that is away was asked")
	}
	ln.close(lease.NoShell)
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
	if _, _, err := c.Shutdown(&wire.ShutdownRequest{RequestID: "r0", DrainMS: -1}); err == nil || h.closing {
		t.Errorf("a drain of less than nothing: got %v", err)
	}
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

// A revoke of what is not there is an error where it was named, and all of a shell's leases end without one of them being offered.
func TestRevoke(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h, peer: deaf{}, session: &session{}, requests: map[wire.RequestID]func(*stopped){}}
	n := 0
	revoke := func(id wire.LeaseID, pid int) error {
		n++
		_, err := c.RevokeLease(&wire.LeaseRevokeRequest{RequestID: wire.RequestID(fmt.Sprint("r", n)), LeaseID: id, ClientPID: pid})
		return err
	}
	if err := revoke("l", 0); !errors.Is(err, ErrNoLease) {
		t.Errorf("a lease, where no shell is lent: got %v", err)
	}
	if err := revoke("", 1); !errors.As(err, new(*NoShellError)) {
		t.Errorf("a shell that is not lent: got %v", err)
	}
	w := openWindow(t, h)
	defer w.c.lender.close(lease.NoShell)
	if err := revoke("", 1); err != nil {
		t.Errorf("nothing of a shell: got %v", err)
	}
	w.lend(wish{holder: "first"})
	w.c.lender.ask(t.Context(), wish{holder: "next", wait: time.Hour})
	if err := revoke("", 1); err != nil {
		t.Errorf("all: got %v", err)
	}
	if st := w.c.lender.status(time.Now(), nil); len(st.Queue) > 0 {
		t.Errorf("%+v still wait", st.Queue)
	}
	for _, m := range w.sent {
		if a, ok := m.(*wire.AcquireShellLease); ok && a.Agent == "next" {
			t.Error("the shell was offered to one whose lease was to end")
		}
	}
	if err := h.begin(); err != nil {
		t.Fatal(err)
	}
	if st := c.status("s", nil); st.State != "busy" {
		t.Errorf("with something running: %s", st.State)
	}
	h.over()
	h.work.Done()
}
