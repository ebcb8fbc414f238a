package lease

import (
	"testing"
	"time"
)

// PROTOCOL.md names these.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"wait", DefaultWait, time.Minute},
		{"term", DefaultTerm, 30 * time.Second},
		{"time-out", DefaultTimeout, 2 * time.Minute},
		{"longest time-out", MaxTimeout, time.Hour},
		{"grace", Grace, time.Minute},
		{"cancel", CancelBound, 5 * time.Second},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func due(t *testing.T, what string, m *Manager, want time.Time) {
	t.Helper()
	if at, ok := m.NextDeadline(); !ok || !at.Equal(want) {
		t.Errorf("%s: the next deadline is %v, %v, want %v", what, at.Sub(t0), ok, want.Sub(t0))
	}
}

// I4: the term is the borrower's; a command that is handed over and does not start is bound by it, and each end of a
// command renews it.
func TestOwnTerm(t *testing.T) {
	m := NewManager(new(Fences))
	a := new(Lease)
	m.Request(t0, a, Request{ID: "a", Term: 5 * time.Second})
	m.Acquired(t0, a.Ref())
	due(t, "granted", m, after(5*time.Second))
	if err := m.Execute(after(4*time.Second), a, "x", 0); err != nil || a.Timeout() != DefaultTimeout {
		t.Errorf("execute: %v, time-out %v, want %v", err, a.Timeout(), DefaultTimeout)
	}
	due(t, "handed over", m, after(9*time.Second))
	m.Started(after(5*time.Second), a.Ref(), "x")
	due(t, "started", m, after(5*time.Second+DefaultTimeout+TimeoutSlack))
	m.Completed(after(60*time.Second), a.Ref(), "x")
	due(t, "completed", m, after(65*time.Second))
	expect(t, "just before", m.Tick(after(65*time.Second-1)), "")
	expect(t, "then", m.Tick(after(65*time.Second)), "release a expired, end a expired")
}

// A refusal is an answer to an offer: the lender is told nothing, and a lease that is held does not end by it.
func TestRefused(t *testing.T) {
	m := NewManager(new(Fences))
	a, b := ask(m, t0, "a"), ask(m, t0, "b")
	expect(t, "offered", m.Refused(t0, a.Ref(), Denied), "end a denied, offer b")
	m.Acquired(t0, b.Ref())
	expect(t, "held", m.Refused(t0, b.Ref(), Denied), "")
}

// The first reason for an end stands, whatever comes while its command is being cancelled, and is told when that has ended
// or did not end in time.
func TestFirstReasonStands(t *testing.T) {
	for _, ends := range []bool{true, false} {
		m := NewManager(new(Fences))
		a := hold(t, m, t0, "a")
		_ = m.Execute(t0, a, "x", 0)
		expect(t, "revoke", m.Revoke(after(time.Second), a), "cancel a stale")
		due(t, "revoked", m, after(time.Second+CancelBound))
		expect(t, "release", m.Release(after(2*time.Second), a), "")
		if m.Started(after(3*time.Second), a.Ref(), "x"); ends {
			_, effects := m.Completed(after(3*time.Second), a.Ref(), "x")
			expect(t, "its end", effects, "release a cancelled, end a revoked")
			continue
		}
		due(t, "started late", m, after(time.Second+CancelBound))
		expect(t, "no end", m.Tick(after(time.Second+CancelBound)), "release a cancelled, end a revoked")
	}
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	expect(t, "never started", m.Tick(after(DefaultTerm)), "cancel a stale, release a expired, end a expired")
	if ok, _ := m.Completed(after(DefaultTerm+time.Second), a.Ref(), "x"); ok || a.CancelReason() != CancelStale {
		t.Errorf("its end is taken: %v; cancelled: %q", ok, a.CancelReason())
	}
}

// A cancel has a bound of its own, from when it was asked for.
func TestCancelBound(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", time.Hour)
	m.Started(t0, a.Ref(), "x")
	expect(t, "cancel", m.CancelCommand(after(time.Minute), a, CancelUser), "cancel a user_abort")
	due(t, "cancelled", m, after(time.Minute+CancelBound))
	expect(t, "again", m.CancelCommand(after(time.Minute+time.Second), a, CancelUser), "")
	due(t, "cancelled again", m, after(time.Minute+CancelBound))
	expect(t, "no end", m.Tick(after(time.Minute+CancelBound)), "release a expired, end a expired")
}

