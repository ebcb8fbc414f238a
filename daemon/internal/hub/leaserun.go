package hub

import (
	"context"
	"time"

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
	if err := c.begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.requests.track(r.RequestID, func(why *stopped) { cancel(why) })
	cfg := c.hub.opts.Config()
	loan := &lend.Loan{
		Request: r, Who: c.who(), Wait: time.Duration(cfg.Lease.Wait), Term: time.Duration(cfg.Lease.Term), Timeout: time.Duration(cfg.Shell.CommandTimeout), Relay: lend.NewRelay(r.RequestID, c.Send),
		Audit: func(e store.AuditEntry) { _ = c.hub.audit(e) }, // it is in the daemon's log
		Over:  func() { c.end(r.RequestID) },
	}
	loan.Ask(ctx, ln) // from here on others are behind it; the rest is for a goroutine of its own
	go func() {       // ends with the command; Close waits for it
		defer c.hub.work.Done()
		defer cancel(nil)
		loan.See()
	}()
	return nil
}
