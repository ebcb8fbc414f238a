// Package lease keeps the queue and the clock for one thing that is lent to one borrower at a time. It is a pure state
// machine: every method takes the time, returns what is to be done about it (Effect) and neither waits, sends, logs nor
// starts anything. Whoever drives it serialises the calls, carries the effects out in order, and calls Tick when the
// time of NextDeadline has come. What is lent, and how the lender is reached, is left to that driver.
package lease

import (
	"errors"
	"sync/atomic"
	"time"
)

// Bounds and defaults.
const (
	DefaultWait    = 60 * time.Second  // in the queue and on offer, before the borrower is told who holds it
	DefaultTerm    = 30 * time.Second  // held without a running command
	DefaultTimeout = 120 * time.Second // of one command
	MaxTimeout     = time.Hour         // of one command
	Grace          = 60 * time.Second  // for a running command whose lender's link dropped
	// TimeoutSlack is how much later than the lender the daemon's clock strikes for a command: the lender enforces the
	// timeout itself, this is for one that does not.
	TimeoutSlack = 2 * time.Second
	// CancelBound is how long a cancelled command may take to end: INT, TERM after 2 s, KILL after 2 s more and the
	// proof of its end are the lender's part.
	CancelBound = 5 * time.Second
)

// ErrStale says that the lease is not held, so nothing may be run with it.
var ErrStale = errors.New("lease: not held any more")

// ErrBusy says that a command runs under the lease already.
var ErrBusy = errors.New("lease: a command runs already")

// State of a Lease. It only moves forward, but for an offer that goes back to the queue when the lender's link drops, and
// for a holder that does when the lender's user came before its command.
type State uint8

const (
	Queued  State = iota + 1 // waits in line
	Offered                  // first in line, the lender was asked
	Held
	Ended
)

func (s State) String() string {
	switch s {
	case Queued:
		return "queued"
	case Offered:
		return "offered"
	case Held:
		return "held"
	case Ended:
		return "ended"
	}
	return "none"
}

// How a lease ended.
const (
	Released     = "released"     // the borrower gave it back, or left the queue
	TimedOut     = "timeout"      // waited as long as it would
	Expired      = "expired"      // its term, or its command's time, ran out
	Revoked      = "revoked"      // the user took it back
	Denied       = "denied"       // the lender refused
	ShellExited  = "shell_exited" // what was lent is gone
	Disconnected = "disconnected" // the lender's link dropped and did not come back in time
	NoShell      = "no_shell"     // nobody lends any more
	ShuttingDown = "shutting_down"
)

// Why a command is cancelled, in the words of the protocol.
const (
	CancelUser    = "user_abort"
	CancelTimeout = "timeout"
	CancelStale   = "stale"
)

// Request is what a borrower wants. Wait and Term of zero stand for the defaults.
type Request struct {
	ID      string // chosen by the borrower, unique
	Holder  string // shown to whoever waits
	Purpose string // shown to the user
	Wait    time.Duration
	Term    time.Duration
	Owner   any // the driver's own; not looked at
}

// Lease is one place in the queue and what became of it. Its fields are read between calls of its Manager, by whoever
// serialises them; all of them are the Manager's to write.
type Lease struct {
	Request
	State   State
	Fence   uint64    // 0 before the first offer
	Asked   time.Time // when it entered the queue
	Since   time.Time // when it was granted
	Outcome string    // once Ended

	execution string    // "" = no command runs
	startedAt time.Time // when the lender said that it runs, and later by the time for which its clock stood still
	stoodAt   time.Time // since when its clock stands still; zero = it runs
	timeout   time.Duration
	cancelled string // why the running command is being cancelled; "" = it is not
	ending    string // outcome once the running command has ended; "" = goes on

	next, prev *Lease
	heap       int // index in Manager.bounds, -1 = not in it
	bound      time.Time
}

// Running returns the execution that runs under the lease, "" for none.
func (l *Lease) Running() string { return l.execution }

// Began reports whether a command has begun under the lease, as far as the lender said.
func (l *Lease) Began() bool { return !l.startedAt.IsZero() }

// CancelReason returns why the command was cancelled, "" where it was not. It stays readable after the lease has ended.
func (l *Lease) CancelReason() string { return l.cancelled }

// Timeout returns the bound of the running command from its start; zero when none runs.
func (l *Lease) Timeout() time.Duration { return l.timeout }

// Ref names a lease as messages do: the fence tells a message that is too late from one that is not.
type Ref struct {
	ID    string
	Fence uint64
}

// Ref returns the lease's current name.
func (l *Lease) Ref() Ref { return Ref{l.ID, l.Fence} }

// Do says what an Effect asks of the driver.
type Do uint8

const (
	// Offer asks the lender: AcquireShellLease with Ref.
	Offer Do = iota + 1
	// Grant tells the borrower that it holds the lease.
	Grant
	// Cancel tells the lender to end the running Execution, for Reason.
	Cancel
	// Release tells the lender that Ref is over, for Reason. Lease is nil when Ref was never, or is no longer, ours.
	Release
	// End tells the borrower that its lease is over; Reason is its Outcome, and Holder and HeldFor say who had it where
	// it waited in vain.
	End
)

func (d Do) String() string {
	return [...]string{"none", "offer", "grant", "cancel", "release", "end"}[min(int(d), 5)]
}

// Effect is one thing to do after a call. Effects are carried out in the order in which they are returned.
type Effect struct {
	Do        Do
	Lease     *Lease
	Ref       Ref
	Reason    string
	Execution string
	Holder    string
	HeldFor   time.Duration
}

// MaxFence is above every fence: a float64, which some clients keep them in, holds every integer up to it.
const MaxFence = 1 << 53

// Fences mints fences. One serves all Managers of a daemon, so that fences grow across lenders and reconnects. The zero
// value begins at 1. Safe for concurrent use.
type Fences struct{ last atomic.Uint64 }

// Next returns a fence greater than every one before.
func (f *Fences) Next() uint64 { return f.last.Add(1) }

// Above makes sure that later fences are greater than n: seed with the time at start, so that a new daemon's fences are
// above the old one's, and with each fence that a lender reports. One from which the next might reach MaxFence was never minted, and is ignored.
func (f *Fences) Above(n uint64) {
	for n < MaxFence/2 {
		last := f.last.Load()
		if last >= n || f.last.CompareAndSwap(last, n) {
			return
		}
	}
}
