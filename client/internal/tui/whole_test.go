package tui

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/client/internal/tui/keys"
	"sublet/wire"
)

// Whatever ends the program, the terminal is as it was.
func TestTerminalIsWholeAfter(t *testing.T) {
	const modes = "\x1b[?1049h\x1b[?1000;1002;1003;1006h\x1b[?1004h\x1b[?25l\x1b[?2026h\x1b[>1u\x1b[?1h\x1b="
	running := func(w *window) {
		w.keys("vim\r")
		w.see("~ vim ~")
		w.p.ShellOutput([]byte(modes))
	}
	borrowed := func(w *window) {
		w.lend("x1", "orchestrator", "vim")
		w.p.Send(output("x1", modes))
		w.p.Send(leasedKeyboard("x1", "screen"))
		w.until("the program", func() bool { return w.screen.On("1049") })
	}
	kill := func(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }
	for _, tc := range []struct {
		name string
		do   func(*window)
		code int
		err  string
	}{
		{"exit", func(w *window) { w.keys("exit\r") }, 0, ""},
		{"SIGTERM", func(*window) { kill(syscall.SIGTERM) }, 143, ""},
		{"SIGHUP", func(*window) { kill(syscall.SIGHUP) }, 129, ""},
		{"SIGTERM in AI mode", func(w *window) { w.ai(); kill(syscall.SIGTERM) }, 143, ""},
		{"SIGTERM while a program has the screen", func(w *window) { running(w); kill(syscall.SIGTERM) }, 143, ""},
		{"SIGTERM while a borrowed program has the screen", func(w *window) { borrowed(w); kill(syscall.SIGTERM) }, 143, ""},
		{"the shell ends while a program has the screen", func(w *window) { running(w); close(w.sh.exited) }, 0, ""},
		{"a panic in Update", func(w *window) { w.ai(); w.sh.boom.Store(true); w.keys("x\r") }, 1, "boom in Update"},
		{"a panic while a borrowed program has the screen", func(w *window) { borrowed(w); w.p.Send(panicking{}) }, 1, "boom in an event"},
		{"a panic in a task", func(w *window) {
			w.d.onAsk = func(*wire.AgentRequest) { panic("boom in a task") }
			w.ai()
			w.keys("x\r")
		}, 1, "boom in a task"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := open(t, 80, 24, func(w *window) { w.p.opt.stderr = io.Discard })
			tc.do(w)
			if code := w.end(); code != tc.code {
				t.Errorf("exit status: got %d, want %d", code, tc.code)
			}
			if tc.err == "" && w.err != nil || tc.err != "" && (w.err == nil || !strings.Contains(w.err.Error(), tc.err)) {
				t.Errorf("error: got %v, want %q", w.err, tc.err)
			}
			w.whole()
		})
	}
}

// panicking is an event that Update trips over.
type panicking struct{ wire.EventMessage }

func (panicking) Meta() *wire.Event { panic("boom in an event") }

// An agent that works while the user is in command mode animates nothing.
func TestNothingMovesInCommandMode(t *testing.T) {
	d := newDesk(t)
	d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	if d.wait(time.Minute); len(d.due) != 1 {
		t.Fatalf("in AI mode: got %d timers, want the animation's", len(d.due))
	}
	d.update(&keyEvent{msg: keys.Key{Name: "tab"}, done: make(chan struct{})})
	d.tasks = nil // the shell's prompt, for which a painter would have to run
	if d.wait(time.Minute); d.own.painting || len(d.due) != 0 {
		t.Errorf("in command mode: got %d timers, the screen is this program's: %v", len(d.due), d.own.painting)
	}
}

func TestResizeAndSmallWindows(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	for _, size := range [][2]int{{30, 8}, {12, 4}, {5, 2}, {1, 1}, {100, 40}} {
		w.screen.Resize(size[0], size[1])
		if err := pty.Setsize(w.master, &pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])}); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
		w.p.Send(testQuestion())
		w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionDeny, By: "expiry"})
		w.keys("x")
	}
	w.see("xxxxx")
}

// Half of a paste is another text: one that is longer than a question may be is not taken at all, and the user is told. The keys
// behind it are keys.
func TestPasteTooLong(t *testing.T) {
	w := open(t, 100, 24)
	w.ai()
	w.keys("about \x1b[200~")
	line := strings.Repeat("rm -rf build # a line of a paste\n", 2000)
	for sent := 0; sent <= maxPaste; sent += len(line) {
		w.keys(line)
	}
	w.keys("\x1b[201~")
	w.see("nothing was pasted")
	if got := w.ask("x\r").Prompt; got != "about x" {
		t.Errorf("asked %d bytes: %.40q", len(got), got)
	}
}
