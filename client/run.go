package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/client/internal/launch"
	"sublet/client/internal/lender"
	"sublet/client/internal/remote"
	"sublet/client/internal/tui"
	"sublet/lease/shell"
	"sublet/wire"
)

// A TerminalError says that standard input or output is no terminal.
type TerminalError struct{}

func (*TerminalError) Error() string { return "the terminal program needs a terminal" }

// Hint names what scripts use instead.
func (*TerminalError) Hint() string { return "from a script use `sublet ask` or `sublet lease run`" }

// Run is the terminal program: the user's bash and their agents on one screen. It returns when the user leaves, the
// shell ends, or SIGTERM, SIGHUP or SIGINT comes, with the exit status for the process; the terminal is as it was and
// nothing is left running but the daemon. An error is for people and may have a Hint: *TerminalError, *shell.NoBashError
// and *shell.StartError of lease/shell, or a panic of the screen.
//
// Shell and screen do not wait for the daemon, which is found or started beside them. Where none can be, since the folders
// of o.Paths cannot be used, there is a shell all the same, and the screen says why nobody can be asked.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	if code, inside, err := enterAgain(o); inside {
		return code, err
	}
	saved, err := getTermios(o.Stdin)
	if _, outErr := getTermios(o.Stdout); err != nil || outErr != nil {
		return 1, &TerminalError{}
	}
	folder, err := makeFolder(o)
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	var early []string
	if o.Log == nil {
		log, notice, done := openLog(o.Paths.State)
		defer done()
		o.Log = log
		if notice != "" {
			early = append(early, notice)
		}
	}

	// Before bash starts: a child is born with what its parent ignores. The screen adds its own.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	guard, err := startGuard(o, o.Stdin, folder)
	if err != nil {
		o.Log.Warn("no guard: a kill of this process would leave the terminal as it is then", "err", err)
	}
	defer guard.done()

	spool := o.Paths.Spool()
	if o.Paths.State == "" {
		spool = "" // nobody is told of one
	}
	late := newLate()
	sh, notices, code, err := startShell(ctx, o, shell.Options{
		Env: o.Env, Size: sizeOf(o.Stdout), Folder: folder, Spool: spool, Termios: saved,
		Head: o.OutputHead, Tail: o.OutputTail, Unowned: late.unowned, Log: o.Log,
	}, signals)
	if err != nil || code != 0 {
		return code, err
	}
	defer sh.Close()
	guard.shell(sh.PID())
	return (&window{o: o, sh: sh, guard: guard, late: late, log: o.Log, signals: signals}).run(ctx, append(early, notices...))
}

// window is the running terminal program.
type window struct {
	o       Options
	sh      *shell.Shell
	guard   *guard
	late    *late
	log     *slog.Logger
	signals chan os.Signal

	launcher *launch.Launcher
	lender   *lender.Lender
	screen   *tui.Program
	conn     *remote.Conn
	daemon   int // pid of the last daemon; only Up touches it
	work     sync.WaitGroup
}

// run wires daemon, lender and screen together and ends them in order: screen, lease, connection.
func (w *window) run(ctx context.Context, notices []string) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer w.work.Wait()
	defer cancel()
	o := w.o
	w.launcher = launcher(o)
	w.lender = lender.New(lender.Options{Shell: w.sh, Send: w.late.send, Observer: w, Env: o.Env, Log: w.log})
	defer w.lender.Close()
	w.conn = remote.Keep(context.WithoutCancel(ctx), remote.Options{
		Open: o.opener(w.launcher), Find: o.opener(finder(o)), Snapshot: w.snapshot, Session: o.Session,
		Handle: w.handle, Up: func(r *wire.Ready) { w.up(ctx, r) }, Down: w.down, Log: w.log,
	})
	defer w.closeLink()
	w.screen = tui.New(tui.Options{
		Daemon: w.conn, Shell: w.lender, Stdin: o.Stdin, Stdout: o.Stdout, Env: o.Env, Version: o.Version,
		Notice: notices, Connect: o.Connect, Vi: wantsVi(o.Env), InUse: w.sh.InUse, Log: w.log,
	})
	w.late.bind(w.lender, w.conn)
	w.work.Go(func() { w.watch(ctx, cancel) })
	return w.screen.Run(ctx)
}

