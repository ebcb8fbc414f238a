package tui

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"go.uber.org/goleak"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

func TestMain(m *testing.M) {
	// The regular expressions of the highlighter keep a clock, which ends by itself a second after its last use.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// fakeShell answers like a shell would; run decides what a command does.
type fakeShell struct {
	mu       sync.Mutex
	ran      []string
	typed    []byte
	typedNow []byte // since the last command took it
	lending  lender.Lending
	taken    int
	undone   string
	undo     func()
	dir      atomic.Value // string
	editing  string       // of set -o
	prompts  int          // how often it was asked for
	boom     atomic.Bool
	exited   chan struct{}
	status   int

	run      func(ctx context.Context, text string, out func([]byte)) (shell.Result, error)
	complete func(line string, cursor int) (int, []shell.Completion, error)
	prompt   func(ctx context.Context) (shell.Prompt, error)
	input    chan []byte // what is typed while a command runs
}

func newFakeShell() *fakeShell {
	s := &fakeShell{exited: make(chan struct{}), input: make(chan []byte, 1000)}
	s.dir.Store("/home/u")
	return s
}

func ptr[T any](v T) *T { return &v }

func (s *fakeShell) Run(ctx context.Context, text string, takeBack bool, out func([]byte)) (shell.Result, error) {
	s.mu.Lock()
	if s.lending.Command != "" && !takeBack {
		l := s.lending
		s.mu.Unlock()
		return shell.Result{}, &lender.LentError{Lending: l}
	}
	if takeBack {
		s.taken++
		s.lending = lender.Lending{}
	}
	s.ran = append(s.ran, text)
	run := s.run
	s.mu.Unlock()
	if text == "exit" {
		close(s.exited)
		return shell.Result{Status: "shell_exited"}, nil
	}
	if run != nil {
		return run(ctx, text, out)
	}
	out([]byte("ran " + text + "\r\n"))
	return shell.Result{Status: "ok", ExitCode: ptr(0), Dir: "/home/u", Output: []byte("ran " + text)}, nil
}

func (s *fakeShell) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.typed = append(s.typed, p...)
	s.typedNow = append(s.typedNow, p...)
	s.mu.Unlock()
	select {
	case s.input <- append([]byte(nil), p...):
	default:
	}
	return len(p), nil
}

func (s *fakeShell) typedText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.typed)
}

func (s *fakeShell) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ran...)
}
func (s *fakeShell) Resize(shell.Size) error { return nil }
func (s *fakeShell) Prompt(ctx context.Context) (shell.Prompt, error) {
	if s.prompt != nil {
		return s.prompt(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts++
	return shell.Prompt{Text: "u@box:~$ ", Editing: s.editing}, nil
}

func (s *fakeShell) Complete(_ context.Context, line string, cursor int) (int, []shell.Completion, error) {
	if s.complete == nil {
		return 0, nil, nil
	}
	return s.complete(line, cursor)
}

func (s *fakeShell) History(context.Context) ([]string, error) {
	return []string{"make build", "git status", "make test"}, nil
}

func (s *fakeShell) Dir() string {
	if s.boom.Load() {
		panic("boom in Update")
	}
	return s.dir.Load().(string)
}

func (s *fakeShell) Lending() lender.Lending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lending
}

func (s *fakeShell) TakeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
}

func (s *fakeShell) UndoShell(context.Context) (string, error) {
	if s.undo != nil {
		s.undo()
	}
	return s.undone, nil
}
func (s *fakeShell) Exited() <-chan struct{} { return s.exited }
func (s *fakeShell) ExitStatus() int         { return s.status }

// fakeDaemon records what it is asked.
type fakeDaemon struct {
	mu        sync.Mutex
	down      bool
	asked     []*wire.AgentRequest
	cancelled []*wire.CancelRequest
	confirmed []*wire.ConfirmationResponse
	commands  []*wire.CommandResult
	export    string
	turns     int
	sessions  []wire.SessionInfo
	resumed   func(id wire.SessionID)
	onAsk     func(*wire.AgentRequest)
	accepted  bool
	secrets   string
	servers   []wire.MCPServerStatus
}

var errDown = errors.New("not connected")

func (d *fakeDaemon) with(f func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return errDown
	}
	f()
	return nil
}
func (d *fakeDaemon) Connected() bool           { return d.with(func() {}) == nil }
func (d *fakeDaemon) Session() wire.SessionInfo { return wire.SessionInfo{ID: "s1"} }
func (d *fakeDaemon) Ask(_ context.Context, r *wire.AgentRequest) error {
	err := d.with(func() { d.asked = append(d.asked, r) })
	if err == nil && d.onAsk != nil {
		d.onAsk(r)
	}
	return err
}

func (d *fakeDaemon) Cancel(_ context.Context, r *wire.CancelRequest) error {
	return d.with(func() { d.cancelled = append(d.cancelled, r) })
}

func (d *fakeDaemon) Confirm(_ context.Context, r *wire.ConfirmationResponse) error {
	return d.with(func() { d.confirmed = append(d.confirmed, r) })
}
func (d *fakeDaemon) Compact(context.Context, *wire.CompactRequest) error { return nil }
func (d *fakeDaemon) Undo(context.Context, *wire.UndoRequest) error       { return nil }
func (d *fakeDaemon) Sessions(_ context.Context, r *wire.SessionRequest) (*wire.SessionReply, error) {
	return &wire.SessionReply{Op: r.Op, Sessions: d.sessions, Text: d.export, Session: wire.SessionInfo{ID: "s-new", Turns: d.turns}}, nil
}

