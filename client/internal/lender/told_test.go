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

// The screen is told of a borrowed command: its start, its output, that it wants the keyboard, its end; of one that did not
// begin, nothing; of a shell that had to be started anew, whoever's command ended it.
func TestTheScreenIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.began = func(c shell.Command) {
			if c.Keyboard != nil {
				c.Keyboard("password")
			}
		}
		d.begin(1, "x1", "make")
		d.sh.print("out")
		d.take("CommandOutput")
		d.sh.end <- shell.Result{Status: wire.StatusCancelled, Respawned: true, Why: "gone"}
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
		d.sh.fails = nil
		var heard []string
		done := make(chan error, 1)
		go func() {
			_, err := d.l.Run(t.Context(), "exec false", false, func(p []byte) { heard = append(heard, fmt.Sprintf("%q", p)) })
			done <- err
		}()
		synctest.Wait()
		d.sh.print("mine")
		d.sh.end <- shell.Result{Respawned: true, Why: "ended"}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []string{`""`, `"mine"`}; !slices.Equal(heard, want) {
			t.Errorf("the user's command: heard %q, want %q", heard, want)
		}
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		var told []string
		for _, e := range d.events {
			switch e := e.(type) {
			case LeasedStarted:
				told = append(told, fmt.Sprint("start ", e.ExecutionID, e.Agent, e.Command))
			case LeasedOutput:
				told = append(told, fmt.Sprintf("output %s %s", e.ExecutionID, e.Data))
			case LeasedKeyboard:
				told = append(told, "keyboard "+e.Why)
			case LeasedEnded:
				told = append(told, fmt.Sprint("end ", e.ExecutionID, e.Status))
			case Respawned:
				told = append(told, "respawned "+e.Why)
			}
		}
		want := []string{
			"keyboard password", "start x1agent-1make", "output x1 out", "respawned a borrowed command ended it: gone", "end x1cancelled", "respawned ended",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// What is put back is what the last command changed that changed anything; where the shell does not do it, that is told.
func TestWhatIsPutBack(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		for i, to := range []shell.State{{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars}, {}} {
			d.execute(1, fmt.Sprint("x", i+1), "cd")
			synctest.Wait()
			d.sh.finish(0, to)
			synctest.Wait()
		}
		d.kinds()
		var kinds []string // sent for the last of them
		restore := func(id string) *wire.CommandCompleted {
			d.l.Handle(&wire.RestoreShellState{LeaseRef: ref(1), ExecutionID: wire.ExecutionID(id), TimeoutMS: 1000})
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			done := d.sent[len(d.sent)-1].(*wire.CommandCompleted)
			kinds = nil
			for _, m := range d.sent {
				kinds = append(kinds, m.Kind())
			}
			d.sent = nil
			return done
		}
		d.sh.fails = errors.New("it is busy")
		if done := restore("x3"); done.Status != wire.StatusRefused || !slices.Equal(done.Notes, []string{"the shell could not run it: it is busy"}) {
			t.Errorf("got %s %q, want refused", done.Status, done.Notes)
		}
		d.sh.fails = nil
		if done := restore("x4"); done.Status != wire.StatusOK || string(done.Output) != "left you in ~" {
			t.Errorf("got %s %q", done.Status, done.Output)
		}
		if want := []string{"CommandStarted", "ShellState", "CommandCompleted"}; !slices.Equal(kinds, want) {
			t.Errorf("sent %q, want %q", kinds, want)
		}
		if done := restore("x5"); done.Status != wire.StatusOK || len(done.Output) > 0 {
			t.Errorf("nothing to put back: got %s %q", done.Status, done.Output)
		}
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
	})
}

// A look that was given up is made before the shell is lent.
func TestALookThatWasGivenUp(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd /tmp")
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1"})
		d.take("CommandCompleted", "ShellState")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.sh.looks = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = d.l.UndoShell(ctx) // what it did is not known
		d.acquire(2)
		d.take()
		time.Sleep(time.Second)
		d.take("ShellState", "ShellLeaseAcquired")
	})
}

