package lender

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// bench is a lender of a real bash, with a test for its daemon and its user.
type bench struct {
	t    *testing.T
	l    *Lender
	sh   *shell.Shell
	sent chan wire.Message

	reads atomic.Int32 // how often the shell was asked for its state

	mu     sync.Mutex
	events []any
	screen bytes.Buffer
}

// counting is the shell, with a count of the times that its state is read.
type counting struct {
	*shell.Shell
	reads *atomic.Int32
	last  *atomic.Uintptr // the variables that were returned last: the same map where the shell was not asked
}

func (c counting) State(ctx context.Context) (shell.State, error) {
	st, err := c.Shell.State(ctx)
	if vars := reflect.ValueOf(st.Vars).Pointer(); err == nil && c.last.Swap(vars) != vars {
		c.reads.Add(1)
	}
	return st, err
}

func (b *bench) AwaitDrawn() {}

func (b *bench) Observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, event)
}

func openBash(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, sent: make(chan wire.Message, 4096)}
	home := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "LANG=C.UTF-8", "MY_TOKEN=hush", "SHELL=/bin/bash"}
	bound := make(chan struct{})
	sh, err := shell.Start(shell.Options{
		Dir: home, Env: env, Folder: t.TempDir(), Event: func(e any) { <-bound; b.l.Event(e) }, Patience: 50 * time.Millisecond,
		Output: func(p []byte) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.screen.Write(p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.sh = sh
	b.l = New(Options{Shell: counting{sh, &b.reads, new(atomic.Uintptr)}, Observer: b, Dir: home, Env: env, Send: func(m wire.Message) error {
		b.sent <- m
		return nil
	}})
	close(bound)
	t.Cleanup(func() {
		b.l.Close()
		sh.Close()
		if t.Failed() {
			t.Logf("screen: %q", b.screen.String())
		}
	})
	b.l.Snapshot(&wire.EnvSnapshot{})
	b.l.Up(&wire.Ready{})
	return b
}

// runs has the user type a command and returns its end.
func (b *bench) runs(text string) shell.UserEnded {
	b.t.Helper()
	ended := func() (all []shell.UserEnded) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.events {
			if e, ok := e.(shell.UserEnded); ok {
				all = append(all, e)
			}
		}
		return all
	}
	before := len(ended())
	if err := b.sh.Keys([]byte(text + "\r")); err != nil {
		b.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if all := ended(); len(all) > before {
			return all[before]
		}
		if time.Now().After(end) {
			b.t.Fatalf("%q did not end", text)
		}
	}
}

// await returns the next message of a kind; output and state on the way are passed over.
func (b *bench) await(kind string) wire.Message {
	b.t.Helper()
	for {
		select {
		case m := <-b.sent:
			if wire.KindOf(m) == kind {
				return m
			}
			if k := wire.KindOf(m); k != "CommandOutput" && k != "ShellState" && k != "ShellUseReply" && k != "ShellLeaseQueued" {
				b.t.Fatalf("got %s, want %s", k, kind)
			}
		case <-time.After(20 * time.Second):
			b.t.Fatalf("got no %s within 20 s", kind)
		}
	}
}

func (b *bench) lend(n int) *wire.ShellLeaseAcquired {
	b.t.Helper()
	b.l.Handle(&wire.AcquireShellLease{LeaseRef: ref(n), Agent: "agent", Purpose: "test"})
	return b.await("ShellLeaseAcquired").(*wire.ShellLeaseAcquired)
}

// execute runs text under lease n as the daemon would, in the lease's directory.
func (b *bench) execute(n int, id, text string) {
	b.t.Helper()
	cwd := wire.OSString(b.sh.Dir())
	b.l.Handle(&wire.ExecuteLeasedCommand{
		LeaseRef: ref(n), ExecutionID: wire.ExecutionID(id), Command: wire.OSString(text), Cwd: cwd,
		Fingerprint: wire.Fingerprint(wire.OSString(text), cwd, b.sh.Digest()),
	})
	b.await("CommandStarted")
}

func (b *bench) completed() *wire.CommandCompleted {
	b.t.Helper()
	return b.await("CommandCompleted").(*wire.CommandCompleted)
}

func (b *bench) changed() string {
	b.t.Helper()
	return b.changedBy("")
}

// changedBy waits for the end of a command, "" = any, and returns what was told that it changed.
func (b *bench) changedBy(id wire.ExecutionID) string {
	b.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		for _, e := range slices.Backward(b.events) {
			if e, ok := e.(LeasedEnded); ok && (id == "" || id == e.ExecutionID) {
				b.mu.Unlock()
				return e.Changed
			}
		}
		b.mu.Unlock()
	}
	b.t.Fatal("got no LeasedEnded")
	return ""
}

