// Package lender lends the user's shell: it answers the daemon's lease messages by the rules of the lease (the user first, one
// holder, current fence, matching fingerprint) and runs borrowed commands in the shell that the user types into. It draws
// nothing; an Observer receives events for the screen.
package lender

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// Lending describes who uses the shell.
type Lending struct {
	Holder  string // "" = nobody, "user" while a command of the user's runs, or an agent's name
	Purpose string
	Since   time.Time
	Command string // the leased command that runs; "" = none
	Waiting string // the agent that was offered the shell and does not have it yet; "" = none
}

// Events for the screen, through Observer.Observe, together with the shell's own: shell.PromptShown, shell.UserBegan,
// shell.UserEnded and shell.Restarted, unchanged.
type (
	// LeaseChanged reports that Lending returns something else now.
	LeaseChanged struct{ Lending Lending }
	// CannotLend reports that a borrower was refused because the shell's line editor does not answer as expected. Hint is what the
	// user can do.
	CannotLend struct{ Why, Hint string }
	// LeasedStarted reports that an agent's command begins in the user's shell.
	LeasedStarted struct {
		ExecutionID    wire.ExecutionID
		Agent, Command string
		Reach          string // what the kernel holds it to; "" = nothing
		TurnID         wire.TurnID
	}
	// LeasedOutput is raw output of the command. The receiver owns Data.
	LeasedOutput struct {
		ExecutionID wire.ExecutionID
		Data        []byte
	}
	// LeasedKeyboard reports that the running command gets the keyboard ("password", "secret", "screen", "input") or loses it ("").
	// Who is the program that reads without echo.
	LeasedKeyboard struct {
		ExecutionID wire.ExecutionID
		Why, Who    string
	}
	// LeasedEnded reports the command's end, before the daemon learns of it. Changed is one line about what it changed in the shell,
	// "" for nothing. The shell shows its prompt once AwaitDrawn has returned.
	LeasedEnded struct {
		ExecutionID wire.ExecutionID
		Result      shell.Result
		Changed     string
		Status      string
	}
)

// An Observer receives what happens in the shell, in order. Observe must not block or call the Lender. AwaitDrawn returns when
// all that was observed is on the screen.
type Observer interface {
	Observe(event any)
	AwaitDrawn()
}

// ErrClosed reports that the shell has ended or is being closed.
var ErrClosed = errors.New("the shell is closed")

// Shell is what the lender needs of a *shell.Shell. The lender holds no lock while it calls a method, so that the shell may
// call Event meanwhile.
type Shell interface {
	Hold(ctx context.Context) error
	Release() error
	Run(ctx context.Context, c shell.Command) (shell.Result, error)
	State(ctx context.Context) (shell.State, error)
	Undo(ctx context.Context, before, after shell.State) (left []string, err error)
	Busy() string
	Exited() <-chan struct{}
}

// Options for New. Shell, Send and Observer are required.
type Options struct {
	Shell Shell
	// Send queues a message for the daemon, encoded, and waits for nobody; of the output of a command it drops what a slow daemon does
	// not take. An error means that there is no link; the lender then sends the current state when the next link is up.
	Send     func(wire.Message) error
	Observer Observer
	// Launcher is the path of sublet-confine; "" = none, and commands with a reach are refused.
	Launcher string
	Dir      string       // the directory in which the shell was started, until its prompt reports another
	Env      []string     // the shell's initial environment, as os.Environ, until its state is known
	Log      *slog.Logger // nil = none
}

// Lender owns the right to use one shell. Its methods are safe for concurrent use.
//
// The user types into the shell directly, and the shell knows when they are busy. A borrower gets the shell while its line
// editor is held, which only the worker does: from before ShellLeaseAcquired until the command has ended and is shown.
type Lender struct {
	Options
	secrets typedSecret
	ctx     context.Context // the Lender's lifetime
	cancel  context.CancelFunc
	wake    chan struct{}  // capacity 1: the worker has something to do
	work    sync.WaitGroup // the worker

	held    bool          // the line editor is held; used by the worker only
	changes shell.Changes // by borrowed commands; used by the worker only

	mu sync.Mutex
	// guarded by mu
	up      bool                    // there is a link
	closing string                  // why no more is lent, one of wire.Denied…; "" = it is
	dir     string                  // the shell's directory
	user    time.Time               // when the user's running command began; zero = there is none
	keys    bool                    // the user has typed since the editor was held
	taken   bool                    // the screen has the terminal, not the shell
	inform  bool                    // the daemon needs the shell's state although no lease waits
	grant   *grant                  // the current lease
	waiting *wire.AcquireShellLease // offered by the daemon, not granted yet; nil = none
	ended   *grant                  // the last lease that ended, for late messages; nil = none did
	newest  uint64                  // newest fence seen on this link; leases with older ones have ended
	grace   *time.Timer             // ends a lease whose link is down
	undos   []*undoRequest
	holding holding // the worker waits for the editor
	known
}

// holding is the wait for the shell's line editor.
type holding struct {
	stop context.CancelFunc // ends it; nil = it is not waited for
	late *time.Timer        // reports what it waits for; nil = it is not waited for
}

