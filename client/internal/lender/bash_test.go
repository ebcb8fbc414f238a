package lender

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// bench is a lender of a real bash, with a test for its daemon.
type bench struct {
	t    *testing.T
	l    *Lender
	sh   *shell.Shell
	sent chan wire.Message

	mu     sync.Mutex
	events []any
}

func (b *bench) Observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, event)
}

func openBash(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, sent: make(chan wire.Message, 4096)}
	home := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "LANG=C.UTF-8", "MY_TOKEN=hush"}
	sh, err := shell.Start(t.Context(), shell.Options{RC: shell.NoRC, Dir: home, Env: env, Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b.sh = sh
	b.l = New(Options{Shell: sh, Observer: b, Env: env, Send: func(m wire.Message) error {
		b.sent <- m
		return nil
	}})
	t.Cleanup(func() {
		b.l.Close()
		sh.Close()
	})
	b.l.Snapshot(&wire.EnvSnapshot{})
	b.l.Up(&wire.Ready{})
	b.await("ShellState")
	return b
}

// await returns the next message of a kind; output and state on the way are passed over.
func (b *bench) await(kind string) wire.Message {
	b.t.Helper()
	for {
		select {
		case m := <-b.sent:
			if m.Kind() == kind {
				return m
			}
			if k := m.Kind(); k != "CommandOutput" && k != "ShellState" && k != "ShellUseReply" {
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
	if _, err := b.l.Run(t.Context(), "export FROM_USER=1; alias hi='echo hello'", false, nil); err != nil {
		t.Fatal(err)
	}
	got := b.lend(1)
	if string(got.Cwd) != dir || got.State != b.sh.Digest() {
		t.Errorf("got %+v, want cwd %s and the shell's digest", got, dir)
	}
	b.execute(1, "x1", "hi; echo $FROM_USER; cd src; export FOO=1; exit 3")
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
	if changed := b.changed(); !strings.HasPrefix(changed, "left you in ~/src, set FOO") {
		t.Errorf("got %q, want: left you in ~/src, set FOO", changed)
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	var out bytes.Buffer
	r, err := b.l.Run(t.Context(), "echo $FOO $PWD", false, func(p []byte) { out.Write(p) })
	if err != nil || *r.ExitCode != 0 || !strings.Contains(out.String(), "1 "+dir+"/src") {
		t.Errorf("got %q, %v, want the agent's FOO and directory", out.String(), err)
	}
	changed, err := b.l.UndoShell(t.Context())
	if err != nil || !strings.HasPrefix(changed, "left you in ~, unset FOO") || b.l.Dir() != dir {
		t.Errorf("got %q, %v in %s, want back in %s without FOO", changed, err, b.l.Dir(), dir)
	}
}

// T3h: what hash and enable made of names is told like an alias, and put back like one.
func TestHashedNamesAreTold(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	b.execute(1, "x1", "hash -p /bin/echo ls; enable -n times")
	b.completed()
	state := b.await("ShellState").(*wire.ShellState)
	if state.Hashed["ls"] != "/bin/echo" || !slices.Equal(state.Disabled, []string{"times"}) || state.Loaded == nil {
		t.Errorf("got %+v", state)
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	if changed, err := b.l.UndoShell(t.Context()); err != nil || changed != "put back what runs as ls, switched on builtin times" {
		t.Errorf("got %q, %v", changed, err)
	}
}

// The daemon asks for the same under a lease of its own: the state is told before its answer, and a second time there is
// nothing to put back.
func TestRestoreUnderALease(t *testing.T) {
	b := openBash(t)
	dir := b.sh.Dir()
	b.lend(1)
	b.execute(1, "x1", "export FOO=1; cd /")
	b.await("CommandCompleted")
	b.await("ShellState")
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1)})
	b.await("ShellLeaseReleased")
	b.lend(2)
	b.l.Handle(&wire.RestoreShellState{LeaseRef: ref(2), ExecutionID: "x2", TimeoutMS: 10_000})
	b.await("CommandStarted")
	if state := b.await("ShellState").(*wire.ShellState); string(state.Cwd) != dir || !slices.Contains(state.Env.Unset, "FOO") {
		t.Errorf("got %s, unset %q, want %s without FOO", state.Cwd, state.Env.Unset, dir)
	}
	done := b.await("CommandCompleted").(*wire.CommandCompleted)
	if done.ExecutionID != "x2" || done.Status != wire.StatusOK || !strings.HasPrefix(string(done.Output), "left you in ~, unset FOO") {
		t.Errorf("got %s %q %q", done.Status, done.Output, done.Notes)
	}
	b.l.Handle(&wire.RestoreShellState{LeaseRef: ref(2), ExecutionID: "x3", TimeoutMS: 10_000})
	b.await("CommandStarted")
	if done := b.await("CommandCompleted").(*wire.CommandCompleted); done.Status != wire.StatusOK || len(done.Output) != 0 {
		t.Errorf("nothing to put back: got %s %q", done.Status, done.Output)
	}
	b.l.Handle(&wire.RestoreShellState{LeaseRef: ref(1), ExecutionID: "x4", TimeoutMS: 10_000})
	if done := b.await("CommandCompleted").(*wire.CommandCompleted); done.Status != wire.StatusRefused {
		t.Errorf("a lease that is over: got %s", done.Status)
	}
}

// A user who takes the shell back does not wait for a slow prompt hook, and so not for the look at what the borrower changed
// either: that is told behind the user's own command, and not as the user's alone.
func TestTakenBackBehindASlowPrompt(t *testing.T) {
	b := openBash(t)
	if _, err := b.l.Run(t.Context(), "PROMPT_COMMAND='sleep 0.5'", false, nil); err != nil {
		t.Fatal(err)
	}
	b.lend(1)
	b.execute(1, "x1", "PATH=$PWD:$PATH; echo set; while :; do :; done") // a ^C of bash's own leaves it to the hook to tell
	b.await("CommandOutput")
	if _, err := b.l.Run(t.Context(), "true", true, nil); err != nil {
		t.Fatal(err)
	}
	b.completed()
	s := b.await("ShellState").(*wire.ShellState) // behind the ShellLeaseReleased, but on a busy machine
	if s.Env.Set["PATH"] == "" || !slices.Equal(s.Executions, []wire.ExecutionID{"x1"}) {
		t.Errorf("PATH is %q, the work of %q, want x1's", s.Env.Set["PATH"], s.Executions)
	}
}

// T2a: what is cancelled is the process, not only the wait for it; T2c: the user's act is told.
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
	t.Run("by the user's next command", func(t *testing.T) {
		pid, began := run(3), time.Now()
		if _, err := b.l.Run(t.Context(), "true", true, nil); err != nil {
			t.Error(err)
		}
		ended(pid, began)
		b.await("ShellLeaseReleased")
	})
}

// T2d: a borrowed command runs in the directory it carries, wherever the shell is by then; T3l: and only if the shell
// is as it was judged.
func TestCommandCarriesItsDirectory(t *testing.T) {
	b := openBash(t)
	dir := b.sh.Dir()
	b.lend(1)
	cwd := wire.OSString(os.TempDir())
	m := &wire.ExecuteLeasedCommand{
		LeaseRef: ref(1), ExecutionID: "x1", Command: "pwd", Cwd: cwd, Fingerprint: wire.Fingerprint("pwd", cwd, b.sh.Digest()),
	}
	b.l.Handle(m)
	b.await("CommandStarted")
	if done := b.completed(); strings.TrimSpace(string(done.Output)) != string(cwd) {
		t.Errorf("got %q, want %s", done.Output, cwd)
	}
	b.await("ShellState")
	late := wire.Fingerprint("pwd", wire.OSString(dir), b.sh.Digest())
	if _, err := b.l.Run(t.Context(), "export MOVED=1", false, nil); err != nil {
		t.Fatal(err)
	}
	b.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), ExecutionID: "x2", Command: "pwd", Cwd: wire.OSString(dir), Fingerprint: late})
	if done := b.completed(); done.Status != wire.StatusRefused {
		t.Errorf("got %s after the shell changed, want refused", done.Status)
	}
}

