package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/lease/caller"
	"sublet/wire"
)

// What goes through the protocol is tested in package server, over this package and a real store.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newHub(t testing.TB) *Hub {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	st, err := store.Open(context.Background(), filepath.Join(dir, "db"), log)
	if err != nil {
		t.Fatal(err)
	}
	audit, err := store.OpenAudit(filepath.Join(dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(context.Background(), Options{Store: st, Audit: audit, Config: config.Default, Runtime: dir, Spool: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(context.Background()), audit.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Live output is passed on in order and in few pieces, is bounded while nobody takes it, and ends with close.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		pieces := 0
		b := newBatch(func(p []byte) { got.Write(p); pieces++ })
		for i := range 1000 {
			b.add(fmt.Appendf(nil, "%03d ", i))
			if i == 0 {
				synctest.Wait()
			}
		}
		time.Sleep(batchEvery)
		synctest.Wait()
		b.add(bytes.Repeat([]byte("x"), 2*batchMost)) // more than is kept for the eye: left out
		b.add([]byte("end"))
		b.close()
		if pieces > 4 || got.Len() != 4*1000+3 || !strings.HasSuffix(got.String(), "998 999 end") {
			t.Errorf("%d bytes in %d pieces, ending in %q", got.Len(), pieces, got.String()[max(0, got.Len()-20):])
		}
	})
}

// A private shell gets the client's environment without secrets, but for those that the settings name.
func TestPrivateEnv(t *testing.T) {
	t.Setenv("DEPLOY_TOKEN", "from the daemon")
	env := map[string]wire.OSString{"HOME": "/h", "GITHUB_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret"}
	got := privateEnv(env, []string{"GITHUB_TOKEN", "DEPLOY_TOKEN"})
	want := []string{"DEPLOY_TOKEN=from the daemon", "GITHUB_TOKEN=secret", "HOME=/h"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nobody who waits is told less than who has the shell and for how long (T2h).
func TestRefusal(t *testing.T) {
	for outcome, want := range map[string]string{
		lease.TimedOut:     "the shell is taken: vim has held it for 5s; waited 1m0s for it",
		lease.NoShell:      tool.ErrNoShell.Error(),
		lease.Disconnected: tool.ErrNoShell.Error(),
		lease.Revoked:      "the user took it back",
		lease.ShuttingDown: "the daemon is stopping",
		lease.Expired:      "its term ran out",
		lease.Denied:       "the user refused",
	} {
		b := &borrow{outcome: outcome, holder: "vim", heldFor: 5 * time.Second}
		if err := b.refusal(time.Minute); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want %q", outcome, err, want)
		}
	}
}

// Sessions that nobody holds stay for their undo log, up to a bound; one that is held is never forgotten.
func TestIdleSessionsAreBounded(t *testing.T) {
	h := newHub(t)
	held := h.newSession("/w")
	first := h.newSession("/w")
	h.release(first)
	for range maxIdleSessions {
		h.release(h.newSession("/w"))
	}
	if _, err := h.session(context.Background(), first.id); !errors.Is(err, ErrNoSession) {
		t.Errorf("the oldest: got %v", err)
	}
	if len(h.sessions) != maxIdleSessions+1 || h.sessions[held.id] != held {
		t.Errorf("%d sessions in memory", len(h.sessions))
	}
	again, err := h.session(context.Background(), held.id)
	if err != nil || again != held {
		t.Errorf("the held one: %v", err)
	}
	h.release(again)
	h.release(held)
}

// What idle sessions could undo is bounded for all of them together, too: each may keep 32 MiB, and there are a hundred.
func TestIdleUndoIsBounded(t *testing.T) {
	h := newHub(t)
	var all []*session
	for range 5 {
		s := h.newSession("/w")
		s.files.Changed(tool.Change{Path: "/w/f", Before: make([]byte, maxIdleUndo/4)})
		all = append(all, s)
		h.release(s)
	}
	if len(h.idle) != 4 || h.sessions[all[0].id] != nil || h.sessions[all[4].id] != all[4] {
		t.Errorf("%d sessions are kept, want the last 4", len(h.idle))
	}
}

// A turn whose own client lends no shell borrows that of the window last typed in, and the same one from the question where
// a command would run to the run itself: it was whichever came first out of a map, anew each time.
func TestPickOfOtherWindows(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/w")
	defer h.release(s)
	var want *lender
	for n := range 10 {
		c := &Client{hub: h, info: wire.ClientInfo{PID: 100 + n}, owner: owner{says: 100 + n}}
		c.lender = h.lenderOf(c)
		c.lender.typedAt = time.Unix(int64(n%5), 0) // 4 and 9 were typed in last, at the same time
		if n > 0 {
			c.lender.client = c
		} else {
			c.lender.typedAt = time.Unix(10, 0) // later still, and its link is down
		}
		s.clients[c] = struct{}{}
		if n == 4 {
			want = c.lender
		}
	}
	u := &userShell{t: &turn{hub: h, s: s, origin: &Client{}}}
	for range 50 {
		if got, err := u.pick(); err != nil || got != want {
			t.Fatalf("got the shell of %d, %v, want that of %d", got.pid, err, want.pid)
		}
	}
	clear(s.clients)
}

// A command that a shell was borrowed for leaves nothing behind: its id may be forgotten in its time, and others may run.
func TestALoanLeavesNothing(t *testing.T) {
	h := newHub(t)
	openWindow(t, h)
	c := &Client{
		hub: h, peer: deaf{}, requests: map[wire.RequestID]func(*stopped){}, borrowed: map[wire.RequestID]func(*stopped){},
		startedBy: func() caller.Agent { return caller.Agent{} },
	}
	id := wire.RequestID("r")
	if err := c.LeaseRun(&wire.LeaseRunRequest{RequestID: id, Command: "ls"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Cancel(&wire.CancelRequest{RequestID: &id}); err != nil {
		t.Fatal(err)
	}
	h.work.Wait()
	if cancel, known := c.requests[id]; !known || cancel != nil || len(c.borrowed) > 0 || h.running > 0 {
		t.Errorf("known %v, to be cancelled %v, %d borrowed, %d running", known, cancel != nil, len(c.borrowed), h.running)
	}
}

// Numbers have no gap when an event cannot be stored (T4d).
func TestNumbers(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/w")
	defer h.release(s)
	for want := int64(1); want <= 3; want++ {
		m := &wire.CommandResult{Command: "ls"}
		if err := s.emit(m); err != nil || m.Seq != want {
			t.Fatalf("got number %d, %v, want %d", m.Seq, err, want)
		}
		// An event whose turn began already is refused by the store.
		bad := &wire.TurnStarted{Event: wire.Event{TurnID: "t"}}
		if err := s.emit(bad); want > 1 && err == nil {
			t.Error("the same turn began twice")
		} else if err == nil {
			want++
		}
	}
	events, _, err := h.opts.Store.Events(context.Background(), s.id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range events {
		if m.Meta().Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, m.Meta().Seq)
		}
	}
}

// What is stored of a question holds no secret; what is shown is what would run.
func TestForStore(t *testing.T) {
	secret := wire.OSString("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz'")
	q := &wire.ConfirmationRequest{Command: secret}
	maskEvent(q)
	kept := forStore(q).(*wire.ConfirmationRequest)
	if q.Command != secret || strings.Contains(string(kept.Command), "ghp_0123") {
		t.Errorf("shown %q, kept %q", q.Command, kept.Command)
	}
}

// A shell is its process's: two clients of two pid namespaces call themselves by the same pid, and the pid of one that is
// gone may be the next one's. Who came second had the first one's queue, leases and state.
func TestOwnerOfAShell(t *testing.T) {
	h := newHub(t)
	lenderOf := func(says, pid int) *lender {
		c := &Client{hub: h, info: wire.ClientInfo{PID: says}, owner: ownerOf(says, pid)}
		return h.lenderOf(c)
	}
	first := lenderOf(7, os.Getpid())
	if lenderOf(7, os.Getpid()) != first {
		t.Error("a client that came back has another lender")
	}
	if lenderOf(7, os.Getppid()) == first {
		t.Error("a client with the same pid in another namespace has the lender of the first")
	}
	if lenderOf(8, os.Getpid()) == first {
		t.Error("another client behind the same relay has the lender of the first")
	}
	old := ownerOf(7, os.Getpid())
	if runtime.GOOS != "linux" {
		return // which process it is cannot be told from another of the same pid
	}
	if old.started == 0 {
		t.Fatal("when this process was started is not known")
	}
	again := old
	again.started++
	next := &Client{hub: h, info: wire.ClientInfo{PID: 7}, owner: again}
	if h.lenderOf(next) == first {
		t.Error("a client with a pid that was used before has the lender of the first")
	}
	for _, n := range []int{-1, 0, 1 << 30} {
		if o := ownerOf(7, n); o.started != 0 {
			t.Errorf("process %d: got something, want nothing", n)
		}
	}
}

// The bodies of functions that are gone are forgotten: a shell that defines new ones at each prompt would fill the daemon.
func TestBodiesOfFunctions(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h}
	ln := h.lenderOf(c)
	ln.client = c
	state := func(list ...wire.ShellFunction) {
		t.Helper()
		if err := ln.stateChanged(c, &wire.ShellState{Functions: list}); err != nil {
			t.Error(err)
		}
	}
	f := func(name, hash, body string) wire.ShellFunction {
		return wire.ShellFunction{Name: name, Hash: hash, Body: wire.OSString(body)}
	}
	for n := range 100 {
		hash := fmt.Sprint("h", n)
		state(f("kept", "k", map[bool]string{true: "kept () { :; }"}[n == 0]), f("new", hash, "new () { :; }"), f("same", hash, ""))
		if ln.state.Functions["kept"] != "kept () { :; }" || ln.state.Functions["same"] != "new () { :; }" {
			t.Fatalf("state %d: got %q, want the bodies that were told", n, ln.state.Functions)
		}
	}
	if len(ln.bodies) != 2 {
		t.Errorf("got %d bodies kept, want 2", len(ln.bodies))
	}
	state(f("back", "h3", ""))
	if body := ln.state.Functions["back"]; body != "" {
		t.Errorf("got %q for a body that was forgotten, want none: it is asked about", body)
	}
}

// The window last typed in is where a command of the user's began, or a question: not where the last one ended, which is told
// when that is long ago.
func TestTypedIn(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/w")
	window := func(pid int) *Client {
		c := &Client{hub: h, session: s, info: wire.ClientInfo{PID: pid}, owner: owner{says: pid}, requests: map[wire.RequestID]func(*stopped){}}
		c.lender = h.lenderOf(c)
		c.lender.client = c
		c.lender.typedAt = time.Now().Add(-time.Hour)
		return c
	}
	a, b := window(1), window(2)
	is := func(what string, want *Client) {
		t.Helper()
		if got := h.lenderFor(0); got != want.lender {
			t.Errorf("%s: typed in last is %d, want %d", what, got.pid, want.lender.pid)
		}
	}
	began := time.Now()
	if err := a.ShellUse(&wire.ShellUseReply{Holder: "user"}); err != nil {
		t.Fatal(err)
	}
	is("a command begins", a)
	if err := b.ShellUse(&wire.ShellUseReply{Holder: "user"}); err != nil {
		t.Fatal(err)
	}
	is("another begins elsewhere", b)
	if err := a.UserCommand(&wire.CommandResult{Command: "make", StartedAtMS: began.UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	is("the first ends", b)
	if err := (&Client{hub: h, lender: a.lender}).ShellUse(&wire.ShellUseReply{Holder: "user"}); err != nil {
		t.Fatal(err)
	}
	is("a connection that was replaced says so", b)
	if err := a.UserCommand(&wire.CommandResult{Command: "ls"}); err != nil {
		t.Fatal(err)
	}
	is("one ends whose begin nobody told", a)
	if err := b.Ask(t.Context(), &wire.AgentRequest{RequestID: "r", Prompt: "hello", SessionID: new(wire.SessionID("none"))}); err == nil {
		t.Error("asked in a session that is not there")
	}
	is("a question", b)
}