// closeLink gives the lease up while the daemon can still be told, then ends the connection.
func (w *window) closeLink() {
	w.late.bound() // even a screen that did not start
	w.lender.Close()
	w.conn.Close()
	w.launcher.Reap()
}

// watch collects a daemon that this process started and that ended, and ends the program on SIGQUIT.
func (w *window) watch(ctx context.Context, quit context.CancelFunc) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	for {
		select {
		case <-children:
			w.launcher.Reap()
		case s := <-w.signals: // the others are the screen's
			if s == unix.SIGQUIT {
				quit()
			}
		case <-ctx.Done():
			return
		}
	}
}

// snapshot describes this window for a handshake.
func (w *window) snapshot() *wire.EnvSnapshot {
	size := sizeOf(w.o.Stdout)
	s := &wire.EnvSnapshot{
		Client:       wire.ClientInfo{Name: "sublet", Version: w.o.Version, PID: os.Getpid()},
		Capabilities: []string{wire.CapShell, wire.CapConfirm, wire.CapRestore, wire.CapQueue, wire.CapUse},
		Shell:        wire.ShellInfo{Path: wire.OSString(w.sh.Path()), Version: w.sh.Version()},
		Term: wire.TermInfo{
			Cols: size.Cols, Rows: size.Rows, PixelWidth: size.PixelWidth, PixelHeight: size.PixelHeight, Term: lookup(w.o.Env, "TERM"),
		},
		Credentials: credentials(w.o),
	}
	w.lender.Snapshot(s)
	return s
}

// handle takes the daemon's messages in order.
func (w *window) handle(m wire.Message) {
	w.late.bound()
	switch m := m.(type) {
	case wire.LeaseMessage:
		w.lender.Handle(m)
	case *wire.ShellUseRequest:
		w.lender.Used(m)
	default:
		w.screen.Send(m)
	}
}

func (w *window) up(ctx context.Context, r *wire.Ready) {
	w.late.bound()
	w.lender.Up(r)
	detail := ""
	if w.daemon != 0 && w.daemon != r.Daemon.PID {
		detail = "it is a new one, and what ran in the last one has ended"
	}
	first := w.daemon == 0
	w.daemon = r.Daemon.PID
	w.screen.Send(r)
	w.screen.Send(tui.LinkChanged{Connected: true, Detail: detail})
	if first && w.o.Continue && w.o.Session == "" {
		w.work.Go(func() { w.goOn(ctx) }) // not here: replies come through the goroutine that calls us
	}
}

// goOn resumes the last session. The screen is told first: the session's events come before the call returns.
func (w *window) goOn(ctx context.Context) {
	was := w.conn.Ready()
	r, err := w.conn.Sessions(ctx, &wire.SessionRequest{Op: "list", Limit: 1})
	if err == nil && len(r.Sessions) > 0 {
		there := *was
		there.Session = r.Sessions[0]
		w.screen.Send(&there)
		if _, err = w.conn.Resume(ctx, there.Session.ID, 0); err != nil {
			w.screen.Send(was)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.screen.Send(&wire.Notice{Level: "warning", Text: "the last session was not resumed: " + err.Error()})
	}
}

func (w *window) down(err error) {
	w.late.bound()
	w.lender.Down()
	if errors.Is(err, remote.ErrStopped) {
		// For the screen the daemon is still there: what ran has been ended and told, and a question starts it again.
		w.screen.Send(&wire.Notice{Level: "info", Text: remote.ErrStopped.Error()})
		return
	}
	w.screen.Send(tui.LinkChanged{Detail: explain(err)})
}

// explain is an error in one line, its hint included.
func explain(err error) string {
	if errors.Is(err, remote.ErrDisconnected) {
		return "" // the screen says it
	}
	text := err.Error()
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok && h.Hint() != "" {
		text += " (" + h.Hint() + ")"
	}
	return text
}

// Observe implements lender.Observer.
func (w *window) Observe(event any) {
	w.late.bound()
	if _, ok := event.(lender.Respawned); ok {
		w.guard.shell(w.sh.PID())
	}
	w.screen.Observe(event)
}

// late joins parts that need each other before all of them are there: who calls waits until bind.
type late struct {
	all    chan struct{}
	lender *lender.Lender // valid once all is closed
	conn   *remote.Conn

	mu    sync.Mutex
	early []byte // what the shell printed before there was a screen; guarded by mu
	open  bool   // guarded by mu
}

func newLate() *late { return &late{all: make(chan struct{})} }

func (l *late) bind(lent *lender.Lender, conn *remote.Conn) {
	l.lender, l.conn = lent, conn
	close(l.all)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
	if len(l.early) > 0 {
		lent.Unowned(l.early)
		l.early = nil
	}
}

func (l *late) bound() { <-l.all }

func (l *late) send(m wire.Message) error {
	select {
	case <-l.all:
		return l.conn.Send(m)
	default:
		return remote.ErrDisconnected
	}
}

// earlyMost bounds what is kept of a start-up file's output.
const earlyMost = 64 << 10

func (l *late) unowned(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		l.lender.Unowned(p)
		return
	}
	l.early = append(l.early, p...)
	if over := len(l.early) - earlyMost; over > 0 {
		l.early = append([]byte(nil), l.early[over:]...)
	}
}