// an offer that a lost link took along is made again, under a new fence; the old one's answer, which comes late, grants
// nothing, whether or not the loss was noticed.
func TestOfferOverALostLink(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		m := NewManager(new(Fences))
		a := ask(m, t0, "a")
		old := a.Ref()
		if noticed {
			expect(t, "lost", m.Disconnect(t0), "")
			expect(t, "late answer without a link", m.Acquired(t0, old), "release a stale")
		}
		_, effects := m.Reconnect(t0, nil, nil)
		expect(t, "back", effects, "offer a")
		if a.Fence <= old.Fence {
			t.Errorf("fence %d after %d", a.Fence, old.Fence)
		}
		expect(t, "late answer", m.Acquired(t0, old), "release a stale")
		expect(t, "answer", m.Acquired(t0, a.Ref()), "grant a")
	}
}

// What a lender that is back believes is adopted only where it is what is believed here: this lease, this fence, this
// command. Its fences are never used again.
func TestAdopted(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(Ref) Ref
		exec  string
		runs  bool
		want  bool
	}{
		{"the same", func(r Ref) Ref { return r }, "x", true, true},
		{"another fence", func(r Ref) Ref { return Ref{r.ID, r.Fence + 1} }, "x", true, false},
		{"another lease", func(r Ref) Ref { return Ref{"b", r.Fence} }, "x", true, false},
		{"another command", func(r Ref) Ref { return r }, "y", true, false},
		{"no command", func(r Ref) Ref { return r }, "", false, false},
	} {
		m := NewManager(new(Fences))
		a := hold(t, m, t0, "a")
		if c.runs {
			_ = m.Execute(t0, a, "x", 0)
		}
		adopted, _ := m.Reconnect(t0, []Ref{c.other(a.Ref())}, []string{c.exec})
		if (adopted == a) != c.want || (a.State == Held) != c.want {
			t.Errorf("%s: adopted %v, the lease is %v", c.name, adopted, a.State)
		}
	}
	m := NewManager(new(Fences))
	m.Disconnect(t0)
	m.Reconnect(t0, []Ref{{"of the last daemon", 500}}, []string{""})
	if a := ask(m, t0, "a"); a.Fence <= 500 {
		t.Errorf("fence %d after 500", a.Fence)
	}
}

// The clock of a running command goes on over a lost link; one whose start was said to the link that was gone is taken to
// have started when the lender is back. Nobody is heard of for Grace: then the lease is over.
func TestClockOverALostLink(t *testing.T) {
	for _, started := range []bool{true, false} {
		m := NewManager(new(Fences))
		a := hold(t, m, t0, "a")
		_ = m.Execute(t0, a, "x", 5*time.Minute)
		want := after(50 * time.Second)
		if started {
			want = after(2 * time.Second)
			m.Started(want, a.Ref(), "x")
		}
		m.Disconnect(after(10 * time.Second))
		due(t, "lost", m, after(10*time.Second+Grace))
		expect(t, "within the grace", m.Tick(after(10*time.Second+Grace-1)), "")
		m.Reconnect(after(50*time.Second), []Ref{a.Ref()}, []string{"x"})
		due(t, "back", m, want.Add(5*time.Minute+TimeoutSlack))
	}
}

// Who is out of time is not offered what the one before leaves behind.
func TestOutOfTimeTogether(t *testing.T) {
	m := NewManager(new(Fences))
	ask(m, t0, "a")
	ask(m, t0, "b")
	expect(t, "both", m.Tick(after(DefaultWait)), "release a cancelled, end a timeout, end b timeout")
}

// Who waited in vain is told how long the holder has had it, not how long that waited for it; and of nobody where nobody
// was named for the offer that is out.
func TestWhoHeldIt(t *testing.T) {
	m := NewManager(new(Fences))
	a := ask(m, t0, "a")
	m.Acquired(after(10*time.Second), a.Ref())
	_ = m.Execute(after(10*time.Second), a, "x", time.Hour)
	m.Started(after(10*time.Second), a.Ref(), "x")
	ask(m, after(20*time.Second), "b")
	expect(t, "behind a", m.Tick(after(80*time.Second)), "end b timeout behind agent-a 1m10s")

	m = NewManager(new(Fences))
	a = ask(m, t0, "a")
	m.Wait(t0, a.Ref(), "user", time.Second)
	ask(m, t0, "b")
	m.Release(t0, a)
	expect(t, "behind nobody known", m.Tick(after(DefaultWait)), "release b cancelled, end b timeout")
}

