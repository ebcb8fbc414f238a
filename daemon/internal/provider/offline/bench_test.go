package offline_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/offline"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
)

// bench is a real bash on a PTY and the real tools: what an answer says comes from what really ran.
type bench struct {
	t     *testing.T
	dir   string
	sh    *shell.Shell
	model provider.Model
	deny  func(agent.Question) *agent.Decision // nil = allow
	plan  tool.Propose                         // not nil: plan mode

	mu       sync.Mutex
	commands []string // guarded by mu
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := benchIn(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goCache is the cache of the go that runs the tests: a cold one costs a minute.
var goCache = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return filepath.Join(os.TempDir(), "sublet-test-gocache")
	}
	return strings.TrimSpace(string(out))
})

// benchIn is also called from the agent's goroutines, so it leaves failing to the caller.
func benchIn(t *testing.T, dir string) (*bench, error) {
	home := t.TempDir()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8", "USER=" + os.Getenv("USER"), "TZ=UTC",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GOCACHE=" + goCache(), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GREETING=hello",
	}
	sh, err := shell.Start(shell.Options{Dir: dir, Folder: t.TempDir(), Env: env})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := sh.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &bench{t: t, dir: dir, sh: sh, model: offline.Open(provider.Config{})}, nil
}

func (b *bench) Where(context.Context) (tool.ShellPlace, error) {
	return tool.ShellPlace{Cwd: b.sh.Dir(), StateDigest: b.sh.Digest()}, nil
}

func (b *bench) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	b.mu.Lock()
	b.commands = append(b.commands, c.Text)
	b.mu.Unlock()
	res, err := b.sh.Run(ctx, shell.Command{Text: c.Text, Timeout: c.Timeout, Output: live})
	return tool.CommandResult{Result: res}, err
}

func (b *bench) Approve(_ context.Context, q agent.Question) (agent.Decision, error) {
	if b.deny != nil {
		if d := b.deny(q); d != nil {
			return *d, nil
		}
	}
	return agent.Decision{Allowed: true}, nil
}

// noCrew has no agents in the background, and starts none.
type noCrew struct{ agent.Crew }

func (noCrew) Find(string) (wire.SubAgent, bool) { return wire.SubAgent{}, false }

// ask plays one prompt through the agent's own loop and returns the answer.
func (b *bench) ask(prompt string, recent ...wire.RecentCommand) string {
	b.t.Helper()
	b.mu.Lock()
	b.commands = nil
	b.mu.Unlock()
	var mu sync.Mutex
	var text strings.Builder
	seq := int64(0)
	cfg := config.Default()
	roles, _ := agent.Roles(cfg, "")
	mode := ""
	if b.plan != nil {
		mode = "plan"
	}
	o := agent.Run(b.t.Context(), agent.Turn{
		Role: roles[agent.Orchestrator], Model: b.model, Prompt: prompt, Tools: agent.Tools(cfg, roles),
		Context:  wire.RequestContext{RecentCommands: recent},
		Env:      tool.Env{Cwd: b.sh.Dir(), Shell: b, Files: &tool.FileLog{}},
		Approver: b, Log: slog.New(slog.DiscardHandler),
		Place: agent.Place{
			Mode: mode, Propose: b.plan, Project: b.sh.Dir(), Environ: func() map[string]string { return nil }, Trusted: func(string) bool { return false },
		},
		Bounds: agent.Bounds{MaxAgents: 4, Threshold: 0.8, Budget: agent.Budget{Spend: func(usd float64) (float64, error) { return usd, nil }}},
		Team: agent.Team{Roles: roles, Agents: &agent.Agents{}, Crew: noCrew{}, NewPrivateShell: func(name string) (tool.Shell, func()) {
			if name == agent.Orchestrator {
				return nil, func() {}
			}
			own, err := benchIn(b.t, b.sh.Dir())
			if err != nil {
				b.t.Error(err)
			}
			return own, func() {}
		}},
		Emit: func(m wire.EventMessage) {
			mu.Lock()
			defer mu.Unlock()
			seq++
			m.Meta().Seq = seq
			if c, ok := m.(*wire.AgentStreamChunk); ok && c.Chunk.Type == wire.ChunkText && c.Agent == agent.Orchestrator {
				text.WriteString(c.Chunk.Text)
			}
		},
	})
	if o.Err != nil {
		b.t.Errorf("%q: %v", prompt, o.Err)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.TrimSpace(text.String()) == "" {
		b.t.Errorf("%q: empty answer", prompt)
	}
	return text.String()
}

// want asks and checks that the answer matches each pattern; a pattern that begins with ! must not match.
func (b *bench) want(prompt string, patterns ...string) string {
	b.t.Helper()
	answer := b.ask(prompt)
	for _, p := range patterns {
		not := strings.HasPrefix(p, "!")
		if regexp.MustCompile(`(?s)`+strings.TrimPrefix(p, "!")).MatchString(answer) == not {
			b.t.Errorf("%q: got\n%s\nwant %s\ncommands: %q", prompt, answer, p, b.commands)
		}
	}
	return answer
}

// do runs a preparation in bash, outside of the shell under test.
func (b *bench) do(script string) {
	b.t.Helper()
	cmd := exec.Command("bash", "-euc", script)
	cmd.Dir = b.sh.Dir()
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(b.dir, name))
	return err == nil
}
