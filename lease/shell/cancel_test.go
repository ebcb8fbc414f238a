package shell

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The time of a command ends it; what stands behind is not run.
func TestTimeout(t *testing.T) {
	s, _ := start2(t, nil)
	res, err := s.Run(t.Context(), Command{Text: "sleep 100; echo behind", Timeout: 200 * time.Millisecond})
	if err != nil || res.Status != "timeout" || strings.Contains(string(res.Output), "behind") {
		t.Errorf("got %+v %q, %v", res, res.Output, err)
	}
}

// Without job control the programs of a command are in the shell's own process group. They were not signalled, and the shell was killed.
func TestTimeoutWithoutJobControl(t *testing.T) {
	for name := range languages {
		if name == "fish" {
			continue // it has no set +m
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "set +m")
			pid := u.PID()
			res, err := u.Run(t.Context(), Command{Text: "sleep 100; echo behind", Timeout: 200 * time.Millisecond, Continue: make(chan struct{})})
			if err != nil || res.Status != "timeout" || strings.Contains(string(res.Output), "behind") || u.PID() != pid {
				t.Errorf("got %+v %q, %v, shell %d, was %d", res, res.Output, err, u.PID(), pid)
			}
			u.do("echo lent", "lent\n", 0)
		})
	}
}

// A program that ignores SIGINT is ended by SIGTERM; one that ignores that as well, by SIGKILL.
func TestCancelOfTheDeaf(t *testing.T) {
	for _, text := range []string{"trap '' INT; sleep 100", "bash -c 'trap \"\" INT TERM; while :; do sleep 1; done'"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s, _ := start2(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			began := time.Now()
			res, err := s.Run(ctx, Command{Text: text, Started: cancel})
			if err != nil || res.Status != "cancelled" || time.Since(began) > 7*time.Second {
				t.Errorf("got %+v after %v, %v", res, time.Since(began), err)
			}
			if res := do(t, s, "echo after"); string(res.Output) != "after\n" {
				t.Errorf("got %q", res.Output)
			}
		})
	}
}

// A command that was cancelled before its shell began it is reported as cancelled, however long the shell takes.
func TestCancelledBeforeItBegan(t *testing.T) {
	t.Parallel()
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	if err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // its end is due after beginBound
	defer cancel()
	if res, err := s.Run(ctx, Command{Text: "echo lent"}); err != nil || !res.Changes {
		t.Errorf("got %+v, %v", res, err)
	}
}

// A cancelled command left the user's bash without HISTCONTROL: the hook of the next prompt put it back a second time.
func TestCancelKeepsHistoryControl(t *testing.T) {
	t.Parallel()
	u := newSession(t, "bash", "HISTCONTROL=ignoreboth")
	ctx, cancel := context.WithCancel(t.Context())
	if r := u.run(ctx, Command{Text: "sleep 1000", Started: cancel}); r.Status != "cancelled" {
		t.Errorf("got %+v", r)
	}
	u.do("echo $HISTCONTROL", "ignoreboth\n", 0)
}

// The last step of a cancel does not kill the shell that has replaced the command's.
func TestCancelSparesTheNewShell(t *testing.T) {
	t.Parallel()
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	pid := s.PID()
	c := &canceller{s: s, r: &run{started: time.Now(), restarted: "the shell ended"}, since: time.Now().Add(-endAfter)}
	c.signalDue()
	if res := do(t, s, "echo $$"); strings.TrimSpace(string(res.Output)) != strconv.Itoa(pid) {
		t.Errorf("got %+v, want %d", res, pid)
	}
}

// With job control only the command is signalled, as by Ctrl-C: not what the user's start-up files run in the shell's own process group.
func TestTimeoutSparesTheShellsOwnPrograms(t *testing.T) {
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "exec 7> >(cat >/dev/null)")
			res, err := u.Run(t.Context(), Command{Text: "sleep 100", Timeout: 200 * time.Millisecond})
			if err != nil || res.Status != "timeout" {
				t.Fatalf("got %+v, %v", res, err)
			}
			u.do("(sleep 0.3; echo x >&7; echo $?)", "0\n", 0)
		})
	}
}