func (d *fakeDaemon) Policy(_ context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	reply := &wire.PolicyReply{Op: r.Op, Mode: firstOf(r.Mode, "ask")}
	return reply, d.with(func() {
		switch r.Op {
		case "accept":
			d.accepted = true
		case "set_secrets":
			d.secrets = r.Secrets
		}
		reply.Secrets = firstOf(d.secrets, "mask")
		if !d.accepted {
			reply.Suspects = []string{"PATH", "ls"}
		}
	})
}

func (d *fakeDaemon) Status(context.Context) (*wire.StatusReply, error) {
	reply := &wire.StatusReply{State: "idle", Version: "1", PID: 7, Connections: []wire.Connections{
		{Name: "sublet", Shell: true, Count: 2}, {Name: "sublet lease run", Count: 3}, {Name: "sublet serve acp", Count: 1},
	}}
	return reply, d.with(func() { reply.MCPServers = d.servers })
}

func (d *fakeDaemon) Resume(_ context.Context, id wire.SessionID, _ int64) (*wire.Ready, error) {
	if d.resumed != nil {
		d.resumed(id)
	}
	return &wire.Ready{Session: wire.SessionInfo{ID: id}}, nil
}

func (d *fakeDaemon) UserCommand(_ context.Context, r *wire.CommandResult) error {
	return d.with(func() { d.commands = append(d.commands, r) })
}
func (d *fakeDaemon) EnvChanged(context.Context) error { return nil }

func (d *fakeDaemon) answers() []*wire.ConfirmationResponse {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*wire.ConfirmationResponse(nil), d.confirmed...)
}

func (d *fakeDaemon) questions() []*wire.AgentRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*wire.AgentRequest(nil), d.asked...)
}

// window is a Program on a real PTY with a terminal behind it.
type window struct {
	t      *testing.T
	p      *Program
	sh     *fakeShell
	d      *fakeDaemon
	screen *termScreen
	master *os.File
	slave  *os.File
	before *term.State
	done   chan struct{}
	early  string // typed before the program runs
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
	win := &window{t: t, sh: newFakeShell(), d: &fakeDaemon{}, screen: newTermScreen(w, h), master: master, slave: slave, done: make(chan struct{})}
	if win.before, err = term.GetState(slave.Fd()); err != nil {
		t.Fatalf("read termios: %v", err)
	}
	o := Options{
		Daemon: win.d, Shell: win.sh, Stdin: slave, Stdout: slave, Version: "test",
		Env: []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()},
	}
	win.p = New(o)
	for _, f := range setup {
		f(win)
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
	if win.early != "" {
		win.keys(win.early)
		time.Sleep(20 * time.Millisecond) // the line discipline takes it in order; nothing tells when
	}
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

// keys types.
func (w *window) keys(s string) {
	w.t.Helper()
	if _, err := w.master.WriteString(s); err != nil {
		w.t.Fatalf("type: %v", err)
	}
}

// whole checks that the terminal is as it was before the program took it (T6c).
func (w *window) whole() {
	w.t.Helper()
	after, err := term.GetState(w.slave.Fd())
	if err != nil {
		w.t.Fatalf("read termios: %v", err)
	}
	if *after != *w.before {
		w.t.Errorf("the terminal's settings are not what they were: got %+v, want %+v", after, w.before)
	}
	w.until("all modes off", func() bool { return len(w.screen.odd()) == 0 })
}

// until waits for a condition that only the screen's goroutines can bring about.
func (w *window) until(what string, cond func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited 5 s for %s; the screen shows\n%s", what, w.screen.all())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *window) see(text string) {
	w.t.Helper()
	w.until("the text "+text, func() bool { return strings.Contains(w.screen.all(), text) })
}

func (w *window) seeNot(text string) {
	w.t.Helper()
	w.until("the text "+text+" to go", func() bool { return !strings.Contains(w.screen.text(), text) })
}

func (w *window) end() int {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(8 * time.Second):
		w.t.Fatalf("the program does not end; the screen shows\n%s", w.screen.all())
	}
	return w.code
}

// command runs a command and waits for the prompt behind it.
func (w *window) command(text string) {
	w.t.Helper()
	w.runs(text + "\r")
}

// runs types keys that run a command, and waits for the prompt behind it. The screen is behind the program: until it has the end
// of the command, the prompt on it may be the one before.
func (w *window) runs(keys string) {
	w.t.Helper()
	ends := func() int { return strings.Count(w.screen.rawText(), "\x1b]133;D") }
	n := ends()
	w.keys(keys)
	w.until("the end of the command", func() bool { return ends() > n })
	w.prompt()
}

// prompt waits until the shell's prompt is the last thing on the screen.
func (w *window) prompt() {
	w.t.Helper()
	w.until("the prompt", func() bool {
		return strings.HasSuffix(w.screen.text(), "u@box:~$") && !w.screen.on("2026") && !w.p.paint.isHeld() && !w.p.keys.routed()
	})
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