const (
	startBound = 15 * time.Second // of a start-up file
	startHint  = time.Second      // after which the user is told what is waited for
)

// startShell starts the user's bash; one whose start-up file does not come to a prompt is started without it, and the
// user told. Ctrl-C skips the start-up file. code is not 0 when a signal ended it all.
func startShell(ctx context.Context, o Options, so shell.Options, signals <-chan os.Signal) (sh *shell.Shell, notices []string, code int, err error) {
	path, version, err := shell.Find(o.Env)
	if err != nil {
		return nil, nil, 1, err
	}
	so.Path = path
	if login := filepath.Base(lookup(o.Env, "SHELL")); login != "bash" && login != "." && login != "sh" {
		notices = append(notices, fmt.Sprintf("your shell is %s; sublet lends bash %s (%s), which does not read your %s settings", login, version, path, login))
	}
	starting := filepath.Join(so.Folder, startingName)
	if err := os.WriteFile(starting, nil, 0o600); err != nil {
		return nil, nil, 1, fmt.Errorf("start the shell: %w", err)
	}
	defer os.Remove(starting)

	type started struct {
		sh  *shell.Shell
		err error
	}
	begin := func(ctx context.Context, so shell.Options) <-chan started {
		done := make(chan started, 1)
		go func() {
			sh, err := shell.Start(ctx, so)
			done <- started{sh, err}
		}()
		return done
	}
	bounded, cancel := context.WithTimeoutCause(ctx, startBound, fmt.Errorf("no prompt after %v", startBound))
	defer cancel()
	skip, stop := context.WithCancelCause(bounded)
	defer stop(nil)
	done := begin(skip, so)
	hint := time.NewTimer(startHint)
	defer hint.Stop()
	for {
		select {
		case s := <-done:
			if code != 0 {
				if s.sh != nil {
					s.sh.Close()
				}
				return nil, nil, code, nil
			}
			failed, ok := errors.AsType[*shell.StartError](s.err)
			if !ok || so.RC == shell.NoRC || ctx.Err() != nil {
				if s.err != nil {
					return nil, nil, 1, s.err
				}
				return s.sh, notices, 0, nil
			}
			o.Log.Warn("shell started without its start-up file", "err", failed)
			notices = append(notices, "your ~/.bashrc was left out: "+failed.Error(), failed.Hint())
			so.RC = shell.NoRC
			done = begin(ctx, so)
		case <-hint.C:
			fmt.Fprint(o.Stdout, "sublet: waiting for ~/.bashrc (Ctrl-C goes on without it)\r\n")
		case sig := <-signals:
			if sig != unix.SIGINT {
				code = 128 + int(sig.(syscall.Signal))
			}
			stop(errors.New("stopped by the user"))
		}
	}
}

func sizeOf(f *os.File) shell.Size {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return shell.Size{Cols: 80, Rows: 24}
	}
	return shell.Size{Cols: int(w.Col), Rows: int(w.Row), PixelWidth: int(w.Xpixel), PixelHeight: int(w.Ypixel)}
}
