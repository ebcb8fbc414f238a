package lease

import (
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var t0 = time.UnixMilli(1_700_000_000_000)

// did writes effects as words, so that tests read like the protocol.
func did(effects []Effect) string {
	var words []string
	for _, e := range effects {
		w := [...]string{"none", "offer", "grant", "cancel", "release", "end"}[e.Do] + " " + e.Ref.ID
		if e.Reason != "" {
			w += " " + e.Reason
		}
		if e.Holder != "" {
			w += " behind " + e.Holder + " " + e.HeldFor.String()
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

func expect(t *testing.T, what string, effects []Effect, want string) {
	t.Helper()
	if got := did(effects); got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func after(d time.Duration) time.Time { return t0.Add(d) }

func ask(m *Manager, at time.Time, id string) *Lease {
	l := new(Lease)
	m.Request(at, l, Request{ID: id, Holder: "agent-" + id})
	return l
}

func hold(t *testing.T, m *Manager, at time.Time, id string) *Lease {
	t.Helper()
	l := ask(m, at, id)
	m.Acquired(at, l.Ref())
	if l.State != Held {
		t.Fatalf("%s is %v, want held", id, l.State)
	}
	return l
}

// The whole life of one lease, and a second in line (I1 to I7).
func TestLife(t *testing.T) {
	m := NewManager(new(Fences))
	a, b := new(Lease), new(Lease)
	effects := m.Request(t0, a, Request{ID: "a", Holder: "orchestrator"})
	expect(t, "request", effects, "offer a")
	effects = m.Request(t0, b, Request{ID: "b"})
	expect(t, "second request", effects, "")
	if got := m.Position(b); got != 1 {
		t.Errorf("position: got %d, want 1", got)
	}
	expect(t, "acquired", m.Acquired(after(time.Second), a.Ref()), "grant a")
	if err := m.Execute(after(time.Second), a, "x", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := m.Execute(after(time.Second), a, "y", time.Minute); err != ErrBusy {
		t.Errorf("second command: got %v, want ErrBusy", err)
	}
	if !m.Started(after(2*time.Second), a.Ref(), "x") || !m.Output(a.Ref(), "x") {
		t.Error("started and output of the running command are not taken")
	}
	ok, effects := m.Completed(after(40*time.Second), a.Ref(), "x")
	if !ok {
		t.Error("completion of the running command is not taken")
	}
	expect(t, "completed", effects, "")
	first := a.Fence
	expect(t, "release", m.Release(after(41*time.Second), a), "release a completed, end a released, offer b")
	expect(t, "again", m.Release(after(41*time.Second), a), "")
	if b.Fence <= first {
		t.Errorf("fence %d after %d", b.Fence, first)
	}
	if err := m.Execute(after(42*time.Second), a, "z", 0); err != ErrStale {
		t.Errorf("command under a released lease: got %v, want ErrStale", err)
	}
}

// aborting while queued, or while offered, leaves no ghost; a grant that comes later is given back.
func TestAbortWhileWaiting(t *testing.T) {
	m := NewManager(new(Fences))
	a, b, c := ask(m, t0, "a"), ask(m, t0, "b"), ask(m, t0, "c")
	expect(t, "queued one gives up", m.Release(t0, b), "end b released")
	expect(t, "again", m.Release(t0, b), "")
	ref := a.Ref()
	expect(t, "cancelled head", m.Release(t0, a), "release a completed, end a released, offer c")
	expect(t, "late grant", m.Acquired(t0, ref), "release a stale")
	expect(t, "the next one's grant", m.Acquired(t0, c.Ref()), "grant c")
	expect(t, "duplicate grant", m.Acquired(t0, c.Ref()), "")
}

// waiting has a bound, and its end says who has the shell and for how long.
func TestWaitBound(t *testing.T) {
	m := NewManager(new(Fences))
	hold(t, m, t0, "a")
	if err := m.Execute(t0, m.Current(), "x", 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	m.Started(t0, m.Current().Ref(), "x")
	ask(m, after(10*time.Second), "b")
	at, ok := m.NextDeadline()
	if want := after(70 * time.Second); !ok || !at.Equal(want) {
		t.Fatalf("next deadline: got %v, want %v", at, want)
	}
	expect(t, "just before", m.Tick(at.Add(-1)), "")
	expect(t, "then", m.Tick(at), "end b timeout behind agent-a 1m10s")
}

// The user's own command comes first; whoever waits behind it is told that it is the user.
func TestWaitBehindUser(t *testing.T) {
	m := NewManager(new(Fences))
	a := ask(m, t0, "a")
	m.Wait(after(time.Second), a.Ref(), "user", 5*time.Second)
	ask(m, after(30*time.Second), "b")
	expect(t, "bound", m.Tick(after(60*time.Second)), "release a cancelled, end a timeout behind user 1m4s, offer b")
}

// I4: a lease ends after its term without a command; a running command keeps it alive up to its own timeout.
func TestTerm(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	if err := m.Execute(after(29*time.Second), a, "x", 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	start := after(35 * time.Second)
	m.Started(start, a.Ref(), "x") // the clock starts here
	due := start.Add(5*time.Minute + TimeoutSlack)
	if at, _ := m.NextDeadline(); !at.Equal(due) {
		t.Fatalf("next deadline: got %v, want %v", at, due)
	}
	expect(t, "timeout", m.Tick(due), "cancel a timeout")
	_, effects := m.Completed(due, a.Ref(), "x")
	expect(t, "its end", effects, "")
	expect(t, "idle", m.Tick(due.Add(DefaultTerm)), "release a expired, end a expired")

	b := hold(t, m, t0, "b")
	if err := m.Execute(t0, b, "y", 9*time.Hour); err != nil || b.Timeout() != MaxTimeout {
		t.Errorf("timeout: got %v, %v, want %v", b.Timeout(), err, MaxTimeout)
	}
	expect(t, "never started", m.Tick(after(DefaultTerm)), "cancel b stale, release b expired, end b expired")
}

// giving a lease back while its command runs cancels the command, and nobody gets the shell before its end.
func TestReleaseWhileRunning(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	ask(m, t0, "b")
	expect(t, "release", m.Release(t0, a), "cancel a stale")
	expect(t, "again", m.Release(t0, a), "")
	if err := m.Execute(t0, a, "y", 0); err != ErrStale {
		t.Errorf("command in an pendingOutcome lease: got %v, want ErrStale", err)
	}
	_, effects := m.Completed(after(time.Second), a.Ref(), "x")
	expect(t, "its end", effects, "release a completed, end a released, offer b")
}

// the user takes the shell back; the borrower learns it at once.
func TestTakeBack(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	ask(m, t0, "b")
	expect(t, "gone", m.Gone(t0, a.Ref(), Revoked), "end a revoked, offer b")
	if ok, _ := m.Completed(t0, a.Ref(), "x"); ok {
		t.Error("a late end was taken")
	}
}

// Design section 6: the link drops in mid-command; the fence is good for a minute, and the lease is adopted on return.
func TestReconnect(t *testing.T) {
	for _, c := range []struct {
		name  string
		back  time.Duration
		held  bool
		wants string
		state State
	}{
		{"adopted", 50 * time.Second, true, "", Held},
		{"client has forgotten", 50 * time.Second, false, "cancel a stale, release a disconnected, end a disconnected, offer b", Ended},
	} {
		m := NewManager(new(Fences))
		a := hold(t, m, t0, "a")
		_ = m.Execute(t0, a, "x", 0)
		m.Started(t0, a.Ref(), "x")
		expect(t, c.name+": drop", m.Disconnect(t0), "")
		m.Request(after(10*time.Second), new(Lease), Request{ID: "b", Wait: time.Hour})
		var held []Ref
		if c.held {
			held = []Ref{a.Ref()}
		}
		_, effects := m.Reconnect(after(c.back), held, []string{"x"})
		expect(t, c.name+": back", effects, c.wants)
		if a.State != c.state {
			t.Errorf("%s: %v, want %v", c.name, a.State, c.state)
		}
	}
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	m.Disconnect(t0)
	expect(t, "grace over", m.Tick(after(Grace)), "end a disconnected")

	m = NewManager(new(Fences))
	hold(t, m, t0, "idle")
	expect(t, "idle holder", m.Disconnect(t0), "end idle disconnected")
}

func TestClose(t *testing.T) {
	m := NewManager(new(Fences))
	a := hold(t, m, t0, "a")
	_ = m.Execute(t0, a, "x", 0)
	ask(m, t0, "b")
	expect(t, "close", m.Close(t0, ShuttingDown),
		"cancel a stale, release a cancelled, end a shutting_down, end b shutting_down")
	effects := m.Request(t0, new(Lease), Request{ID: "c"})
	expect(t, "afterwards", effects, "end c shutting_down")
	if _, ok := m.NextDeadline(); ok {
		t.Error("a deadline is left")
	}
}

func TestFences(t *testing.T) {
	var f Fences
	f.Above(41)
	f.Above(7)
	f.Above(math.MaxUint64) // a liar's: the next would begin at 0 again
	f.Above(MaxFence - 1)
	if got := f.Next(); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

// lease is a leaf: it imports nothing of ours, and no package that reads, sends or sleeps.
func TestLeaf(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(dep, "sublet/") && dep != "sublet/lease" || dep == "os" || dep == "net" {
			t.Errorf("imports %s", dep)
		}
	}
}
