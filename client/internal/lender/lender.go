// Package lender lends the user's shell: it answers the daemon's lease messages by the rules of the lease (the user
// first, one holder, current fence, matching fingerprint) and runs the user's own commands in the same shell. It draws
// nothing; the screen is told through an Observer.
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
	Holder  string // "" = nobody, "user", or an agent's name
	LeaseID wire.LeaseID
	Purpose string
	Since   time.Time
	Command string // the leased command that runs; "" = none
	Waiting []string
}

// Events for the screen, delivered in order through Observer.Observe.
type (
	// LeaseChanged tells that Lending is different now.
	LeaseChanged struct{ Lending Lending }
	// LeasedStarted begins an agent's command in the user's shell.
	LeasedStarted struct {
		ExecutionID         wire.ExecutionID
		Agent, Command, Cwd string
		TurnID              wire.TurnID
	}
	// LeasedOutput is its raw output. Data is the receiver's to keep.
	LeasedOutput struct {
		ExecutionID wire.ExecutionID
		Data        []byte
	}
	// LeasedKeyboard hands the keyboard to the running command ("password", "screen", "input") or takes it back ("").
	LeasedKeyboard struct {
		ExecutionID wire.ExecutionID
		Why         string
	}
	// LeasedEnded ends it. Changed is one line of what it left different in the shell, "" for nothing. Result.Unread is never set.
	LeasedEnded struct {
		ExecutionID wire.ExecutionID
		Result      shell.Result
		Changed     string
		Status      string
	}
	// Unowned is output that belongs to no command: background jobs, job notices.
	Unowned struct{ Data []byte }
	// Respawned tells that the shell had to be started anew.
	Respawned struct{ Why string }
)

// An Observer is told what happens in the shell. Observe must not block.
type Observer interface{ Observe(event any) }

// A LentError says that an agent's command runs in the shell just now.
type LentError struct{ Lending Lending }

func (e *LentError) Error() string {
	return "the shell is lent to " + e.Lending.Holder + ": " + e.Lending.Purpose
}

// ErrBusy says that a command of the user runs already.
var ErrBusy = errors.New("a command is running")

// ErrClosed says that the shell is gone or going.
var ErrClosed = errors.New("the shell is closed")

// Shell is what is lent: *shell.Shell, as far as the lender needs it.
type Shell interface {
	Run(ctx context.Context, c shell.Command) (shell.Result, error)
	Write(p []byte) (int, error)
	Resize(shell.Size) error
	State(ctx context.Context) (shell.State, error)
	Left(ctx context.Context) (shell.State, error)
	Undo(ctx context.Context, before, after shell.State) error
	Digest() string
	Dir() string
	Prompt(ctx context.Context) (shell.Prompt, error)
	Complete(ctx context.Context, line string, cursor int) (from int, cs []shell.Completion, err error)
	History(ctx context.Context) ([]string, error)
	Exited() <-chan struct{}
	ExitStatus() int
}

// Options for New. All but Env and Log are required.
type Options struct {
	Shell Shell
	// Send queues a message for the daemon and never waits. An error means that there is no link now; what matters is
	// sent again after the next one came up.
	Send     func(wire.Message) error
	Observer Observer
	Env      []string     // as os.Environ: what the shell was started with, until its state is known
	Log      *slog.Logger // nil = none
}