// The user who comes before a command that was asked for, or not yet, has its borrower wait again: at the head of the line,
// under a new fence, and no longer in all than it would.
func TestPreempted(t *testing.T) {
	for _, asked := range []bool{false, true} {
		m := NewManager(new(Fences))
		a, b := hold(t, m, t0, "a"), ask(m, t0, "b")
		old := a.Ref()
		if asked {
			_ = m.Execute(after(time.Second), a, "x", 0)
		}
		expect(t, "the user comes", m.Preempted(after(10*time.Second), old, "user"), "offer a")
		expect(t, "again", m.Preempted(after(10*time.Second), old, "user"), "")
		if ok, _ := m.Completed(after(11*time.Second), old, "x"); ok || a.State != Offered || a.Fence <= old.Fence || m.Position(b) != 1 {
			t.Errorf("%v under fence %d after %d, b at %d", a.State, a.Fence, old.Fence, m.Position(b))
		}
		if who, held := m.Holder(after(12 * time.Second)); who != "user" || held != 2*time.Second {
			t.Errorf("held by %q for %v, want the user for 2s", who, held)
		}
		due(t, "waits", m, after(DefaultWait))
		expect(t, "lent again", m.Acquired(after(20*time.Second), a.Ref()), "grant a")
		if err := m.Execute(after(20*time.Second), a, "x", 0); err != nil || !m.Started(after(20*time.Second), a.Ref(), "x") || !a.Began() {
			t.Errorf("its command: %v, began %v", err, a.Began())
		}
		expect(t, "once it has begun", m.Preempted(after(21*time.Second), a.Ref(), "user"), "end a revoked, offer b")
		expect(t, "an offer", m.Preempted(after(21*time.Second), b.Ref(), "user"), "end b revoked")
	}
	// Who was to be rid of its command, or of its lease, is.
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	expect(t, "cancel", m.CancelCommand(t0, a, CancelUser), "cancel a user_abort")
	expect(t, "cancelled", m.Preempted(t0, a.Ref(), "user"), "end a released")
	b := hold(t, m, t0, "b")
	_ = m.Execute(t0, b, "x", 0)
	expect(t, "revoke", m.Revoke(t0, b), "cancel b stale")
	expect(t, "revoked", m.Preempted(t0, b.Ref(), "user"), "end b revoked")
	// Who has waited as long as it would does not wait again.
	late := hold(t, m, t0, "late")
	expect(t, "late", m.Preempted(after(DefaultWait), late.Ref(), "user"), "end late timeout behind user 0s")
	// Without a link it waits for one.
	c := hold(t, m, t0, "c")
	_ = m.Execute(t0, c, "x", 0)
	m.Disconnect(t0)
	expect(t, "no link", m.Preempted(t0, c.Ref(), "user"), "")
	_, effects := m.Reconnect(t0, nil, nil)
	expect(t, "link back", effects, "offer c")
}

// What a borrower asks for holds; zero stands for the defaults.
func TestAsked(t *testing.T) {
	for _, c := range []struct{ ask, want time.Duration }{{0, 0}, {-1, 0}, {time.Millisecond, time.Millisecond}} {
		m := NewManager(new(Fences))
		a := new(Lease)
		m.Request(t0, a, Request{ID: "a", Wait: c.ask, Term: c.ask})
		wait, term := c.want, c.want
		if c.want == 0 {
			wait, term = DefaultWait, DefaultTerm
		}
		due(t, "asked", m, after(wait))
		m.Acquired(t0, a.Ref())
		due(t, "granted", m, after(term))
	}
}

// a message counts for the lease and the command that it names, both, and a start once.
func TestNamedBoth(t *testing.T) {
	m := NewManager(new(Fences))
	a := ask(m, t0, "a")
	expect(t, "another's answer", m.Acquired(t0, Ref{"b", a.Fence}), "release b stale")
	m.Acquired(t0, a.Ref())
	before := func(what string, ref Ref, x string) {
		t.Helper()
		if m.Started(t0, ref, x) || m.Output(ref, x) {
			t.Errorf("%s: start or output is taken", what)
		}
		if ok, effects := m.Completed(t0, ref, x); ok || len(effects) > 0 {
			t.Errorf("%s: its end is taken", what)
		}
	}
	before("no command", a.Ref(), "")
	before("not handed over", a.Ref(), "x")
	_ = m.Execute(t0, a, "x", time.Minute)
	before("another command", a.Ref(), "y")
	before("another lease", Ref{"b", a.Fence}, "x")
	before("another fence", Ref{"a", a.Fence + 1}, "x")
	if !m.Started(t0, a.Ref(), "x") || m.Started(after(time.Second), a.Ref(), "x") {
		t.Error("a start is taken twice, or not at all")
	}
	due(t, "started once", m, after(time.Minute+TimeoutSlack))
}

