// Package tui is the terminal program: the user's shell and their agents in one place, inline in the terminal's own
// scrollback. Finished things are printed and belong to the terminal; only the last lines are drawn over. While a
// command of the user's runs, keyboard and screen are that command's, byte for byte.
//
// It is a bubbletea program with a painter and a keyboard of its own: bubbletea's renderer ticks when idle, costs half
// a frame for each key and gives the terminal away only by stopping its loop. Sessions, leases and the connection are
// for remote and lender; which shell and which daemon there are, for client.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"sublet/lease/shell"
	"sublet/wire"
)

// stopBound is how long the program waits at its end for what it began.
const stopBound = 3 * time.Second

// Options for New. Daemon, Shell, Stdin and Stdout are required; the last two must be terminals.
type Options struct {
	Daemon  Daemon
	Shell   Shell
	Stdin   *os.File
	Stdout  *os.File
	Env     []string // as os.Environ: locale, TERM, NO_COLOR, COLORFGBG
	Version string
	// Notice is printed first, a line each: what the user should know at the start. The model in use is said by itself
	// when the daemon is there.
	Notice []string
	// Connect is the line that tells how to connect a real model; "" = the environment variable.
	Connect string
	// Vi tells that the user's ~/.inputrc asks for vi mode; `set -o vi` and `set -o emacs` in the shell come before it.
	Vi bool
	// InUse is called at each key and while an agent is at work: the shell's own idle time (TMOUT) begins anew. It must not
	// wait; nil = none.
	InUse func()
	Log   *slog.Logger // nil = none

	stderr io.Writer                 // for the report of a panic; nil = os.Stderr
	now    func() time.Time          // nil = time.Now
	size   func() (shell.Size, bool) // nil = Stdout's
}

func (o *Options) connectLine() string {
	return firstOf(o.Connect, `set model = "anthropic/NAME" with sublet config edit, and ANTHROPIC_API_KEY`)
}

// Program is one run of the terminal program. Send and Observe may be called from any goroutine, before, during and
// after Run.
type Program struct {
	opt   Options
	log   *slog.Logger
	inbox *inbox
	paint *painter
	keys  *keyboard
	tasks *tasks
	model *model
	tea   *tea.Program
	stop  context.CancelFunc

	mu    sync.Mutex
	crash *crash // the first panic; guarded by mu
}

type crash struct {
	value any
	stack []byte
}

// New prepares a program; nothing happens before Run.
func New(o Options) *Program {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.stderr == nil {
		o.stderr = os.Stderr
	}
	p := &Program{opt: o, log: o.Log, inbox: newInbox()}
	if p.opt.size == nil {
		p.opt.size = func() (shell.Size, bool) { return terminalSize(o.Stdout) }
	}
	return p
}

// Send queues a message for the screen: a wire.Message, an event of the lender, or LinkChanged. It never waits.
func (p *Program) Send(msg any) { p.inbox.push(msg) }

// Observe implements lender.Observer.
func (p *Program) Observe(event any) { p.inbox.push(event) }

// ErrNoTerminal says that standard input or output is no terminal.
var ErrNoTerminal = errors.New("the terminal program needs a terminal")