// A state that cannot be had keeps nobody from the shell for longer than lookBound: what was known stays known, and is looked
// at again behind the next command.
func TestAStateThatCannotBeHad(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd /tmp")
		d.sh.looks = time.Hour
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars})
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.acquire(2)
		d.take("ShellLeaseQueued")
		time.Sleep(lookBound)
		d.take("ShellLeaseReleased", "ShellLeaseAcquired")
		d.sh.looks = 0
		d.execute(2, "x2", "ls")
		d.take("CommandStarted")
		d.sh.finish(0, shell.State{})
		if s := d.take("CommandCompleted", "ShellState")[1].(*wire.ShellState); s.Digest != "d1" || s.Cwd != "/tmp" || len(s.Env.Set)+len(s.Env.Unset) > 0 {
			t.Errorf("got %+v", s)
		}
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
		if e := latest[LeasedEnded](d); e.Changed != "left you in /tmp" {
			t.Errorf("told as changed: %q", e.Changed)
		}
	})
}

// What the daemon is told of a command's end, from what the shell and its canceller say.
func TestCompleted(t *testing.T) {
	boom := errors.New("boom")
	big := make([]byte, outputMost+10)
	for i := range big {
		big[i] = byte('a' + i%26)
	}
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
	done := completed(e, shell.Result{Output: big, Truncated: 5, SpoolPath: "/spool", Leftovers: []shell.Process{{PID: 7, Command: "sleep"}}}, nil)
	if len(done.Output) != outputMost || done.Truncated == nil || *done.Truncated != (wire.Truncation{Bytes: 15, SpoolPath: "/spool"}) { // T2f
		t.Errorf("got %d bytes, %+v", len(done.Output), done.Truncated)
	}
	if done.Output[0] != big[0] || done.Output[outputMost-1] != big[len(big)-1] {
		t.Error("not its beginning and its end")
	}
	if !slices.Equal(done.Leftovers, []wire.Process{{PID: 7, Command: "sleep"}}) {
		t.Errorf("got %+v left", done.Leftovers)
	}
	if done = completed(e, shell.Result{Output: big[:outputMost]}, nil); done.Truncated != nil || len(done.Output) != outputMost {
		t.Errorf("%d bytes were cut: %+v", outputMost, done.Truncated)
	}
}

