package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/wire"
)

// A window that was killed does not come back: who waits for its shell, or for the end of a command in it, is told within
// a second. They waited out the minute that a window has whose link alone was lost.
func TestEndOfAClientIsSeen(t *testing.T) {
	h := newHub(t)
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	was := ownerOf(1, ended.Process.Pid)
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		owner owner
		after time.Duration
	}{
		{"alive", ownerOf(1, os.Getpid()), lease.Grace},
		{"not told by the kernel", owner{says: 1}, lease.Grace},
		{"ended", was, goneEvery},
		{"its pid was used again", owner{says: 1, pid: os.Getpid(), started: 1}, goneEvery},
	} {
		if c.owner.started == 1 && runtime.GOOS != "linux" {
			continue // cannot be told there
		}
		synctest.Test(t, func(t *testing.T) {
			client := &Client{hub: h, peer: deaf{}, info: wire.ClientInfo{PID: 1}, owner: c.owner}
			ln := h.lenderOf(client)
			if !ln.link(client, &wire.EnvSnapshot{}, &wire.Ready{}) {
				t.Fatal("not linked")
			}
			b := ln.ask(t.Context(), wish{holder: "lease run", wait: time.Hour})
			begun := time.Now()
			ln.unlink(client)
			<-b.ended
			if waited := time.Since(begun); waited != c.after || b.outcome != lease.NoShell {
				t.Errorf("%s: told %s after %v, want %s after %v", c.name, b.outcome, waited, lease.NoShell, c.after)
			}
			synctest.Wait()
			if next := h.lenderOf(client); next == ln {
				t.Errorf("%s: the shell is still lent", c.name)
			} else {
				next.close(lease.NoShell)
			}
		})
	}
}

// What a connection that was replaced still sends is older than what is known, and changes nothing.
func TestAReplacedConnection(t *testing.T) {
	old := openWindow(t, newHub(t))
	w := openWindow(t, old.c.hub)
	defer w.c.lender.close(lease.NoShell)
	w.state("new")
	for _, err := range []error{
		old.c.Lease(&wire.ShellLeaseReleased{}), old.c.ShellState(&wire.ShellState{Digest: "old"}), old.c.Lease(&wire.CommandCompleted{}),
	} {
		if !errors.Is(err, ErrNotShellOwner) {
			t.Errorf("got %v, want ErrNotShellOwner", err)
		}
	}
	if _, digest := w.c.lender.where(t.Context()); digest != "new" || old.c.lender != w.c.lender {
		t.Errorf("its state is taken: %q", digest)
	}
}