// T2f, T2h: a command that prints a lot stays within bounds, live and in its result.
func TestMuchOutput(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	b.execute(1, "x1", "yes 0123456789 | head -c 8000000")
	var live, last int64
	for {
		m := <-b.sent
		if o, ok := m.(*wire.CommandOutput); ok {
			if o.Offset < last || len(o.Data) > outputFrame {
				t.Fatalf("got %d bytes at %d after %d", len(o.Data), o.Offset, last)
			}
			last, live = o.Offset+int64(len(o.Data)), live+int64(len(o.Data))
			continue
		}
		done, ok := m.(*wire.CommandCompleted)
		if !ok {
			t.Fatalf("got %s, want CommandOutput or CommandCompleted", m.Kind())
		}
		if len(done.Output) > outputMost || done.Truncated == nil || *done.ExitCode != 0 {
			t.Errorf("got %d bytes, truncated %v, exit %v", len(done.Output), done.Truncated, done.ExitCode)
		}
		break
	}
	if last < 8_000_000 {
		t.Errorf("got live output up to %d, want all 8,000,000 counted", last)
	}
	if live == 0 {
		t.Error("got no live output")
	}
}

// The user's exit ends lending; its status is theirs.
func TestUsersExit(t *testing.T) {
	b := openBash(t)
	if _, err := b.l.Run(t.Context(), "exit 7", false, nil); err != nil {
		t.Logf("exit: %v", err)
	}
	select {
	case <-b.l.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("the shell did not end")
	}
	if got := b.l.ExitStatus(); got != 7 {
		t.Errorf("got status %d, want 7", got)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := b.l.Run(t.Context(), "true", false, nil); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the shell still takes commands")
		}
	}
	b.l.Handle(&wire.AcquireShellLease{LeaseRef: ref(1)})
	if m := b.await("ShellLeaseDenied").(*wire.ShellLeaseDenied); m.Reason != wire.DeniedNoShell {
		t.Errorf("got %s, want no_shell", m.Reason)
	}
}

func TestPromptWhileLent(t *testing.T) {
	b := openBash(t)
	if _, err := b.l.Run(t.Context(), `PS1='\W> '`, false, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	prompt, err := b.l.Prompt(ctx)
	if err != nil || prompt.Text != "~> " {
		t.Errorf("got %q, %v, want ~> ", prompt, err)
	}
	b.lend(1)
	b.execute(1, "x1", "sleep 1000")
	if again, err := b.l.Prompt(ctx); err == nil {
		t.Errorf("got prompt %q while lent, want *LentError", again)
	}
	if _, _, err := b.l.Complete(ctx, "ec", 2); err == nil {
		t.Error("got completions while lent, want *LentError")
	}
	b.l.TakeBack()
	b.completed()
	b.await("ShellLeaseReleased")
}
