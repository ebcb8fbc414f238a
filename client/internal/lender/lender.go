// Package lender lends the user's shell: it answers the daemon's lease messages by the rules of the lease (the user
// first, one holder, current fence, matching fingerprint) and runs borrowed commands in the shell that the user types
// into. It draws nothing: the screen receives events through an Observer.
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

// Lending is who has the shell.
type Lending struct {
	Holder  string // "" = nobody, "user" while a command of the user's runs, or an agent's name
	LeaseID wire.LeaseID
	Purpose string
	Since   time.Time
	Command string // the leased command that runs; "" = none
	Waiting []string
}

// Events for the screen, through Observer.Observe, together with the shell's own: shell.PromptShown, shell.UserBegan,
// shell.UserEnded and shell.Restarted, unchanged.
type (
	// LeaseChanged reports that Lending is different now.
	LeaseChanged struct{ Lending Lending }
	// CannotLend reports that a borrower was refused because the shell's line editor does not answer as it should. It comes
	// once until the shell could be lent again. Hint is what the user can do about it.
	CannotLend struct{ Why, Hint string }
	// LeasedStarted begins an agent's command in the user's shell.
	LeasedStarted struct {
		ExecutionID         wire.ExecutionID
		Agent, Command, Cwd string
		Reach               string // what the kernel holds it to; "" = nothing
		TurnID              wire.TurnID
	}
	// LeasedOutput is its raw output. Data is the receiver's to keep.
	LeasedOutput struct {
		ExecutionID wire.ExecutionID
		Data        []byte
	}
	// LeasedKeyboard hands the keyboard to the running command ("password", "secret", "screen", "input") or takes it back ("").
	// Who is the program that reads without echo.
	LeasedKeyboard struct {
		ExecutionID wire.ExecutionID
		Why, Who    string
	}
	// LeasedEnded ends it. Changed is one line of what it left different in the shell, "" for nothing. The shell shows its
	// prompt once Observe has returned.
	LeasedEnded struct {
		ExecutionID wire.ExecutionID
		Result      shell.Result
		Changed     string
		Status      string
	}
)

// An Observer receives what happens in the shell, in order. Observe must not wait, nor call the Lender, but for a LeasedEnded.
type Observer interface{ Observe(event any) }

// A LentError reports that an agent's command runs in the shell.
type LentError struct{ Lending Lending }

func (e *LentError) Error() string {
	return "the shell is lent to " + e.Lending.Holder + ": " + e.Lending.Purpose
}

// ErrClosed is returned when the shell is gone or going.
var ErrClosed = errors.New("the shell is closed")

// Shell is what is lent: *shell.Shell, as far as the lender needs it. No lock of the lender is held while one of its
// methods runs, so that the shell may call Event meanwhile.
type Shell interface {
	Hold(ctx context.Context) error
	Release() error
	Run(ctx context.Context, c shell.Command) (shell.Result, error)
	State(ctx context.Context) (shell.State, error)
	Stale() bool
	Undo(ctx context.Context, before, after shell.State) (left []string, err error)
	Busy() string
	Dir() string
	Exited() <-chan struct{}
}

// Options for New. Shell, Send and Observer are required.
type Options struct {
	Shell Shell
	// Send queues a message for the daemon. An error means that there is no link; what it is about is
	// sent again after the next one came up.
	Send     func(wire.Message) error
	Observer Observer
	// Launcher is the program that holds commands to a reach; "" = none, and such commands are refused.
	Launcher string
	Env      []string     // as os.Environ: what the shell was started with, until its state is known
	Log      *slog.Logger // nil = none
}

// Lender owns the right to use one shell. Its methods are safe for concurrent use.
//
// The user types into the shell directly, and the shell knows when they are busy. A borrower gets the shell while its line
// editor is held, which only the worker does: from before ShellLeaseAcquired until its command has ended and is shown.
type Lender struct {
	sh     Shell
	out    func(wire.Message) error
	log    *slog.Logger
	screen Observer
	// launcher holds commands to a reach; "" = nothing does
	launcher string
	secrets  typedSecret
	ctx      context.Context // the Lender's lifetime
	cancel   context.CancelFunc
	exited   <-chan struct{}
	wake     chan struct{}  // capacity 1: the worker has something to do
	work     sync.WaitGroup // the worker

	held    bool          // the line editor is; the worker's
	changes shell.Changes // by borrowed commands; the worker's

	mu sync.Mutex
	// guarded by mu
	up       bool                      // there is a link
	closing  string                    // why no more is lent, one of wire.Denied…; "" = it is
	dir      string                    // where the shell is
	user     time.Time                 // when the user's running command began; zero = none runs
	keys     bool                      // the user typed since the editor was held
	taken    bool                      // the screen has the terminal, not the shell
	inform   bool                      // the daemon should learn the shell's state though nobody waits
	broken   string                    // why the shell could not be lent, as last shown
	grant    *grant                    // the lease in force
	waiting  []*wire.AcquireShellLease // offered by the daemon, not granted yet
	ended    []*grant                  // the last ones, for messages that come late
	newest   uint64                    // newest fence seen on this link: what comes with an older one is over
	grace    *time.Timer               // ends a grant whose link is down
	undos    []*undo                   // asked for by the user
	stopHold context.CancelFunc        // ends the worker's wait for the editor; nil = it does not wait
	queued   *time.Timer               // reports why the editor is waited for; nil = it is not

	// What the daemon knows of the shell's state.
	state   shell.State              // as last read; Digest "" = never
	told    string                   // digest last sent on this link
	bodies  map[string]bool          // of functions, by hash: those that the daemon has from the last state sent on this link
	sentEnv map[string]wire.OSString // what the daemon believes the environment is
	// Borrowed commands whose work may be in what is there but not in state; in state, but not sent; in what was sent last.
	ran, untold, toldOf []wire.ExecutionID
}

