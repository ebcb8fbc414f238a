package tui

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"sublet/lease/shell"
)

// C-x C-e, and v in vi mode, hand the line to the user's editor; what it wrote is run, in AI mode it is the line. After an
// editor that failed the line is as it was, and no file is left.
func TestEditVisual(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	files := regexp.MustCompile(`} '([^']+)' && : >'([^']+)'`)
	var saw, write string
	fails := false
	w := open(t, 80, 24, func(w *window) {
		w.sh.run = func(_ context.Context, text string, out func([]byte)) (shell.Result, error) {
			m := files.FindStringSubmatch(text)
			if m == nil {
				out([]byte("ran it\r\n"))
				return shell.Result{Status: "ok", ExitCode: ptr(0), Dir: "/home/u"}, nil
			}
			raw, err := os.ReadFile(m[1])
			if err != nil {
				t.Error(err)
			}
			out([]byte("\x1b[?1049heditor\x1b[?1049l"))
			if saw = string(raw); !fails {
				if err := os.WriteFile(m[1], []byte(write), 0o600); err != nil {
					t.Error(err)
				}
				if err := os.WriteFile(m[2], nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			return shell.Result{Status: "ok", ExitCode: ptr(0), Dir: "/home/u"}, nil
		}
	})
	write = "for i in 1 2; do\n  echo $i\ndone\n"
	w.keys("echo one\x18\x05")
	w.see("ran it")
	w.prompt()
	if ran := w.sh.commands(); saw != "echo one\n" || len(ran) != 2 || ran[1] != strings.TrimRight(write, "\n") {
		t.Errorf("the editor saw %q, then %q ran", saw, ran[1:])
	}
	w.keys("\x1b[A") // what was run is in the history, the editor's own line is not
	w.see("> done")
	w.keys("\x03")
	w.prompt()

	fails = true
	w.keys("echo two\x18\x05")
	w.see("the line is as it was")
	w.see("u@box:~$ echo two")
	fails = false
	write = "\n"
	w.keys("\x18\x05")
	w.prompt()
	if ran := w.sh.commands(); len(ran) != 4 {
		t.Errorf("an emptied line ran: %q", ran)
	}

	write = "why is this so?\nplease\n"
	w.keys("\twhy\x18\x05")
	w.see("please")
	if saw != "why\n" || len(w.d.questions()) != 0 {
		t.Errorf("the editor saw %q, and %d questions were asked at once", saw, len(w.d.questions()))
	}
	w.keys("\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	if got := w.d.questions()[0].Prompt; got != "why is this so?\nplease" {
		t.Errorf("asked %q", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, c := range w.d.commands {
		if strings.Contains(string(c.Command), "EDITOR") {
			t.Errorf("the editor's run was told to the daemon: %q", c.Command)
		}
	}
}
