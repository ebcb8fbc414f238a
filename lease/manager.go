package lease

import (
	"time"
)

// Manager lends one thing. The zero value is not usable; see NewManager. Not safe for concurrent use: its driver holds a
// lock around each call. The slice of effects that a method returns is valid until the next call.
type Manager struct {
	fences *Fences

	head, tail *Lease // the queue, the head being the one that is offered or held
	length     int
	bounds     []*Lease  // heap of those that wait, by bound
	deadline   time.Time // of the holder: its term, its command, its cancel or its grace; zero = none holds

	linked bool   // the lender can be reached
	closed string // why nothing is lent any more; "" = open
	user   string // who has the thing while it is on offer, as the lender said; "" = unknown
	userAt time.Time

	calm bool // no offers just now: more leases end in the same call
	out  []Effect
}

// forever is later than anything ends by itself.
const forever = 100 * 365 * 24 * time.Hour

// NewManager returns a Manager whose lender can be reached. fences is shared with the daemon's other managers.
func NewManager(fences *Fences) *Manager {
	return &Manager{fences: fences, linked: true}
}

// Request puts a borrower at the end of the queue. If nobody is before it, the lender is asked at once; after Close the
// lease ends at once. l is the borrower's memory, which the Manager uses up to the End: new, or that of a lease that has
// ended.
func (m *Manager) Request(now time.Time, l *Lease, r Request) []Effect {
	m.out = m.out[:0]
	if r.Wait <= 0 {
		r.Wait = DefaultWait
	}
	if r.Term <= 0 {
		r.Term = DefaultTerm
	}
	*l = Lease{Request: r, State: Queued, Asked: now, heap: -1, bound: now.Add(r.Wait)}
	if m.closed != "" {
		m.end(now, l, m.closed)
		return m.out
	}
	if m.tail == nil {
		m.head = l
	} else {
		m.tail.next, l.prev = l, m.tail
	}
	m.tail = l
	m.length++
	m.push(l)
	m.offerHead()
	return m.out
}

// offerHead asks the lender for the first in line, if it can be asked and was not.
func (m *Manager) offerHead() {
	l := m.head
	if l == nil || l.State != Queued || !m.linked || m.calm {
		return
	}
	l.State = Offered
	l.Fence = m.fences.Next()
	m.user = ""
	m.out = append(m.out, Effect{Do: Offer, Lease: l, Ref: l.Ref()})
}

// current returns the lease that ref names if it is the one on offer or held, else nil: an old or foreign message.
func (m *Manager) current(ref Ref) *Lease {
	if l := m.head; l != nil && l.State != Queued && l.Fence == ref.Fence && l.ID == ref.ID {
		return l
	}
	return nil
}

// Wait records that the lender will answer later, because holder has the thing since held ago.
func (m *Manager) Wait(now time.Time, ref Ref, holder string, held time.Duration) {
	if l := m.current(ref); l != nil && l.State == Offered {
		m.user, m.userAt = holder, now.Add(-held)
	}
}

// Acquired records that the lender lends. One that comes too late is given back at once, so that no holder is left
// behind that nobody knows of (T2b).
func (m *Manager) Acquired(now time.Time, ref Ref) []Effect {
	m.out = m.out[:0]
	l := m.current(ref)
	switch {
	case l == nil:
		m.out = append(m.out, Effect{Do: Release, Ref: ref, Reason: CancelStale})
	case l.State == Offered:
		l.State = Held
		l.Since = now
		m.drop(l)
		m.deadline = now.Add(l.Term)
		m.out = append(m.out, Effect{Do: Grant, Lease: l, Ref: ref})
	}
	return m.out
}

// Refused records that the lender does not lend to ref; outcome says why (Denied, NoShell, ShuttingDown, TimedOut).
func (m *Manager) Refused(now time.Time, ref Ref, outcome string) []Effect {
	m.out = m.out[:0]
	if l := m.current(ref); l != nil && l.State == Offered {
		m.finish(now, l, outcome, false)
	}
	return m.out
}

