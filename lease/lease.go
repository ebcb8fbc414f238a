// Package lease is the queue and the deadlines of one resource that a lender lends to one borrower at a time. It is a pure
// state machine: every method takes the current time and returns the actions that follow (Effect); none waits, sends, logs
// or starts a goroutine. The caller, called the driver here, serialises the calls, performs the effects in order, and calls
// Tick at NextDeadline. What is lent, and how the lender is reached, is left to the driver.
package lease

import (
	"errors"
	"sync/atomic"
	"time"
)

// Bounds and defaults.
const (
	DefaultWait    = 60 * time.Second  // in the queue and on offer, until the lease ends as TimedOut
	DefaultTerm    = 30 * time.Second  // held without a running command
	DefaultTimeout = 120 * time.Second // of one command
	MaxTimeout     = time.Hour         // of one command
	Grace          = 60 * time.Second  // for a running command after the link to its lender was lost
	// TimeoutSlack is added to a command's timeout here: the lender enforces the timeout itself; this later deadline is for a
	// lender that fails to.
	TimeoutSlack = 2 * time.Second
	// CancelBound is how long the lender may take to end a cancelled command: it sends INT, TERM after 2 s and KILL after
	// 2 s more.
	CancelBound = 5 * time.Second
)

// ErrStale reports that the lease is not held, so no command may run under it.
var ErrStale = errors.New("lease: not held any more")

// ErrBusy reports that a command is already running under the lease.
var ErrBusy = errors.New("lease: a command runs already")

// State of a Lease. It only moves forward, with two exceptions: Offered becomes Queued again when the link to the lender is
// lost, and Held becomes Queued when the lender's user begins a command before the holder does (Preempted).
type State uint8

const (
	Queued  State = iota + 1 // waits in the queue
	Offered                  // first in the queue, and the lender was asked
	Held
	Ended
)

// How a lease ended.
const (
	Released     = "released"     // the borrower gave it back, or left the queue
	TimedOut     = "timeout"      // it was not granted within Request.Wait
	Expired      = "expired"      // its term, or its command's timeout, passed
	Revoked      = "revoked"      // the user took it back
	Denied       = "denied"       // the lender refused
	ShellExited  = "shell_exited" // the resource ended
	Disconnected = "disconnected" // the link to the lender was lost and not restored in time
	NoShell      = "no_shell"     // there is no lender any more
	ShuttingDown = "shutting_down"
)

// Why a command is cancelled: the values of CancelLeasedCommand.Reason on the wire.
const (
	CancelUser    = "user_abort"
	CancelTimeout = "timeout"
	CancelStale   = "stale"
)

// Request is what a borrower asks for. A Wait or Term of zero means the default.
type Request struct {
	ID      string // chosen by the borrower, unique
	Holder  string // shown to those who wait
	Purpose string // shown to the user
	Wait    time.Duration
	Term    time.Duration
	Owner   any // for the driver; the Manager does not use it
}

// Lease is one entry of the queue, from its Request to its end. Only its Manager writes the fields; the driver may read
// them between calls of the Manager.
type Lease struct {
	Request
	State State
	Fence uint64    // 0 before the first offer
	Asked time.Time // when it entered the queue
	Since time.Time // when it was granted

	execution      string    // "" = no command runs
	startedAt      time.Time // when the lender reported it, plus the time for which its timeout was paused; zero = not yet
	pausedAt       time.Time // since when its timeout is paused; zero = it is not
	timeout        time.Duration
	cancelled      string    // why the running command is being cancelled; "" = it is not
	pendingOutcome string    // the Outcome of the lease once the running command has ended; "" = the lease continues
	waitUntil      time.Time // when it ends as TimedOut unless it was granted
}

// Running returns the execution that runs under the lease, "" for none.
func (l *Lease) Running() string { return l.execution }

// Began reports whether the lender has reported the start of a command under the lease.
func (l *Lease) Began() bool { return !l.startedAt.IsZero() }

// CancelReason returns why the running command is being cancelled, "" if it is not. A lease that ended before the end of its
// command was reported keeps it.
func (l *Lease) CancelReason() string { return l.cancelled }

// Timeout returns the bound of the running command from its start. It has a meaning only while a command runs.
func (l *Lease) Timeout() time.Duration { return l.timeout }

// Ref identifies a lease in messages. The fence distinguishes messages of the current grant from late ones.
type Ref struct {
	ID    string
	Fence uint64
}

// Ref returns the lease's current reference.
func (l *Lease) Ref() Ref { return Ref{l.ID, l.Fence} }

// Do is the action of an Effect.
type Do uint8

const (
	// Offer: ask the lender for the resource (AcquireShellLease with Ref).
	Offer Do = iota + 1
	// Grant: report to the borrower that it holds the lease.
	Grant
	// Cancel: ask the lender to end the running Execution, for Reason.
	Cancel
	// Release: report to the lender that Ref has ended, for Reason. Lease is nil if no lease here has that Ref.
	Release
	// End: report to the borrower that its lease has ended. Reason is its Outcome. If the lease was never held, Holder is
	// who had the resource, and HeldFor for how long.
	End
)

// Effect is one action for the driver. Effects are performed in the order in which a method returned them.
type Effect struct {
	Do        Do
	Lease     *Lease
	Ref       Ref
	Reason    string
	Execution string
	Holder    string
	HeldFor   time.Duration
}

// MaxFence is greater than every fence. A float64, in which some clients store fences, represents every integer up to it.
const MaxFence = 1 << 53

// Fences makes fencing tokens. All Managers of a daemon share one, so that fences grow across lenders and reconnects. The
// zero value begins at 1. It is safe for concurrent use.
type Fences struct{ last atomic.Uint64 }

// Next returns a fence greater than every one before.
func (f *Fences) Next() uint64 { return f.last.Add(1) }

// Above makes later fences greater than n. A daemon calls it with the time when it starts, so that its fences are above
// those of the daemon before, and with each fence that a lender reports. An n of MaxFence/2 or more cannot be genuine and
// is ignored.
func (f *Fences) Above(n uint64) {
	for n < MaxFence/2 {
		last := f.last.Load()
		if last >= n || f.last.CompareAndSwap(last, n) {
			return
		}
	}
}
