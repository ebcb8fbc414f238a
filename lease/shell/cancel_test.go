package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// cancelled runs a command, cancels it once it has begun (and printed "go", where it says so), and returns how long the
// cancel took.
func cancelled(t *testing.T, s *Shell, c Command) (Result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	took := func() time.Duration { return 0 }
	var out collector
	waits := strings.Contains(c.Text, "echo go") || strings.Contains(c.Text, `"go"`)
	c.Started = func() {
		if !waits {
			took = stopwatch(t)
			cancel()
		}
	}
	c.Output = func(p []byte) {
		out.add(p)
		if waits && ctx.Err() == nil && strings.Contains(out.String(), "go") {
			took = stopwatch(t)
			cancel()
		}
	}
	res, err := s.Run(ctx, c)
	if err != nil {
		t.Fatalf("run %q: %v", c.Text, err)
	}
	return res, took()
}

// stopwatch tells how long something takes, as a canceller counts: where the machine stands still for a while, that is not it.
func stopwatch(t *testing.T) (took func() time.Duration) {
	var spent elapsed
	spent.add(lateMost)
	end, ended := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(lateMost / 5)
	go func() {
		defer close(ended)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				spent.add(lateMost)
			case <-end:
				return
			}
		}
	}()
	stop := sync.OnceValue(func() time.Duration {
		close(end)
		<-ended
		return spent.add(lateMost)
	})
	t.Cleanup(func() { stop() })
	return stop
}

// Cancel reaches the command (T2a, C5), and the shell answers afterwards.
func TestCancel(t *testing.T) {
	s := start(t, nil)
	cases := []struct {
		name, text string
		within     time.Duration
		exit       int // -1: any
		respawned  bool
	}{
		{"sleep", "sleep 100", time.Second, 130, false},
		{"list", "sleep 100; echo after", time.Second, 130, false},
		{"pipeline", "sleep 100 | cat | cat", time.Second, -1, false},
		{"loop of sleeps", "while true; do sleep 1; done", time.Second, 130, false},
		{"loop in the shell", "echo go; while :; do :; done", time.Second, 130, false},
		{"read", "echo go; read x", time.Second, 130, false},
		{"wait", "sleep 100 & echo go; wait", time.Second, 130, false},
		{"the other end of a FIFO", "mkfifo fifo; echo go; echo x >fifo", time.Second, -1, false},
		{"a full pipe", "mkfifo full; exec 9<>full; echo go; while printf %1000d >&9; do :; done", time.Second, -1, false},
		{"substitution", "echo go; x=$(sleep 100)", time.Second, 130, false},
		{"subshell", "set -e; echo go; sleep 100", time.Second, 130, false},
		{"ignores INT", `bash -c 'trap "" INT; echo go; while :; do sleep 1; done'`, 3500 * time.Millisecond, -1, false},
		{"ignores INT and TERM", `bash -c 'trap "" INT TERM; echo go; while :; do sleep 1; done'`, 5 * time.Second, -1, false},
		{"takes INT for an end", `bash -c 'trap "exit 0" INT; echo go; while :; do sleep 0.02; done'; sleep 100; echo after`, time.Second, -1, false},
		{"function", "f() { sleep 100; echo after; }; f; echo after", time.Second, 130, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res, took := cancelled(t, s, leased(c.text))
			if res.Status != "cancelled" || took > c.within {
				t.Errorf("got status %q after %v, want cancelled within %v", res.Status, took, c.within)
			}
			if c.exit >= 0 && exit(res) != c.exit {
				t.Errorf("got exit %d, want %d", exit(res), c.exit)
			}
			if strings.Contains(string(res.Output), "after") {
				t.Errorf("the list went on: %q", res.Output)
			}
			if res.Respawned != c.respawned {
				t.Errorf("got respawned %v: %v", res.Respawned, res.Notes)
			}
			if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
				t.Errorf("afterwards: got %q", r.Output)
			}
		})
	}
}

// cancelOnce cancels `sleep 100` and returns how long that took, in microseconds.
func cancelOnce(t testing.TB, s *Shell) float64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var at time.Time
	c := leased("sh -c 'echo go; exec sleep 100'")
	c.Output = func([]byte) {
		if at.IsZero() {
			at = time.Now()
			cancel()
		}
	}
	res, err := s.Run(ctx, c)
	if err != nil || res.Status != "cancelled" {
		t.Fatalf("got %+v, %v", res, err)
	}
	return float64(time.Since(at)) / float64(time.Microsecond)
}

// A ^C in a text that has switched the line editor on leaves bash reading lines without a prompt or its hook. The cancel went
// on to interrupt that, so that the shell was never silent for long enough to be looked at: a person's cancel never ended,
// and a borrower's cost the shell.
func TestCancelBehindALineEditor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"set -o vi\necho go; sleep 1000", "set -o emacs\necho go; read x", "set -o vi\necho go\nwhile :; do :; done"} {
		for _, u := range []bool{false, true} {
			t.Run(map[bool]string{false: "leased ", true: "user "}[u]+text, func(t *testing.T) {
				t.Parallel()
				s := start(t, nil)
				pid := s.PID()
				end := time.AfterFunc(slack, func() { s.Close() })
				res, took := cancelled(t, s, Command{Text: text, User: u})
				if !end.Stop() || res.Status != "cancelled" || res.Respawned || s.PID() != pid {
					t.Errorf("got %s after %v, respawned %v: %q", res.Status, took, res.Respawned, res.Notes)
				}
				if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
					t.Errorf("then got %q", r.Output)
				}
				p, err := s.Prompt(t.Context())
				if want := map[bool]string{true: strings.Fields(text)[2]}[u]; err != nil || p.Editing != want {
					t.Errorf("then the editing mode is %q, %v, want %q", p.Editing, err, want)
				}
			})
		}
	}
}

// What a program began on SIGINT, to clean up with, was killed: it was taken for one that had lost the signal.
func TestCancelLeavesCleaningUp(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	for _, text := range []string{"P", "(P; echo after)", "P >/dev/tty | cat", "P >/dev/tty | read x", "P >/dev/tty | while :; do :; done", "x=$(P >/dev/tty)", "(P >/dev/tty; echo after) | cat"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			const program = `sh -c 'trap "sleep 0.4 && echo cleaned; exit" INT; echo go; while :; do sleep 0.02; done'`
			res, _ := cancelled(t, s, leased(strings.ReplaceAll(text, "P", program)))
			if got := string(res.Output); !strings.Contains(got, "cleaned") || strings.Contains(got, "\nafter") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A person's shell that takes long to be ready behind a cancel is not replaced: its prompt hook is slow.
func TestCancelBeforeASlowPrompt(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, "PROMPT_COMMAND='[[ ! ${slow-} ]] || until [[ -e "+gate+" ]]; do sleep 0.1; done; unset slow'")
	})
	pid := s.PID()
	time.AfterFunc(provedWithin+2*time.Second, func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	res, _ := cancelled(t, s, user("slow=1; echo go; sleep 1000"))
	if res.Status != "cancelled" || res.Respawned || s.PID() != pid {
		t.Errorf("got %s, respawned %v: %q", res.Status, res.Respawned, res.Notes)
	}
	if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" || s.PID() != pid {
		t.Errorf("then got %q", r.Output)
	}
}