// Who is the user's own, or was typed in last, decides which shell a turn's commands run in; one whose link is down is waited
// for, and one that is gone is none.
func TestPick(t *testing.T) {
	h := newHub(t)
	open := func(pid int) *Client {
		c := &Client{hub: h, peer: deaf{}, info: wire.ClientInfo{PID: pid}, owner: owner{says: pid}}
		c.lender = h.lenderOf(c)
		c.lender.link(c, &wire.EnvSnapshot{}, &wire.Ready{})
		return c
	}
	own, latest, other, script := open(1), open(2), open(3), &Client{}
	latest.lender.typed(time.Now().Add(time.Hour))
	other.lender.typed(time.Now().Add(time.Minute))
	s := &session{clients: map[*Client]struct{}{own: {}, other: {}, latest: {}, script: {}}}
	for _, c := range []struct {
		name   string
		before func()
		origin *Client
		want   *lender
		err    error
	}{
		{"its own", func() {}, own, own.lender, nil},
		{"that of a client that lends none", func() {}, script, latest.lender, nil},
		{"while its own is away", func() { own.lender.unlink(own) }, own, latest.lender, nil},
		{"while all are away", func() { latest.lender.unlink(latest); other.lender.unlink(other) }, own, own.lender, nil},
		{"where none is lent", func() {}, script, nil, nil},
		{"when its own is gone", func() { own.lender.close(lease.NoShell) }, own, nil, tool.ErrNoShell},
	} {
		c.before()
		got, err := (&userShell{t: &turn{origin: c.origin, s: s}}).pick()
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	if own.lender.link(own, &wire.EnvSnapshot{}, &wire.Ready{}) {
		t.Error("a shell that was given up is lent")
	}
	for _, c := range []*Client{other, latest} {
		c.lender.close(lease.NoShell)
	}
}

// What is known of a shell is known for the state that it is in: not before it is told on this link, nor when the lease says
// that it is another by now. A command's place is waited for then, unless the window is away or who asks has gone.
func TestWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(t, newHub(t))
		ln := w.c.lender
		defer ln.close(lease.NoShell)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		check := func(name string, ctx context.Context, known bool, want time.Duration) {
			t.Helper()
			if got := ln.facts(&risk.Context{}); got != known {
				t.Errorf("%s: known is %v", name, got)
			}
			begun := time.Now()
			ln.where(ctx)
			if waited := time.Since(begun); waited != want {
				t.Errorf("%s: waited %v, want %v", name, waited, want)
			}
		}
		check("nothing told", t.Context(), false, settleBound)
		check("nothing told, and nobody asks", gone, false, 0)
		if ln.busy() {
			t.Error("busy")
		}
		w.state("old")
		check("told", t.Context(), true, 0)
		w.c.EnvChanged(&wire.EnvSnapshot{Cwd: "/elsewhere", Env: map[string]wire.OSString{"NEW": "1"}})
		if cwd, _ := ln.where(t.Context()); cwd != "/elsewhere" || ln.environ()["NEW"] != "1" {
			t.Errorf("in %q with %v: not what came last", cwd, ln.environ())
		}
		replaced := &Client{hub: ln.hub, lender: ln}
		ln.envChanged(replaced, &wire.EnvSnapshot{Env: map[string]wire.OSString{"NEW": "2"}})
		if ln.environ()["NEW"] != "1" {
			t.Error("a connection that was replaced is believed")
		}
		b := ln.ask(t.Context(), wish{execution: "x"})
		if !ln.busy() {
			t.Error("not busy")
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref, State: "newer"})
		check("another by now", t.Context(), false, settleBound)
		ln.unlink(w.c)
		check("away", t.Context(), false, 0)
	})
}

// A client says which shell it lends: commands are written for it, and judged in its dialect. Why the shell cannot be had goes
// to the borrower.
func TestWhichShellAndWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		w := openWindow(t, h)
		ln := w.c.lender
		defer ln.close(lease.NoShell)
		s := &session{clients: map[*Client]struct{}{w.c: {}}}
		for _, c := range []struct {
			info          wire.ShellInfo
			name, dialect string
		}{
			{wire.ShellInfo{Name: "zsh", Version: "5.9"}, "zsh 5.9", "zsh"},
			{wire.ShellInfo{Version: "5.2"}, "bash 5.2", ""}, // an older client
		} {
			ln.link(w.c, &wire.EnvSnapshot{Shell: c.info}, &wire.Ready{})
			var facts risk.Context
			ln.facts(&facts)
			if name := (&userShell{t: &turn{origin: w.c, s: s}}).name(); name != c.name || facts.Dialect != c.dialect {
				t.Errorf("%+v: written for %q, judged as %q", c.info, name, facts.Dialect)
			}
		}
		ask := func() (*borrow, wire.LeaseRef) {
			b := ln.ask(t.Context(), wish{execution: "x", wait: time.Minute})
			return b, wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		}
		b, ref := ask()
		w.says(&wire.ShellLeaseDenied{LeaseRef: ref, Reason: wire.DeniedBroken, Why: "it is\x1b[2J broken"})
		<-b.ended
		if broken, ok := errors.AsType[*tool.BrokenError](b.refusal(0)); !ok || broken.Why != "it is␛[2J broken" {
			t.Errorf("got %v, want what is broken", b.refusal(0))
		}
		b, ref = ask()
		w.says(&wire.ShellLeaseQueued{LeaseRef: ref, Holder: "user", Why: "the user is typing"})
		time.Sleep(time.Minute)
		<-b.ended
		if err := b.refusal(time.Minute); err.Error() != "the shell is taken: user has held it for 1m0s (the user is typing); waited 1m0s for it" {
			t.Errorf("got %v, want who and why", err)
		}
	})
}

