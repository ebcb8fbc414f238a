package hosted

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	leaseshell "sublet/lease/shell"
	"sublet/wire"
)

// This test program is the agents as well: real processes over real pipes.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("HOSTED_TEST_MODE"); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "owner":
		own()
	default:
		play(mode)
	}
}

// own hosts an agent that leaves a child, prints a line then, and waits to be killed.
func own() {
	os.Unsetenv("HOSTED_TEST_MODE")
	a := New(Options{})
	go a.Run(context.Background(), turnOf("child", "", os.Getenv("HOSTED_TEST_DIR"), func(m wire.EventMessage) { //nolint:errcheck // it is killed
		if c, ok := m.(*wire.AgentStreamChunk); ok && c.Chunk.Text == "started" {
			fmt.Println("started")
		}
	}))
	select {}
}

// turnOf is a turn of this program as an agent.
func turnOf(mode, prompt, dir string, emit func(wire.EventMessage)) Turn {
	conf := &config.Agent{Command: []string{os.Args[0]}, Env: map[string]string{"HOSTED_TEST_MODE": mode, "GORACE": "atexit_sleep_ms=0"}}
	return Turn{
		Of: agent.Turn{
			History: agent.History([]wire.EventMessage{&wire.TurnStarted{Model: "m", Prompt: "what was asked before"}}),
			Role:    agent.Role{Name: mode, Model: "acp/" + mode, Hosted: conf}, Prompt: prompt, Place: agent.Place{Project: dir}, Emit: emit, Log: slog.New(slog.DiscardHandler),
			Env: tool.Env{Cwd: dir, Files: &tool.FileLog{}, Session: "s"}, Tools: []tool.Tool{tool.Bash(time.Minute, time.Hour)},
			Approver: approver{},
		},
		Env: append(os.Environ(), "PATH="+os.Getenv("PATH")), Home: dir,
		Shell: func(_ string, watch func([]byte)) tool.Shell { return shell{watch: watch} },
	}
}

// approver allows what only changes files, and refuses commands of the agent's own shell.
type approver struct{}

func (approver) Approve(_ context.Context, q agent.Question) (agent.Decision, error) {
	if strings.Contains(q.Action.Command, "rm") {
		return agent.Decision{Reason: "no"}, nil
	}
	return agent.Decision{Allowed: true}, nil
}

// asker answers with do.
type asker func(q agent.Question) agent.Decision

// Approve implements agent.Approver.
func (do asker) Approve(_ context.Context, q agent.Question) (agent.Decision, error) {
	return do(q), nil
}

// shell is a shell whose output is the command's text. A sleep runs until its context ends.
type shell struct {
	began func() // called when a sleep begins
	watch func([]byte)
}

func (shell) Where(context.Context) (tool.ShellPlace, error) { return tool.ShellPlace{Cwd: "/"}, nil }

func (s shell) Run(ctx context.Context, c tool.Command, _ func([]byte)) (tool.CommandResult, error) {
	if strings.Contains(c.Text, "watched") {
		for _, piece := range []string{"\x1b[1mone\x1b[m\ntoken=ghp_16C7e42F29", "2c6912E7710c838347Ae178B4a\nhalf of a li"} {
			s.watch([]byte(piece))
		}
		<-ctx.Done()
		return tool.CommandResult{}, context.Cause(ctx)
	}
	if strings.HasSuffix(c.Text, "'login'") {
		s.began()
	}
	if strings.Contains(c.Text, "sleep") {
		s.began()
		<-ctx.Done()
		return tool.CommandResult{}, context.Cause(ctx)
	}
	zero := 0
	return tool.CommandResult{Result: leaseshell.Result{Status: wire.StatusOK, ExitCode: &zero, Output: []byte(c.Text), Dir: "/"}}, nil
}

// as has the turn's agent be started as the program of that name.
func (w *world) as(t Turn, program string) Turn {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), program)
	if err := os.Symlink(os.Args[0], path); err != nil {
		w.t.Fatal(err)
	}
	t.Of.Role.Hosted.Command = []string{path}
	return t
}

// world is a test's agents and what they send.
type world struct {
	*Agents
	t   *testing.T
	dir string

	mu     sync.Mutex
	events []wire.EventMessage // guarded by mu
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{Agents: New(o), t: t, dir: t.TempDir()}
	t.Cleanup(w.Close)
	return w
}

// openStore returns a store that has the session of turnOf.
func openStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "sublet.db"), nil)
	if err == nil {
		t.Cleanup(func() { st.Close() })
		err = st.Append(t.Context(), &wire.SessionInfo{ID: "s"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (w *world) emit(m wire.EventMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, m)
}

// text is all events as lines of text.
func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, m := range w.events {
		switch m := m.(type) {
		case *wire.AgentStreamChunk:
			c := m.Chunk
			b.WriteString(c.Type + " " + c.Tool + c.Arguments + c.Text + " " + c.Status + "\n")
		case *wire.CommandResult:
			fmt.Fprintf(&b, "result %s %s %q %q\n", m.Tool, m.Status, m.Output, m.FilesModified)
		}
	}
	return b.String()
}

func (w *world) wants(texts ...string) {
	w.t.Helper()
	got := w.text()
	for _, want := range texts {
		if !strings.Contains(got, want) {
			w.t.Errorf("got\n%swant %q in it", got, want)
		}
	}
}

// lines reads a process's output by lines.
func lines(t *testing.T, r io.Reader) func() string {
	in := bufio.NewScanner(r)
	return func() string {
		if !in.Scan() {
			t.Fatal("the output has ended")
		}
		return in.Text()
	}
}
