package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"

	"sublet/lease/shell/dialect/dialecttest"
)

// others are the shells beside bash, with a prompt of two rows and one on the right.
var others = map[string][2]string{
	"zsh":  {".zshrc", "PS1=$'top\\n%?# '\nRPS1=right\n"},
	"fish": {".config/fish/config.fish", "set fish_greeting\nfunction fish_prompt; set -l found $status; echo top; echo -n \"$found# \"; end\nfunction fish_right_prompt; echo right; end\n"},
}

func TestOthers(t *testing.T) {
	for _, d := range dialects[1:] {
		if others[d.Name][0] == "" {
			t.Errorf("others has no row for %s", d.Name)
		}
	}
	for name, startup := range others {
		t.Run(name, func(t *testing.T) {
			path := dialecttest.Find(t, name)
			s, scr := start2(t, func(o *Options) {
				home := t.TempDir()
				for file, text := range map[string]string{startup[0]: startup[1], ".local/share/fish/generated_completions/none.fish": ""} {
					file = filepath.Join(home, file)
					if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				o.NoStartup, o.Path = false, path
				o.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=" + path}
			})
			scr.prompts(t, 1)
			for i, line := range []string{"echo one", "sh -c 'exit 3'"} {
				keys(t, s, line+"\r")
				scr.prompts(t, i+2)
				if e := last[UserEnded](scr); e.Text != line || e.ExitCode != 3*i || strings.TrimSpace(string(e.Output)) != []string{"one", ""}[i] {
					t.Errorf("the user's %q ended: %+v, output %q", line, e, e.Output)
				}
			}

			// A half-typed line of several rows is erased with its prompt, and comes back. The prompt hook runs before the line
			// editor has the terminal, and what is typed between the two is echoed by the kernel: wait for the prompt itself.
			scr.shows(t, "3# ")
			keys(t, s, "\x1b[200~echo 'a\n"+strings.Repeat("long ", 30)+"'\x1b[201~")
			scr.shows(t, "'")
			if err := s.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown := strings.TrimRight(emulated(scr), " \n"); !strings.HasSuffix(shown, "'exit 3'"+shown[strings.LastIndex(shown, "'exit 3'")+8:]) || strings.Contains(shown, "long") {
				t.Errorf("with the screen taken it shows %q", shown)
			}
			if res := do(t, s, "echo lent"); string(res.Output) != "lent\n" {
				t.Errorf("got %q", res.Output)
			}
			if err := s.GiveScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			scr.await(t, "the half-typed line", func() bool { return strings.Contains(emulate(scr.b), "long '") })
			keys(t, s, "\r")
			scr.prompts(t, 4)

			// The prompt behind a borrowed command is never seen while the screen is taken: who erases it erased lines of what is.
			if err := s.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Hold(t.Context()); err != nil {
					t.Fatal(err)
				}
				do(t, s, "X=1")
				if _, err := s.State(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.Release(); err != nil {
					t.Fatal(err)
				}
			}
			scr.output([]byte("answer 1\r\nanswer 2\r\nanswer 3\r\n"))
			if err := s.GiveScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			scr.await(t, "the prompt", func() bool { return regexp.MustCompile(`0# +right\s*$`).MatchString(emulate(scr.b)) })
			if shown := emulated(scr); !regexp.MustCompile(`answer 1 *\nanswer 2 *\nanswer 3 *\ntop *\n0# +right\s*$`).MatchString(shown) {
				t.Errorf("the screen is\n%s", shown)
			}

			before, err := s.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			do(t, s, "cd /; export X='a b'; alias hh='echo hh'")
			after, err := s.State(t.Context())
			if err != nil || after.Vars["X"] != "a b" || after.Dir != "/" {
				t.Fatalf("state %+v, %v", after, err)
			}
			if left, err := s.Undo(t.Context(), before, after); err != nil || len(left) > 0 {
				t.Errorf("undo left %q, %v", left, err)
			}
			if now, err := s.State(t.Context()); err != nil || Difference(before, now) != "" {
				t.Errorf("undo left: %s, %v", Difference(before, now), err)
			}

			ctx, cancel := context.WithCancel(t.Context())
			res, err := s.Run(ctx, Command{Text: "sh -c 'echo begun; exec sleep 100'; echo behind", Output: func([]byte) { cancel() }})
			if err != nil || res.Status != "cancelled" || strings.TrimSpace(string(res.Output)) != "begun" {
				t.Errorf("got %+v %q, %v", res, res.Output, err)
			}
			do(t, s, "cd /usr; export X='a b'; alias hh='echo hh'")
			if _, err := s.State(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			scr.await(t, "another shell", func() bool { _, ok := scr.events[len(scr.events)-2].(Restarted); return ok })
			if res := do(t, s, "pwd; echo $X; hh"); string(res.Output) != "/usr\na b\nhh\n" {
				t.Errorf("restarted: %q", res.Output)
			}
			if strings.Contains(scr.String(), "__sublet") {
				t.Errorf("screen %q", scr.String())
			}
		})
	}
}

// A widget whose answer is lost does not keep the editor: what the user types next is read. Fish loses what it writes
// while the window's size changes (fish-shell#12496).
func TestLostAnswer(t *testing.T) {
	for name, line := range map[string]string{
		"zsh":  "functions[kept]=$functions[__sublet_mark]; __sublet_mark() { [[ $1 == A ]] || kept $1 }",
		"fish": "functions -c __sublet_mark kept; function __sublet_mark; test $argv[1] = A; or kept $argv; end",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := dialecttest.Find(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			keys(t, s, line+"\r")
			scr.prompts(t, 2)
			if err := s.Hold(t.Context()); err == nil {
				t.Fatal("it was held")
			}
			keys(t, s, "echo al''ive\r")
			scr.shows(t, "alive")
		})
	}
}

// What a shell under set -x prints of the integration script is not shown.
func TestTraceHasNoHooks(t *testing.T) {
	for name, on := range map[string]string{"bash": "set -x", "zsh": "set -x; PS4='+ '", "fish": "set fish_trace 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := dialecttest.Find(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			for n, line := range []string{on, "echo mine"} {
				scr.prompts(t, n+1)
				keys(t, s, line+"\r")
			}
			scr.prompts(t, 3)
			keys(t, s, "echo half")
			do(t, s, "echo lent")
			keys(t, s, " line\r")
			scr.prompts(t, 4)
			if strings.Contains(scr.String(), "sublet") || !strings.Contains(scr.String(), "echo mine") {
				t.Errorf("screen\n%s", scr.String())
			}
		})
	}
}

// last returns the last event of a kind.
func last[E any](scr *screen) (e E) {
	for _, e = range events[E](scr) {
	}
	return e
}

// events returns those of one type.
func events[E any](scr *screen) (list []E) {
	scr.mu.Lock()
	defer scr.mu.Unlock()
	for _, event := range scr.events {
		if e, ok := event.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func emulated(scr *screen) string { return emulate([]byte(scr.String())) }

// emulate returns what a terminal of 80 columns shows.
func emulate(b []byte) string {
	e := vt.NewEmulator(80, 100)
	defer e.InputPipe().(io.Closer).Close()
	e.Write(b) //nolint:errcheck // it cannot fail
	return e.String()
}