func TestAgentAndUserShareOneShell(t *testing.T) {
	b := openBash(t)
	dir := b.sh.Dir()
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.runs("export FROM_USER=1; alias hi='echo hello'")
	got := b.lend(1)
	if string(got.Cwd) != dir || got.State != b.sh.Digest() {
		t.Errorf("got %+v, want cwd %s and the shell's digest", got, dir)
	}
	b.execute(1, "x1", "hi; echo $FROM_USER; cd src; export FOO=1; sh -c 'exit 3'")
	done := b.completed()
	if done.ExitCode == nil || *done.ExitCode != 3 || string(done.Cwd) != filepath.Join(dir, "src") || done.Status != wire.StatusOK {
		t.Errorf("got %+v, want exit 3 in src", done)
	}
	if out := strings.Fields(string(done.Output)); !slices.Equal(out, []string{"hello", "1"}) {
		t.Errorf("got output %q, want hello, 1", done.Output)
	}
	state := b.await("ShellState").(*wire.ShellState)
	if state.Env.Set["FOO"] != "1" || string(state.Cwd) != filepath.Join(dir, "src") {
		t.Errorf("got %+v, want FOO=1 in src", state.Env)
	}
	if changed := b.changed(); changed != "moved to ~/src, set FOO" {
		t.Errorf("got %q, want: moved to ~/src, set FOO", changed)
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	if r := b.runs("echo $FOO $PWD"); r.ExitCode != 0 || !strings.Contains(string(r.Output), "1 "+dir+"/src") {
		t.Errorf("got %q, want the agent's FOO and directory", r.Output)
	}
	changed, left, err := b.l.UndoShell(t.Context(), false)
	if err != nil || changed != "moved to ~, unset FOO" || left != "" || b.sh.Dir() != dir {
		t.Errorf("got %q, left %q, %v in %s, want back in %s without FOO", changed, left, err, b.sh.Dir(), dir)
	}
}

// What hash and enable made of names is told like an alias, and put back like one.
func TestHashedNamesAreTold(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	b.execute(1, "x1", "hash -p /bin/echo ls; enable -n times")
	b.completed()
	state := b.await("ShellState").(*wire.ShellState)
	if state.Hashed["ls"] != "/bin/echo" || !slices.Equal(state.Disabled, []string{"times"}) {
		t.Errorf("got %+v", state)
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	if changed, _, err := b.l.UndoShell(t.Context(), false); err != nil || changed != "put back what runs as ls, switched on builtin times" {
		t.Errorf("got %q, %v", changed, err)
	}
}

// Most commands change nothing in the shell: behind those its state is not read again, which the next borrower would wait for.
func TestTheStateIsReadBehindChangesOnly(t *testing.T) {
	b := openBash(t)
	for n, c := range []struct {
		text  string
		reads int32
	}{{"true", 1}, {"true", 0}, {"ls | wc -l", 0}, {"A=1", 1}, {"true", 0}, {"cd /", 1}, {"true", 0}} {
		before := b.reads.Load()
		b.lend(n + 1)
		b.execute(n+1, fmt.Sprint("x", n), c.text)
		b.completed()
		b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(n + 1)})
		b.await("ShellLeaseReleased")
		if got := b.reads.Load() - before; got != c.reads {
			t.Errorf("for %q the state was read %d times, want %d", c.text, got, c.reads)
		}
	}
}

// The user's keys come first, with a half-typed line and without: nobody's line is torn or mixed.
func TestTheUsersLineStays(t *testing.T) {
	b := openBash(t)
	if err := b.sh.Keys([]byte("echo half")); err != nil {
		t.Fatal(err)
	}
	b.lend(1)
	b.execute(1, "x1", "echo borrowed")
	if done := b.completed(); string(done.Output) != "borrowed\n" {
		t.Errorf("got %q", done.Output)
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	if r := b.runs(" a line"); strings.TrimSpace(string(r.Output)) != "half a line" {
		t.Errorf("got %q, want the user's line as it was typed", r.Output)
	}
	b.lend(2)
	if r := b.runs("echo first"); strings.TrimSpace(string(r.Output)) != "first" {
		t.Errorf("got %q", r.Output)
	}
	if r := b.await("ShellLeaseReleased").(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedUserFirst {
		t.Errorf("got %s, want %s", r.Reason, wire.ReleasedUserFirst)
	}
}

// What is cancelled is the process, not only the wait for it; the user's act is sent.
func TestCancelReachesTheProcess(t *testing.T) {
	b := openBash(t)
	pidFile := filepath.Join(b.sh.Dir(), "pid")
	run := func(n int) int {
		t.Helper()
		b.lend(n)
		b.execute(n, fmt.Sprintf("x%d", n), "bash -c 'echo $$ >pid; exec sleep 1000'")
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(pidFile)
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err == nil && pid > 0 {
				os.Remove(pidFile)
				return pid
			}
		}
		t.Fatal("the command did not begin")
		return 0
	}
	ended := func(pid int, began time.Time) {
		t.Helper()
		done := b.completed()
		if done.Status != wire.StatusCancelled || time.Since(began) > 5*time.Second {
			t.Errorf("got %s after %v, want cancelled within 5 s", done.Status, time.Since(began))
		}
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	t.Run("by the daemon", func(t *testing.T) {
		pid, began := run(1), time.Now()
		b.l.Handle(&wire.CancelLeasedCommand{LeaseRef: ref(1), ExecutionID: "x1", Reason: "user_abort"})
		ended(pid, began)
		b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
		b.await("ShellLeaseReleased")
	})
	t.Run("by the user", func(t *testing.T) {
		pid, began := run(2), time.Now()
		b.l.TakeBack()
		ended(pid, began)
		if r := b.await("ShellLeaseReleased").(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedByUser {
			t.Errorf("got %s, want revoked_by_user", r.Reason)
		}
	})
	t.Run("by the user, with a line typed ahead", func(t *testing.T) {
		pid, began := run(3), time.Now()
		if err := b.sh.Keys([]byte("echo typed ahead\r")); err != nil {
			t.Error(err)
		}
		b.l.TakeBack()
		ended(pid, began)
		b.await("ShellLeaseReleased")
	})
}

// A borrowed command runs in the directory it carries, wherever the shell is by then.
func TestCommandCarriesItsDirectory(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	cwd := wire.OSString(os.TempDir())
	b.l.Handle(&wire.ExecuteLeasedCommand{
		LeaseRef: ref(1), ExecutionID: "x1", Command: "pwd", Cwd: cwd, Fingerprint: wire.Fingerprint("pwd", cwd, b.sh.Digest()),
	})
	b.await("CommandStarted")
	if done := b.completed(); strings.TrimSpace(string(done.Output)) != string(cwd) {
		t.Errorf("got %q, want %s", done.Output, cwd)
	}
}