// A new link begins with Ready; what the one before had to answer is not waited for, and its end, noticed late, ends nothing.
func TestANewLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		w := openWindow(t, h)
		ln := w.c.lender
		defer ln.close(lease.NoShell)
		w.state("old")
		b, ref := w.lend(wish{})
		w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
		ln.giveBack(b) // not answered
		ln.ask(t.Context(), wish{holder: "next", wait: time.Hour})
		w.mu.Lock()
		w.sent = nil
		w.mu.Unlock()
		ln.link(w.c, &wire.EnvSnapshot{Cwd: "/w"}, &wire.Ready{})
		var kinds []string
		for _, m := range w.sent {
			kinds = append(kinds, m.Kind())
		}
		if want := []string{"Ready", "AcquireShellLease"}; !slices.Equal(kinds, want) {
			t.Errorf("sent %q, want %q", kinds, want)
		}
		if cwd, _ := ln.where(t.Context()); cwd != "/w" {
			t.Errorf("in %q, want where it says it is", cwd)
		}
		w.state("new")
		begun := time.Now()
		if ln.where(t.Context()); time.Since(begun) > 0 {
			t.Errorf("waited %v for what was lost with the link", time.Since(begun))
		}
		ln.unlink(&Client{hub: h, lender: ln})
		if linked, _ := ln.linked(); !linked {
			t.Error("the end of a connection that was replaced ended the new one")
		}
	})
}

// The commands that a person wanted are remembered for as long as what they changed may be told late, and no longer.
func TestVettedAreRemembered(t *testing.T) {
	w := openWindow(t, newHub(t))
	w.state("old")
	ln := w.c.lender
	for n := range 2 * vettedKept {
		b := ln.ask(t.Context(), wish{vetted: true, execution: wire.ExecutionID(fmt.Sprint("x", n))})
		ln.recorded(b)
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref, State: "old"})
		w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: b.wish.execution})
		ln.giveBack(b)
	}
	if len(ln.vetted) != vettedKept {
		t.Errorf("%d are remembered, want %d", len(ln.vetted), vettedKept)
	}
	for id, want := range map[int]int{vettedKept: 0, vettedKept - 1: 2} {
		ln.trusted.all(ln.state)
		w.stateBy(fmt.Sprint("of ", id), wire.ExecutionID(fmt.Sprint("x", id)))
		if len(ln.suspects) != want {
			t.Errorf("of x%d: suspect is %q", id, ln.suspects)
		}
	}
}

