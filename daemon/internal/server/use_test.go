package server_test

import (
	"slices"
	"testing"

	"sublet/wire"
)

func tellsUse(env *wire.EnvSnapshot) { env.Capabilities = append(env.Capabilities, wire.CapUse) }

// usesOf asks for the shells and who has them.
func usesOf(s *peer) func(p *peer) wire.LeaseStatus {
	s.t.Helper()
	id := requestID()
	s.send(&wire.StatusRequest{RequestID: id, Shells: true})
	st := await(s, func(m *wire.StatusReply) bool { return m.RequestID == id })
	return func(p *peer) wire.LeaseStatus {
		s.t.Helper()
		i := slices.IndexFunc(st.Leases, func(l wire.LeaseStatus) bool { return l.ClientPID == p.pid })
		if i < 0 {
			s.t.Fatalf("the shell of %d is not listed: %+v", p.pid, st.Leases)
		}
		return st.Leases[i]
	}
}

// Who wants to see who has which shell is told of a command of the user's that nobody waits for: the client is asked then, and
// not told of otherwise. `lease ls` said that nobody had that shell.
func TestWhoHasAShellIsAsked(t *testing.T) {
	r := newRig(t)
	free, busy, deaf, plain := r.dial(tellsUse), r.dial(tellsUse), r.dial(tellsUse), r.dial()
	busy.shell.userRuns()
	plain.shell.userRuns()
	deaf.shell.mu.Lock()
	deaf.shell.deaf = true
	deaf.shell.mu.Unlock()
	s := r.dial(script)
	if got := shellOf(s, busy); got.Holder != "" {
		t.Errorf("not asked for: got %+v", got)
	}
	of := usesOf(s)
	for _, c := range []struct {
		name string
		p    *peer
		want wire.LeaseStatus
	}{
		{"free", free, wire.LeaseStatus{}},
		{"busy", busy, wire.LeaseStatus{Holder: "user", HeldMS: 1000}},
		{"deaf", deaf, wire.LeaseStatus{Silent: true}},
		{"one that does not know the question", plain, wire.LeaseStatus{}},
	} {
		if got := of(c.p); got.Holder != c.want.Holder || got.HeldMS != c.want.HeldMS || got.Silent != c.want.Silent || got.LeaseID != "" {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if own := usesOf(busy)(busy); own.Holder != "user" { // the answer comes by the connection that asks
		t.Errorf("asked by itself: got %+v", own)
	}
	(&borrowed{r: r}).run(busy, "ls") // who waits is known, and so is for whom
	await(busy, func(m *wire.AcquireShellLease) bool { return true })
	asked := len(busy.all())
	if now := usesOf(s)(busy); now.Holder != "user" || len(now.Queue) != 1 {
		t.Errorf("while somebody waits: got %+v", now)
	}
	if len(busy.all()) != asked {
		t.Error("it was asked although it had told")
	}
}
