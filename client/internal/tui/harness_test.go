package tui

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"go.uber.org/goleak"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/screentest"
	"sublet/lease/shell"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// window is a Program on a real PTY with a terminal behind it.
type window struct {
	t      *testing.T
	p      *Program
	sh     *fakeShell
	d      *fakeDaemon
	screen *screentest.Screen
	master *os.File
	slave  *os.File
	before *term.State
	done   chan struct{}
	code   int
	err    error
}

// open starts a program in a window of w by h cells; setup is called before it runs.
func open(t *testing.T, w, h int, setup ...func(*window)) *window {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatalf("open a pty: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		t.Fatalf("set the size: %v", err)
	}
	win := &window{t: t, sh: newFakeShell(), d: &fakeDaemon{}, screen: screentest.New(w, h), master: master, slave: slave, done: make(chan struct{})}
	if win.before, err = term.GetState(slave.Fd()); err != nil {
		t.Fatalf("read termios: %v", err)
	}
	o := Options{
		Daemon: win.d, Shell: win.sh, Lender: win.sh, Stdin: slave, Stdout: slave,
		Env: []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()},
	}
	win.p = New(o)
	win.d.moved = func(r *wire.SessionReply) { win.p.Send(r) }
	for _, f := range setup {
		f(win)
	}
	if win.d.Connected() {
		win.p.Send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Mode: "ask"})
		win.p.Send(LinkChanged{Connected: true})
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if n > 0 {
				_, _ = win.screen.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	})
	win.sh.start(t, win.p)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		win.code, win.err = win.p.Run(ctx)
		close(win.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-win.done
		slave.Close()
		master.Close()
		reading.Wait()
	})
	win.see("u@box:~$")
	return win
}

// escape is the Escape key in kitty's keyboard protocol: unlike the byte ESC it is whole by itself, so that keys may follow at once.
const escape = "\x1b[27u"

// keys types.
func (w *window) keys(s string) {
	w.t.Helper()
	if _, err := w.master.WriteString(s); err != nil {
		w.t.Fatalf("type: %v", err)
	}
}

// whole checks that the terminal is as it was before the program took it.
func (w *window) whole() {
	w.t.Helper()
	after, err := term.GetState(w.slave.Fd())
	if err != nil {
		w.t.Fatalf("read termios: %v", err)
	}
	if *after != *w.before {
		w.t.Errorf("the terminal's settings are not what they were: got %+v, want %+v", after, w.before)
	}
	w.until("all modes off", func() bool { return len(w.screen.Odd()) == 0 })
}

// patience bounds every wait. Beside a load of 36, what takes a tenth of a second took longer than 5 s.
const patience = 30 * time.Second

// until waits for a condition that only the screen's goroutines can bring about.
func (w *window) until(what string, cond func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %v for %s; the screen shows\n%s", patience, what, w.screen.All())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// handled waits until the messages sent so far are handled and what follows from them at once is written. The second round of the event
// loop begins when the first has settled who has the screen.
func (w *window) handled() {
	w.t.Helper()
	written := make(chan struct{})
	w.p.Send(then(func() { w.p.Send(then(func() { w.p.paint.WhenWritten(written) })) }))
	select {
	case <-written:
	case <-time.After(patience):
		w.t.Fatalf("waited %v for the event loop", patience)
	}
}

func (w *window) see(text string) {
	w.t.Helper()
	w.until("the text "+text, func() bool { return strings.Contains(w.screen.All(), text) })
}

func (w *window) seeNot(text string) {
	w.t.Helper()
	w.until("the text "+text+" to go", func() bool { return !strings.Contains(w.screen.Text(), text) })
}

func (w *window) end() int {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		w.t.Fatalf("the program does not end; the screen shows\n%s", w.screen.All())
	}
	return w.code
}

// command runs a command and waits for the prompt behind it.
func (w *window) command(text string) {
	w.t.Helper()
	n := len(w.sh.commands())
	w.keys(text + "\r")
	w.until("the command", func() bool { return len(w.sh.commands()) > n })
	w.prompt()
}

// prompt waits until the shell's prompt is the last thing on the screen.
func (w *window) prompt() {
	w.t.Helper()
	w.until("the prompt", func() bool { return w.p.paint.ShellOutput(nil) && strings.HasSuffix(w.screen.Text(), "u@box:~$") })
}

// switches presses a key that goes to AI mode, by itself.
func (w *window) switches(key string) {
	w.t.Helper()
	w.keys(key)
	w.until("AI mode", func() bool { return !w.p.paint.ShellOutput(nil) && w.p.keys.Routed() == keys.ToUs })
}

// ai goes to AI mode.
func (w *window) ai() {
	w.t.Helper()
	w.switches("\t")
	w.see("ask an agent")
}

// shows waits until scrollback and screen are as wanted.
func (w *window) shows(want string) {
	w.t.Helper()
	w.until("the screen to show\n"+want, func() bool { return w.screen.All() == want })
}

// ask asks a question of an agent and returns it.
func (w *window) ask(keys string) *wire.AgentRequest {
	w.t.Helper()
	n := len(w.d.questions())
	w.keys(keys)
	w.until("the question", func() bool { return len(w.d.questions()) == n+1 })
	return w.d.questions()[n]
}

// lend begins a borrowed command: the shell's prompt is gone, and the screen learns of it.
func (w *window) lend(id wire.ExecutionID, holder, command string) {
	w.t.Helper()
	lending := lender.Lending{Holder: holder, Purpose: command, Command: command, Since: time.Now()}
	w.sh.with(func() {
		if !w.sh.taken {
			w.sh.erase()
		}
		w.sh.held, w.sh.lending = true, lending
	})
	w.p.Send(lender.LeaseChanged{Lending: lending})
	start := lender.LeasedStarted{ExecutionID: id, Agent: holder, Command: command}
	if holder == "orchestrator" {
		start.TurnID = "t1"
	}
	w.p.Send(start)
	w.see("in your shell")
}

// endLease ends it as the lender does: the editor is free once the screen has shown the end.
func (w *window) endLease(e lender.LeasedEnded) {
	w.t.Helper()
	w.p.Send(e)
	w.p.AwaitDrawn()
	w.sh.with(func() {
		w.sh.held, w.sh.lending = false, lender.Lending{}
		w.sh.freeLocked()
	})
	w.p.Send(lender.LeaseChanged{})
}

func leasedStart(id wire.ExecutionID, command string) lender.LeasedStarted {
	return lender.LeasedStarted{ExecutionID: id, Agent: "orchestrator", Command: command, TurnID: "t1"}
}

func leasedKeyboard(id wire.ExecutionID, why string) lender.LeasedKeyboard {
	return lender.LeasedKeyboard{ExecutionID: id, Why: why}
}

func leasedEnd(id wire.ExecutionID, code int) lender.LeasedEnded {
	return lender.LeasedEnded{ExecutionID: id, Status: "ok", Result: shell.Result{Status: "ok", ExitCode: &code}}
}

func cancelled(id wire.ExecutionID) lender.LeasedEnded {
	return lender.LeasedEnded{ExecutionID: id, Status: "cancelled", Result: shell.Result{Status: "cancelled", ExitCode: ptr(130), Signal: "SIGINT"}}
}

func output(id wire.ExecutionID, text string) lender.LeasedOutput {
	return lender.LeasedOutput{ExecutionID: id, Data: []byte(text)}
}
