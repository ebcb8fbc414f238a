package hub

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/store"
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
	agents := hosted.New(hosted.Options{Log: log})
	t.Cleanup(agents.Close)
	h, err := New(context.Background(), Options{
		Hosted: agents, Store: st, Audit: audit, Config: config.Default, Runtime: dir, Spool: dir, Jobs: filepath.Join(dir, "jobs"), Log: log,
		Models: func(map[string]string) []wire.ModelInfo { return []wire.ModelInfo{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(context.Background()), st.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// watched is a new session that clients are attached to.
func watched(t testing.TB, h *Hub, clients ...*Client) *session {
	t.Helper()
	s := h.newSession("/w", "")
	for _, c := range clients {
		if err := s.join(t.Context(), c, eventlog.Missed{}, s.snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Sessions that nobody holds stay for their rules, up to a bound; one that is held is never forgotten.
func TestIdleSessionsAreBounded(t *testing.T) {
	h := newHub(t)
	held := h.newSession("/w", "")
	first := h.newSession("/w", "")
	h.release(first)
	for range maxIdleSessions {
		h.release(h.newSession("/w", ""))
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

// A command that a shell was borrowed for leaves nothing behind: its id may be forgotten in its time, and others may run.
func TestALoanLeavesNothing(t *testing.T) {
	h := newHub(t)
	openWindow(t, h)
	c := &Client{hub: h, Peer: deaf{}, session: h.newSession("/w", ""), startedBy: func() caller.Agent { return caller.Agent{} }}
	id := wire.RequestID("r")
	if err := c.RememberID(id); err != nil {
		t.Fatal(err)
	}
	if err := c.LeaseRun(&wire.LeaseRunRequest{RequestID: id, Command: "ls"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Cancel(&wire.CancelRequest{RequestID: &id}); err != nil {
		t.Fatal(err)
	}
	h.work.Wait()
	if h.Running() > 0 {
		t.Errorf("%d running", h.Running())
	}
	if err := c.Cancel(&wire.CancelRequest{RequestID: &id}); err != nil {
		t.Errorf("a cancel that crosses its end: %v", err)
	}
}

// The window last typed in is where a command of the user's began, or a question: not where the last one ended, which is told
// when that is long ago.
func TestTypedIn(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/w", "")
	window := func(pid int) *Client {
		c := &Client{hub: h, session: s, Peer: deaf{}, owner: lend.OwnerOf(pid, 0)}
		c.lender = h.shells.Link(c, c.owner, &wire.EnvSnapshot{}, &wire.Ready{})
		return c
	}
	a, b := window(1), window(2)
	is := func(what string, want *Client) {
		t.Helper()
		if got := h.shells.Find(0); got != want.lender {
			t.Errorf("%s: typed in last is %d, want %d", what, got.PID(), want.lender.PID())
		}
	}
	began := time.Now()
	if err := a.LenderMessage(&wire.ShellUseReply{Holder: "user"}); err != nil {
		t.Fatal(err)
	}
	is("a command begins", a)
	if err := b.LenderMessage(&wire.ShellUseReply{Holder: "user"}); err != nil {
		t.Fatal(err)
	}
	is("another begins elsewhere", b)
	if err := a.UserCommand(&wire.CommandResult{Command: "make", StartedAtMS: began.UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	is("the first ends", b)
	if err := (&Client{hub: h, lender: a.lender}).LenderMessage(&wire.ShellUseReply{Holder: "user"}); err != nil {
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