// Lender owns the right to use one shell. Its methods are safe for concurrent use.
//
// The shell is used by one at a time, under the token: the user, a borrower, or the lender itself to look at the
// shell's state. A user who wants it takes precedence over everything that has not begun.
type Lender struct {
	sh      Shell
	out     func(wire.Message) error
	log     *slog.Logger
	events  *outbox
	ctx     context.Context // the Lender's lifetime
	cancel  context.CancelFunc
	stirred chan struct{}  // capacity 1: the worker has something to look at
	work    sync.WaitGroup // the worker
	deliver sync.WaitGroup // of events

	mu sync.Mutex
	// guarded by mu
	token   chan struct{}             // not nil while the shell is in use; closed when it is free again
	up      bool                      // there is a link
	closing string                    // why no more is lent, one of wire.Denied…; "" = it is
	user    *use                      // the user's command, running or about to
	grant   *grant                    // the lease in force
	waiting []*wire.AcquireShellLease // offered by the daemon, not granted yet
	ended   []*grant                  // the last ones, for messages that come late
	newest  uint64                    // newest fence seen on this link: what comes with an older one is over
	grace   *time.Timer               // ends a grant whose link is down
	looking func()                    // ends a look at the state, now or soon: the user wants the shell
	// expanding has an expansion of the prompt end soon, once it had promptDue; nil where there is none.
	expanding func()

	// What the daemon and the user were told of the shell's state.
	dirty   bool                     // a command ran since state was looked at
	state   shell.State              // as last looked at; Digest "" = never
	told    string                   // digest last sent on this link
	bodies  map[string]bool          // of functions, by hash: those that the daemon has from the last state told on this link
	sentEnv map[string]wire.OSString // what the daemon believes the environment is
	change  *change                  // by the last borrowed command that changed something; nil where there is none to undo
	// Borrowed commands whose work may be in what is there but not in state; in state, but not told; in what was told last.
	ran, untold, toldOf []wire.ExecutionID

	prompt   shell.Prompt // as last expanded
	prompted time.Time    // when that began
	lentAt   time.Time    // when a borrower was given the shell, or began or ended a command, last
	userAt   time.Time    // when the user's last command ended
}

// use is a command of the user.
type use struct {
	since time.Time
}

// grant is a lease, from ShellLeaseAcquired to its end.
type grant struct {
	acquire *wire.AcquireShellLease
	since   time.Time
	exec    *execution                // the one command that runs or is about to
	last    *wire.CommandCompleted    // of its last command
	seen    map[wire.ExecutionID]bool // that were asked for under it: each runs once at most, however often it is
	settles bool                      // its command has ended; what that changed is being looked at
	ending  string                    // to be released for this reason once exec ended; one of wire.Released…
	reason  string                    // why it ended
}

func (g *grant) ref() wire.LeaseRef { return refOf(g.acquire) }

// execution is one borrowed command.
type execution struct {
	msg    *wire.ExecuteLeasedCommand // of a RestoreShellState: without a command
	undo   bool                       // puts the state back instead
	grant  *grant                     // its own, whichever is in force when it ends (T2e)
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the shell is free of it
}

// endedKept is how many leases that are over are remembered.
const endedKept = 16

// New starts lending sh, which must be idle. The caller keeps owning sh and closes it after Close.
func New(o Options) *Lender {
	l := &Lender{
		sh: o.Shell, out: o.Send, log: o.Log, stirred: make(chan struct{}, 1),
		events: newOutbox(o.Observer), sentEnv: Public(vars(o.Env)), dirty: true,
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.deliver.Go(l.events.run)
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
	l.events.close()
	l.deliver.Wait()
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
	for _, w := range l.waiting {
		l.send(&wire.ShellLeaseDenied{LeaseRef: w.LeaseRef, Reason: l.closing})
	}
	l.waiting = nil
	if l.grant != nil {
		l.endLocked(l.grant, released, errClosing)
	}
	l.changedLocked()
}

// Lending tells who has the shell.
func (l *Lender) Lending() Lending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lendingLocked()
}

func (l *Lender) lendingLocked() Lending {
	var n Lending
	switch {
	case l.grant != nil && l.user == nil:
		g := l.grant
		n = Lending{Holder: g.acquire.Agent, LeaseID: g.acquire.LeaseID, Purpose: g.acquire.Purpose, Since: g.since}
		if g.exec != nil {
			n.Command = string(g.exec.msg.Command)
		}
	case l.user != nil:
		n = Lending{Holder: "user", Since: l.user.since}
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
func (l *Lender) changedLocked() { l.events.put(LeaseChanged{Lending: l.lendingLocked()}) }

// send queues for the daemon. Without a link nothing is lost that matters: see Up.
func (l *Lender) send(m wire.Message) bool {
	if err := l.out(m); err != nil {
		l.log.Debug("not sent", "kind", m.Kind(), "err", err)
		return false
	}
	return true
}

func (l *Lender) stir() {
	select {
	case l.stirred <- struct{}{}:
	default:
	}
}
