package crew

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// While an agent's working tree is merged the agent begins no turn, and nobody else merges or drops the tree. What was known of
// the agent before is out of date then.
func TestNoTurnWhileMerging(t *testing.T) {
	ctx, repo, fifos := t.Context(), t.TempDir(), t.TempDir()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command(real, append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// This git waits before it applies a patch.
	up, release := filepath.Join(fifos, "up"), filepath.Join(fifos, "release")
	for _, fifo := range []string{up, release} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\ncase \" $* \" in *' apply '*) : >" + up + "; : <" + release + ";; esac\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(fifos, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", fifos+":"+os.Getenv("PATH"))

	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.CreateSession(ctx, wire.SessionInfo{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(ctx, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{}
	order := agent.Order{Role: agent.Role{Name: "engineer", Worktree: true}, Name: "engineer-1", Title: "build", Prompt: "x", Cwd: repo}
	if err := m.For(h).Start(order); err != nil {
		t.Fatal(err)
	}
	before, err := m.Find("s", "engineer-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(before.Tree.Path, "new"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ended(agent.Outcome{Status: wire.StatusSuccess})

	request := func(op string) error {
		_, err := m.Serve(ctx, h, nil, &wire.AgentsRequest{Op: op, Name: "engineer-1"}, "the user")
		return err
	}
	merged := make(chan error, 1)
	go func() { merged <- request("merge") }()
	if _, err := os.ReadFile(up); err != nil {
		t.Fatal(err)
	}
	if err := m.For(h).Start(order); err == nil {
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