// Execute records that the driver hands a command to the lender. The lease stays held for the command's timeout, which
// is clamped to MaxTimeout, zero standing for DefaultTimeout. Returns ErrStale when l is not the holder, when it is being
// cancelled, or when the lender cannot be reached, and ErrBusy while another command runs.
func (m *Manager) Execute(now time.Time, l *Lease, execution string, timeout time.Duration) error {
	switch {
	case l.State != Held || !m.linked || l.ending != "":
		return ErrStale
	case l.execution != "":
		return ErrBusy
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	l.execution, l.startedAt, l.stoodAt, l.cancelled = execution, time.Time{}, time.Time{}, ""
	l.timeout = min(timeout, MaxTimeout)
	// Until the lender says that it runs, the term bounds it.
	m.deadline = now.Add(l.Term)
	return nil
}

// Started records that the lender runs the command: its timeout's clock starts here (T2h). It reports whether the
// message belongs to the running command (T2e).
func (m *Manager) Started(now time.Time, ref Ref, execution string) bool {
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution || !l.startedAt.IsZero() {
		return false
	}
	l.startedAt = now
	m.clock(now, l)
	return true
}

// Keyboard records whether the command that runs has the keyboard of the lender's user: while it has, the clock of its
// timeout stands still.
func (m *Manager) Keyboard(now time.Time, ref Ref, execution string, has bool) {
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution || l.startedAt.IsZero() || has == !l.stoodAt.IsZero() {
		return
	}
	if has {
		l.stoodAt = now
	} else {
		l.startedAt, l.stoodAt = l.startedAt.Add(now.Sub(l.stoodAt)), time.Time{}
	}
	m.clock(now, l)
}

// clock sets the deadline of a command that has started and is not being cancelled.
func (m *Manager) clock(now time.Time, l *Lease) {
	switch {
	case l.cancelled != "" || !m.linked:
	case l.stoodAt.IsZero():
		m.deadline = l.startedAt.Add(l.timeout + TimeoutSlack)
	default:
		m.deadline = now.Add(forever)
	}
}

// Output reports whether output of execution belongs to the command that runs now (T2e).
func (m *Manager) Output(ref Ref, execution string) bool {
	l := m.current(ref)
	return l != nil && execution != "" && l.execution == execution
}

// Completed records that the command ended. ok tells whether it was the running one of the current lease; anything else
// is late or a duplicate and changes nothing (T2e). The term begins anew.
func (m *Manager) Completed(now time.Time, ref Ref, execution string) (ok bool, effects []Effect) {
	m.out = m.out[:0]
	l := m.current(ref)
	if l == nil || execution == "" || l.execution != execution {
		return false, nil
	}
	l.execution, l.timeout, l.cancelled = "", 0, ""
	m.deadline = now.Add(l.Term)
	if l.ending != "" {
		m.finish(now, l, l.ending, true)
	} else if !m.linked {
		m.finish(now, l, Disconnected, true)
	}
	return true, m.out
}

// CancelCommand asks the lender to end the running command; without one it does nothing. The borrower keeps the lease
// and learns the command's end; if that does not come within CancelBound, the lease expires.
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

// Release ends a lease in whatever state it is; again is harmless. A waiter leaves the queue (T2b). A running command is
// cancelled first, and the next in line is asked when it has ended or CancelBound has passed (T2a, T2i).
func (m *Manager) Release(now time.Time, l *Lease) []Effect {
	m.out = m.out[:0]
	m.release(now, l, Released)
	return m.out
}

// Revoke is Release by somebody else: the borrower's lease ends as Revoked.
func (m *Manager) Revoke(now time.Time, l *Lease) []Effect {
	m.out = m.out[:0]
	m.release(now, l, Revoked)
	return m.out
}

func (m *Manager) release(now time.Time, l *Lease, outcome string) {
	if l.State == Held && l.execution != "" {
		if l.ending == "" {
			l.ending = outcome
		}
		m.cancel(now, l, CancelStale)
		return
	}
	m.finish(now, l, outcome, true)
}

// Gone records that the lender ended the lease: because the user took it back, because what was lent ended, or as the
// answer to a Release, which by then changes nothing.
func (m *Manager) Gone(now time.Time, ref Ref, outcome string) []Effect {
	m.out = m.out[:0]
	if l := m.current(ref); l != nil {
		m.finish(now, l, outcome, false)
	}
	return m.out
}

// Preempted records that the lender took the thing for user before the holder's command began there: the lease goes back
// to the head of the queue, with the bound that it had, and is offered again. A borrower that is being rid of it is, and
// one whose command had begun has lost it.
func (m *Manager) Preempted(now time.Time, ref Ref, user string) []Effect {
	m.out = m.out[:0]
	switch l := m.current(ref); {
	case l == nil:
	case l.ending != "":
		m.finish(now, l, l.ending, false)
	case l.cancelled != "":
		m.finish(now, l, Released, false)
	case l.State == Offered || l.Began():
		m.finish(now, l, Revoked, false)
	case !l.bound.After(now): // it has waited as long as it would
		l.State, m.user, m.userAt = Offered, user, now
		m.finish(now, l, TimedOut, false)
	default:
		l.State, l.execution, l.timeout = Queued, "", 0
		m.push(l)
		m.offerHead()
		m.user, m.userAt = user, now
	}
	return m.out
}

// Disconnect records that the lender's link dropped. Waiters keep their place; an offer goes back to the queue; a holder
// without a command loses its lease; a running command has Grace to be heard of again.
func (m *Manager) Disconnect(now time.Time) []Effect {
	m.out = m.out[:0]
	if !m.linked {
		return m.out
	}
	m.linked = false
	l := m.head
	switch {
	case l == nil:
	case l.State == Offered:
		l.State = Queued
	case l.State == Held && l.execution != "":
		m.deadline = now.Add(Grace)
	case l.State == Held:
		m.finish(now, l, Disconnected, true)
	}
	return m.out
}

// Reconnect compares leases with a lender that is back. held is what the lender believes: the running command goes on if
// it is in there, else its lease ends as Disconnected. adopted is what holds from now on; the lender drops the rest.
func (m *Manager) Reconnect(now time.Time, held []Ref, executions []string) (adopted *Lease, effects []Effect) {
	m.out = m.out[:0]
	m.linked, m.calm = true, true
	for _, r := range held {
		m.fences.Above(r.Fence)
	}
	l := m.head
	if l != nil && l.State == Offered { // the drop was never noticed: ask again under a new fence
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
			if l.startedAt.IsZero() { // the lender said so to a link that was gone
				l.startedAt = now
			}
			reason := l.cancelled
			l.cancelled = ""
			m.clock(now, l)
			if reason != "" { // the cancel may have been lost with the link: once more
				m.cancel(now, l, reason)
			}
		}
	}
	m.calm = false
	m.offerHead()
	return adopted, m.out
}

