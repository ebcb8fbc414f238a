package hub

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/lease/shell"
	"sublet/wire"
)

// Who is the user's own, or was typed in last, decides which shell a turn's commands run in; one whose link is down is waited
// for, and one that is gone is none.
func TestPick(t *testing.T) {
	h := newHub(t)
	open := func(pid int) *Client {
		c := &Client{hub: h, Peer: deaf{}, owner: lend.OwnerOf(pid, 0)}
		c.lender = h.shells.Link(c, c.owner, &wire.EnvSnapshot{}, &wire.Ready{})
		return c
	}
	own, latest, other, script := open(1), open(2), open(3), &Client{}
	latest.lender.Typed(time.Now().Add(time.Hour))
	other.lender.Typed(time.Now().Add(time.Minute))
	s := watched(t, h, own, other, latest, script)
	for _, c := range []struct {
		name   string
		before func()
		origin *Client
		want   *lend.Lender
		err    error
	}{
		{"its own", func() {}, own, own.lender, nil},
		{"that of a client that lends none", func() {}, script, latest.lender, nil},
		{"while its own is away", func() { own.lender.Unlink(own) }, own, latest.lender, nil},
		{"while all are away", func() { latest.lender.Unlink(latest); other.lender.Unlink(other) }, own, own.lender, nil},
		{"where none is lent", func() {}, script, nil, nil},
		{"when its own is gone", func() { h.shells.Close() }, own, nil, tool.ErrNoShell},
	} {
		c.before()
		got, err := (&turn{operation: operation{origin: c.origin}, s: s}).Lent()
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}

// What a turn asks for is what the client is asked for, bounded as the settings say and bound to where it was judged; and what
// the client answers is the tool's result.
func TestATurnInTheUsersShell(t *testing.T) {
	h := newHub(t)
	cfg := config.Default()
	cfg.Lease.Wait.Duration, cfg.Lease.Term.Duration = 50*time.Second, 7*time.Second
	h.opts.Config = func() config.Config { return cfg }
	w := openWindow(t, h)
	if err := w.c.LenderMessage(&wire.ShellState{Digest: "old"}); err != nil {
		t.Fatal(err)
	}
	other := &window{t: t} // another client of the session
	s := watched(t, h, w.c, &Client{Peer: other})
	u := &lend.Shell{By: &turn{hub: h, operation: operation{origin: w.c, request: "r1"}, s: s, id: "t1", wishes: wishes{agent: "orchestrator"}}}
	if _, err := u.Run(t.Context(), tool.Command{Approved: tool.ShellPlace{Private: true}}, nil); !errors.Is(err, tool.ErrChanged) {
		t.Errorf("judged for a private shell: got %v", err)
	}
	none := &lend.Shell{By: &turn{hub: h, operation: operation{origin: &Client{}}, s: watched(t, h)}}
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
		asked.TermMS != 7000 || waits > 50*time.Second || waits < 40*time.Second {
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
	want := tool.CommandResult{Result: shell.Result{
		Output: []byte("out"), ExitCode: &code, Signal: "SIGINT", Status: wire.StatusCancelled, Dir: "/v", Duration: 7 * time.Millisecond,
		Truncated: 5, SpoolPath: "/spool", Leftovers: []shell.Process{{PID: 9, Command: "sleep 1"}}, Notes: []string{"the user stopped this command"},
	}}
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

func (deaf) Send(wire.Message)           {}
func (deaf) Flush(context.Context) error { return nil }
func (deaf) End(wire.Message)            {}
func (deaf) PID() int                    { return 0 }

// Commands that a hosted agent runs side by side share the session's private shell.
func TestOnePrivateShell(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/", "")
	u := &turn{hub: h, s: s, operation: operation{origin: &Client{hub: h, env: map[string]wire.OSString{"SHELL": "/bin/sh", "PATH": "/bin:/usr/bin"}, cwd: "/"}}}
	defer s.closePrivate()
	var shells [4]*lend.Private
	var all sync.WaitGroup
	for i := range shells {
		all.Go(func() {
			p, err := u.Private(t.Context())
			if err != nil {
				t.Error(err)
			}
			shells[i] = p
		})
	}
	all.Wait()
	for _, p := range shells {
		if p != shells[0] {
			t.Errorf("several shells: %v", shells)
		}
	}
}

// An agent's own private shell starts when it is first used, and not at all after its turn.
func TestShellOfAnAgent(t *testing.T) {
	h := newHub(t)
	u := &turn{hub: h, s: watched(t, h), operation: operation{origin: &Client{hub: h, env: map[string]wire.OSString{"SHELL": "/bin/sh", "PATH": "/bin:/usr/bin"}, cwd: "/"}}}
	unused, end := u.newPrivateShell("engineer-1")
	if end(); len(h.shells.Privates(u.s.id)) > 0 {
		t.Error("it was started for nothing")
	}
	if _, err := unused.Where(t.Context()); !errors.Is(err, tool.ErrNoShell) {
		t.Errorf("after its end: got %v", err)
	}
	sh, end := u.newPrivateShell("engineer-2")
	for range 2 {
		if place, err := sh.Where(t.Context()); err != nil || !place.Private || !place.Agent || len(h.shells.Privates(u.s.id)) != 1 {
			t.Errorf("got %+v, %v and %d shells", place, err, len(h.shells.Privates(u.s.id)))
		}
	}
	// A repository was made where the user's shell was, because the private shell was elsewhere.
	if c, err := sh.(*lend.Shell).By.Prepare(tool.Command{Reach: confine.Project, Cwd: "/srv"}, "bash"); err != nil || c.Agent != "engineer-2" || c.Confine.Dir != "/" {
		t.Errorf("got a command of %q, protecting %q, %v", c.Agent, c.Confine.Dir, err)
	}
	end() // TestMain sees whether it was left running
}
