package hub

import (
	"context"
	"maps"
	"slices"

	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// LeaseRun borrows another client's shell for one command of the user's own: not asked, but audited. One of a process that an
// agent of another program started is that agent's, and judged as such. The lease's events
// answer, with the request's id, up to ShellLeaseReleased or ShellLeaseDenied.
func (c *Client) LeaseRun(r *wire.LeaseRunRequest) error {
	if err := c.person(); err != nil {
		return err
	}
	if err := lend.Check(r); err != nil {
		return invalid("%v", err)
	}
	if of := c.startedBy(); of.Name != "" {
		return c.leaseRunAs(r, of)
	}
	ln := c.hub.shells.Find(r.ClientPID)
	if ln == nil {
		return &lend.NoShellError{PID: r.ClientPID}
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
	cfg := c.hub.opts.Config()
	loan := &lend.Loan{
		Request: r, Who: c.who(), Wait: cfg.Lease.Wait, Term: cfg.Lease.Term, Timeout: cfg.Shell.CommandTimeout, Send: c.Send,
		Audit: func(e store.AuditEntry) { _ = c.hub.audit(e) }, // it is in the daemon's log
		Over: func() {
			c.untrack(r.RequestID)
			c.mu.Lock()
			delete(c.borrowed, r.RequestID)
			c.mu.Unlock()
			c.hub.over()
		},
	}
	loan.Ask(ctx, ln) // from here on others are behind it; the rest is for a goroutine of its own
	go func() {       // ends with the command; Close waits for it
		defer c.hub.work.Done()
		defer cancel(nil)
		loan.See()
	}()
	return nil
}

// cancelBorrowed ends the commands that this client borrowed another's shell for.
func (c *Client) cancelBorrowed() {
	c.mu.Lock()
	cancels := slices.Collect(maps.Values(c.borrowed))
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel(cancelledBy(c.who(), "its connection ended"))
	}
}