// While the command has the user's keyboard its clock stands still: a command was cancelled while its user typed a password.
func TestTheClockStandsStill(t *testing.T) {
	const never = 24 * time.Hour
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", time.Minute)
	m.Keyboard(t0, a.Ref(), "x", true) // before its start: nothing
	due(t, "not started", m, after(DefaultTerm))
	m.Started(t0, a.Ref(), "x")
	m.Keyboard(after(50*time.Second), a.Ref(), "y", true)
	due(t, "another command", m, after(time.Minute+TimeoutSlack))
	for range 2 {
		m.Keyboard(after(50*time.Second), a.Ref(), "x", true)
	}
	expect(t, "while the user types", m.Tick(after(never)), "")
	m.Disconnect(after(never))
	due(t, "lost meanwhile", m, after(never+Grace))
	m.Reconnect(after(never), []Ref{a.Ref()}, []string{"x"})
	expect(t, "back meanwhile", m.Tick(after(2*never)), "")
	for range 2 {
		m.Keyboard(after(2*never), a.Ref(), "x", false)
	}
	due(t, "goes on", m, after(2*never+10*time.Second+TimeoutSlack))
	m.Keyboard(after(2*never), a.Ref(), "x", true)
	m.CancelCommand(after(3*never), a, CancelUser)
	m.Keyboard(after(3*never), a.Ref(), "x", false)
	due(t, "cancelled", m, after(3*never+CancelBound))
	m.Completed(after(3*never), a.Ref(), "x")
	_ = m.Execute(after(3*never), a, "z", time.Minute)
	m.Started(after(3*never), a.Ref(), "z")
	due(t, "the next command", m, after(3*never+time.Minute+TimeoutSlack))
}

// Whatever is due first is next, a waiter's patience or the holder's term.
func TestFirstOfWaiterAndHolder(t *testing.T) {
	for _, wait := range []time.Duration{DefaultTerm - 1, DefaultTerm + 1} {
		m := NewManager(new(Fences))
		hold(t, m, t0, "a")
		m.Request(t0, new(Lease), Request{ID: "b", Wait: wait})
		due(t, "both", m, after(min(wait, DefaultTerm)))
	}
}

// a cancel that the link took along is repeated when the lender is back. What the lender does not say of its commands,
// and a loss that is noticed twice, change nothing.
func TestCancelOverALostLink(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", time.Hour)
	m.Started(t0, a.Ref(), "x")
	m.CancelCommand(t0, a, CancelUser)
	m.Disconnect(t0)
	m.Disconnect(after(Grace / 2))
	due(t, "lost", m, after(Grace))
	_, effects := m.Reconnect(after(Grace/2), []Ref{a.Ref()}, []string{"x"})
	expect(t, "back", effects, "cancel a user_abort")
	due(t, "back", m, after(Grace/2+CancelBound))
	adopted, effects := m.Reconnect(after(Grace/2), []Ref{a.Ref()}, nil)
	if expect(t, "without its command", effects, "release a disconnected, end a disconnected"); adopted != nil {
		t.Errorf("adopted %+v", adopted)
	}
}

// Who goes back into the line keeps the bound that it had.
func TestPreemptedIsBounded(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, after(time.Second), "a")
	expect(t, "preempted", m.Preempted(after(2*time.Second), a.Ref(), "user"), "offer a")
	due(t, "preempted", m, after(time.Second+DefaultWait))
	expect(t, "in vain", m.Tick(after(time.Second+DefaultWait)), "release a cancelled, end a timeout behind user 59s")
}

// Who is asked about is who there is: nobody has it before it is granted, but whom the lender named for the offer that is
// out; all but the holder wait, in order.
func TestWhoHasAndWaits(t *testing.T) {
	m := NewManager(new(Fences))
	has := func(what, want string, length time.Duration, waiting string) {
		t.Helper()
		who, held := m.Holder(after(time.Minute))
		var names string
		for l := range m.Waiting {
			names += l.ID
		}
		if who != want || held != length || names != waiting {
			t.Errorf("%s: %q has it for %v, %q wait, want %q for %v, %q", what, who, held, names, want, length, waiting)
		}
		if l := m.Current(); (l != nil) != (what == "granted") {
			t.Errorf("%s: held as %+v", what, l)
		}
	}
	has("nobody asked", "", 0, "")
	a := ask(m, t0, "a")
	ask(m, t0, "b")
	has("asked", "", 0, "ab")
	m.Wait(t0, a.Ref(), "user", time.Second)
	has("the user has it", "user", 61*time.Second, "ab")
	m.Disconnect(t0)
	has("the link is lost", "", 0, "ab")
	m.Reconnect(t0, nil, nil)
	m.Acquired(t0, a.Ref())
	has("granted", "agent-a", time.Minute, "b")
	for l := range m.Waiting {
		m.Release(t0, l)
		break
	}
	has("granted", "agent-a", time.Minute, "")
}

// What is closed ends everybody once, and who comes later, for the first reason.
func TestClosedTwice(t *testing.T) {
	m := NewManager(new(Fences))
	ask(m, t0, "a")
	expect(t, "closed", m.Close(t0, NoShell), "release a cancelled, end a no_shell")
	expect(t, "again", m.Close(t0, ShuttingDown), "")
	expect(t, "later", m.Request(t0, new(Lease), Request{ID: "b"}), "end b no_shell")
}
