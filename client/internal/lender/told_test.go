package lender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// The screen receives a borrowed command: its start, its output, that it wants the keyboard, its end; of one that did not
// begin, nothing; and the shell's own events between them.
func TestTheScreenIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.sh.keyboard("password")
		d.take("CommandStarted")
		d.sh.print("out")
		d.take("CommandOutput")
		d.l.Event(shell.Restarted{Why: "gone"})
		d.sh.end <- shell.Result{Status: wire.StatusCancelled, Changes: true}
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.sh.fails = errors.New("no such folder")
		d.acquire(2)
		d.execute(2, "x2", "ls")
		if c := d.take("ShellLeaseAcquired", "CommandCompleted")[1].(*wire.CommandCompleted); c.Status != wire.StatusRefused {
			t.Errorf("got %s, want refused", c.Status)
		}
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
		d.runs("vim", shell.State{})
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		var told []string
		for _, e := range d.events {
			switch e := e.(type) {
			case LeaseChanged:
			case LeasedEnded:
				told = append(told, fmt.Sprint("end ", e.ExecutionID, e.Status))
			default:
				told = append(told, fmt.Sprintf("%T", e))
			}
		}
		want := []string{
			"lender.LeasedStarted", "lender.LeasedKeyboard", "lender.LeasedOutput", "shell.Restarted", "end x1cancelled",
			"shell.UserBegan", "shell.UserEnded", "shell.PromptShown",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// While the user has the keyboard of a command its clock stands still, the daemon's too: it would cancel the command in the
// middle of a password. After a lost link it is sent once more.
func TestTheDaemonsClockStandsStill(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		has := func(want bool) {
			t.Helper()
			if got := d.take("CommandStarted")[0].(*wire.CommandStarted); got.Keyboard != want || got.ExecutionID != "x1" || got.Fence != 1 {
				t.Errorf("got %+v, want the keyboard's to be %v", got, want)
			}
		}
		d.begin(1, "x1", "sudo make install")
		d.sh.keyboard("password")
		has(true)
		d.sh.keyboard("input") // another reason
		d.sh.keyboard("")
		has(false)
		d.drop()
		d.sh.keyboard("password")
		d.up(wire.HeldLease{LeaseID: "lease-1", Fence: 1, ExecutionID: "x1"})
		has(true)
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
	})
}

// The editor is the user's again once the screen has shown all of a borrowed command: the prompt stands behind it.
func TestTheEndIsShownBeforeThePrompt(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.slow = 100 * time.Millisecond
		d.sh.finish(0, shell.State{})
		for d.sh.isHeld() {
			time.Sleep(time.Millisecond)
		}
		d.mu.Lock()
		if e := latest[LeasedEnded](d); e == nil || e.ExecutionID != "x1" {
			t.Errorf("the editor is the user's, and shown is %+v", e)
		}
		d.mu.Unlock()
		d.take("CommandCompleted")
	})
}

// Each undo puts back what one command changed, the last first, until there is none, and names what differs all the same.
func TestWhatIsPutBack(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		vars := func(add ...string) map[string]string {
			m := map[string]string{"HOME": "/home/u"}
			for _, name := range add {
				m[name] = "1"
			}
			return m
		}
		states := []shell.State{
			{Dir: "/home/u", Digest: "d1", Vars: vars("A")}, {}, // which changes nothing
			{Dir: "/tmp", Digest: "d2", Vars: vars("A", "B")}, {Dir: "/", Digest: "d3", Vars: vars("A", "B")},
		}
		n := 0
		change := func() {
			t.Helper()
			for _, to := range states {
				n++
				d.acquire(n)
				d.execute(n, "x", "cd")
				synctest.Wait()
				d.sh.finish(0, to)
				synctest.Wait()
				d.release(n, "completed")
				d.kinds()
			}
		}
		d.runs("unset API_TOKEN", shell.State{Dir: "/home/u", Digest: "d0", Vars: vars()})
		change()
		undo := func(all bool, want, rest string) {
			t.Helper()
			if changed, left, err := d.l.UndoShell(t.Context(), all); changed != want || left != rest || err != nil {
				t.Errorf("got %q, left %q, %v; want %q, left %q", changed, left, err, want, rest)
			}
		}
		undo(false, "moved to /tmp", "")
		undo(false, "moved to ~, unset B", "")
		d.runs("mine() { :; }", shell.State{Dir: "/home/u", Digest: "d5", Vars: vars("A"), Functions: map[string]string{"mine": "mine () { :; }"}})
		undo(false, "unset A", "defined function mine")
		undo(false, "", "")
		undo(true, "", "")
		d.runs("unset -f mine", shell.State{Dir: "/home/u", Digest: "d0", Vars: vars()})
		change()
		undo(true, "moved to ~, unset A, B", "")
		undo(true, "", "")
	})
}

