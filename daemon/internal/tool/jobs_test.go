package tool

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/job"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
)

// jobShell starts every command as a job of a real bash.
type jobShell struct {
	sh   *shell.Shell
	jobs *job.Manager
}

func (s *jobShell) Where(context.Context) (ShellPlace, error) {
	return ShellPlace{Cwd: s.sh.Dir()}, nil
}

func (s *jobShell) Run(ctx context.Context, c Command, _ func([]byte)) (CommandResult, error) {
	d, err := s.jobs.New(wire.Job{SessionID: "s", Agent: "engineer-1", Command: wire.OSString(c.Text), Shell: "a private bash", Wake: c.Wake}, 2)
	if err != nil {
		return CommandResult{}, err
	}
	if _, err := s.sh.Run(ctx, shell.Command{Text: c.Text, Job: d.Folder}); err != nil {
		return CommandResult{}, err
	}
	i, _ := d.Started()
	return CommandResult{Job: &i}, nil
}

func TestJobs(t *testing.T) {
	sh, err := shell.Start(shell.Options{Path: "/bin/bash", Private: true, Dir: t.TempDir(), Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	manager, err := job.Open(t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	env := newEnv(t)
	env.Shell, env.Jobs, env.Session = &jobShell{sh, manager}, manager, "s"
	bash, jobs := Bash(time.Minute, time.Hour), Jobs(time.Hour)

	if r := mustDo(t, jobs, env, m{}); r.Content != "There are no jobs." {
		t.Errorf("got %q", r.Content)
	}
	r := mustDo(t, bash, env, m{"command": "printf 'one\\n\\033[31mready\\033[m\\n'; until [ -e go ]; do sleep 0.01; done; exit 3", "background": true, "wake_on": "x"})
	if !strings.HasPrefix(r.Content, "[job j1 was started in a private bash, process ") || r.ExitCode != nil || r.IsError {
		t.Errorf("got %+v", r)
	}
	if i, _ := manager.Get("s", "j1"); i.Wake != "x" {
		t.Errorf("wake is %q", i.Wake)
	}
	r = mustDo(t, jobs, env, m{"id": "j1", "until": "ready"})
	if !strings.HasPrefix(r.Content, "[a line matched: ready]\n[j1: running since ") || !strings.HasSuffix(r.Content, "in a private bash: printf 'one\\n\\033[31mready\\033[m\\n'; until [ -e go ]; do sleep 0.01; done; exit 3]\none\nready\n") {
		t.Errorf("got %q", r.Content)
	}
	if r = mustDo(t, jobs, env, m{"id": "j1", "until": "", "timeout_ms": 1}); !strings.HasPrefix(r.Content, "[after 1ms it goes on]\n") || !strings.HasSuffix(r.Content, "[nothing new was printed]") {
		t.Errorf("got %q", r.Content)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if r = mustDo(t, jobs, env, m{"id": "j1", "until": "never", "timeout_ms": 1}); !strings.HasPrefix(r.Content, "[after 1ms it goes on, and no line matched]\n") {
		t.Errorf("no line: %q", r.Content)
	}
	if r, err := jobs.Run(cancelled, env, args(t, m{"id": "j1", "until": "never"}), Action{}, nil); err != nil || r.Status != wire.StatusCancelled {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(sh.Dir(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r = mustDo(t, jobs, env, m{"id": "j1", "until": ""}); !strings.Contains(r.Content, "j1: ended with exit code 3, after ") {
		t.Errorf("got %q", r.Content)
	}

	mustDo(t, bash, env, m{"command": "sleep 100 & yes | head -c 100000; sleep 100", "background": true})
	i, _ := manager.Get("s", "j2")
	defer procs.SignalGroup(i.PID, syscall.SIGKILL)
	for end := time.Now().Add(30 * time.Second); i.Bytes < 100000 && time.Now().Before(end); i, _ = manager.Get("s", "j2") {
		time.Sleep(time.Millisecond)
	}
	if r = mustDo(t, jobs, env, m{"id": "j2"}); len(r.Content) > MaxResult+1024 || r.TruncatedBy == 0 || !strings.Contains(r.Content, "bytes left out; the newest 16 MiB are in "+string(i.OutputPath)) {
		t.Errorf("%d bytes, %d left out: %.300q", len(r.Content), r.TruncatedBy, r.Content)
	}
	env.Agent = "engineer-2"
	_, err = do(t, jobs, env, m{"id": "j2", "kill": true})
	wantErr(t, err, "j2 is a job of engineer-1: you end only your own")
	env.Agent = "engineer-1"
	if r = mustDo(t, jobs, env, m{"id": "j2", "kill": true}); !strings.Contains(r.Content, "ended by its agent") || len(procs.Group(i.PID)) > 0 {
		t.Errorf("got %q, and of it run %v", r.Content, procs.Group(i.PID))
	}
	if r = mustDo(t, jobs, env, m{}); strings.Count(r.Content, "\n") != 1 || !strings.HasPrefix(r.Content, "j1: ended with exit code 3") {
		t.Errorf("got %q", r.Content)
	}
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"id": "j7"}, `there is no job "j7"`},
		{m{"kill": true}, "id: is missing"},
		{m{"id": "j1", "until": "("}, "until: error parsing regexp"},
		{m{"id": "j1", "until": "x", "kill": true}, "give one of them"},
	} {
		_, err := do(t, jobs, env, tc.args)
		wantErr(t, err, tc.want)
	}
	env.Agent = "" // the turn's own, which started its sub-agents
	mustDo(t, jobs, env, m{"id": "j2", "kill": true})
	env.Session = "another"
	_, err = do(t, jobs, env, m{"id": "j1"})
	wantErr(t, err, "there is no job")
}
