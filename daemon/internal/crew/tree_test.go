package crew

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
)

// While an agent's working tree is merged the agent begins no turn, and nobody else merges or drops the tree. What was known of
// the agent before is out of date then.
func TestNoTurnWhileMerging(t *testing.T) {
	ctx, repo := t.Context(), t.TempDir()
	up, release := slowGit(t, repo, "apply")
	m := newManager(t)
	h := &host{}
	order := agent.Order{Role: agent.Role{Name: "engineer", Worktree: true}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: repo}
	if err := m.For(h).Start(ctx, order); err != nil {
		t.Fatal(err)
	}
	before, err := m.Find("s", "engineer-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(before.Tree.Path, "new"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ended(agent.Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess}})

	request := func(op string) error {
		_, err := m.Serve(ctx, h, nil, &wire.AgentsRequest{Op: op, Name: "engineer-1"}, "the user")
		return err
	}
	merged := make(chan error, 1)
	go func() { merged <- request("merge") }()
	if _, err := os.ReadFile(up); err != nil {
		t.Fatal(err)
	}
	if err := m.For(h).Start(ctx, order); err == nil {
		t.Error("a turn began while its tree was merged")
	}
	if err := request("drop"); err == nil {
		t.Error("the tree was dropped while it was merged")
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-merged; err != nil {
		t.Fatal(err)
	}
	if err := m.begin(before, false); err == nil {
		t.Error("a turn began in a tree that is gone")
	}
}

// A start that is cancelled while git makes the working tree does not wait for git.
func TestCancelledWhileAddingTree(t *testing.T) {
	repo := t.TempDir()
	up, _ := slowGit(t, repo, "worktree")
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	order := agent.Order{Role: agent.Role{Name: "engineer", Worktree: true}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: repo}
	m := newManager(t)
	go func() { started <- m.For(&host{}).Start(ctx, order) }()
	if _, err := os.ReadFile(up); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-started; err == nil {
		t.Error("the agent was started")
	}
}

// The agents of a session that is deleted go with their working trees; the session is kept while one works.
func TestForget(t *testing.T) {
	repo := t.TempDir()
	newRepo(t, repo)
	m, h := newManager(t), &host{}
	order := agent.Order{Role: agent.Role{Name: "engineer", Worktree: true}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: repo}
	if err := m.For(h).Start(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	a, err := m.Find("s", "engineer-1")
	if err != nil || !m.Working("s") || m.Working("other") {
		t.Errorf("works: %v, another session: %v, %v", m.Working("s"), m.Working("other"), err)
	}
	h.ended(agent.Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess}})
	if m.Working("s") {
		t.Error("works after its end")
	}
	m.Forget("s")
	for _, dir := range []string{a.Tree.Path, a.Tree.Git} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if list := m.List("s"); len(list) > 0 {
		t.Errorf("left: %+v", list)
	}
}

func newManager(t *testing.T) *Manager {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Append(t.Context(), &wire.SessionInfo{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newRepo makes a repository with one commit and returns the path of git.
func newRepo(t *testing.T, repo string) (git string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command(git, append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return git
}

// slowGit makes a repository, and has the subcommand of git open up and wait for release, which are FIFOs.
func slowGit(t *testing.T, repo, subcommand string) (up, release string) {
	t.Helper()
	dir, real := t.TempDir(), newRepo(t, repo)
	up, release = filepath.Join(dir, "up"), filepath.Join(dir, "release")
	for _, fifo := range []string{up, release} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\ncase \" $* \" in *' " + subcommand + " '*) : >" + up + "; : <" + release + ";; esac\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return up, release
}

// The rule for an agent's own working tree names its real folder, as an action in it does, also in a project behind a link.
func TestRuleOfTreeBehindALink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a := Agent{Cwd: link, Tree: &worktree.Copy{Path: link, Repo: link}}
	if _, _, rules := a.workplace(); len(rules) != 1 || string(rules[0].Subject) != dir {
		t.Errorf("got %+v, want one for %s", rules, dir)
	}
}
