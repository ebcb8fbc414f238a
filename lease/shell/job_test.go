package shell

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/lease/shell/procs"
	"sublet/wire/citest"
)

// job starts a background job and returns its folder and process group.
func job(t *testing.T, s *Shell, text string, spec *confine.Spec, launcher string) (folder string, pgid int) {
	t.Helper()
	folder = outsideTmp(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.Run(ctx, Command{Text: text, Job: folder, Confine: spec, Launcher: launcher})
	if err != nil || r.Status != "ok" || r.JobPID == 0 || len(r.Leftovers) > 0 {
		t.Fatalf("%q: %+v, output %q, %v", text, r, r.Output, err)
	}
	t.Cleanup(func() { procs.SignalGroup(r.JobPID, syscall.SIGKILL) })
	return folder, r.JobPID
}

func awaitFile(t *testing.T, path string, want ...string) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		b, err := os.ReadFile(path)
		if slices.Contains(want, string(b)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got %q, %v, want %q", path, b, err, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func awaitGone(t *testing.T, pgid int) {
	t.Helper()
	for end := time.Now().Add(patience); len(procs.Group(pgid)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the job's group %d has %v", pgid, procs.Group(pgid))
		}
	}
}

// A background job is one of the shell's own: its list shows it and its kill reaches it. It knows the shell's functions,
// changes nothing in the shell, is no leftover, and outlives the shell.
func TestJob(t *testing.T) {
	define := "greet() { echo hello $1; }; mine=7"
	forever := "while :; do sleep 0.01; done"
	texts := map[string]struct{ define, greet, broken, forever, listed string }{
		"bash": {define, "greet \"$mine\"; mine=8; cd /; (exit 3)", "echo a ) ; echo b; ( :", forever, "sublet_job '" + forever + "'"},
		"zsh":  {define, "greet \"$mine\"; mine=8; cd /; (exit 3)", "echo a ) ; echo b; ( :", forever, "sublet_job '" + forever + "'"},
		"fish": {
			"function greet; echo hello $argv[1]; end; set -g mine 7", "greet \"$mine\"; set mine 8; cd /; sh -c 'exit 3'", "echo a; end; echo b; begin",
			"while true; sleep 0.01; end", "sh -c $__sublet_job 'while true; sleep 0.01; end'",
		},
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			do(t, s, text.define)
			known(t, s)

			folder, _ := job(t, s, text.greet, nil, "")
			awaitFile(t, filepath.Join(folder, JobStatus), "3")
			awaitFile(t, filepath.Join(folder, JobOutput), "hello 7\n")
			if info, err := os.Stat(filepath.Join(folder, JobOutput)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("output: %v, %v", info.Mode(), err)
			}
			// zsh may report in the same output, before or behind it, that the job is done.
			if r := do(t, s, "echo $mine"); !slices.Contains(strings.Split(string(r.Output), "\n"), "7") {
				t.Errorf("the job changed the shell: %q", r.Output)
			}
			folder, _ = job(t, s, "exit 4", nil, "")
			awaitFile(t, filepath.Join(folder, JobStatus), "4")

			// A text with what would end a wrapping block is read by itself.
			folder, _ = job(t, s, text.broken, nil, "")
			awaitFile(t, filepath.Join(folder, JobStatus), "1", "2", "127") // by the shell and its version

			_, pgid := job(t, s, text.forever, nil, "")
			for range 10 {
				if r := do(t, s, "sleep 0.02"); len(r.Leftovers) > 0 {
					t.Fatalf("the job's new processes are called leftovers of another command: %+v", r.Leftovers)
				}
			}
			keys(t, s, "jobs\r")
			scr.shows(t, text.listed)
			keys(t, s, "kill "+map[bool]string{true: "%1", false: "%%"}[name == "fish"]+"\r")
			awaitGone(t, pgid)

			folder, pgid = job(t, s, "echo begun; sleep 100", nil, "")
			awaitFile(t, filepath.Join(folder, JobOutput), "begun\n") // a hang-up is ignored by now
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if len(procs.Group(pgid)) == 0 {
				out, _ := os.ReadFile(filepath.Join(folder, JobOutput))
				status, _ := os.ReadFile(filepath.Join(folder, JobStatus))
				t.Errorf("the job ended with its shell: %q, status %q", out, status)
			}
		})
	}
}

// A job whose start is cancelled, once that has begun, is known: a SIGINT to the shell would lose it, running.
func TestCancelledStartOfAJob(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			for range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := s.Run(ctx, Command{Text: "sleep 1000", Job: outsideTmp(t), Started: cancel})
				if err != nil || r.JobPID == 0 {
					t.Fatalf("got %+v, %v", r, err)
				}
				procs.SignalGroup(r.JobPID, syscall.SIGKILL)
			}
		})
	}
}

// Closing a private shell ends what commands left in it, and no job.
func TestJobOfPrivateShell(t *testing.T) {
	s, _ := start2(t, func(o *Options) { o.Private = true })
	folder, pgid := job(t, s, "echo begun; sleep 100", nil, "")
	awaitFile(t, filepath.Join(folder, JobOutput), "begun\n")
	r := do(t, s, "sleep 100 &")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(r.Leftovers) != 1 {
		t.Fatalf("left running: %+v, want one", r.Leftovers)
	}
	awaitGone(t, r.Leftovers[0].PID)
	if len(procs.Group(pgid)) == 0 {
		t.Error("the job ended with its shell")
	}
}

// A held job stays held for its whole life, also when another command is held meanwhile, and its group is one.
func TestHeldJob(t *testing.T) {
	program, project := confinetest.Need(t), outsideTmp(t)
	s, scr := start2(t, func(o *Options) { o.Dir = project })
	scr.prompts(t, 1)
	spec := &confine.Spec{Reach: confine.Read, Project: project}
	folder, _ := job(t, s, "echo begun; until [ -e go ]; do sleep 0.01; done; echo x >made; echo $?", spec, program)
	awaitFile(t, filepath.Join(folder, JobOutput), "begun\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if r, err := s.Run(ctx, Command{Text: "touch go", Confine: &confine.Spec{Reach: confine.Project, Project: project}, Launcher: program}); err != nil || *r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	awaitFile(t, filepath.Join(folder, JobStatus), "0")
	out, err := os.ReadFile(filepath.Join(folder, JobOutput))
	if err != nil || !strings.HasSuffix(string(out), "1\n") || !strings.Contains(string(out), "made") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(project, "made")); err == nil {
		t.Error("a job with the reach read made a file")
	}
	folder, pgid := job(t, s, "sleep 100 & echo begun; exec sleep 100", spec, program)
	awaitFile(t, filepath.Join(folder, JobOutput), "begun\n")
	if r := do(t, s, "true"); len(r.Leftovers) > 0 {
		t.Errorf("leftovers: %+v", r.Leftovers)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _ := os.ReadFile(filepath.Join(folder, JobOutput)); len(procs.Group(pgid)) == 0 {
		t.Errorf("the job ended with its shell: %q", out)
	}
	procs.SignalGroup(pgid, syscall.SIGTERM)
	awaitGone(t, pgid)
}