// Run takes the terminal, runs until the user leaves, the shell ends, a signal (TERM, HUP, INT) comes or ctx ends, and
// gives the terminal back as it was, whatever happened (T6c). The exit code is the shell's, or 128 and the signal. It
// returns an error when there is no terminal, and after a panic, which is reported once the terminal is whole again.
func (p *Program) Run(ctx context.Context) (exitCode int, err error) {
	o := &p.opt
	if !term.IsTerminal(o.Stdin.Fd()) || !term.IsTerminal(o.Stdout.Fd()) {
		return 1, ErrNoTerminal
	}
	before, err := term.GetState(o.Stdin.Fd())
	if err != nil {
		return 1, fmt.Errorf("read the terminal's settings: %w", err)
	}
	size, ok := o.size()
	if !ok {
		size = shell.Size{Cols: 80, Rows: 24}
	}
	wakeR, wakeW, err := os.Pipe()
	if err != nil {
		return 1, fmt.Errorf("open a pipe: %w", err)
	}
	defer wakeR.Close()
	defer wakeW.Close()

	ctx, p.stop = context.WithCancel(ctx)
	defer p.stop()
	th := newTheme(o.Env)
	p.paint = newPainter(o.Stdout, size.Cols, size.Rows, &th)
	p.paint.noReflow = lookup(o.Env)("XTERM_VERSION") != ""
	p.tasks = newTasks(ctx, p.failed)
	p.keys = &keyboard{in: o.Stdin, wake: wakeR, stop: wakeW, now: o.now, key: p.key(ctx), program: func(b []byte) error {
		_, err := o.Shell.Write(b)
		return err
	}}
	p.model = p.newModel(th, size)
	p.tea = tea.NewProgram(guarded{p}, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(io.Discard),
		tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithFPS(1), tea.WithEnvironment(o.Env))

	if _, err := term.MakeRaw(o.Stdin.Fd()); err != nil {
		return 1, fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	p.paint.lines = func(on bool) { processLines(o.Stdin.Fd(), on) }
	p.keys.cooked = unread(o.Stdin.Fd())
	p.paint.start()
	code, err := p.loop(ctx, before)
	if restoreErr := term.Restore(o.Stdin.Fd(), before); restoreErr != nil && err == nil && code == 0 {
		p.log.Warn("restore the terminal", "err", restoreErr) // it is gone
	}
	if c := p.crashed(); c != nil {
		fmt.Fprintf(o.stderr, "sublet: internal error: %v\n%s", c.value, c.stack)
		return 1, fmt.Errorf("internal error: %v", c.value)
	}
	return code, err
}

// loop runs everything and returns when all of it has ended and nothing more is written to the terminal.
func (p *Program) loop(ctx context.Context, before *term.State) (code int, err error) {
	paintCtx, stopPaint := context.WithCancel(context.WithoutCancel(ctx))
	var painting, reading sync.WaitGroup
	painting.Go(func() { defer p.guard(); p.paint.run(paintCtx) })
	defer func() {
		stopPaint()
		if waited(&painting, stopBound) {
			p.paint.close()
		} else {
			p.log.Warn("the terminal takes no more output") // stopped by ^S, or stuck: nothing can be put in order there
		}
	}()

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(signals)
	p.tasks.start(func(ctx context.Context) { p.watch(ctx, signals, before) })
	p.tasks.start(func(ctx context.Context) {
		p.inbox.run(ctx, func(b batch) { p.tea.Send(b) })
	})
	reading.Go(func() {
		defer p.guard()
		if err := p.keys.run(); err != nil {
			p.log.Info("the terminal is gone", "err", err)
			p.tea.Send(stopAsked{128 + int(syscall.SIGHUP)})
		}
	})

	_, err = p.tea.Run()
	code = p.model.exitCode
	switch {
	case p.crashed() != nil:
		code, err = 1, nil
	case errors.Is(err, tea.ErrProgramKilled): // ctx ended
		code, err = 128+int(syscall.SIGTERM), nil
	case err != nil:
		code = 1
	}
	p.stop()
	if !p.tasks.close(stopBound) {
		p.log.Warn("some work did not end in time")
	}
	p.keys.end()
	if !waited(&reading, stopBound) { // it is writing to a program that does not read
		p.log.Warn("the keyboard's reader did not end in time")
	}
	return code, err
}

// waited waits for wg, with a bound, and reports whether that was enough.
func waited(wg *sync.WaitGroup, bound time.Duration) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(bound):
		return false
	}
}

func (p *Program) newModel(th theme, size shell.Size) *model {
	o := &p.opt
	return &model{
		opt: *o, daemon: o.Daemon, shell: o.Shell, th: th, md: &markdown{profile: th.profile, ascii: th.ascii},
		paint: p.paint, keys: p.keys, run: p.tasks, inbox: p.inbox, now: o.now, w: size.Cols, h: size.Rows,
		expansions: &expansions{shell: o.Shell, run: p.tasks, inbox: p.inbox},
		cards:      map[wire.ExecutionID]*card{}, linked: o.Daemon.Connected(), session: o.Daemon.Session(),
	}
}