// The daemon asks for the same under a lease; where the shell does not do it, that is sent, and it can be asked for again.
func TestPutBackUnderALease(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd")
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars, Functions: map[string]string{"f": "f () { :; }"}})
		d.take("CommandCompleted", "ShellState")
		restore := func(id string, kinds ...string) *wire.CommandCompleted {
			d.l.Handle(&wire.RestoreShellState{LeaseRef: ref(1), ExecutionID: wire.ExecutionID(id), TimeoutMS: 1000})
			sent := d.take(kinds...)
			return sent[len(sent)-1].(*wire.CommandCompleted)
		}
		d.sh.fails = errors.New("it is busy")
		if done := restore("x3", "CommandStarted", "CommandCompleted"); done.Status != wire.StatusRefused || !slices.Equal(done.Notes, []string{"the shell could not run it: it is busy"}) {
			t.Errorf("got %s %q, want refused", done.Status, done.Notes)
		}
		d.sh.fails = nil
		done := restore("x4", "CommandStarted", "ShellState", "CommandCompleted")
		if want := []string{"still different: defined function f"}; done.Status != wire.StatusOK || string(done.Output) != "moved to ~" || !slices.Equal(done.Notes, want) {
			t.Errorf("got %s %q %q, want notes %q", done.Status, done.Output, done.Notes, want)
		}
		if done := restore("x5", "CommandStarted", "CommandCompleted"); done.Status != wire.StatusOK || len(done.Output) > 0 {
			t.Errorf("nothing to put back: got %s %q", done.Status, done.Output)
		}
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
	})
}

// A user who puts the state back comes before a borrower that has not asked for a command, and not before a command.
func TestPutBackWhileLent(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		if _, _, err := d.l.UndoShell(t.Context(), false); err != nil {
			t.Error(err)
		}
		d.take("ShellLeaseReleased")
		d.begin(2, "x1", "make")
		if _, _, err := d.l.UndoShell(t.Context(), false); err == nil || !strings.HasPrefix(err.Error(), "the shell is lent to ") {
			t.Errorf("while a command runs: got %v", err)
		}
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
		d.sh.types("vim\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := d.l.UndoShell(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a command of the user's runs: got %v", err)
		}
	})
}

// A shell whose state cannot be read is not lent: a borrower would be judged by what was. It can be once the state is there.
func TestAStateThatCannotBeHad(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd /tmp")
		d.sh.looks = time.Hour
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars})
		time.Sleep(stateBound)
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.acquire(2)
		time.Sleep(stateBound)
		if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedBroken || m.Why != errNoState.Error() {
			t.Errorf("got %+v, want broken", m)
		}
		d.sh.looks = 0
		d.acquire(3)
		if s := d.take("ShellState", "ShellLeaseAcquired")[0].(*wire.ShellState); s.Digest != "d1" || s.Cwd != "/tmp" || len(s.Env.Set)+len(s.Env.Unset) > 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// A shell whose editor does not answer is not lent: the borrower learns why, and the user what to do.
func TestABrokenEditor(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		broken := &shell.BrokenError{Why: "its prompt hook was replaced", Fix: "exec bash"}
		shown := func() (n int) {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, e := range d.events {
				if e, ok := e.(CannotLend); ok {
					n++
					if e.Why != broken.Error() || e.Hint != broken.Fix {
						t.Errorf("got %+v, want %+v", e, broken)
					}
				}
			}
			return n
		}
		denied := func(n, want int) {
			t.Helper()
			d.acquire(n)
			if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedBroken || m.Why != broken.Why {
				t.Errorf("got %+v, want broken", m)
			}
			if got := shown(); got != want {
				t.Errorf("shown %d times, want %d", got, want)
			}
		}
		d.sh.set(func() { d.sh.broken = broken })
		denied(1, 1)
		denied(2, 2)
		d.sh.set(func() { d.sh.broken = nil })
		d.acquire(3)
		d.release(3, "completed")
		d.take("ShellLeaseAcquired", "ShellLeaseReleased")
	})
}

