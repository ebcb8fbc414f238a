package lend

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
)

// privateShell is one whose commands become jobs, as drafted by the function that is returned too.
func privateShell(t *testing.T) (*Private, func() (*job.Draft, error)) {
	t.Helper()
	dir := t.TempDir()
	jobs, err := job.Open(filepath.Join(dir, "jobs"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jobs.Close)
	p, err := newShells(t).StartPrivate(PrivateOptions{
		Env: map[string]wire.OSString{"PATH": wire.OSString(os.Getenv("PATH")), "HOME": wire.OSString(dir)}, Cwd: wire.OSString(dir), Folder: dir, Spool: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, func() (*job.Draft, error) { return jobs.New(wire.Job{Shell: "bash"}, 1) }
}

func (p *Private) try(ctx context.Context, text string, timeout time.Duration, become func() (*job.Draft, error)) (tool.CommandResult, error) {
	c := tool.Command{ExecutionID: "x", Text: text, Approved: p.Where(ctx), Timeout: timeout}
	c.Approved.Private = true
	return p.Run(ctx, Command{Command: c, Continue: become}, nil)
}

// What nobody stands behind in a private shell is known at once of the shell that takes its place.
func TestSuspectsOfTheShellThatFollows(t *testing.T) {
	p, draft := privateShell(t)
	p.Suspects(t.Context())
	if _, err := p.try(t.Context(), "make() { :; }", time.Minute, draft); err != nil {
		t.Fatal(err)
	}
	before, _ := p.Suspects(t.Context())
	r, err := p.try(t.Context(), "sleep 1000", 10*time.Millisecond, draft)
	if err != nil || r.Job == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got, _ := p.Suspects(t.Context()); !slices.Equal(got, before) || !slices.Contains(got, "make") {
		t.Errorf("got %q, want %q", got, before)
	}
}

// A command that cannot become a job after all ends, and with it the shell that ran it.
func TestNoJobAfterAll(t *testing.T) {
	p, draft := privateShell(t)
	was := p.shell().PID()
	r, err := p.try(t.Context(), "sleep 1000", 10*time.Millisecond, func() (*job.Draft, error) {
		d, err := draft()
		if err == nil {
			err = os.Remove(filepath.Join(d.Folder, "job.json"))
		}
		if err == nil {
			err = os.Remove(d.Folder)
		}
		return d, err
	})
	if err != nil || r.Job != nil || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "it could not go on as a job") {
		t.Fatalf("got %+v, %v", r, err)
	}
	if err := syscall.Kill(was, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the shell that ran it is left: %v", err)
	}
	if r, err := p.try(t.Context(), "true", time.Minute, draft); err != nil || r.ExitCode == nil || *r.ExitCode != 0 {
		t.Errorf("in the shell that follows: %+v, %v", r, err)
	}
}

// Where a job's output cannot be written, one error is kept and not one for each write.
func TestOutputThatCannotBeWritten(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	out := &jobOutput{file: f}
	out.write([]byte("x"))
	one := out.err.Error()
	for range 100 {
		out.write([]byte("x"))
	}
	if got := out.err.Error(); got != one {
		t.Errorf("got an error of %d bytes, want %q", len(got), one)
	}
}

// A private shell that is closed while its command becomes a job is not given another process, which nobody would end.
func TestNoShellFollowsAClosedOne(t *testing.T) {
	p, _ := privateShell(t)
	state, was := p.State(t.Context()), p.shell()
	p.Close()
	if _, err := p.replace(t.Context(), state); !errors.Is(err, shell.ErrClosed) || p.shell() != was {
		p.Close()
		t.Errorf("got %v, another shell: %t", err, p.shell() != was)
	}
}

// A fault while a command runs ends that command alone, and once the daemon stops none begins.
func TestFaultAndEnd(t *testing.T) {
	faulty, _ := privateShell(t)
	if _, err := faulty.try(t.Context(), "sleep 1000", 10*time.Millisecond, func() (*job.Draft, error) { panic("a fault") }); err == nil || err.Error() != "internal fault: a fault" {
		t.Errorf("got %v", err)
	}
	p, draft := privateShell(t)
	p.shells.Close()
	if _, err := p.try(t.Context(), "true", time.Minute, draft); !errors.Is(err, ErrShuttingDown) {
		t.Errorf("got %v", err)
	}
}

// A shell whose command became a job ends with the job if nothing else is left in its session.
func TestShellOfAJobEnds(t *testing.T) {
	p, draft := privateShell(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	was := p.shell().PID()
	if r, err := p.try(t.Context(), "cat "+fifo, 10*time.Millisecond, draft); err != nil || r.Job == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if err := os.WriteFile(fifo, []byte("done"), 0); err != nil { // it ends
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !errors.Is(syscall.Kill(was, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shell outlives the job")
		}
	}
}

// A job that began in the foreground is its command: a daemon after a killed one finds what ignores the hang-up of the terminal
// by its process group, and ends it; and what an earlier command left in the background of the same shell is no part of it.
func TestJobIsItsCommand(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		open := func() *job.Manager {
			m, err := job.Open(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			if err := m.Follow(func(job.Info) {}); err != nil {
				t.Fatal(err)
			}
			return m
		}
		jobs := open()
		p, _ := privateShell(t)
		r, err := p.try(t.Context(), "sleep 1000 & echo $!", time.Minute, nil)
		earlier, nerr := strconv.Atoi(strings.TrimSpace(string(r.Output)))
		if err := errors.Join(err, nerr); err != nil {
			t.Fatal(err)
		}
		was := p.shell()
		r, err = p.try(t.Context(), `bash -c 'trap "" HUP; sleep 1001; :'`, 10*time.Millisecond, func() (*job.Draft, error) { return jobs.New(wire.Job{Shell: "bash"}, 1) })
		if err != nil || r.Job == nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		pid := 0
		for end := time.Now().Add(10 * time.Second); pid == 0 || pid == was.PID(); time.Sleep(10 * time.Millisecond) {
			if i, err := jobs.Get("", r.Job.JobID); err == nil {
				pid = i.PID
			}
			if time.Now().After(end) {
				t.Fatalf("the job is process %d, its shell %d", pid, was.PID())
			}
		}
		if killed {
			jobs.Close()
			if err := syscall.Kill(was.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			jobs = open()
			if i, err := jobs.Get("", r.Job.JobID); err != nil || i.State != job.Running || i.PID != pid {
				t.Fatalf("the next daemon has %+v, %v", i, err)
			}
		}
		if i, err := jobs.Kill("", r.Job.JobID, "test"); err != nil || i.State != job.Ended {
			t.Fatalf("killed=%v: %+v, %v", killed, i, err)
		}
		if left := procs.Group(pid); len(left) > 0 {
			t.Errorf("killed=%v: of the job is left: %v", killed, left)
		}
		if len(procs.Group(earlier)) == 0 && !killed {
			t.Error("what runs in the background of its shell was ended with it")
		}
		p.Close()
		if len(procs.Group(earlier)) > 0 && !killed {
			t.Error("what runs in the background outlives the private shell")
		}
		_ = syscall.Kill(earlier, syscall.SIGKILL)
	}
}
