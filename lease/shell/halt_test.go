package shell

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/lease/shell/procs"
	"sublet/wire/citest"
)

// A command whose time has passed, or whose borrower wants it so, goes on as a job of the user's shell, which lists it, takes it to the
// front and ends it; the shell has a prompt and its half-typed line meanwhile.
func TestContinueAsJob(t *testing.T) {
	texts := map[string][]string{
		"bash": {"sleep 1000", "sleep 1000 | cat", "while sleep 1; do true; done", "true && sleep 1000", "sleep 1000; exit 3"},
		"zsh":  {"sleep 1000", "sleep 1000 | cat", "while sleep 1; do true; done", "true && sleep 1000", "sleep 1000; exit 3"},
		"fish": {"sleep 1000", "sleep 1000 | cat"},
	}
	for name, list := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			known(t, s)
			for i, text := range list {
				c := Command{Text: text, Timeout: time.Millisecond, Continue: make(chan struct{})} // before its program has begun
				if now := make(chan struct{}, 3); i%2 == 1 {
					c.Timeout, c.Continue = 0, now
					c.Started = func() { now <- struct{}{}; now <- struct{}{}; now <- struct{}{} } // as a key that repeats
				}
				keys(t, s, "half")
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				r, err := s.Run(ctx, c)
				cancel()
				if err != nil || r.Status != "ok" || r.JobPID == 0 || r.ExitCode != nil || len(r.Leftovers) > 0 {
					t.Fatalf("%q: %+v, output %q, %v", text, r, r.Output, err)
				}
				t.Cleanup(func() { procs.SignalGroup(r.JobPID, syscall.SIGKILL) })
				if out := string(r.Output); strings.Contains(out, "topped") || strings.Contains(out, "suspended") {
					t.Errorf("%q: output %q", text, out)
				}
				if isStopped(r.JobPID) {
					t.Errorf("%q is stopped", text)
				}
				if r := do(t, s, "true"); len(r.Leftovers) > 0 {
					t.Errorf("%q: the job is called a leftover of another command: %+v", text, r.Leftovers)
				}
				keys(t, s, "\x01\x0bjobs\r")
				if i%2 == 1 {
					keys(t, s, map[bool]string{true: "kill %1\r", false: "kill %%\r"}[name == "fish"])
				} else {
					keys(t, s, "fg\r")
					end := time.Now().Add(patience)
					for s.Foreground() != r.JobPID && time.Now().Before(end) {
						time.Sleep(time.Millisecond)
					}
					if isStopped(r.JobPID) {
						t.Errorf("%q is stopped after fg", text)
					}
					keys(t, s, "\x03")
				}
				awaitGone(t, r.JobPID)
			}
		})
	}
}

// known reads the shell's state, as a lender does: before that, each name may be an alias.
func known(t *testing.T, s *Shell) {
	t.Helper()
	if _, err := s.State(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What the shell runs itself cannot be a job: at its time it is ended, with the reason.
func TestCannotContinueAsJob(t *testing.T) {
	for name, text := range map[string]string{
		"bash": "for i in 1 2 3; do sleep 1000; done", "zsh": "for i in 1 2 3; do sleep 1000; done", "fish": "for i in 1 2 3; sleep 1000; end",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			known(t, s)
			now, stays := make(chan struct{}, 1), ""
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := s.Run(ctx, Command{
				Text: text, Timeout: 300 * time.Millisecond, Continue: now, Started: func() { now <- struct{}{} }, Stays: func(why string) { stays = why },
			})
			if err != nil || r.Status != "timeout" || r.JobPID != 0 || !strings.Contains(strings.Join(r.Notes, "; "), "could not go on as a job") || stays == "" || r.Stays != stays {
				t.Errorf("%+v, %v; stays: %q", r, err, stays)
			}
		})
	}
}

// A confined command stays confined as a job.
func TestContinueHeldAsJob(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			program, project := confinetest.Need(t), outsideTmp(t)
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Dir, o.Path = project, path })
			scr.prompts(t, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := s.Run(ctx, Command{
				Text: "sh -c 'until [ -e go ]; do sleep 0.01; done; echo x >made; echo over >/dev/tty'; sleep 1000", Timeout: 300 * time.Millisecond,
				Confine: &confine.Spec{Reach: confine.Read, Project: project}, Launcher: program, Continue: make(chan struct{}),
			})
			if err != nil || r.JobPID == 0 || len(r.Leftovers) > 0 {
				t.Fatalf("%+v, output %q, %v", r, r.Output, err)
			}
			t.Cleanup(func() { procs.SignalGroup(r.JobPID, syscall.SIGKILL) })
			keys(t, s, "jobs\r")
			scr.shows(t, "until [ -e go ]; do sleep 0.01;")
			writeFiles(t, project, map[string]string{"go": ""})
			scr.shows(t, "over")
			keys(t, s, "ls made\r")
			scr.shows(t, "No such file")
			procs.SignalGroup(r.JobPID, syscall.SIGTERM)
			awaitGone(t, r.JobPID)
		})
	}
}

// A command that is cancelled in the moment in which it is stopped is ended, also if it ignores SIGTERM.
func TestCancelWhileHalted(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	known(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the shell is stopped, too, so that it sees the stopped job only once the command is being cancelled
		for pid := s.PID(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if fg := s.Foreground(); fg != pid && isStopped(fg) {
				cancel()
				time.Sleep(100 * time.Millisecond)
				_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been replaced
			}
		}
	}()
	r, err := s.Run(ctx, Command{
		Text: "sh -c 'trap \"\" INT TERM; kill -STOP $PPID; exec sleep 1000'", Continue: make(chan struct{}), Timeout: 300 * time.Millisecond,
	})
	if err != nil || r.Status != "cancelled" || r.JobPID != 0 || len(r.Leftovers) > 0 {
		t.Errorf("%+v, output %q, %v", r, r.Output, err)
	}
}
