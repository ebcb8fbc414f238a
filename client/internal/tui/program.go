// Package tui is the terminal program: the user's shell and their agents in one place, inline in the terminal's own
// scrollback. In command mode keyboard and screen are the shell's, byte for byte. In AI mode, and while something must be
// shown, the screen is the program's: finished things are printed and belong to the terminal, and only the last lines are
// drawn over.
//
// One goroutine handles messages and owns the model; painter and keyboard have their own. Not bubbletea: its renderer ticks when
// idle, costs half a frame for each key and gives the terminal away only by stopping its loop, and without it a channel is left.
// Sessions, leases and the connection are for remote and lender; which shell and which daemon there are, for client.
package tui

import (
	"bytes"
	"cmp"
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

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/paint"
	"sublet/client/internal/tui/style"
	"sublet/lease/shell"
	"sublet/wire/visible"
)

// stopBound is how long the program waits at its end for what it began.
const stopBound = 3 * time.Second

// Options for New. Daemon, Shell, Lender, Stdin and Stdout are required; the last two must be terminals.
type Options struct {
	Daemon Daemon
	Shell  Shell
	Lender Lender
	Stdin  *os.File
	Stdout *os.File
	Env    []string // as os.Environ: locale, TERM, NO_COLOR, COLORFGBG
	Name   string   // of the user's shell, for the cards of what runs in it; "" = bash
	// Notice is printed before the shell's first output, a line each.
	Notice []string
	// SwitchKey is what the terminal sends for a key that switches between command mode and AI mode, besides Tab on an empty
	// line; nil = none.
	SwitchKey []byte
	Log       *slog.Logger // nil = none

	stderr io.Writer        // for the report of a panic; nil = os.Stderr
	now    func() time.Time // nil = time.Now
}

// Program is one run of the terminal program. Send, AwaitDrawn and ShellOutput may be called from any goroutine, before, during
// and after Run.
type Program struct {
	opt   Options
	inbox *inbox
	paint *paint.Painter
	keys  *keys.Keyboard
	model *model
	ready chan struct{} // closed when the terminal is taken
	over  chan struct{} // closed at the end of Run

	ctx   context.Context // until the program is to end
	stop  context.CancelCauseFunc
	tasks sync.WaitGroup

	sizeMu sync.Mutex
	size   shell.Size // what the shell was given last; guarded by sizeMu
}

// crash is a panic that ended the program.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("internal error: %v", c.value) }

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
	return &Program{opt: o, inbox: newInbox(), ready: make(chan struct{}), over: make(chan struct{})}
}

// Send queues a message for the screen: a wire.Message, an event of the lender or of the shell, or LinkChanged. It never waits.
func (p *Program) Send(msg any) { p.inbox.push(msg) }

// AwaitDrawn returns when all of a command that has ended is on the screen and the screen is the shell's again, unless it was not
// before.
func (p *Program) AwaitDrawn() {
	drawn := make(chan struct{})
	p.inbox.push(then(func() { p.model.onEndShown(drawn) }))
	select {
	case <-drawn:
	case <-p.over:
	}
}

// ShellOutput writes what the shell prints to the terminal, and returns when that is done. What background jobs print while
// the screen is not the shell's is shown above what is drawn. b is not kept.
func (p *Program) ShellOutput(b []byte) {
	select {
	case <-p.ready:
	case <-p.over:
		return
	}
	if !p.paint.ShellOutput(b) {
		p.inbox.push(jobOutput{bytes.Clone(b)})
	}
}

