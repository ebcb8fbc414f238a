package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/charmbracelet/x/termios"
	"golang.org/x/sys/unix"

	"sublet/client/internal/launch"
	"sublet/client/internal/lender"
	"sublet/client/internal/remote"
	"sublet/client/internal/tui"
	"sublet/lease/confine"
	"sublet/lease/footprint"
	"sublet/lease/shell"
	"sublet/wire"
)

// Run is the terminal program: the user's shell and their agents on one screen. o.Stdin and o.Stdout must be terminals. It returns
// the exit status for the process when the user quits, the shell ends, or SIGTERM, SIGHUP, SIGINT or SIGQUIT comes. It restores the
// terminal and leaves no process but the daemon. It logs to client.log in the state folder. Error texts are shown to the user, and the
// errors may have a Hint: *shell.NoShellError, or a panic of the screen.
//
// The shell and the screen start first, so that a start-up file can ask the user. The daemon is found or started after the
// first prompt. If there can be none, because the folders of o.Paths cannot be used, the shell runs nevertheless and the
// screen reports why agents are not available.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	if code, inside, err := enterAgain(o); inside {
		return code, err
	}
	saved, err := termios.GetTermios(int(o.Stdin.Fd()))
	if err != nil {
		return 1, fmt.Errorf("read the terminal's settings: %w", err)
	}
	folder, err := makeFolder(o)
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	var notices []string
	log, notice, done := openLog(o.Paths.State)
	defer done()
	o.Log = log
	if notice != "" {
		notices = append(notices, notice)
	}

	// Before the shell starts, since a child inherits ignored signals. The screen handles them.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	w := &window{
		o:       o,
		guarded: make(chan struct{}), bound: make(chan struct{}), prompted: make(chan struct{}),
	}
	go func() { // concurrently with the shell's start; the function below waits for it
		defer close(w.guarded)
		var err error
		if w.guard, err = startGuard(o, o.Stdin, folder); err != nil {
			o.Log.Warn("no guard: a kill of this process would leave the terminal as it is then", "err", err)
		}
	}()
	defer func() {
		<-w.guarded
		w.guard.done()
	}()

	notice, err = w.startShell(shell.Options{
		Path: o.ShellPath, Env: o.Env, Size: tui.SizeOf(o.Stdout), Folder: folder, Termios: saved, Patience: o.Patience,
		Head: o.OutputHead, Tail: o.OutputTail, Log: o.Log,
		Event:  func(e any) { <-w.bound; w.lender.Event(e) }, // the shell waits for it: nothing calls the shell before
		Output: func(p []byte) { <-w.bound; w.screen.ShellOutput(p) },
	})
	if err != nil {
		return 1, err
	}
	defer w.sh.Close()
	if notice != "" {
		notices = append(notices, notice)
	}
	return w.run(ctx, notices)
}

// startShell starts the user's shell. notice is for the user if it is not the shell that they expect.
func (w *window) startShell(so shell.Options) (notice string, err error) {
	if w.o.Paths.State != "" { // else there is no spool folder
		so.Spool = w.o.Paths.Spool()
	}
	if w.sh, err = shell.Start(so); err != nil && so.Path != "" {
		notice = "shell.path of your settings is not used: " + err.Error()
		so.Path = ""
		w.sh, err = shell.Start(so)
	}
	if err != nil {
		return "", err
	}
	login := lookup(w.o.Env, "SHELL")
	if notice == "" && so.Path == "" && login != w.sh.Path() && login != "" && filepath.Base(login) != "sh" { // whose settings nobody misses
		if _, _, err := shell.Identify(login); err != nil {
			notice = fmt.Sprintf("%v; sublet lends %s %s without your %s settings", err, w.sh.Path(), w.sh.Version(), filepath.Base(login))
		}
	}
	return notice, nil
}

// window is the state of the running terminal program.
type window struct {
	o        Options
	sh       *shell.Shell
	guard    *guard        // written before guarded is closed
	guarded  chan struct{} // closed when the guard runs, or could not be started
	prompted chan struct{} // closed at the first prompt
	first    sync.Once
	bound    chan struct{} // closed once the fields below are set; callbacks wait for it

	launcher *launch.Launcher
	confiner string // the launcher that confines commands; "" = there is none
	lender   *lender.Lender
	screen   *tui.Program
	conn     *remote.Conn
	// Only Up and Down use these, from one goroutine.
	daemon  int  // pid of the last one
	stopped bool // it stopped on request, and the screen shows that
	work    sync.WaitGroup
}

// run connects daemon, lender and screen and ends them in order: screen, lease, connection.
func (w *window) run(ctx context.Context, notices []string) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer w.work.Wait()
	defer cancel()
	o := w.o
	w.launcher = launcher(o)
	var err error
	if w.confiner, err = confine.Find(); err != nil {
		w.o.Log.Warn("commands are not held to a reach", "err", err)
	}
	w.lender = lender.New(lender.Options{Shell: w.sh, Send: func(m wire.Message) error { return w.conn.Send(m) }, Observer: w, Launcher: w.confiner, Dir: o.cwd(), Env: o.Env, Log: w.o.Log})
	w.conn = remote.Keep(context.WithoutCancel(ctx), remote.Options{
		Open: w.launcher.Open, Find: finder(o).Open, Snapshot: w.snapshot, Session: o.Session,
		Handle: w.handle, Up: func(r *wire.Ready) { w.up(ctx, r) }, Down: w.down, Log: w.o.Log,
		Moved: func(r *wire.SessionReply) { w.screen.Send(r) },
	})
	defer w.conn.Close()
	defer w.lender.Close() // first, so that the daemon is informed of the lease's end
	w.screen = tui.New(tui.Options{
		Daemon: w.conn, Shell: w.sh, Lender: w.lender, Stdin: o.Stdin, Stdout: o.Stdout, Env: o.Env, Name: w.sh.Name(),
		Notice: notices, SwitchKey: o.SwitchKey, Log: w.o.Log,
	})
	close(w.bound)
	w.work.Go(func() { w.shrink(ctx) })
	w.guardShell() // before the screen changes the terminal's modes
	return w.screen.Run(ctx)
}

