package shell

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/lease/procstat"
	"sublet/wire/citest"
)

// outsideTmp returns a folder that a held command does not take for a temporary one.
func outsideTmp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// git reports success although its change of .git/config was denied: `git switch` to a branch of a remote sets no upstream.
func TestHeldGitSwitch(t *testing.T) {
	program, project := confinetest.Need(t), outsideTmp(t)
	s, scr := start2(t, func(o *Options) { o.Dir = project })
	scr.prompts(t, 1)
	do(t, s, "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.Run(ctx, Command{Text: "git switch -q --track -c side", Launcher: program, Confine: &confine.Spec{Reach: confine.Project, Project: project}})
	if want := "writing " + project + "/.git/config; only a command with the reach free may do that"; err != nil || *r.ExitCode != 0 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasSuffix(n, want) }) {
		t.Errorf("got %+v, %v; want a note: %s", r, err, want)
	}
}

// TestHeld runs confined commands in each shell: they have what the shell has, and change nothing beyond their reach.
func TestHeld(t *testing.T) {
	program := confinetest.Need(t)
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			path := citest.Program(t, name)
			project := outsideTmp(t)
			s, scr := start2(t, func(o *Options) {
				o.Path, o.Dir = path, project
				o.Env = append(o.Env, "SHELL="+path)
			})
			scr.prompts(t, 1)
			set := "MINE='a b'; export THEIRS=c; alias greet='echo hello'\ntwice() { greet; echo \"$1$1\"; }"
			if name == "fish" {
				set = "set MINE 'a b'; set -x THEIRS c; function greet; echo hello; end; function twice; greet; echo \"$argv[1]$argv[1]\"; end"
			}
			do(t, s, set)
			if _, err := s.State(t.Context()); err != nil {
				t.Fatal(err)
			}
			held := func(reach, text string) Result {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				r, err := s.Run(ctx, Command{Text: text, Launcher: program, Confine: &confine.Spec{Reach: reach, Project: project}})
				if err != nil {
					t.Fatalf("run %q: %v", text, err)
				}
				return r
			}
			if r := held(confine.Read, `twice "$MINE-$THEIRS$SUBLET"; pwd`); string(r.Output) != "hello\na b-ca b-c\n"+project+"\n" || *r.ExitCode != 0 {
				t.Errorf("what the text names: %q, %v, notes %q", r.Output, *r.ExitCode, r.Notes)
			}
			r := held(confine.Read, "touch made; echo x > /dev/null; sh -c 'exit 7'")
			if *r.ExitCode != 7 || !slices.ContainsFunc(r.Notes, func(n string) bool {
				return strings.Contains(n, "writing "+project+"/made; the reach project would allow it")
			}) {
				t.Errorf("denied: exit %d, notes %q, output %q", *r.ExitCode, r.Notes, r.Output)
			}
			if _, err := os.Stat(filepath.Join(project, "made")); err == nil {
				t.Error("a command with the reach read made a file")
			}
			if r := held(confine.Project, "touch /etc/made 2>&1 | tail -3"); *r.ExitCode != 0 || !strings.Contains(strings.Join(r.Notes, " "), "writing /etc/made") {
				t.Errorf("in a pipe: exit %d, notes %q, output %q", *r.ExitCode, r.Notes, r.Output)
			}
			if r := held(confine.Project, "touch made && mkdir dir && cd /"); *r.ExitCode != 0 || r.Dir != project || r.Lost != "cd" || !strings.Contains(strings.Join(r.Notes, " "), "what `cd` changed is lost") {
				t.Errorf("with the reach project: exit %d in %s, notes %q, output %q", *r.ExitCode, r.Dir, r.Notes, r.Output)
			}
			if _, err := os.Stat(filepath.Join(project, "made")); err != nil {
				t.Error(err)
			}
			if list, err := os.ReadDir(project); err != nil || len(list) != 2 {
				t.Errorf("the project holds %v, %v", list, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			// What is left running is ended, and its user and its agent are told.
			out := strings.ReplaceAll(string(held(confine.Read, "sleep 1000 & echo begun").Output), "\r", "")
			if !strings.Contains(out, "begun\n") || strings.Count(out, "sleep 1000") != 1 || !strings.Contains(out, "ended what the command left running") {
				t.Errorf("left running: %q", out)
			}
			r, err := s.Run(ctx, Command{
				Text: "sh -c 'trap \"\" HUP; sleep 1000 & echo begun; exec sleep 1000'; echo behind", Launcher: program,
				Confine: &confine.Spec{Reach: confine.Read}, Output: func([]byte) { cancel() },
			})
			if err != nil || r.Status != "cancelled" || strings.TrimSpace(string(r.Output)) != "begun" || len(r.Leftovers) > 0 {
				t.Errorf("cancelled: %+v %q, %v", r, r.Output, err)
			}
			if r.Duration > 5*time.Second {
				t.Errorf("the cancel took %v", r.Duration)
			}
			// Nothing stays of what stood for protected names where the launcher is killed.
			kill := sync.OnceFunc(func() {
				launchers, err := procstat.Children(s.PID())
				if err != nil || len(launchers) != 1 || syscall.Kill(launchers[0], syscall.SIGKILL) != nil {
					t.Errorf("launchers %v, %v", launchers, err)
				}
			})
			var seen []byte
			r, err = s.Run(t.Context(), Command{
				Text: "ls -a; echo listed; sleep 1000", Launcher: program, Confine: &confine.Spec{Reach: confine.Project, Project: project},
				Output: func(p []byte) {
					if seen = append(seen, p...); bytes.Contains(seen, []byte("listed")) {
						kill()
					}
				},
			})
			if err != nil || r.Signal != "SIGKILL" || !strings.Contains(string(r.Output), ".gitlab-ci.yml") {
				t.Errorf("killed: %s %q, %v", r.Signal, r.Output, err)
			}
			for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				if list, err := os.ReadDir(project); err == nil && len(list) == 2 {
					break
				} else if time.Now().After(end) {
					t.Fatalf("killed: the project holds %v, %v", list, err)
				}
			}
			// Of one that ^Z stopped, the program is listed, and not what stands between it and the shell.
			stop := sync.OnceFunc(func() { _ = s.Answer([]byte{0x1a}) }) // an error: nothing is listed
			r, err = s.Run(t.Context(), Command{
				Text: "sh -c 'echo begun; exec sleep 1000'", Launcher: program, Confine: &confine.Spec{Reach: confine.Read}, Output: func([]byte) { stop() },
			})
			// While it is in execve, its name is known and its arguments are not.
			if err != nil || len(r.Leftovers) != 1 || !strings.Contains(r.Leftovers[0].Command, "sleep") {
				t.Errorf("stopped: %+v, %v, %v", r.Leftovers, r.Notes, err)
			}
			for _, p := range r.Leftovers {
				_ = syscall.Kill(p.PID, syscall.SIGKILL) // an error: it is gone
			}
			if r := do(t, s, "echo after"); string(r.Output) != "after\n" {
				t.Errorf("afterwards: %q", r.Output)
			}
		})
	}
}