// A link begins with what the shell is: its folder, its environment as it is known by then.
func TestSnapshot(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.drop() // what changes then is in the next one
		done := d.run("cd /tmp", false)
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: map[string]string{"NEW": "1", "API_TOKEN": "hush"}})
		<-done
		d.take()
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if s.Cwd != "/tmp" || s.Leases == nil || len(s.Env) != 2 || s.Env["NEW"] != "1" || s.Env["API_TOKEN"] != "" {
			t.Errorf("got %s, %+v, %v", s.Cwd, s.Env, s.Leases)
		}
	})
	synctest.Test(t, func(t *testing.T) { // before anything is known of it: what it was started with
		d := &desk{t: t, sh: newClock()}
		d.sh.looks = time.Second
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
			done := d.run("export", false)
			d.sh.finish(0, shell.State{Digest: fmt.Sprint(vars), Vars: vars})
			<-done
			return d.take("ShellState")[0].(*wire.ShellState).Env
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
		done := d.run("source all", false)
		d.sh.finish(0, shell.State{Digest: "d1", Functions: map[string]string{"a": body("a"), "b": body("b"), "c": "c () { :; }"}})
		<-done
		var with []string
		functions := d.take("ShellState")[0].(*wire.ShellState).Functions
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

// What a borrowed command left behind is looked at as long as that takes, but for a user who took the shell back.
func TestALookBehindACommand(t *testing.T) {
	for _, taken := range []bool{false, true} {
		atDesk(t, func(t *testing.T, d *desk) {
			d.begin(1, "x1", "make")
			d.sh.looks = 2 * time.Second
			if taken {
				done := d.run("ls", true)
				time.Sleep(lookWanted)
				d.take("CommandCompleted", "ShellLeaseReleased")
				d.sh.finish(0, shell.State{})
				<-done
				return
			}
			d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1"})
			d.take("CommandCompleted")
			time.Sleep(2 * time.Second)
			d.take("ShellState")
		})
	}
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
		done := d.run("vim", false)
		time.Sleep(2 * time.Second)
		told("user", 2*time.Second)
		d.sh.finish(0, shell.State{})
		<-done
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

// What a borrowed command left behind is told while prompt hooks of the user run behind it; what they change is told later,
// if only when the user, who does not wait for that, has had the shell.
func TestHooksBehindACommand(t *testing.T) {
	for _, taken := range []bool{false, true} {
		atDesk(t, func(t *testing.T, d *desk) {
			d.begin(1, "x1", "cd /tmp")
			d.sh.hooks = 2 * time.Second
			d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars})
			sent := d.take("CommandCompleted", "ShellState")
			if e := latest[LeasedEnded](d); e == nil || e.Changed != "left you in /tmp" {
				t.Fatalf("told as changed: %+v", e)
			}
			d.sh.mu.Lock()
			d.sh.state.Digest = "d2" // by a hook
			d.sh.mu.Unlock()
			d.release(1, "completed")
			d.take()
			if taken {
				done := d.run("ls", true)
				time.Sleep(lookWanted)
				synctest.Wait()
				if !d.sh.runs("ls") {
					t.Fatal("the user waits for the hooks")
				}
				d.take("ShellLeaseReleased")
				d.sh.finish(0, shell.State{})
				<-done
				sent = append(sent, d.take("ShellState")...)
			} else {
				time.Sleep(2 * time.Second)
				sent = append(sent, d.take("ShellState", "ShellLeaseReleased")...)
			}
			for _, i := range []int{1, 2} {
				if s := sent[i].(*wire.ShellState); !slices.Equal(s.Executions, []wire.ExecutionID{"x1"}) {
					t.Errorf("%s is told as the work of %q", s.Digest, s.Executions)
				}
			}
		})
	}
}

// A command of the user's who took the shell back begins when the screen was told all of the borrower's: its end is to stand
// before what the user's own prints.
func TestTheEndIsToldBeforeWhatComesNext(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.showing(100 * time.Millisecond)
		var told *LeasedEnded
		done := make(chan error, 1)
		go func() {
			_, err := d.l.Run(t.Context(), "ls", true, func([]byte) {
				d.mu.Lock()
				defer d.mu.Unlock()
				told = latest[LeasedEnded](d)
			})
			done <- err
		}()
		time.Sleep(time.Minute)
		d.sh.finish(0, shell.State{})
		if err := <-done; err != nil || told == nil || told.ExecutionID != "x1" {
			t.Errorf("%v, and told %+v", err, told)
		}
		d.showing(0)
		time.Sleep(time.Minute)
		d.take("CommandCompleted", "ShellLeaseReleased")
	})
}

// The shell's own history, and what the terminal prints between commands, are passed on; neither while it is taken.
func TestHistoryAndUnowned(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		if lines, err := d.l.History(t.Context()); err != nil || !slices.Equal(lines, []string{"ls"}) {
			t.Errorf("got %q, %v", lines, err)
		}
		text := []byte("[1]+ Done")
		d.l.Unowned(text)
		clear(text)
		d.begin(1, "x1", "make")
		if u := latest[Unowned](d); u == nil || string(u.Data) != "[1]+ Done" {
			t.Errorf("got %+v", u)
		}
		if _, err := d.l.History(t.Context()); !errors.As(err, new(*LentError)) {
			t.Errorf("while it is lent: got %v", err)
		}
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.run("vim", false)
		if _, err := d.l.History(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("while the user's command runs: got %v", err)
		}
		d.sh.finish(0, shell.State{})
		synctest.Wait()
		d.l.Close()
		if _, err := d.l.History(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: got %v", err)
		}
	})
}

// A script borrows the shell of the window last typed in: that a command of the user's begins is told, not only its end.
func TestTypingIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		ended := d.run("make", false)
		if !slices.Equal(d.typed, []string{"user"}) {
			t.Errorf("while it runs %q was told", d.typed)
		}
		d.sh.finish(0, shell.State{})
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait() // the state is looked at
		d.begin(1, "x", "ls")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.drop()
		ended = d.run("make", false)
		d.sh.finish(0, shell.State{})
		if err := <-ended; err != nil || len(d.typed) != 1 {
			t.Errorf("got %v, and %q was told", err, d.typed)
		}
	})
}
