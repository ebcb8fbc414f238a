package lease

import (
	"slices"
	"time"
)

// Manager lends one resource. NewManager makes one. It is not safe for concurrent use: the driver holds a lock during each
// call. The slice of effects that a method returns is valid until the next call.
type Manager struct {
	fences *Fences

	queue    []*Lease  // only the first can be Offered or Held
	deadline time.Time // of the holder: of its term, command, cancellation or grace; zero = there is no holder

	linked bool   // the lender can be reached
	closed string // why nothing is lent any more; "" = open

	// Who uses the resource at the lender while it is on offer, and since when; "" = not known.
	lenderUser      string
	lenderUserSince time.Time

	batching bool // set while one call ends several leases; the next offer is made once, at its end
	out      []Effect
}

// forever is the deadline of a command whose timeout is paused.
const forever = 100 * 365 * 24 * time.Hour

// NewManager returns a Manager whose lender can be reached. fences is shared with the daemon's other managers.
func NewManager(fences *Fences) *Manager {
	return &Manager{fences: fences, linked: true}
}

// Request adds a borrower at the end of the queue. If the queue was empty, the lender is asked at once; after Close the
// lease ends at once. l is storage for the lease, which the Manager overwrites and uses until the End effect: a new Lease,
// or one that has ended.
func (m *Manager) Request(now time.Time, l *Lease, r Request) []Effect {
	m.out = m.out[:0]
	if r.Wait <= 0 {
		r.Wait = DefaultWait
	}
	if r.Term <= 0 {
		r.Term = DefaultTerm
	}
	*l = Lease{Request: r, State: Queued, Asked: now, waitUntil: now.Add(r.Wait)}
	if m.closed != "" {
		m.end(l, m.closed)
		return m.out
	}
	m.queue = append(m.queue, l)
	m.offerHead()
	return m.out
}

// head returns the first in the queue, nil if it is empty.
func (m *Manager) head() *Lease {
	if len(m.queue) == 0 {
		return nil
	}
	return m.queue[0]
}

// offerHead asks the lender on behalf of the first in the queue, if it has not been asked and can be reached.
func (m *Manager) offerHead() {
	l := m.head()
	if l == nil || l.State != Queued || !m.linked || m.batching {
		return
	}
	l.State = Offered
	l.Fence = m.fences.Next()
	m.lenderUser = ""
	m.out = append(m.out, Effect{Do: Offer, Lease: l, Ref: l.Ref()})
}

// current returns the lease that ref identifies if it is on offer or held. It returns nil for a late or foreign message.
func (m *Manager) current(ref Ref) *Lease {
	if l := m.head(); l != nil && l.State != Queued && l.Fence == ref.Fence && l.ID == ref.ID {
		return l
	}
	return nil
}

// Wait records that the lender cannot lend yet, because holder (the lender's own user) has used the resource for held.
func (m *Manager) Wait(now time.Time, ref Ref, holder string, held time.Duration) {
	if l := m.current(ref); l != nil && l.State == Offered {
		m.lenderUser, m.lenderUserSince = holder, now.Add(-held)
	}
}

// Acquired records that the lender lends. A late answer is released at once, so that the lender does not keep lending to a
// borrower that has left the queue.
func (m *Manager) Acquired(now time.Time, ref Ref) []Effect {
	m.out = m.out[:0]
	l := m.current(ref)
	switch {
	case l == nil:
		m.out = append(m.out, Effect{Do: Release, Ref: ref, Reason: CancelStale})
	case l.State == Offered:
		l.State = Held
		l.Since = now
		m.deadline = now.Add(l.Term)
		m.out = append(m.out, Effect{Do: Grant, Lease: l, Ref: ref})
	}
	return m.out
}

// Refused records that the lender does not lend to ref; outcome is the reason (Denied, NoShell, ShuttingDown, TimedOut).
func (m *Manager) Refused(now time.Time, ref Ref, outcome string) []Effect {
	m.out = m.out[:0]
	if l := m.current(ref); l != nil && l.State == Offered {
		m.finish(now, l, outcome, false)
	}
	return m.out
}

