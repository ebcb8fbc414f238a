package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/scripted"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
)

// realShell is a bash of its own as a tool.Shell, as the hub has them for sub-agents.
type realShell struct{ sh *shell.Shell }

func startBash(t *testing.T, dir string) realShell {
	t.Helper()
	sh, err := shell.Start(shell.Options{Dir: dir, Folder: t.TempDir(), Private: true})
	if err != nil {
		t.Fatal(err) // a machine without bash fails this test, and rightly
	}
	t.Cleanup(func() {
		if err := sh.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return realShell{sh}
}

func (r realShell) Where(context.Context) (tool.ShellPlace, error) {
	return tool.ShellPlace{Cwd: r.sh.Dir(), StateDigest: r.sh.Digest(), Private: true}, nil
}

func (r realShell) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	if at, _ := r.Where(ctx); at.Cwd != c.Approved.Cwd || at.StateDigest != c.Approved.StateDigest {
		return tool.CommandResult{}, tool.ErrChanged
	}
	res, err := r.sh.Run(ctx, shell.Command{Text: c.Text, Timeout: c.Timeout, Output: live})
	return tool.CommandResult{Result: res}, err
}

// script writes what the scripted model says.
func script(t *testing.T, steps ...scripted.Step) provider.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	text, err := json.Marshal([]scripted.Script{{Match: ".", Steps: steps}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := scripted.Open(provider.Config{Name: "scripted", Kind: config.KindScripted, Script: path})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func use(name string, args m) scripted.Call {
	raw, _ := json.Marshal(args)
	return scripted.Call{Name: name, Arguments: raw}
}

type m = map[string]any

// The whole path with nothing stubbed but the words of the model: shell state stays, file tools follow the shell's
// directory, an edit needs a read, and what failed is told.
func TestARealTurn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	model := script(t,
		scripted.Step{Text: "Making a folder.", ToolCalls: []scripted.Call{
			use("bash", m{"command": "mkdir -p sub && cd sub && export GREETING='a b'\nalias hi='echo \"$GREETING\" # c'"}),
		}},
		scripted.Step{ToolCalls: []scripted.Call{
			use("bash", m{"command": "hi\nfalse"}), use("write", m{"path": "note.txt", "content": "one\ntwo\n"}), use("edit", m{"path": "note.txt", "old": "two", "new": "three"}),
		}},
		scripted.Step{ToolCalls: []scripted.Call{
			use("grep", m{"pattern": "thr"}), use("read", m{"path": "note.txt"}), use("glob", m{"pattern": "*.txt"}), use("bash", m{"command": "cat note.txt"}),
		}},
		scripted.Step{Text: "Done."},
	)
	rec := &recorder{}
	sh := startBash(t, dir)
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: Tools(cfg, nil), Env: tool.Env{Cwd: dir, Shell: sh}})
	if o.Err != nil || o.Summary != "Done." {
		t.Fatalf("got %+v", o)
	}
	var got []string
	for _, r := range rec.results() {
		got = append(got, fmt.Sprintf("%s %s: %s", r.Tool, r.Status, strings.TrimSpace(string(r.Output))))
	}
	sub := dir + "/sub"
	want := []string{
		"bash success: [no output]\n[now in " + sub + "]",
		"bash error: a b\n[exit code 1]",
		"write success: created " + sub + "/note.txt (8 bytes, +2 -0 lines)",
		"edit success: edited " + sub + "/note.txt (replaced once, +1 -1 lines)",
		"grep success: note.txt:2:three",
		"read success: 1\tone\n     2\tthree",
		"glob success: note.txt",
		"bash success: one\nthree",
	}
	for _, w := range want { // side by side, in any order
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
			t.Errorf("got\n%q\nwant one that begins with\n%q", got, w)
		}
	}
	mustBeValid(t, History(rec.events).Messages())
}

// Cancel reaches a running command, and its end is proved within 5 s.
func TestCancelEndsARealCommand(t *testing.T) {
	sh := startBash(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	model := script(t, scripted.Step{ToolCalls: []scripted.Call{use("bash", m{"command": "echo begun; sleep 1000"})}})
	rec := &recorder{}
	turn := Turn{Model: model, Prompt: "go", Tools: Tools(config.Default(), nil), Env: tool.Env{Shell: sh, Cwd: "/"}}
	turn.Approver = approverFunc(allowAll)
	live := make(chan struct{}, 1)
	var cancelled time.Time
	go func() { <-live; cancelled = time.Now(); cancel() }()
	rec.watch = func(ev wire.EventMessage) {
		if c, ok := ev.(*wire.AgentStreamChunk); ok && c.Chunk.Type == wire.ChunkToolOutput && strings.Contains(string(c.Chunk.Data), "begun") {
			live <- struct{}{}
		}
	}
	o := rec.play(ctx, turn)
	cancel()
	if o.Status != wire.StatusCancelled || time.Since(cancelled) > 5*time.Second {
		t.Errorf("got %+v, %v after the cancel", o, time.Since(cancelled))
	}
	if r := rec.results()[0]; r.Status != wire.StatusCancelled {
		t.Errorf("got %s: %s", r.Status, r.Output)
	}
	res, err := sh.sh.Run(t.Context(), shell.Command{Text: "echo alive"})
	if err != nil || strings.TrimSpace(string(res.Output)) != "alive" {
		t.Errorf("got %q, %v; want the shell to answer", res.Output, err)
	}
}
