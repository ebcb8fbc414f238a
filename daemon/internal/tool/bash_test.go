package tool

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// stubShell records what it was asked to run.
type stubShell struct {
	place  ShellPlace
	result CommandResult
	err    error
	ran    []Command
	live   string
}

func (s *stubShell) Where(context.Context) (ShellPlace, error) { return s.place, nil }

func (s *stubShell) Run(_ context.Context, c Command, live func([]byte)) (CommandResult, error) {
	s.ran = append(s.ran, c)
	if live != nil && s.live != "" {
		live([]byte(s.live))
	}
	return s.result, s.err
}

func code(n int) *int { return &n }

func TestBashCarriesWhatWasApproved(t *testing.T) {
	env := newEnv(t)
	env.Cwd = "/work"
	sh := &stubShell{
		place:  ShellPlace{Cwd: "/work", StateDigest: "d1"},
		result: CommandResult{Result: shell.Result{Output: []byte("hi\n"), ExitCode: code(0), Status: wire.StatusOK, Dir: "/work"}},
	}
	env.Shell = sh
	b := Bash(time.Minute, time.Hour)
	raw := args(t, m{"command": "echo hi # note", "description": "say hi", "timeout_ms": 5000})
	action, err := b.Plan(t.Context(), env, raw)
	if err != nil {
		t.Fatal(err)
	}
	if action.Command != "echo hi # note" || action.Cwd != "/work" || action.StateDigest != "d1" || action.Private {
		t.Errorf("got action %+v", action)
	}
	r, err := b.Run(t.Context(), env, raw, action, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Content != "hi\n" || r.IsError || r.Status != wire.StatusSuccess || r.Cwd != "/work" {
		t.Errorf("got %+v", r)
	}
	want := Command{
		ExecutionID: "x1", Text: "echo hi # note", Cwd: "/work", Approved: ShellPlace{Cwd: "/work", StateDigest: "d1"},
		Timeout: 5 * time.Second, Purpose: "say hi",
	}
	if got := sh.ran[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// a text that is not the approved one does not run.
	action.Command = "echo other"
	if _, err := b.Run(t.Context(), env, raw, action, nil); !errors.Is(err, ErrChanged) || len(sh.ran) != 1 {
		t.Errorf("got %v after %d runs, want ErrChanged and no second run", err, len(sh.ran))
	}
}

func TestBashPrivateStreams(t *testing.T) {
	env := newEnv(t)
	user := &stubShell{place: ShellPlace{Cwd: "/user"}}
	own := &stubShell{
		place: ShellPlace{Cwd: "/own", Private: true}, live: "out",
		result: CommandResult{Result: shell.Result{Output: []byte("out"), ExitCode: code(0), Status: wire.StatusOK, Dir: "/own/sub"}},
	}
	env.Shell, env.Private = user, own
	raw := args(t, m{"command": "make", "private": true})
	b := Bash(time.Minute, time.Hour)
	action, err := b.Plan(t.Context(), env, raw)
	if err != nil || !action.Private || action.Cwd != "/own" {
		t.Fatalf("got %+v, %v; want the private shell", action, err)
	}
	streamed := ""
	r, err := b.Run(t.Context(), env, raw, action, func(p []byte) { streamed += string(p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(user.ran) != 0 || len(own.ran) != 1 || streamed != "out" {
		t.Errorf("got user %d, own %d runs, streamed %q", len(user.ran), len(own.ran), streamed)
	}
	if r.Cwd != "" || !strings.Contains(r.Content, "[now in /own/sub]") {
		t.Errorf("got %+v, want the side shell's directory told but not adopted", r)
	}
}

// An agent whose only shell is a private one moves with it, also where it asks for a private one: its file tools went on looking
// in the folder before.
func TestBashInItsOnlyShell(t *testing.T) {
	env := newEnv(t)
	own := &stubShell{
		place:  ShellPlace{Cwd: "/own", Private: true},
		result: CommandResult{Result: shell.Result{Output: []byte("out"), ExitCode: code(0), Status: wire.StatusOK, Dir: "/own/sub"}},
	}
	env.Shell, env.Private = own, own
	raw := args(t, m{"command": "cd sub", "private": true})
	b := Bash(time.Minute, time.Hour)
	action, err := b.Plan(t.Context(), env, raw)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Run(t.Context(), env, raw, action, nil); err != nil || r.Cwd != "/own/sub" {
		t.Errorf("got %+v, %v, want it adopted", r, err)
	}
}

func TestBashResultText(t *testing.T) {
	approved := Action{Command: "x", Cwd: "/a"}
	for _, tc := range []struct {
		name   string
		in     shell.Result
		status string
		want   string
	}{
		{"silent", shell.Result{Status: wire.StatusOK, ExitCode: code(0), Dir: "/a"}, wire.StatusSuccess, "[no output]"},
		{"failed", shell.Result{Output: []byte("boom"), Status: wire.StatusOK, ExitCode: code(2), Dir: "/a"}, wire.StatusError, "boom\n[exit code 2]"},
		{"moved", shell.Result{Output: []byte("ok\n"), Status: wire.StatusOK, ExitCode: code(0), Dir: "/b"}, wire.StatusSuccess, "ok\n[now in /b]"},
		{"timeout", shell.Result{Output: []byte("…"), Status: wire.StatusTimeout, Dir: "/a"}, wire.StatusTimeout, "…\n[ended: it ran longer than 1m0s; give a longer timeout_ms, or start it with background]"},
		{"cancelled", shell.Result{Status: wire.StatusCancelled, Signal: "SIGINT", Dir: "/a"}, wire.StatusCancelled, "[ended: it was cut off]\n[ended by SIGINT]"},
		{
			"a lost window",
			shell.Result{Status: wire.StatusCancelled, Notes: []string{"the user's window was lost while it ran"}},
			wire.StatusCancelled, "[ended: it was cut off]\n[the user's window was lost while it ran]",
		},
		{"shell exited", shell.Result{Status: wire.StatusShellExited}, wire.StatusError, "[the shell ended with it]"},
		{"refused", shell.Result{Status: wire.StatusRefused}, wire.StatusError, "[refused: the shell did not run it]"},
		{
			"truncated",
			shell.Result{Output: []byte("head\ntail"), Status: wire.StatusOK, ExitCode: code(0), Truncated: 77, SpoolPath: "/s/1", Dir: "/a"},
			wire.StatusSuccess, "head\ntail\n[77 bytes of output are left out above; the whole is in /s/1]",
		},
		{
			"notes",
			shell.Result{Status: wire.StatusOK, ExitCode: code(0), Dir: "/a", Notes: []string{"ran in a subshell"}, Leftovers: []shell.Process{{PID: 12, Command: "sleep"}, {PID: 13, Command: "cat"}}},
			wire.StatusSuccess, "[no output]\n[ran in a subshell]\n[still running: 12 sleep; 13 cat]",
		},
		{"odd bytes", shell.Result{Output: []byte("a\xffb"), Status: wire.StatusOK, ExitCode: code(0), Dir: "/a"}, wire.StatusSuccess, "a\uFFFDb"},
	} {
		r := commandResult(CommandResult{Result: tc.in}, approved, "/a", time.Minute, false)
		if r.Content != tc.want || r.Status != tc.status || r.IsError != (tc.status != wire.StatusSuccess) {
			t.Errorf("%s: got %q, status %s, error %v; want %q, %s", tc.name, r.Content, r.Status, r.IsError, tc.want, tc.status)
		}
	}
}

// Somebody, the user or another borrower, moved the shell since the agent's last command: it is told where this one ran. It
// went on believing that it was where its own last `cd` had gone.
func TestBashTellsWhereItRan(t *testing.T) {
	env := newEnv(t)
	env.Cwd = "/work/sub"
	sh := &stubShell{place: ShellPlace{Cwd: "/elsewhere"}, result: CommandResult{Result: shell.Result{ExitCode: code(0), Status: wire.StatusOK, Dir: "/elsewhere"}}}
	env.Shell, env.Private = sh, &stubShell{place: ShellPlace{Cwd: "/own", Private: true}, result: CommandResult{Result: shell.Result{ExitCode: code(0), Status: wire.StatusOK, Dir: "/own"}}}
	b := Bash(time.Minute, time.Hour)
	for _, c := range []struct {
		args m
		want string
	}{
		{m{"command": "make"}, "[no output]\n[ran in /elsewhere, where the shell is by now, not in /work/sub]"},
		{m{"command": "make", "private": true}, "[no output]"},
	} {
		if r, err := do(t, b, env, c.args); err != nil || r.Content != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.args, r.Content, err, c.want)
		}
	}
}

func TestBashWithoutAShell(t *testing.T) {
	env := newEnv(t)
	b := Bash(time.Minute, time.Hour)
	_, err := do(t, b, env, m{"command": "ls"})
	if !errors.Is(err, ErrNoShell) || strings.Contains(err.Error(), "private") {
		t.Errorf("got %v, want ErrNoShell without advice that cannot be followed", err)
	}
	busy := &stubShell{place: ShellPlace{Cwd: "/a"}, err: &BusyError{Holder: "the user (vim)", Held: 90 * time.Second, Waited: time.Minute}}
	env.Shell, env.Private = busy, &stubShell{}
	_, err = do(t, b, env, m{"command": "ls"})
	for _, want := range []string{"the user (vim)", "1m30s", `"private": true`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	busy.err = ErrChanged
	if _, err = do(t, b, env, m{"command": "ls"}); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged passed on", err)
	}
}