// key delivers one key to the event loop and returns when it was dealt with.
func (p *Program) key(ctx context.Context) func(tea.Msg) bool {
	return func(msg tea.Msg) bool {
		e := keyEvent{msg, make(chan struct{})}
		p.tea.Send(e)
		select {
		case <-e.done:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// watch turns signals and the shell's end into messages.
func (p *Program) watch(ctx context.Context, signals <-chan os.Signal, before *term.State) {
	exited := p.opt.Shell.Exited()
	for {
		select {
		case <-ctx.Done():
			return
		case <-exited:
			exited = nil
			p.tea.Send(shellExited{p.opt.Shell.ExitStatus()})
		case s := <-signals:
			switch s {
			case syscall.SIGWINCH:
				if size, ok := p.opt.size(); ok {
					p.tea.Send(sizeChanged{size.Cols, size.Rows})
				}
			case syscall.SIGTSTP:
				p.suspend(ctx, signals, before)
			case syscall.SIGCONT: // stopped by SIGSTOP: somebody else may have had the terminal meanwhile
				p.retake()
			default:
				p.tea.Send(stopAsked{128 + int(s.(syscall.Signal))})
			}
		}
	}
}

// suspend stops the process with the terminal in order, as a SIGTSTP from outside asks; SIGCONT takes it back.
func (p *Program) suspend(ctx context.Context, signals <-chan os.Signal, before *term.State) {
	busy := p.paint.isHeld() // by a program, which goes on having the terminal
	if !busy {
		select {
		case <-p.paint.hold(""):
		case <-time.After(stopBound):
		}
	}
	_ = term.Restore(p.opt.Stdin.Fd(), before)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	// The stop may reach this thread last: what stands here may run before it. Only SIGCONT says that it is over.
	for continued := false; !continued; {
		select {
		case <-ctx.Done():
			continued = true
		case s := <-signals:
			switch s {
			case syscall.SIGCONT:
				continued = true
			case syscall.SIGTSTP, syscall.SIGWINCH: // retake asks for the size
			default:
				p.tea.Send(stopAsked{128 + int(s.(syscall.Signal))})
			}
		}
	}
	p.retake()
	if !busy {
		p.paint.release()
	}
}

func (p *Program) retake() {
	_, _ = term.MakeRaw(p.opt.Stdin.Fd()) // a terminal that is gone ends the keyboard
	p.paint.rawMode()
	if size, ok := p.opt.size(); ok {
		p.tea.Send(sizeChanged{size.Cols, size.Rows})
	}
	p.inbox.push(redraw{})
}

// processLines has the terminal begin each line in the first column, or leave bytes as they are. Nothing of the editor's needs
// it, which writes carriage returns: but whoever waits for a sublet that is killed prints before anybody can put the modes
// back, and its lines stood askew. ONLRET changes nothing beside ONLCR; the guard knows our raw mode by it (client/guard.sh).
func processLines(fd uintptr, on bool) {
	s, err := term.GetState(fd)
	if err != nil {
		return // the terminal is gone
	}
	if s.Oflag &^= unix.OPOST | unix.ONLRET; on {
		s.Oflag = unix.OPOST | unix.ONLCR | unix.ONLRET
	}
	_ = term.SetState(fd, s)
}

// guard ends the program in order when its goroutine panics (T6c).
func (p *Program) guard() {
	if v := recover(); v != nil {
		p.failed(v)
	}
}

// failed notes the first panic and ends the program.
func (p *Program) failed(v any) {
	p.mu.Lock()
	if p.crash == nil {
		p.crash = &crash{v, debug.Stack()}
	}
	p.mu.Unlock()
	p.stop()
}

func (p *Program) crashed() *crash {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crash
}

// guarded is the model with its panics caught.
type guarded struct{ p *Program }

func (g guarded) Init() (cmd tea.Cmd) {
	defer g.p.guard()
	return g.p.model.Init()
}

func (g guarded) Update(msg tea.Msg) (m tea.Model, cmd tea.Cmd) {
	m = g
	defer func() {
		if v := recover(); v != nil {
			g.p.failed(v)
			cmd = tea.Quit
		}
	}()
	_, cmd = g.p.model.Update(msg)
	return m, cmd
}

func (g guarded) View() tea.View { return tea.View{} }

// terminalSize is the size of a terminal in cells and pixels.
func terminalSize(f *os.File) (shell.Size, bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return shell.Size{}, false
	}
	return shell.Size{Cols: int(w.Col), Rows: int(w.Row), PixelWidth: int(w.Xpixel), PixelHeight: int(w.Ypixel)}, true
}
