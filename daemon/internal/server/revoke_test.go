package server_test

import (
	"slices"
	"testing"
	"time"

	"sublet/wire"
)

// borrowed begins LeaseRunRequests from connections of their own, three of which may run on one.
type borrowed struct {
	r    *rig
	s    *peer
	used int
}

func (b *borrowed) run(of *peer, command string) (from *peer, id wire.RequestID) {
	if b.used%3 == 0 {
		b.s = b.r.dial(script)
	}
	b.used++
	id = requestID()
	b.s.send(&wire.LeaseRunRequest{RequestID: id, Command: wire.OSString(command), ClientPID: of.pid})
	return b.s, id
}

// shellOf is what a status says of p's shell.
func shellOf(s *peer, p *peer) wire.LeaseStatus {
	s.t.Helper()
	id := requestID()
	s.send(&wire.StatusRequest{RequestID: id})
	st := await(s, func(m *wire.StatusReply) bool { return m.RequestID == id })
	i := slices.IndexFunc(st.Leases, func(l wire.LeaseStatus) bool { return l.ClientPID == p.pid })
	if i < 0 {
		s.t.Fatalf("the shell of %d is not listed: %+v", p.pid, st.Leases)
	}
	return st.Leases[i]
}

// A revoke ends what it names and nothing else: one who waits, the one who holds, or everyone of one shell. Each is told
// why.
func TestRevokeEndsWhatItNames(t *testing.T) {
	r := newRig(t)
	p, other := r.dial(wantsQueue), r.dial()
	b := &borrowed{r: r}
	_, elsewhere := b.run(other, "block elsewhere")
	executing(other, "block elsewhere")
	hs, holder := b.run(p, "block holder")
	executing(p, "block holder")
	ws, waiter := b.run(p, "block waiter")
	inLine(p, "block waiter")
	ns, next := b.run(p, "block next")
	inLine(p, "block waiter", "block next")

	admin := r.dial(script)
	revoke := func(m *wire.LeaseRevokeRequest) {
		t.Helper()
		m.RequestID = requestID()
		admin.send(m)
		await(admin, func(got *wire.StatusReply) bool { return got.RequestID == m.RequestID })
	}
	denied := func(s *peer, id wire.RequestID) {
		t.Helper()
		if d := await(s, func(m *wire.ShellLeaseDenied) bool { return m.RequestID == id }); d.Reason != wire.DeniedUser {
			t.Errorf("denied for %s, want %s", d.Reason, wire.DeniedUser)
		}
	}
	st := shellOf(admin, p)
	if st.Holder != "lease run" || st.Purpose != "block holder" || len(st.Queue) != 2 || st.Queue[0].Purpose != "block waiter" || st.Queue[1].Purpose != "block next" {
		t.Fatalf("listed as %+v", st)
	}
	revoke(&wire.LeaseRevokeRequest{LeaseID: st.Queue[0].LeaseID})
	denied(ws, waiter)
	inLine(p, "block next")
	if now := shellOf(admin, p); now.LeaseID != st.LeaseID {
		t.Errorf("the holder is %+v, want it left alone", now)
	}

	revoke(&wire.LeaseRevokeRequest{LeaseID: st.LeaseID})
	done := await(hs, func(m *wire.CommandCompleted) bool { return m.RequestID == holder })
	if want := []string{"its lease was revoked"}; done.Status != wire.StatusCancelled || !slices.Equal(done.Notes, want) {
		t.Errorf("the holder's end: %s %q, want cancelled %q", done.Status, done.Notes, want)
	}
	executing(p, "block next")
	last, lastID := b.run(p, "block last")
	inLine(p, "block last")
	revoke(&wire.LeaseRevokeRequest{ClientPID: p.pid})
	await(ns, func(m *wire.CommandCompleted) bool { return m.RequestID == next && m.Status == wire.StatusCancelled })
	denied(last, lastID)
	if ran := p.shell.ran(); slices.Contains(ran, "block waiter") || slices.Contains(ran, "block last") {
		t.Errorf("ran %q, of which two were revoked before", ran)
	}
	if st := shellOf(admin, other); st.Purpose != "block elsewhere" {
		t.Errorf("another shell's lease was ended: %+v", st)
	}
	revoke(&wire.LeaseRevokeRequest{LeaseID: shellOf(admin, other).LeaseID})
	await(hs, func(m *wire.CommandCompleted) bool { return m.RequestID == elsewhere })
	nothingLent(t, p)
}

// The list tells who keeps those who wait from the shell, and since when: it said that nobody did while the user's own
// command ran.
func TestTheListNamesTheUser(t *testing.T) {
	r := newRig(t)
	p := r.dial(wantsQueue)
	p.shell.userRuns()
	b := &borrowed{r: r}
	s, first := b.run(p, "block")
	await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == first && m.Holder == "user" })
	b.run(p, "ls")
	inLine(p, "ls")
	st := shellOf(s, p)
	if st.Holder != "user" || st.HeldMS < 1000 || st.LeaseID != "" || len(st.Queue) != 2 {
		t.Errorf("listed as %+v, want the user for 1 s and more, and two who wait", st)
	}
	p.shell.userDone()
	executing(p, "block")
	if st := shellOf(s, p); st.Holder != "lease run" || st.LeaseID == "" || st.TermMS != (30*time.Second).Milliseconds() {
		t.Errorf("listed as %+v, want its holder", st)
	}
	p.shell.finish()
	nothingLent(t, p)
}