// What a turn asks for is what the client is asked for, bounded as the settings say and bound to where it was judged; and what
// the client answers is the tool's result.
func TestATurnInTheUsersShell(t *testing.T) {
	h := newHub(t)
	cfg := config.Default()
	cfg.Lease.Wait, cfg.Lease.Term = 50*time.Second, 7*time.Second
	h.opts.Config = func() config.Config { return cfg }
	w := openWindow(t, h)
	w.state("old")
	other := &window{t: t} // another client of the session
	s := &session{clients: map[*Client]struct{}{w.c: {}, {peer: other}: {}}}
	u := &userShell{t: &turn{hub: h, origin: w.c, s: s, id: "t1", request: "r1"}, holder: "orchestrator"}
	if _, err := u.Run(t.Context(), tool.Command{Approved: tool.ShellPlace{Private: true}}, nil); !errors.Is(err, tool.ErrChanged) {
		t.Errorf("judged for a private shell: got %v", err)
	}
	none := &userShell{t: &turn{hub: h, origin: &Client{}, s: &session{}}}
	if _, err := none.Run(t.Context(), tool.Command{}, nil); !errors.Is(err, tool.ErrChanged) {
		t.Errorf("judged for a shell that is gone: got %v", err)
	}
	done := make(chan tool.CommandResult, 1)
	go func() {
		r, err := u.Run(t.Context(), tool.Command{
			ExecutionID: "x", Text: "make", Cwd: "/w", Approved: tool.ShellPlace{Cwd: "/w", StateDigest: "old"}, Timeout: time.Minute, Purpose: "build",
		}, nil)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	asked := awaitSent[*wire.AcquireShellLease](w)
	if waits := time.Duration(asked.WaitMS) * time.Millisecond; asked.TurnID != "t1" || asked.Agent != "orchestrator" || asked.Purpose != "build" ||
		asked.TermMS != cfg.Lease.Term.Milliseconds() || waits > cfg.Lease.Wait || waits < cfg.Lease.Wait-10*time.Second {
		t.Errorf("asked for %+v", asked)
	}
	w.says(&wire.ShellLeaseAcquired{LeaseRef: asked.LeaseRef, Cwd: "/w", State: "old"})
	if m := awaitSent[*wire.ExecuteLeasedCommand](w); m.ExecutionID != "x" || m.Command != "make" || m.Cwd != "/w" || m.TimeoutMS != 60_000 {
		t.Errorf("asked for %+v", m)
	}
	w.says(&wire.CommandStarted{LeaseRef: asked.LeaseRef, ExecutionID: "x"})
	w.says(&wire.CommandOutput{LeaseRef: asked.LeaseRef, ExecutionID: "x", Data: []byte("out")})
	code := 2
	w.says(&wire.CommandCompleted{
		LeaseRef: asked.LeaseRef, ExecutionID: "x", Output: []byte("out"), ExitCode: &code, Signal: "SIGINT", Status: wire.StatusCancelled, Cwd: "/v",
		DurationMS: 7, Truncated: &wire.Truncation{Bytes: 5, SpoolPath: "/spool"}, Leftovers: []wire.Process{{PID: 9, Command: "sleep 1"}},
	})
	want := tool.CommandResult{
		Output: []byte("out"), ExitCode: &code, Signal: "SIGINT", Status: wire.StatusCancelled, Cwd: "/v", Duration: 7 * time.Millisecond,
		Truncated: 5, SpoolPath: "/spool", Leftovers: []string{"9 sleep 1"}, Notes: []string{"the user stopped this command"},
	}
	if got := <-done; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// Whoever else is in the session sees it live; the window has it already.
	chunk, ok := other.sent[0].(*wire.AgentStreamChunk)
	if !ok || chunk.Chunk.Type != wire.ChunkToolOutput || chunk.Chunk.ExecutionID != "x" || string(chunk.Chunk.Data) != "out" ||
		chunk.Agent != "orchestrator" || chunk.TurnID != "t1" || chunk.RequestID != "r1" {
		t.Errorf("the other client was sent %+v", other.sent)
	}
	for _, m := range w.sent {
		if _, ok := m.(*wire.AgentStreamChunk); ok {
			t.Errorf("the window was sent its own output: %+v", m)
		}
	}
	for _, c := range []struct {
		m    wire.CommandCompleted
		ours bool
		want []string
	}{
		{wire.CommandCompleted{Status: wire.StatusCancelled}, true, nil},
		{wire.CommandCompleted{Status: wire.StatusOK}, false, nil},
		{wire.CommandCompleted{Status: wire.StatusCancelled, Notes: []string{"why"}}, false, []string{"why"}},
	} {
		if got := resultOf(&c.m, c.ours).Notes; !slices.Equal(got, c.want) {
			t.Errorf("%+v, ours %v: got %q, want %q", c.m, c.ours, got, c.want)
		}
	}
}

// awaitSent waits for the first message of its kind that the window was sent.
func awaitSent[M wire.Message](w *window) (found M) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		for _, m := range w.sent {
			if m, ok := m.(M); ok {
				w.mu.Unlock()
				return m
			}
		}
		w.mu.Unlock()
	}
	w.t.Fatalf("was sent no %T", found)
	return found
}

// deaf is a connection whose other end says nothing.
type deaf struct{}

func (deaf) Send(wire.Message) error     { return nil }
func (deaf) Flush(context.Context) error { return nil }
func (deaf) End(wire.Message)            {}
func (deaf) PID() int                    { return 0 }
