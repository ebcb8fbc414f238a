package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/mask"

	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// ErrNoLease says that no lease has that id.
var ErrNoLease = errors.New("there is no such lease")

// A NoShellError says that nobody lends a shell that could be borrowed.
type NoShellError struct{ PID int }

func (e *NoShellError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("client %d lends no shell", e.PID)
	}
	return "nobody lends a shell"
}

// Hint tells how to have one.
func (e *NoShellError) Hint() string {
	return "start `sublet` in a terminal, or name another client: `sublet lease ls`"
}

// LeaseRun borrows another client's shell for one command of the user's own: not asked, but audited. One of a process that an
// agent of another program started is that agent's, and judged as such. The lease's events
// answer, with the request's id, up to ShellLeaseReleased or ShellLeaseDenied.
func (c *Client) LeaseRun(r *wire.LeaseRunRequest) error {
	if err := c.Seen(r.RequestID); err != nil {
		return err
	}
	if err := c.person(); err != nil {
		return err
	}
	switch {
	case r.Command == "":
		return invalid("command: is empty")
	case strings.ContainsRune(string(r.Command), 0):
		return invalid("command: contains a NUL byte")
	case r.Cwd != "" && !filepath.IsAbs(string(r.Cwd)):
		return invalid("cwd: %s is not absolute", visible.Exact(string(r.Cwd)))
	case r.WaitMS < 0 || r.TimeoutMS < 0:
		return invalid("wait_ms and timeout_ms must not be less than 0")
	case r.TimeoutMS > lease.MaxTimeout.Milliseconds():
		return invalid("timeout_ms: %d is more than the limit of %d", r.TimeoutMS, lease.MaxTimeout.Milliseconds())
	}
	if of := c.startedBy(); of.Name != "" {
		return c.leaseRunAs(r, of)
	}
	ln := c.hub.lenderFor(r.ClientPID)
	if ln == nil {
		return &NoShellError{PID: r.ClientPID}
	}
	limit := c.hub.opts.Config().Limits.RunningTurns
	c.mu.Lock()
	full := c.running+len(c.borrowed) >= limit
	c.mu.Unlock()
	if full {
		return &LimitError{Limit: limit}
	}
	if err := c.hub.begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.hub.ctx)
	stop := func(why *stopped) { cancel(why) }
	c.track(r.RequestID, stop)
	c.mu.Lock()
	c.borrowed[r.RequestID] = stop
	c.mu.Unlock()
	over := func() {
		c.untrack(r.RequestID)
		c.mu.Lock()
		delete(c.borrowed, r.RequestID)
		c.mu.Unlock()
		c.hub.over()
	}
	l := c.ask(ctx, ln, r) // from here on others are behind it; the rest is for a goroutine of its own
	l.over = over
	go func() { // ends with the command; Close waits for it
		defer c.hub.work.Done()
		defer cancel(nil)
		l.see()
	}()
	return nil
}

// lenderFor finds the shell to borrow: that of the client named, else of the one last typed in.
func (h *Hub) lenderFor(pid int) *lender {
	h.mu.Lock()
	lenders := make([]*lender, 0, len(h.lenders))
	for _, ln := range h.lenders {
		if pid == 0 || ln.pid == pid {
			lenders = append(lenders, ln)
		}
	}
	h.mu.Unlock()
	return lastTyped(lenders)
}

// lastTyped is the shell that its user typed in last, of those whose client is there; nil for none. Asked twice about the
// same shells it answers the same.
func lastTyped(lenders []*lender) *lender {
	var best *lender
	var last time.Time
	for _, ln := range lenders {
		ln.mu.Lock()
		linked, typed := ln.client != nil, ln.typedAt
		ln.mu.Unlock()
		if linked && (best == nil || typed.After(last) || typed.Equal(last) && ln.pid < best.pid) {
			best, last = ln, typed
		}
	}
	return best
}

// loan is a command that a client borrows another's shell for.
type loan struct {
	client *Client
	borrow *borrow
	entry  store.AuditEntry
	began  time.Time
	over   func()                        // counts it out, before its end is told, like a turn's
	ref    atomic.Pointer[wire.LeaseRef] // ids are known once the shell is ours
}