// Run takes the terminal, runs until the user leaves, the shell ends, a signal (TERM, HUP, INT, QUIT) comes or ctx ends, and
// gives the terminal back as it was, whatever happened. The exit code is the shell's, or 128 and the signal. It
// returns an error when there is no terminal, and after a panic, which is reported once the terminal is restored.
func (p *Program) Run(ctx context.Context) (exitCode int, err error) {
	defer close(p.over)
	o := &p.opt
	before, err := term.GetState(o.Stdin.Fd())
	if err != nil {
		return 1, fmt.Errorf("read the terminal's settings: %w", err)
	}
	signals := make(chan os.Signal, 8) // before the size is read, so that no change is missed
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(signals)
	size := p.resizeShell()
	p.ctx, p.stop = context.WithCancelCause(ctx)
	defer p.stop(nil)
	th := style.New(o.Env)
	p.paint = paint.New(o.Stdout, size.Cols, size.Rows, &th)
	p.paint.NoReflow = uv.Environ(o.Env).Getenv("XTERM_VERSION") != ""
	if p.keys, err = keys.New(o.Stdin); err != nil {
		return 1, fmt.Errorf("open a pipe: %w", err)
	}
	p.keys.Now, p.keys.Deliver, p.keys.Switch, p.keys.Bracketed = o.now, p.deliver, o.SwitchKey, p.paint.Brackets
	p.keys.Shell = p.typeIntoShell
	p.keys.Answer = func(b []byte) { p.resizeShell(); o.Lender.Typed(b); _ = o.Shell.Answer(b) }
	p.model = p.newModel(th, size)

	if _, err := term.MakeRaw(o.Stdin.Fd()); err != nil {
		return 1, fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	for _, line := range o.Notice {
		p.paint.ShellOutput([]byte(th.Dim.Render(visible.Line(line)) + "\r\n"))
	}
	close(p.ready)
	code := p.work(signals)
	if err := term.Restore(o.Stdin.Fd(), before); err != nil && code == 0 {
		p.opt.Log.Warn("restore the terminal", "err", err) // it is gone
	}
	if c, ok := errors.AsType[*crash](context.Cause(p.ctx)); ok {
		fmt.Fprintf(o.stderr, "sublet: %v\n%s", c, c.stack)
		return 1, c
	}
	return code, nil
}

// work runs everything until the program is to end, and then waits for each part to end, for at most stopBound. The painter ends
// last, so that it prints what the others leave.
func (p *Program) work(signals <-chan os.Signal) (code int) {
	paintCtx, stopPaint := context.WithCancel(context.WithoutCancel(p.ctx))
	var painting, reading sync.WaitGroup
	painting.Go(func() { defer p.guard(); p.paint.Run(paintCtx) })
	defer func() {
		stopPaint()
		var closing sync.WaitGroup
		closing.Go(func() { painting.Wait(); p.paint.Close() })
		if !waited(&closing, stopBound) {
			p.opt.Log.Warn("the terminal takes no more output") // its modes cannot be restored
		}
	}()

	p.start(func() { p.watch(signals) })
	reading.Go(func() {
		defer p.guard()
		if err := p.keys.Run(); err != nil {
			p.opt.Log.Info("the terminal is gone", "err", err)
			p.exit(128 + int(syscall.SIGHUP))
		}
	})

	code = 128 + int(syscall.SIGTERM) // ctx ended
	if p.handle(); p.model.exit != nil {
		code = *p.model.exit
	}
	p.stop(nil)
	if !waited(&p.tasks, stopBound) {
		p.opt.Log.Warn("some work did not end in time")
	}
	p.keys.End()
	if !waited(&reading, stopBound) { // it may block in a write to a program that does not read
		p.opt.Log.Warn("the keyboard's reader did not end in time")
	}
	return code
}

// handle is the event loop. It returns when the program is to end, or a message makes it panic.
func (p *Program) handle() {
	defer p.guard()
	p.inbox.run(p.ctx, p.model.update)
}

// start runs f outside the event loop, until the program ends. A panic ends the program in order. Only the event loop and
// what begins it call start.
func (p *Program) start(f func()) {
	p.tasks.Go(func() {
		defer p.guard()
		f()
	})
}

// waited waits for wg, for at most bound, and reports whether wg ended in time.
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

func (p *Program) newModel(th style.Theme, size shell.Size) *model {
	o := &p.opt
	return &model{
		Options: *o, th: th, md: &markdown.Renderer{Profile: th.Profile}, paint: p.paint, keys: p.keys, w: size.Cols, h: size.Rows, lastKind: kindShell,
		after: func(d time.Duration, f then) { time.AfterFunc(d, func() { p.inbox.push(f) }) },
		task: func(f func(ctx context.Context) then) {
			p.start(func() {
				if next := f(p.ctx); next != nil {
					p.inbox.push(next)
				}
			})
		},
	}
}

// deliver gives one message to the event loop and returns when the loop has handled it. ok is false if the program is to end instead.
func (p *Program) deliver(msg any) (pass, ok bool) {
	e := &keyEvent{msg: msg, done: make(chan struct{})}
	p.inbox.push(e)
	select {
	case <-e.done:
		return e.pass, true
	case <-p.ctx.Done():
		return false, false
	}
}

// exit has the program end with a status, after what came before.
func (p *Program) exit(code int) { p.inbox.push(then(func() { p.model.exit = &code })) }

// watch handles signals and the shell's end.
func (p *Program) watch(signals <-chan os.Signal) {
	exited := p.opt.Shell.Exited()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-exited:
			exited = nil
			p.exit(p.opt.Shell.ExitStatus())
		case s := <-signals:
			switch s {
			case syscall.SIGCONT: // after a stop, during which another program may have used the terminal
				_, _ = term.MakeRaw(p.opt.Stdin.Fd()) // an error: the terminal is gone, which ends Keyboard.Run
				p.paint.Redraw()
				fallthrough
			case syscall.SIGWINCH:
				size := p.resizeShell()
				p.inbox.push(then(func() { p.model.resized(size.Cols, size.Rows) }))
			default:
				p.exit(128 + int(s.(syscall.Signal)))
			}
		}
	}
}

// typeIntoShell passes on what the user types for the shell. It is called by the keyboard's goroutine alone.
func (p *Program) typeIntoShell(b []byte) {
	p.resizeShell()
	_ = p.opt.Shell.Keys(b) // an error: the shell has exited
}

// resizeShell returns the terminal's size, 80 by 24 until it has reported one, and passes it to the shell if it has changed. It is
// also called for each key: what is typed right after a change may be read before SIGWINCH comes.
func (p *Program) resizeShell() shell.Size {
	p.sizeMu.Lock()
	defer p.sizeMu.Unlock()
	size := cmp.Or(SizeOf(p.opt.Stdout), p.size, shell.Size{Cols: 80, Rows: 24})
	if size != p.size {
		p.size = size
		_ = p.opt.Shell.Resize(size) // an error: the shell has exited
	}
	return size
}

// guard ends the program in order when its goroutine panics.
func (p *Program) guard() {
	if v := recover(); v != nil {
		c := &crash{v, debug.Stack()}
		if p.stop(c); context.Cause(p.ctx) != c {
			p.opt.Log.Error("another panic, or one while the program ended", "err", c, "stack", string(c.stack))
		}
	}
}

// SizeOf returns the size of a terminal in cells and pixels, zero if it reports none.
func SizeOf(f *os.File) shell.Size {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return shell.Size{}
	}
	return shell.Size{Cols: int(w.Col), Rows: int(w.Row), PixelWidth: int(w.Xpixel), PixelHeight: int(w.Ypixel)}
}