// grant is a lease, from ShellLeaseAcquired to its end.
type grant struct {
	acquire *wire.AcquireShellLease
	since   time.Time
	exec    *execution                // the one command that runs or is about to
	last    *wire.CommandCompleted    // the end of its last command
	seen    map[wire.ExecutionID]bool // executions requested under it; each runs at most once
	settles bool                      // its command has ended, and the changes are being read and the end shown
	ending  string                    // why it ended, or will once exec has ended; one of wire.Released…; "" = it is in force
}

func (g *grant) ref() wire.LeaseRef { return refOf(g.acquire) }

// execution is one borrowed command.
type execution struct {
	msg    *wire.ExecuteLeasedCommand // for a RestoreShellState without a command
	undo   bool                       // restores the state instead
	all    bool                       // with undo: what all borrowed commands changed
	grant  *grant                     // its own lease, even if another is current when it ends
	ctx    context.Context
	cancel context.CancelCauseFunc
	toJob  chan struct{} // holds one: it is to go on as a job

	// guarded by Lender.mu
	began    bool
	keyboard bool // the command has the user's keyboard
	handed   bool // it had the keyboard at some time
}

// New starts lending sh. The caller keeps owning sh, closes it after Close, and passes its events to Event.
func New(o Options) *Lender {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Lender{Options: o, wake: make(chan struct{}, 1), dir: o.Dir, known: known{sentEnv: Public(Vars(o.Env))}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.Go(l.worker)
	return l
}

// Close refuses a waiting lease, cancels a borrowed command and waits for its end, informs the daemon, and ends the lender's
// goroutines. It does not end a command of the user. It is idempotent.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closeLocked(wire.DeniedShuttingDown, wire.ReleasedDisconnected)
	l.mu.Unlock()
	l.cancel()
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grace != nil {
		l.grace.Stop()
	}
}

// closeLocked stops lending: the waiting lease and later ones are refused for the reason denied, the current one ends for the reason
// released.
func (l *Lender) closeLocked(denied, released string) {
	if l.closing == "" {
		l.closing = denied
	}
	l.denyLocked(l.closing, "")
	if l.grant != nil {
		l.endLocked(l.grant, released, errClosing)
	}
	l.changedLocked()
}

// denyLocked refuses the waiting lease.
func (l *Lender) denyLocked(reason, why string) {
	if l.waiting != nil {
		l.send(&wire.ShellLeaseDenied{LeaseRef: l.waiting.LeaseRef, Reason: reason, Why: why})
	}
	l.forgetLocked()
}

// forgetLocked drops the waiting lease.
func (l *Lender) forgetLocked() {
	l.waiting = nil
	if l.holding.stop != nil {
		l.holding.stop()
	}
}

// Event handles an event of the shell, on the shell's own goroutine, and passes it to the screen. It does not block.
func (l *Lender) Event(event any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case shell.KeysWaiting:
		l.keys = true
		l.preemptLocked()
		l.wakeWorker()
		return
	case shell.UserBegan:
		l.user = time.Now()
		if l.up {
			l.send(&wire.ShellUseReply{Holder: "user"}) // reports that this window is the one last typed in
		}
		l.scheduleQueuedReportLocked()
	case shell.UserEnded:
		l.user, l.dir = time.Time{}, e.Dir
	case shell.PromptShown:
		l.user, l.dir = time.Time{}, e.Dir
	case shell.Restarted:
		l.user = time.Time{}
	}
	l.Observer.Observe(event)
	l.changedLocked()
}

// preemptLocked ends a lease under which no command was requested, because the user comes first.
func (l *Lender) preemptLocked() {
	if g := l.grant; g != nil && len(g.seen) == 0 {
		l.endLocked(g, wire.ReleasedUserFirst, nil)
		l.changedLocked()
	}
}

// SetScreenTaken records whether the screen has the terminal, and not the shell. A question may follow, so the lender then sends
// the shell's state to the daemon.
func (l *Lender) SetScreenTaken(taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.inform = taken, l.inform || taken
	l.wakeWorker()
}

// Lending returns who uses the shell.
func (l *Lender) Lending() Lending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lendingLocked()
}

func (l *Lender) lendingLocked() Lending {
	var n Lending
	switch {
	case !l.user.IsZero():
		n = Lending{Holder: "user", Since: l.user}
	case l.grant != nil:
		g := l.grant
		n = Lending{Holder: g.acquire.Agent, Purpose: g.acquire.Purpose, Since: g.since}
		if g.exec != nil {
			n.Command = string(g.exec.msg.Command)
		}
	}
	if l.waiting != nil {
		n.Waiting = l.waiting.Agent
	}
	return n
}

// Used answers a ShellUseRequest. It never blocks.
func (l *Lender) Used(m *wire.ShellUseRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.lendingLocked()
	r := &wire.ShellUseReply{Nonce: m.Nonce, Holder: now.Holder}
	if now.Holder != "" {
		r.HeldMS = time.Since(now.Since).Milliseconds()
	}
	l.send(r)
}

// changedLocked informs the screen that Lending changed.
func (l *Lender) changedLocked() { l.Observer.Observe(LeaseChanged{Lending: l.lendingLocked()}) }

// send queues a message for the daemon. Messages lost without a link are replaced by what Up sends.
func (l *Lender) send(m wire.Message) bool {
	if err := l.Send(m); err != nil {
		l.Log.Debug("not sent", "kind", wire.KindOf(m), "err", err)
		return false
	}
	return true
}

// wakeWorker wakes the worker.
func (l *Lender) wakeWorker() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