// Close ends every lease with outcome (NoShell, ShuttingDown), and every later request at once.
func (m *Manager) Close(now time.Time, outcome string) []Effect {
	m.out = m.out[:0]
	if m.closed == "" {
		m.closed = outcome
	}
	m.calm = true
	for m.head != nil {
		m.finish(now, m.head, outcome, true)
	}
	m.calm = false
	return m.out
}

// Tick does what is due: waits that are over, terms, commands and cancels that took too long. Call it at NextDeadline;
// early calls are harmless.
func (m *Manager) Tick(now time.Time) []Effect {
	m.out = m.out[:0]
	m.calm = true // who is offered it must not be out of time as well
	for len(m.bounds) > 0 && !m.bounds[0].bound.After(now) {
		m.finish(now, m.bounds[0], TimedOut, true)
	}
	if l := m.head; l != nil && l.State == Held && !m.deadline.After(now) {
		switch {
		case l.execution == "", m.linked && l.startedAt.IsZero() && l.cancelled == "": // its term
			m.finish(now, l, Expired, true)
		case !m.linked: // its grace
			m.finish(now, l, Disconnected, true)
		case l.cancelled == "": // its timeout
			m.cancel(now, l, CancelTimeout)
		default: // did not end when cancelled
			outcome := l.ending
			if outcome == "" {
				outcome = Expired
			}
			m.finish(now, l, outcome, true)
		}
	}
	m.calm = false
	m.offerHead()
	return m.out
}

// NextDeadline returns when Tick is due next; ok is false when nothing is pending.
func (m *Manager) NextDeadline() (at time.Time, ok bool) {
	if len(m.bounds) > 0 {
		at, ok = m.bounds[0].bound, true
	}
	if l := m.head; l != nil && l.State == Held && (!ok || m.deadline.Before(at)) {
		at, ok = m.deadline, true
	}
	return at, ok
}

// finish ends l, tells the lender if tell is set and it knows of l, and asks for the next in line. Again is harmless. A
// command that still runs is cancelled: no lease ends and leaves its command behind (T2i).
func (m *Manager) finish(now time.Time, l *Lease, outcome string, tell bool) {
	if l.State == Ended {
		return
	}
	holder, held := "", time.Duration(0)
	if l.State != Held {
		holder, held = m.Holder(now)
	}
	if tell && m.linked && (l.State == Offered || l.State == Held) {
		m.cancel(now, l, CancelStale)
		m.out = append(m.out, Effect{Do: Release, Lease: l, Ref: l.Ref(), Reason: releaseReason(outcome)})
	}
	m.drop(l)
	m.unlink(l)
	m.end(now, l, outcome)
	m.out[len(m.out)-1].Holder, m.out[len(m.out)-1].HeldFor = holder, held
	m.offerHead()
}

func (m *Manager) end(_ time.Time, l *Lease, outcome string) {
	l.State = Ended
	l.Outcome = outcome
	m.out = append(m.out, Effect{Do: End, Lease: l, Ref: l.Ref(), Reason: outcome, Execution: l.execution})
	l.execution = ""
}

// releaseReason is how the lender is told, in the protocol's words.
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

// Holder says who has the thing and for how long: the holder, or whom the lender named while it is on offer.
func (m *Manager) Holder(now time.Time) (who string, held time.Duration) {
	switch l := m.head; {
	case l != nil && l.State == Held:
		return l.Request.Holder, now.Sub(l.Since)
	case m.user != "" && l != nil && l.State == Offered:
		return m.user, now.Sub(m.userAt)
	}
	return "", 0
}

// Current returns the lease that is held, or nil.
func (m *Manager) Current() *Lease {
	if l := m.head; l != nil && l.State == Held {
		return l
	}
	return nil
}

// Waiting calls yield for everyone who waits, in order, until it returns false.
func (m *Manager) Waiting(yield func(*Lease) bool) {
	for l := m.head; l != nil; l = l.next {
		if l.State != Held && !yield(l) {
			return
		}
	}
}

// Len returns how many hold or wait.
func (m *Manager) Len() int { return m.length }

// Position returns how many are before l.
func (m *Manager) Position(l *Lease) int {
	n := 0
	for p := l.prev; p != nil; p = p.prev {
		n++
	}
	return n
}

func (m *Manager) unlink(l *Lease) {
	if l.prev == nil {
		m.head = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		m.tail = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.next, l.prev = nil, nil
	m.length--
}