// In the middle of a line the user has the editor until they have not typed for a while; a lease that is given up meanwhile
// waits for nothing.
func TestTheUserIsTyping(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("git comm")
		if q := d.queued(1); q.Holder != "user" || q.Why != "the user is typing" {
			t.Errorf("got %+v, want that the user is typing", q)
		}
		time.Sleep(patience / 2)
		d.sh.types("it")
		time.Sleep(patience - time.Millisecond)
		d.take()
		time.Sleep(time.Millisecond)
		d.take("ShellLeaseAcquired")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.sh.types(" -m")
		d.queued(2)
		d.release(2, "cancelled")
		d.take("ShellLeaseReleased")
		held := d.sh.holds
		time.Sleep(patience)
		d.take()
		if d.sh.holds != held {
			t.Error("the editor was held for nobody")
		}
	})
}

// The daemon learns the shell's state when the screen takes the terminal, before there is a question, and not before.
func TestTheStateIsSentBeforeAQuestion(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.runs("cd /tmp", shell.State{Dir: "/tmp", Digest: "d1"})
		d.take()
		d.l.SetScreenTaken(true)
		d.sh.set(func() { d.sh.screen = true })
		d.take("ShellState")
		d.drop()
		d.up()
		d.take("ShellState")
		d.sh.set(func() { d.sh.screen = false })
		d.l.SetScreenTaken(false)
		d.drop()
		d.up()
		d.take()
	})
}

// A lease that is given up while the shell's state is read leaves the state for the screen's question to be sent.
func TestTheStateIsSentThoughALeaseIsGivenUp(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.runs("cd /tmp", shell.State{Dir: "/tmp", Digest: "d1"})
		d.take()
		d.sh.looks = time.Second
		d.acquire(1)
		d.l.SetScreenTaken(true)
		d.release(1, "cancelled")
		d.take("ShellLeaseReleased")
		time.Sleep(time.Second)
		d.take("ShellState")

		d.runs("cd /", shell.State{Dir: "/", Digest: "d2"})
		d.l.SetScreenTaken(true)
		synctest.Wait()
		d.acquire(2)
		d.release(2, "cancelled")
		d.take("ShellLeaseReleased")
		time.Sleep(time.Second)
		d.take("ShellState")
	})
}

// What the daemon is told of a command's end, from what the shell and its canceller say.
func TestCompleted(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		cause  error
		r      shell.Result
		err    error
		status string
		notes  []string
	}{
		{"its own end", nil, shell.Result{Status: "ok", Notes: []string{"n"}}, nil, "ok", []string{"n"}},
		{"the shell's refusal", nil, shell.Result{}, boom, "refused", []string{"the shell could not run it: boom"}},
		{"a refusal when it was cancelled", errTakenBack, shell.Result{}, boom, "cancelled", []string{"taken back by the user"}},
		{"cancelled for its time", errTooLong, shell.Result{Status: "cancelled"}, nil, "timeout", []string{}},
		{"cancelled by the agent's end", context.Canceled, shell.Result{Status: "cancelled"}, nil, "cancelled", []string{}},
		{"the user's ^C", nil, shell.Result{Status: "cancelled"}, nil, "cancelled", []string{}},
		{"ended as it was cancelled", errTakenBack, shell.Result{Status: "ok"}, nil, "ok", []string{}},
		{"an error beside a status", nil, shell.Result{Status: "ok"}, boom, "ok", []string{}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			cancel(c.cause)
		}
		done := completed(&execution{msg: &wire.ExecuteLeasedCommand{}, ctx: ctx}, c.r, c.err)
		cancel(nil)
		if done.Status != c.status || !slices.Equal(done.Notes, c.notes) || done.Notes == nil || done.Output == nil || done.Leftovers == nil || done.Truncated != nil {
			t.Errorf("%s: got %+v, want %s %q", c.name, done, c.status, c.notes)
		}
	}
	e := &execution{msg: &wire.ExecuteLeasedCommand{}, ctx: t.Context()}
	done := completed(e, shell.Result{Truncated: 5, SpoolPath: "/spool", Leftovers: []shell.Process{{PID: 7, Command: "sleep"}}}, nil)
	if done.Truncated == nil || *done.Truncated != (wire.Truncation{Bytes: 5, SpoolPath: "/spool"}) {
		t.Errorf("got %+v", done.Truncated)
	}
	if !slices.Equal(done.Leftovers, []wire.Process{{PID: 7, Command: "sleep"}}) {
		t.Errorf("got %+v left", done.Leftovers)
	}
}