// ask puts the wish into the queue.
func (c *Client) ask(ctx context.Context, ln *lender, r *wire.LeaseRunRequest) *loan {
	cfg := c.hub.opts.Config()
	execution := wire.ExecutionID(wire.NewID())
	l := &loan{client: c, began: time.Now()}
	l.entry = store.AuditEntry{
		At: l.began, Event: "decision", Agent: c.who(), Tool: "lease run", Command: mask.String(string(r.Command)),
		Cwd: string(r.Cwd), Decision: "allow", By: "the user's own act",
	}
	decision := l.entry
	l.ref.Store(&wire.LeaseRef{RequestID: r.RequestID})
	w := wish{
		holder: "lease run", purpose: cut(firstLine(string(r.Command)), 120),
		wait: cfg.Lease.Wait, term: cfg.Lease.Term, execution: execution,
		command: string(r.Command), cwd: string(r.Cwd), timeout: cfg.Shell.CommandTimeout, vetted: true,
		record: func() { c.hub.audit(decision) },
		told:   l.told,
		watch: watcher{
			queued: func(holder string, held time.Duration, position int, why string) {
				l.ref.Store(&wire.LeaseRef{RequestID: r.RequestID}) // also for who had it and goes back into the line
				c.send(&wire.ShellLeaseQueued{LeaseRef: *l.ref.Load(), Holder: holder, HeldMS: held.Milliseconds(), Position: position, Why: why})
			},
			acquired: func(ref wire.LeaseRef, cwd, digest string) {
				ref.RequestID = r.RequestID
				l.ref.Store(&ref)
				c.send(&wire.ShellLeaseAcquired{LeaseRef: ref, Cwd: wire.OSString(cwd), State: digest})
			},
			started: func() { c.send(&wire.CommandStarted{LeaseRef: *l.ref.Load(), ExecutionID: execution}) },
			output: func(offset int64, data []byte) {
				c.send(&wire.CommandOutput{LeaseRef: *l.ref.Load(), ExecutionID: execution, Offset: offset, Data: data})
			},
		},
	}
	if r.WaitMS > 0 {
		w.wait = ms(r.WaitMS)
	}
	if r.TimeoutMS > 0 {
		w.timeout = ms(r.TimeoutMS)
	}
	l.borrow = ln.ask(ctx, w)
	return l
}

// see runs the command and tells its events.
func (l *loan) see() {
	c := l.client
	_, err := l.borrow.lender.see(l.borrow)
	ref := *l.ref.Load()
	if err != nil {
		l.over()
		entry := l.ended()
		entry.Status = wire.StatusRefused
		c.hub.audit(entry)
		c.denied(ref, err)
		return
	}
	c.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: releasedFor(l.borrow.outcome)})
}

// releasedFor is how a lease ended, in the words for its borrower.
func releasedFor(outcome string) string {
	switch outcome {
	case lease.Revoked:
		return wire.ReleasedByUser
	case lease.Expired:
		return wire.ReleasedExpired
	case lease.ShellExited:
		return wire.ReleasedShellExited
	case lease.Disconnected, lease.NoShell, lease.ShuttingDown:
		return wire.ReleasedDisconnected
	}
	return wire.ReleasedReleased
}

// told tells the command's end, which is in the audit log by then.
func (l *loan) told(done *wire.CommandCompleted) {
	l.over()
	entry := l.ended()
	entry.Status, entry.ExitCode = done.Status, done.ExitCode
	l.client.hub.audit(entry)
	out := *done
	out.LeaseRef = *l.ref.Load()
	l.client.send(&out)
}

// ended is the log's second entry for it.
func (l *loan) ended() store.AuditEntry {
	e := l.entry
	e.Event, e.Decision, e.At, e.DurationMS = "execution", "", time.Now(), time.Since(l.began).Milliseconds()
	return e
}

// denied answers a borrower that did not get the shell.
func (c *Client) denied(ref wire.LeaseRef, err error) {
	m := &wire.ShellLeaseDenied{LeaseRef: ref, Reason: wire.DeniedUser}
	busy, isBusy := errors.AsType[*tool.BusyError](err)
	broken, isBroken := errors.AsType[*tool.BrokenError](err)
	switch {
	case isBusy:
		m.Reason, m.Holder, m.HeldMS, m.Why = wire.DeniedTimeout, busy.Holder, busy.Held.Milliseconds(), busy.Why
	case isBroken:
		m.Reason, m.Why = wire.DeniedBroken, broken.Why
	case errors.Is(err, tool.ErrNoShell):
		m.Reason = wire.DeniedNoShell
	case errors.Is(err, ErrShuttingDown):
		m.Reason = wire.DeniedShuttingDown
	case errors.Is(err, context.Canceled):
		c.send(&wire.Error{
			Event: wire.Event{RequestID: ref.RequestID}, Code: wire.CodeCancelled, Message: err.Error(),
			Details: map[string]string{}, Recoverable: true,
		})
		return
	}
	c.send(m)
}

// cancelBorrowed ends the commands that this client borrowed another's shell for.
func (c *Client) cancelBorrowed() {
	c.mu.Lock()
	var cancels []func(*stopped)
	for _, cancel := range c.borrowed {
		cancels = append(cancels, cancel)
	}
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel(cancelledBy(c.who(), "its connection ended"))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return visible.Exact(line)
}