// grant is a lease, from ShellLeaseAcquired to its end.
type grant struct {
	acquire *wire.AcquireShellLease
	since   time.Time
	exec    *execution                // the one command that runs or is about to
	last    *wire.CommandCompleted    // of its last command
	seen    map[wire.ExecutionID]bool // that were asked for under it: each runs once at most, however often it is
	settles bool                      // its command has ended; what that changed is being read, and its end shown
	ending  string                    // to be released for this reason once exec ended; one of wire.Released…
	reason  string                    // why it ended
}

func (g *grant) ref() wire.LeaseRef { return refOf(g.acquire) }

// execution is one borrowed command.
type execution struct {
	msg    *wire.ExecuteLeasedCommand // of a RestoreShellState: without a command
	undo   bool                       // puts the state back instead
	all    bool                       // of it: what all borrowed commands changed
	grant  *grant                     // its own, whichever is in force when it ends
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the shell is free of it

	// guarded by Lender.mu
	began    bool
	keyboard bool // the user has its keyboard
	handed   bool // the user had it once
}

// endedKept is how many leases that are over are remembered.
const endedKept = 16

// New starts lending sh. The caller keeps owning sh, closes it after Close, and hands its events to Event.
func New(o Options) *Lender {
	l := &Lender{
		sh: o.Shell, out: o.Send, log: o.Log, exited: o.Shell.Exited(), wake: make(chan struct{}, 1),
		screen: o.Observer, dir: o.Shell.Dir(), sentEnv: Public(vars(o.Env)), launcher: o.Launcher,
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.Go(l.worker)
	return l
}

// closeBound is how long Close waits for a borrowed command to end: it is proved ended within 5 s.
const closeBound = 6 * time.Second

// Close refuses what waits, cancels a borrowed command and waits for its end, tells the daemon, and ends the lender's
// goroutines. A command of the user is not ended: that is the shell's to do. Close may be called again.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closeLocked(wire.DeniedShuttingDown, wire.ReleasedDisconnected)
	var done chan struct{}
	if l.grant != nil && l.grant.exec != nil {
		done = l.grant.exec.done
	}
	l.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(closeBound)
		select {
		case <-done:
		case <-timer.C:
			l.log.Warn("a borrowed command did not end")
		}
		timer.Stop()
	}
	l.cancel()
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grace != nil {
		l.grace.Stop()
	}
}

// closeLocked stops lending.
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

// denyLocked refuses the shell to everybody who waits.
func (l *Lender) denyLocked(reason, why string) {
	for _, w := range l.waiting {
		l.send(&wire.ShellLeaseDenied{LeaseRef: w.LeaseRef, Reason: reason, Why: why})
	}
	l.forgetLocked()
}

// forgetLocked empties the queue.
func (l *Lender) forgetLocked() {
	l.waiting = nil
	if l.stopHold != nil {
		l.stopHold()
	}
}

// Event takes an event of the shell, from the shell's own goroutine, and passes it on to the screen. It does not wait.
func (l *Lender) Event(event any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case shell.KeysWaiting:
		l.keys = true
		l.preemptLocked()
		l.stir()
		return
	case shell.UserBegan:
		l.user = time.Now()
		if l.up {
			l.send(&wire.ShellUseReply{Holder: "user"}) // this is the window typed in last
		}
		l.tellQueuedLocked()
	case shell.UserEnded:
		l.user, l.dir = time.Time{}, e.Dir
	case shell.PromptShown:
		l.user, l.dir = time.Time{}, e.Dir
	case shell.Restarted:
		l.user = time.Time{}
	}
	l.screen.Observe(event)
	l.changedLocked()
}

// preemptLocked ends a lease whose command has not been asked for: the user comes first.
func (l *Lender) preemptLocked() {
	if g := l.grant; g != nil && len(g.seen) == 0 {
		l.endLocked(g, wire.ReleasedUserFirst, nil)
		l.changedLocked()
	}
}

// ScreenTaken notes that the screen has the terminal and the shell's editor rests: from here a question may come, so the
// daemon is sent what the shell is like. ScreenGiven notes that the shell has it back.
func (l *Lender) ScreenTaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.inform = true, true
	l.stir()
}

// ScreenGiven ends ScreenTaken.
func (l *Lender) ScreenGiven() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = false
}

// Lending returns who has the shell.
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
		n = Lending{Holder: g.acquire.Agent, LeaseID: g.acquire.LeaseID, Purpose: g.acquire.Purpose, Since: g.since}
		if g.exec != nil {
			n.Command = string(g.exec.msg.Command)
		}
	}
	for _, w := range l.waiting {
		n.Waiting = append(n.Waiting, w.Agent)
	}
	return n
}

// Used answers who has the shell. It never waits.
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

// changedLocked tells the screen who has the shell now.
func (l *Lender) changedLocked() { l.screen.Observe(LeaseChanged{Lending: l.lendingLocked()}) }

// send queues for the daemon. Without a link nothing is lost that matters: see Up.
func (l *Lender) send(m wire.Message) bool {
	if err := l.out(m); err != nil {
		l.log.Debug("not sent", "kind", m.Kind(), "err", err)
		return false
	}
	return true
}

// stir wakes the worker.
func (l *Lender) stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