// A link begins with what the shell is: its folder, its environment as it is known by then.
func TestSnapshot(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "export")
		d.sh.finish(0, shell.State{Dir: "/", Digest: "d1", Vars: map[string]string{"NEW": "1", "API_TOKEN": "hush"}})
		d.take("CommandCompleted", "ShellState")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.drop() // what changes then is in the next one
		d.runs("cd /tmp", shell.State{Dir: "/tmp", Digest: "d2"})
		d.take()
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if s.Cwd != "/tmp" || len(s.Leases) != 1 || len(s.Env) != 2 || s.Env["NEW"] != "1" || s.Env["API_TOKEN"] != "" {
			t.Errorf("got %s, %+v, %v", s.Cwd, s.Env, s.Leases)
		}
	})
	synctest.Test(t, func(t *testing.T) { // before anything is known of it: what it was started with
		d := &desk{t: t, sh: newFake()}
		d.l = New(Options{Shell: d.sh, Send: d.send, Observer: d, Env: []string{"OLD=1", "=x", "odd"}})
		defer d.close()
		var s wire.EnvSnapshot
		if d.l.Snapshot(&s); len(s.Env) != 1 || s.Env["OLD"] != "1" {
			t.Errorf("got %+v", s.Env)
		}
	})
}

// What of the environment changed is told, and nothing else; a secret by its name.
func TestTheEnvironmentIsToldByWhatChanged(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		told := func(vars map[string]string) wire.EnvChange {
			t.Helper()
			d.runs("export", shell.State{Digest: fmt.Sprint(vars), Vars: vars})
			return d.told("ShellState")[0].(*wire.ShellState).Env
		}
		told(map[string]string{"PATH": "/bin", "KEPT": "1", "GONE": "1"})
		got := told(map[string]string{"PATH": "/tmp/x", "KEPT": "1", "DB_PASSWORD": "hush"})
		want := wire.EnvChange{Set: map[string]wire.OSString{"PATH": "/tmp/x", "DB_PASSWORD": ""}, Unset: []string{"GONE"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Functions are told with their bodies as far as one message may hold them.
func TestManyFunctionsAreToldInPart(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		body := func(of string) string { return of + strings.Repeat("x", bodiesMost*2/3) }
		d.runs("source all", shell.State{Digest: "d1", Functions: map[string]string{"a": body("a"), "b": body("b"), "c": "c () { :; }"}})
		var with []string
		functions := d.told("ShellState")[0].(*wire.ShellState).Functions
		for _, f := range functions {
			if f.Body != "" {
				with = append(with, f.Name)
			}
		}
		if len(functions) != 3 || !slices.Equal(with, []string{"a", "c"}) {
			t.Errorf("told %d functions, %q with their bodies", len(functions), with)
		}
	})
}

// Who has the shell is told when it is asked for, with how long already.
func TestWhoHasTheShellIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		told := func(holder string, held time.Duration) {
			t.Helper()
			d.l.Used(&wire.ShellUseRequest{Nonce: 7})
			if r := d.take("ShellUseReply")[0].(*wire.ShellUseReply); *r != (wire.ShellUseReply{Nonce: 7, Holder: holder, HeldMS: held.Milliseconds()}) {
				t.Errorf("got %+v, want %s for %v", r, holder, held)
			}
		}
		told("", 0)
		d.sh.types("vim\n")
		time.Sleep(2 * time.Second)
		told("user", 2*time.Second)
		d.sh.ends(shell.State{})
		told("", 0)
		d.begin(1, "x1", "make")
		time.Sleep(time.Second)
		told("agent-1", time.Second)
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		told("", 0)
	})
}

// A script borrows the shell of the window last typed in: that a command of the user's begins is sent.
func TestTypingIsSent(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		typed := func(want int) {
			t.Helper()
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.typed) != want {
				t.Errorf("%q was sent, want it %d times", d.typed, want)
			}
		}
		d.sh.types("make\n")
		typed(1)
		d.sh.ends(shell.State{})
		d.begin(1, "x", "ls")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.drop()
		d.runs("make", shell.State{})
		typed(1)
	})
}