// guardShell sets the guard's shell process.
func (w *window) guardShell() {
	<-w.guarded
	w.guard.shell(w.sh.PID())
}

// settle is how long after the first prompt the window returns memory that only its start needed, most of it pages of the
// executable.
const settle = 3 * time.Second

// shrink returns memory once the window has started.
func (w *window) shrink(ctx context.Context) {
	select {
	case <-w.prompted:
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return
	}
	if err := footprint.Shrink(); err != nil {
		w.o.Log.Debug("memory was not returned to the system", "err", err)
	}
}

// connectAfter is how long the start of the daemon waits for the first prompt, since a start-up file may ask the user.
const connectAfter = time.Second

// snapshot returns this window's EnvSnapshot. The first one waits for the first prompt, which starting a daemon would delay.
func (w *window) snapshot() *wire.EnvSnapshot {
	<-w.bound
	select {
	case <-w.prompted:
	case <-w.sh.Exited():
	case <-time.After(connectAfter):
	}
	size := cmp.Or(tui.SizeOf(w.o.Stdout), shell.Size{Cols: 80, Rows: 24})
	s := &wire.EnvSnapshot{
		Client:       wire.ClientInfo{Name: "sublet", Version: w.o.Version, PID: os.Getpid()},
		Capabilities: []string{wire.CapShell, wire.CapConfirm, wire.CapRestore, wire.CapQueue, wire.CapUse, wire.CapJobs, wire.CapContinue, wire.CapTurns},
		Shell:        wire.ShellInfo{Path: wire.OSString(w.sh.Path()), Version: w.sh.Version(), Name: w.sh.Name()},
		Term: wire.TermInfo{
			Cols: size.Cols, Rows: size.Rows, PixelWidth: size.PixelWidth, PixelHeight: size.PixelHeight, Term: lookup(w.o.Env, "TERM"),
		},
		Credentials: credentials(w.o),
	}
	if w.confiner != "" { // whether the kernel can confine is probed by the daemon; doing it here would delay the first answer
		s.Capabilities = append(s.Capabilities, wire.CapConfine)
	}
	w.lender.Snapshot(s)
	return s
}

// handle handles the daemon's messages in order.
func (w *window) handle(m wire.Message) {
	<-w.bound
	switch m := m.(type) {
	case wire.LeaseMessage:
		w.lender.Handle(m)
	case *wire.ShellUseRequest:
		w.lender.Used(m)
	default:
		w.screen.Send(m)
	}
}

// up handles a new link, to the same daemon as before or to another one.
func (w *window) up(ctx context.Context, r *wire.Ready) {
	<-w.bound
	w.lender.Up(r)
	first, same := w.daemon == 0, w.daemon == r.Daemon.PID
	w.daemon = r.Daemon.PID
	w.screen.Send(r)
	w.screen.Send(tui.LinkChanged{Connected: true})
	if w.stopped {
		w.stopped = false
		w.screen.Send(&wire.Notice{Level: "info", Text: "the daemon runs again"})
	}
	if !same && w.launcher.Older(r) {
		w.screen.Send(&wire.Notice{
			Level: "warning", Text: fmt.Sprintf("an older daemon keeps running: version %s, and this is %s", r.Daemon.Version, w.o.Version),
			Hint: "`sublet daemon restart` replaces it; running turns are finished first",
		})
	}
	if first && w.o.Continue && w.o.Session == "" {
		w.work.Go(func() { w.resumeLast(ctx) }) // not here: this goroutine delivers the replies
	}
}

// resumeLast resumes the last session.
func (w *window) resumeLast(ctx context.Context) {
	r, err := wire.Call(ctx, w.conn, &wire.SessionRequest{Op: "list", Limit: 1})
	if err == nil && len(r.Sessions) > 0 {
		_, err = wire.Call(ctx, w.conn, &wire.SessionRequest{Op: "resume", SessionID: &r.Sessions[0].ID, IncludeHistory: true})
	}
	if err != nil && ctx.Err() == nil {
		w.screen.Send(&wire.Notice{Level: "warning", Text: "the last session was not resumed: " + err.Error()})
	}
}

func (w *window) down(err error) {
	<-w.bound
	w.lender.Down()
	if errors.Is(err, remote.ErrStopped) {
		// The screen keeps showing a daemon: what ran has ended and been reported, and a question starts it again.
		w.stopped = true
		w.screen.Send(&wire.Notice{Level: "info", Text: remote.ErrStopped.Error()})
		return
	}
	w.stopped = false // the screen reports that this one is back
	detail := ""
	if !errors.Is(err, remote.ErrDisconnected) { // the screen reports that itself
		detail = wire.Explain(err)
	}
	w.screen.Send(tui.LinkChanged{Detail: detail})
}

// Observe implements lender.Observer.
func (w *window) Observe(event any) {
	switch event.(type) {
	case shell.PromptShown:
		w.first.Do(func() { close(w.prompted) })
	case shell.Restarted:
		w.work.Go(w.guardShell) // not here: the shell waits for this call
	}
	w.screen.Send(event)
}

// AwaitDrawn implements lender.Observer.
func (w *window) AwaitDrawn() { w.screen.AwaitDrawn() }