// Execute records that the driver sends a command to the lender. The lease stays held for the command's timeout, which is
// clamped to MaxTimeout; zero means DefaultTimeout. It returns ErrStale if l is not held or is about to end, or if the
// lender cannot be reached, and ErrBusy while another command runs.
func (m *Manager) Execute(now time.Time, l *Lease, execution string, timeout time.Duration) error {
	switch {
	case l.State != Held || !m.linked || l.pendingOutcome != "":
		return ErrStale
	case l.execution != "":
		return ErrBusy
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	l.execution, l.startedAt, l.pausedAt, l.cancelled = execution, time.Time{}, time.Time{}, ""
	l.timeout = min(timeout, MaxTimeout)
	// The term bounds the time until the lender reports the start.
	m.deadline = now.Add(l.Term)
	return nil
}

// Started records that the lender began the command, which starts its timeout. It returns false for a message of another
// command or a duplicate.
func (m *Manager) Started(now time.Time, ref Ref, execution string) bool {
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution || !l.startedAt.IsZero() {
		return false
	}
	l.startedAt = now
	m.setCommandDeadline(now, l)
	return true
}

// Keyboard records whether the running command has the keyboard of the lender's user. While it has, its timeout is paused.
func (m *Manager) Keyboard(now time.Time, ref Ref, execution string, has bool) {
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution || l.startedAt.IsZero() || has == !l.pausedAt.IsZero() {
		return
	}
	if has {
		l.pausedAt = now
	} else {
		l.startedAt, l.pausedAt = l.startedAt.Add(now.Sub(l.pausedAt)), time.Time{}
	}
	m.setCommandDeadline(now, l)
}

// setCommandDeadline sets the deadline of a started command from its timeout, unless it is being cancelled or the link is
// lost, when CancelBound or Grace applies.
func (m *Manager) setCommandDeadline(now time.Time, l *Lease) {
	switch {
	case l.cancelled != "" || !m.linked:
	case l.pausedAt.IsZero():
		m.deadline = l.startedAt.Add(l.timeout + TimeoutSlack)
	default:
		m.deadline = now.Add(forever)
	}
}

// Output reports whether ref and execution identify the running command, so that its output may be used.
func (m *Manager) Output(ref Ref, execution string) bool {
	l := m.current(ref)
	return l != nil && execution != "" && l.execution == execution
}

// Completed records that the command ended, which starts a new term. ok is false, and nothing changes, if it is not the
// running command of the current lease: the message is late or a duplicate.
func (m *Manager) Completed(now time.Time, ref Ref, execution string) (ok bool, effects []Effect) {
	m.out = m.out[:0]
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution {
		return false, nil
	}
	l.execution, l.timeout, l.cancelled = "", 0, ""
	m.deadline = now.Add(l.Term)
	if l.pendingOutcome != "" {
		m.finish(now, l, l.pendingOutcome, true)
	}
	return true, m.out
}

// CancelCommand asks the lender to end the running command, if there is one. The borrower keeps the lease. If the end is
// not reported within CancelBound, the lease expires.
func (m *Manager) CancelCommand(now time.Time, l *Lease, reason string) []Effect {
	m.out = m.out[:0]
	m.cancel(now, l, reason)
	return m.out
}

func (m *Manager) cancel(now time.Time, l *Lease, reason string) {
	if l.State != Held || l.execution == "" || l.cancelled != "" {
		return
	}
	l.cancelled = reason
	m.deadline = now.Add(CancelBound)
	m.out = append(m.out, Effect{Do: Cancel, Lease: l, Ref: l.Ref(), Execution: l.execution, Reason: reason})
}

// Release ends a lease in any state. It is idempotent. A waiter leaves the queue. A running command is cancelled first, and
// the resource is offered to the next waiter once the command has ended or CancelBound has passed.
func (m *Manager) Release(now time.Time, l *Lease) []Effect {
	m.out = m.out[:0]
	m.release(now, l, Released)
	return m.out
}

// Revoke is Release on behalf of somebody other than the borrower: the lease ends as Revoked.
func (m *Manager) Revoke(now time.Time, l *Lease) []Effect {
	m.out = m.out[:0]
	m.release(now, l, Revoked)
	return m.out
}

// release ends l with the outcome: at once or, if a command runs, when that has been cancelled and has ended.
func (m *Manager) release(now time.Time, l *Lease, outcome string) {
	if l.State == Held && l.execution != "" {
		if l.pendingOutcome == "" {
			l.pendingOutcome = outcome
		}
		m.cancel(now, l, CancelStale)
		return
	}
	m.finish(now, l, outcome, true)
}

// Gone records that the lender ended the lease: the user took the resource back, or it ended. The lender's answer to a
// Release also arrives here and changes nothing.
func (m *Manager) Gone(now time.Time, ref Ref, outcome string) []Effect {
	m.out = m.out[:0]
	if l := m.current(ref); l != nil {
		m.finish(now, l, outcome, false)
	}
	return m.out
}

// Preempted records that the lender took the resource back for user before the holder's command began. The lease goes back
// to the head of the queue, keeps its waitUntil, and is offered again. It ends instead if it was about to end, if it was not
// granted yet, if its command was cancelled or had begun, or if waitUntil has passed.
func (m *Manager) Preempted(now time.Time, ref Ref, user string) []Effect {
	m.out = m.out[:0]
	switch l := m.current(ref); {
	case l == nil:
	case l.pendingOutcome != "":
		m.finish(now, l, l.pendingOutcome, false)
	case l.cancelled != "":
		m.finish(now, l, Released, false)
	case l.State == Offered || l.Began():
		m.finish(now, l, Revoked, false)
	case !l.waitUntil.After(now):
		l.State, m.lenderUser, m.lenderUserSince = Offered, user, now // so that the borrower is sent the user as the holder
		m.finish(now, l, TimedOut, false)
	default:
		l.State, l.execution, l.timeout = Queued, "", 0
		m.offerHead()
		m.lenderUser, m.lenderUserSince = user, now
	}
	return m.out
}

// Disconnect records that the link to the lender was lost. Waiters keep their place, an offered lease is queued again, a
// holder without a command loses its lease, and one with a running command keeps it for Grace.
func (m *Manager) Disconnect(now time.Time) []Effect {
	m.out = m.out[:0]
	if !m.linked {
		return m.out
	}
	m.linked = false
	l := m.head()
	switch {
	case l == nil:
	case l.State == Offered:
		l.State = Queued
	case l.State == Held && l.execution != "":
		m.deadline = now.Add(Grace)
	case l.State == Held:
		m.finish(now, l, Disconnected, false)
	}
	return m.out
}

// Reconnect records that the link to the lender is back. held are the leases that the lender knows, and executions, index
// by index, the commands that run under them ("" = none). A lease whose running command is among them stays held and is
// returned as adopted; any other held lease ends as Disconnected. The lender must end all leases but adopted.
func (m *Manager) Reconnect(now time.Time, held []Ref, executions []string) (adopted *Lease, effects []Effect) {
	m.out = m.out[:0]
	m.linked, m.batching = true, true
	for _, r := range held {
		m.fences.Above(r.Fence) // so that the next fence is newer than any that the lender knows
	}
	l := m.head()
	if l != nil && l.State == Offered { // Disconnect was not called; offer it again under a new fence
		l.State = Queued
	}
	if l != nil && l.State == Held {
		for i, r := range held {
			if r == l.Ref() && l.execution != "" && i < len(executions) && executions[i] == l.execution {
				adopted = l
			}
		}
		if adopted == nil {
			m.finish(now, l, Disconnected, true)
		} else {
			if l.startedAt.IsZero() { // the report of the start was lost with the link
				l.startedAt = now
			}
			reason := l.cancelled
			l.cancelled = ""
			m.setCommandDeadline(now, l)
			if reason != "" { // the request to cancel may have been lost with the link: repeat it
				m.cancel(now, l, reason)
			}
		}
	}
	m.batching = false
	m.offerHead()
	return adopted, m.out
}

// Close ends every lease with outcome (NoShell, ShuttingDown). Later requests end at once with the outcome of the first
// Close.
func (m *Manager) Close(now time.Time, outcome string) []Effect {
	m.out = m.out[:0]
	if m.closed == "" {
		m.closed = outcome
	}
	m.batching = true
	for len(m.queue) > 0 {
		m.finish(now, m.queue[0], outcome, true)
	}
	m.batching = false
	return m.out
}

// Tick ends the waits, terms, commands and cancellations whose deadline has passed. The driver calls it at NextDeadline; an
// early call does nothing.
func (m *Manager) Tick(now time.Time) []Effect {
	m.out = m.out[:0]
	m.batching = true                         // offer only after all expired waits are removed
	for _, l := range slices.Clone(m.queue) { // finish takes l out of the queue
		if l.State != Held && !l.waitUntil.After(now) {
			m.finish(now, l, TimedOut, true)
		}
	}
	if l := m.head(); l != nil && l.State == Held && !m.deadline.After(now) {
		switch {
		case l.execution == "", m.linked && l.startedAt.IsZero() && l.cancelled == "": // the term passed
			m.finish(now, l, Expired, true)
		case !m.linked: // Grace passed
			m.finish(now, l, Disconnected, false)
		case l.cancelled == "": // the command's timeout passed
			m.cancel(now, l, CancelTimeout)
		default: // CancelBound passed
			outcome := l.pendingOutcome
			if outcome == "" {
				outcome = Expired
			}
			m.finish(now, l, outcome, true)
		}
	}
	m.batching = false
	m.offerHead()
	return m.out
}

// NextDeadline returns when Tick must be called next; ok is false if there is no deadline.
func (m *Manager) NextDeadline() (at time.Time, ok bool) {
	for _, l := range m.queue {
		due := l.waitUntil
		if l.State == Held {
			due = m.deadline
		}
		if at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at, len(m.queue) > 0
}

// finish ends l and makes the next offer. It is idempotent. If notifyLender is set and the lender knows of l, a running
// command is cancelled, so that none outlives its lease, and the lender gets a Release.
func (m *Manager) finish(now time.Time, l *Lease, outcome string, notifyLender bool) {
	if l.State == Ended {
		return
	}
	holder, held := "", time.Duration(0)
	if l.State != Held {
		holder, held = m.Holder(now)
	}
	if notifyLender && m.linked && (l.State == Offered || l.State == Held) {
		m.cancel(now, l, CancelStale)
		m.out = append(m.out, Effect{Do: Release, Lease: l, Ref: l.Ref(), Reason: releaseReason(outcome)})
	}
	i := slices.Index(m.queue, l)
	m.queue = slices.Delete(m.queue, i, i+1)
	m.end(l, outcome)
	m.out[len(m.out)-1].Holder, m.out[len(m.out)-1].HeldFor = holder, held
	m.offerHead()
}

func (m *Manager) end(l *Lease, outcome string) {
	l.State = Ended
	m.out = append(m.out, Effect{Do: End, Lease: l, Ref: l.Ref(), Reason: outcome, Execution: l.execution})
	l.execution = ""
}

// releaseReason returns the Reason of ReleaseShellLease for an outcome: the wire has one, "cancelled", for all others.
func releaseReason(outcome string) string {
	switch outcome {
	case Released:
		return "completed"
	case Disconnected:
		return "disconnected"
	case Expired:
		return "expired"
	}
	return "cancelled"
}

// Holder returns who uses the resource and for how long: the holder of the lease or, while it is on offer, the user that
// the lender named; "" if neither is known.
func (m *Manager) Holder(now time.Time) (who string, held time.Duration) {
	switch l := m.head(); {
	case l != nil && l.State == Held:
		return l.Request.Holder, now.Sub(l.Since)
	case m.lenderUser != "" && l != nil && l.State == Offered:
		return m.lenderUser, now.Sub(m.lenderUserSince)
	}
	return "", 0
}

// Current returns the lease that is held, or nil.
func (m *Manager) Current() *Lease {
	if l := m.head(); l != nil && l.State == Held {
		return l
	}
	return nil
}

// Waiting is an iterator over the leases that wait, in order.
func (m *Manager) Waiting(yield func(*Lease) bool) {
	for _, l := range m.queue {
		if l.State != Held && !yield(l) {
			return
		}
	}
}

// Len returns how many leases are held or wait.
func (m *Manager) Len() int { return len(m.queue) }

// Position returns how many leases are before l in the queue, a held one included.
func (m *Manager) Position(l *Lease) int { return max(0, slices.Index(m.queue, l)) }
