package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is in the history file afterwards is what windows with bash alone would leave there: bare ones on a terminal of
// their own do the same beside ours. Borrowers' commands are in between, and in no history.
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	settings := []struct{ name, rc string }{
		{"as it comes", ""},
		{"histappend", "shopt -s histappend"},
		{"written at each prompt", "shopt -s histappend; PROMPT_COMMAND='history -a'"},
		{"HISTFILESIZE", "HISTFILESIZE=3"},
		{"HISTFILESIZE 0", "HISTFILESIZE=0; shopt -s histappend"},
		{"HISTFILESIZE, no limit", "HISTFILESIZE=-1"},
		{"HISTSIZE", "HISTSIZE=3"},
		{"HISTSIZE 0", "HISTSIZE=0"},
		{"no HISTFILE", "unset HISTFILE"},
		{"HISTFILE empty", "HISTFILE="},
		{"HISTFILE in a missing folder", "HISTFILE=~/none/history"},
		{"HISTFILE cannot be written", "HISTFILE=/proc/version"},
		{"HISTFILE is a folder", "mkdir -p ~/h; HISTFILE=~/h"},
		{"HISTFILE elsewhere", "HISTFILE=~/elsewhere"},
		{"HISTTIMEFORMAT", "HISTTIMEFORMAT='%F '"},
	}
	// Which window does what: a line, or its end, by ^D's equivalent exit or by hanging up.
	orders := []string{"a:echo a1|b:echo b1|a:echo a2|a!|b:echo b2|b!", "a:echo a1|b:echo b1|b!|a:echo a2|a:exit"}
	for _, c := range settings {
		for i, order := range orders {
			t.Run(fmt.Sprintf("%s %d", c.name, i+1), func(t *testing.T) {
				t.Parallel()
				var left [2]string
				for way := range left {
					home := t.TempDir()
					write(t, filepath.Join(home, ".bash_history"), "old 1\nold 2\n")
					rc := filepath.Join(home, ".bashrc")
					write(t, rc, c.rc+"\nPS1='"+baselinePrompt+"'\n") // Debian has one for all
					bare, lent := map[string]*baseline{}, map[string]*Shell{}
					for _, name := range []string{"a", "b"} {
						if way == 0 {
							bare[name] = startBash(t, home, "--rcfile", rc)
						} else {
							lent[name] = start(t, func(o *Options) { o.RC, o.Env = rc, append(withoutEnv(o.Env, "HOME"), "HOME="+home) })
						}
					}
					for _, step := range strings.Split(order, "|") {
						name, text := step[:1], step[2:]
						switch {
						case way == 0 && text == "":
							bare[name].master.Close()
							bare[name].ended()
						case way == 0 && text == "exit":
							fmt.Fprintln(bare[name].master, text)
							bare[name].ended()
						case way == 0:
							fmt.Fprintln(bare[name].master, text)
							bare[name].until(t, baselinePrompt)
						case text == "":
							if err := lent[name].Close(); err != nil {
								t.Error(err)
							}
						default:
							do(t, lent[name], user(text))
							if text != "exit" {
								do(t, lent[name], leased("echo borrowed"))
								do(t, lent[name], leased("x=1; echo borrowed"))
							}
						}
					}
					left[way] = files(t, home)
				}
				if left[1] != left[0] {
					t.Errorf("left in the home:\n%s\nby bash alone:\n%s", left[1], left[0])
				}
			})
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files are all below a folder, with what is in them; times of history entries are left out.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".bashrc" {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s:\n", rel)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				b.WriteString("\t" + line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A client that is killed leaves in the history what a terminal leaves there whose window is closed at that moment: where a
// borrower's command runs, one in which something is sourced.
func TestHistoryOfTheKilled(t *testing.T) {
	t.Parallel()
	for _, running := range []string{"", "echo go; sleep 1007", "leased echo go; sleep 1007", "leased x=1; echo go; sleep 1007", "leased set -e; echo go; sleep 1007"} {
		t.Run(cmp.Or(running, "idle"), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			bare := startBash(t, home, "--norc")
			for _, text := range []string{"echo 1", "echo 2"} {
				fmt.Fprintln(bare.master, text)
				bare.until(t, baselinePrompt)
			}
			started := running
			if strings.Contains(running, "set -e") {
				started = "" // in a subshell: the shell itself only waits
			}
			if text, ok := strings.CutPrefix(started, "leased "); ok { // bash saves no history while it sources something
				file := filepath.Join(t.TempDir(), "f")
				write(t, file, text)
				fmt.Fprintln(bare.master, " . "+file)
			} else if started != "" {
				fmt.Fprintln(bare.master, started)
			}
			if started != "" {
				bare.until(t, "\r\ngo\r\n")
			}
			bare.master.Close()
			bare.ended()
			want := files(t, home)

			home = t.TempDir()
			w := openWindow(t, home)
			for _, text := range []string{"echo 1", "leased echo borrowed", "echo 2"} {
				w.run(text)
				w.read("done")
			}
			if running != "" {
				w.run(running)
				w.read("goes")
			}
			w.kill()
			awaitEnd(t, w.pid)
			folders, _ := filepath.Glob(filepath.Join(home, ".folder*"))
			for _, f := range folders {
				os.RemoveAll(f)
			}
			if got := files(t, home); got != want {
				t.Errorf("left in the home:\n%s\nby bash alone:\n%s", got, want)
			}
		})
	}
}

// A line that history expansion makes the beginning of a command, the first of several, is shown and not run: bash waited for the
// rest of it, a line of ours was taken for that, and the shell was replaced.
func TestExpandedToAPart(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, filepath.Join(home, ".bash_history"), "git commit -m \"one\ntwo\"\nfor x in 1 2; do\ncat <<EOF\nls \\\n")
	s := start(t, func(o *Options) { o.Env = append(withoutEnv(o.Env, "HOME"), "HOME="+home) })
	pid := s.PID()
	for line, want := range map[string]string{"!git": `git commit -m "one`, "!for": "for x in 1 2; do", "!cat": "cat <<EOF", "!ls": `ls \`} {
		r := do(t, s, user(line))
		if got := strings.TrimSuffix(string(r.Unread)+string(r.Output), "\n"); got != want || r.Status != "ok" {
			t.Errorf("%s: got %q (%+v), want %q", line, got, r, want)
		}
	}
	do(t, s, user(`echo whole \\`))
	if r := do(t, s, user("!echo")); !strings.HasSuffix(string(r.Output), "\nwhole \\\n") || s.PID() != pid {
		t.Errorf("then got %q; the shell %d was %d", r.Output, s.PID(), pid)
	}
}

// What bash alone knows to be unfinished waits for the rest as long as its user takes, and ^C ends it.
func TestUnfinishedByAnAlias(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user(`alias open='echo "one'`))
	pid := s.PID()
	for _, keys := range []string{"two\"\r", "\x03"} {
		typed := make(chan error, 1)
		go func() {
			awaitTrue(t, "the shell to read on", func() bool { return s.running.Load() && s.current().readsLine() })
			time.Sleep(5 * silenceMax) // it is looked at meanwhile
			_, err := s.Write([]byte(keys))
			typed <- err
		}()
		r := do(t, s, user("open"))
		if err := <-typed; err != nil {
			t.Fatal(err)
		}
		if got := string(r.Output); keys != "\x03" && !strings.Contains(got, "one\ntwo\n") || strings.Contains(got, "__sublet") {
			t.Errorf("%q: got %q", keys, got)
		}
	}
	if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" || s.PID() != pid {
		t.Errorf("then got %q; the shell %d was %d", r.Output, s.PID(), pid)
	}
}
