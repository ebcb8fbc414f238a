package tui

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sublet/lease/shell"
)

// A prompt that takes its time (a theme in a large repository) was killed after half a second, and the last one stood there for
// good, with the folder of then.
func TestSlowPrompt(t *testing.T) {
	answer := make(chan struct{})
	var asked atomic.Int64
	w := open(t, 80, 24, func(w *window) {
		w.sh.prompt = func(ctx context.Context) (shell.Prompt, error) {
			if w.sh.Dir() == "/home/u" {
				return shell.Prompt{Text: "u@box:~$ "}, nil
			}
			asked.Add(1)
			select {
			case <-answer:
				return shell.Prompt{Text: "slow:" + w.sh.Dir() + "$ "}, nil
			case <-ctx.Done():
				return shell.Prompt{}, context.Cause(ctx)
			}
		}
		w.sh.run = func(context.Context, string, func([]byte)) (shell.Result, error) {
			w.sh.dir.Store("/srv")
			return shell.Result{Status: "ok", Dir: "/srv"}, nil
		}
	})
	w.keys("cd /srv\r")
	w.see("\n/srv$")
	w.keys("echo")
	w.see("\n/srv$ echo")
	w.keys("\t")
	w.until("the prompt to be asked for again", func() bool { return asked.Load() > 1 })
	close(answer)
	w.see("\nslow:/srv$ echo")
}

// What a lease left is told in the same way, and a prompt that comes late, behind a newer one, is not shown.
func TestPromptsInOrder(t *testing.T) {
	d := newDesk(t)
	d.prompt = ""
	d.send(promptOverdue{1})
	if d.prompt != "/home/u$ " {
		t.Errorf("got prompt %q before the first was told", d.prompt)
	}
	d.send(promptRead{2, true, shell.Prompt{Text: "second> "}})
	d.send(promptRead{1, true, shell.Prompt{Text: "first> "}})
	d.send(promptRead{no: 3})
	d.send(promptOverdue{3})
	if d.prompt != "second> " {
		t.Errorf("got prompt %q, want the second", d.prompt)
	}
	d.sh.dir.Store("/home/u/\x1b[2Jx")
	d.send(promptOverdue{2})
	if d.prompt != "second> " {
		t.Errorf("got prompt %q for one that was told", d.prompt)
	}
	d.userRun = &userRun{}
	d.send(promptOverdue{3})
	if d.prompt != "second> " {
		t.Errorf("got prompt %q in the middle of a command", d.prompt)
	}
	d.userRun = nil
	d.opt.Env = []string{"HOME=/home/u"}
	d.send(promptOverdue{3})
	if want := "~/" + visibleLine("\x1b[2Jx") + "$ "; d.prompt != want {
		t.Errorf("got prompt %q, want %q", d.prompt, want)
	}
	d.send(promptRead{4, true, shell.Prompt{Editing: "emacs"}})
	if d.prompt != "" {
		t.Errorf("got prompt %q with an empty PS1", d.prompt)
	}
}

// /undo-shell asked for the prompt while it was at work, and that told the folder that it left.
func TestPromptBehindUndoShell(t *testing.T) {
	w := open(t, 80, 24, func(w *window) {
		w.sh.undone = "left you in /srv"
		w.sh.undo = func() {
			time.Sleep(50 * time.Millisecond) // as a shell needs, and more than a prompt does
			w.sh.dir.Store("/srv")
		}
		w.sh.prompt = func(context.Context) (shell.Prompt, error) {
			return shell.Prompt{Text: map[bool]string{true: "u@box:~$ ", false: "u@box:/srv$ "}[w.sh.Dir() == "/home/u"]}, nil
		}
	})
	w.keys("/undo-shell\r")
	w.see("put back in your shell: left you in /srv")
	w.see("u@box:/srv$")
}
