package crew

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// host is a session whose agents' turns end when the test says so.
type host struct {
	ended func(agent.Outcome)
	woken []string
	busy  bool // a turn runs: who is woken claims later
	claim func() bool
}

func (h *host) ID() wire.SessionID                     { return "s" }
func (h *host) Role(string, string) (agent.Role, bool) { return agent.Role{}, true }
func (h *host) Cancel(wire.SessionID, string)          {}
func (h *host) Play(_ Part, ended func(agent.Outcome)) error {
	h.ended = ended
	return nil
}

func (h *host) Wake(claim func() bool, _, prompt string) {
	if h.claim = claim; !h.busy && claim() {
		h.woken = append(h.woken, prompt)
	}
}

// The next daemon reports once that an agent ended with the daemon that was killed. The agent can be asked further.
func TestAfterAKill(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(ctx, &wire.SessionInfo{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	open := func() *Manager {
		m, err := Open(ctx, s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	h := &host{}
	order := agent.Order{Role: agent.Role{Name: "engineer"}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: "/"}
	if err := open().For(h).Start(ctx, order); err != nil {
		t.Fatal(err)
	}
	m := open() // as if the first had been killed
	m.Report(h)
	m.Report(h)
	if len(h.woken) != 1 || !strings.HasPrefix(h.woken[0], "agent engineer-1 (build) has ended: error, the daemon was restarted while it worked.") {
		t.Errorf("woken with %q", h.woken)
	}
	if err := m.For(h).Start(ctx, order); err != nil {
		t.Fatal(err)
	}
	if err := m.For(h).Start(ctx, order); err == nil {
		t.Error("it was asked while it works")
	}
	h.ended(agent.Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess, Summary: "built"}})
	m = open()
	if a, err := m.Find("s", "engineer-1"); err != nil || a.Report != "built" || a.Due || time.Since(time.UnixMilli(a.EndedAtMS)) > time.Hour {
		t.Errorf("got %+v, %v", a, err)
	}
	if len(h.woken) != 2 || !strings.Contains(h.woken[1], "Its report:\n\nbuilt\n\n") {
		t.Errorf("woken with %q", h.woken)
	}
}

// Agents that start in one millisecond were listed in another order each time.
func TestListInOneMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still
		m := &Manager{agents: map[key]*entry{}}
		var want []string
		for i := range 20 {
			name := fmt.Sprint("engineer-", i+1)
			want = append(want, name)
			m.agents[key{"s", name}] = &entry{Agent: Agent{Session: "s", SubAgent: wire.SubAgent{
				Name: name, SessionID: wire.SessionID(wire.NewID()), StartedAtMS: time.Now().UnixMilli(),
			}}}
		}
		var got []string
		for _, a := range m.List("s") {
			got = append(got, a.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A report that the agent's starter has asked for came once more, as the prompt that wakes it.
func TestReportOnce(t *testing.T) {
	m, h := newManager(t), &host{busy: true}
	if err := m.For(h).Start(t.Context(), agent.Order{Role: agent.Role{Name: "engineer"}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	h.ended(agent.Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess, Summary: "built"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the report of an agent that has ended is there all the same
	if r, err := m.For(h).Wait(ctx, "engineer-1"); err != nil || r.Answer != "built" {
		t.Errorf("got %+v, %v", r, err)
	}
	if h.claim() {
		t.Error("it is woken with a report that it has")
	}
}
