package hub

import (
	"cmp"
	"maps"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/mcp"
	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// Status tells how the daemon is: at once, or when the clients have said who has their shells.
func (c *Client) Status(r *wire.StatusRequest) error {
	if err := c.Seen(r.RequestID); err != nil {
		return err
	}
	h := c.hub
	h.mu.Lock()
	ask := r.Shells && !h.closing
	if ask {
		lenders := slices.Collect(maps.Values(h.lenders))
		// The answers may come by the connection whose reader called this. It ends within wire.ShellUseBound; Close waits for it.
		h.work.Go(func() { c.send(c.look(r, c.status(r.RequestID, askUses(h.ctx, lenders)))) })
	}
	h.mu.Unlock()
	if !ask {
		c.send(c.look(r, c.status(r.RequestID, nil)))
	}
	return nil
}

// look adds to a status, where that was asked for, what the shell looks like that a borrower would get.
func (c *Client) look(r *wire.StatusRequest, out *wire.StatusReply) *wire.StatusReply {
	if !r.Look {
		return out
	}
	ln := c.hub.lenderFor(0)
	if ln == nil {
		return out
	}
	look := ln.look()
	ln.mu.Lock()
	window := ln.client
	ln.mu.Unlock()
	if window != nil {
		window.mu.Lock()
		s := window.session
		window.mu.Unlock()
		for _, cmd := range s.recentCommands() {
			cmd.Command, cmd.OutputTail = wire.OSString(mask.String(string(cmd.Command))), mask.Bytes(cmd.OutputTail)
			look.Recent = append(look.Recent, cmd)
		}
	}
	for i := range out.Leases {
		if out.Leases[i].ClientPID == ln.pid {
			out.Leases[i].Look = look
		}
	}
	return out
}

// look describes the shell.
func (ln *lender) look() *wire.ShellLook {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	l := &wire.ShellLook{
		Shell: visible.Exact(cut(cmp.Or(ln.shell.Name, "bash")+" "+ln.shell.Version, 64)), Cwd: wire.OSString(ln.cwd),
		Exported: slices.Sorted(maps.Keys(ln.env)), Functions: slices.Sorted(maps.Keys(ln.state.Functions)),
		Aliases: map[string]wire.OSString{}, Recent: []wire.RecentCommand{},
	}
	for name, text := range ln.state.Aliases {
		l.Aliases[name] = wire.OSString(mask.String(text))
	}
	return l
}

func (c *Client) status(id wire.RequestID, uses map[*lender]*usage) *wire.StatusReply {
	h := c.hub
	h.mu.Lock()
	out := &wire.StatusReply{
		RequestID: id, State: "idle", Version: h.daemonInfo().Version, PID: os.Getpid(),
		UptimeMS: time.Since(h.started).Milliseconds(), Clients: len(h.clients), Turns: len(h.turns),
		Leases: []wire.LeaseStatus{}, Goroutines: runtime.NumGoroutine(), Memory: memory(),
		StoreSize: h.opts.Store.Size(),
	}
	out.Connections = h.connectionsLocked()
	closing, running := h.closing, h.running
	lenders := make([]*lender, 0, len(h.lenders))
	for _, ln := range h.lenders {
		lenders = append(lenders, ln)
	}
	h.mu.Unlock()
	switch {
	case closing:
		out.State = "draining"
	case running > 0:
		out.State = "busy"
	}
	for _, ln := range lenders {
		if linked, _ := ln.linked(); !linked && !ln.busy() {
			continue // its window is gone: for a minute it could still come back, but there is nothing to come back to
		}
		out.Leases = append(out.Leases, ln.status(time.Now(), uses[ln]))
	}
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	out.ConversationLength = int(s.snapshot().LastSeq)
	own, _ := c.brought()
	out.MCPServers = append(serverStatus(h.opts.MCP, false), serverStatus(own, true)...)
	return out
}

// connectionsLocked counts clients by what they are, in the order of their names.
func (h *Hub) connectionsLocked() []wire.Connections {
	all := map[wire.Connections]int{}
	for c := range h.clients {
		all[wire.Connections{Name: c.info.Name, Shell: c.lender != nil}]++
	}
	list := make([]wire.Connections, 0, len(all))
	for of, n := range all {
		of.Count = n
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b wire.Connections) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Count, a.Count))
	})
	return list
}

// serverStatus tells how MCP servers are; nil: there are none.
func serverStatus(servers *mcp.Servers, clients bool) []wire.MCPServerStatus {
	list := []wire.MCPServerStatus{}
	if servers == nil {
		return list
	}
	for _, s := range servers.Status() {
		st := wire.MCPServerStatus{
			Name: s.Server, Client: clients, What: s.What, Tools: append([]string{}, s.Tools...), Left: s.Left,
			State: [...]string{mcp.Resting: wire.MCPResting, mcp.Starting: wire.MCPStarting, mcp.Up: wire.MCPUp, mcp.Failed: wire.MCPFailed}[s.State],
		}
		if s.State == mcp.Failed {
			st.Error = visible.Exact(s.Err.Error())
		}
		list = append(list, st)
	}
	return list
}

// memory is what the daemon has from the system and has not given back, in bytes, without stopping the world for it.
func memory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}

func (ln *lender) status(now time.Time, use *usage) wire.LeaseStatus {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	st := wire.LeaseStatus{ClientPID: ln.pid, Queue: []wire.LeaseWaiter{}}
	if l := ln.m.Current(); l != nil {
		st.LeaseID, st.Holder, st.Purpose = wire.LeaseID(l.ID), l.Holder, l.Purpose
		st.HeldMS, st.TermMS = now.Sub(l.Since).Milliseconds(), l.Term.Milliseconds()
	} else if who, held := ln.m.Holder(now); who != "" { // the user, as far as somebody wanted the shell
		st.Holder, st.HeldMS = who, held.Milliseconds()
	} else if use != nil && ln.m.Len() == 0 {
		if st.Silent = use.reply == nil; !st.Silent {
			st.Holder, st.HeldMS = use.reply.Holder, use.reply.HeldMS
		}
	}
	for l := range ln.m.Waiting {
		st.Queue = append(st.Queue, wire.LeaseWaiter{
			LeaseID: wire.LeaseID(l.ID), Agent: l.Holder, Purpose: l.Purpose, WaitedMS: now.Sub(l.Asked).Milliseconds(),
		})
	}
	return st
}

// maxDrain bounds how long a stop waits for turns.
const maxDrain = 10 * time.Minute

// Shutdown asks the daemon to stop, in order: running turns get up to drain_ms (T5f). From here on new work is refused;
// the stop itself begins with stop, which the caller calls once the reply is on its way.
func (c *Client) Shutdown(r *wire.ShutdownRequest) (reply *wire.StatusReply, stop func(), err error) {
	if err := c.Seen(r.RequestID); err != nil {
		return nil, nil, err
	}
	h := c.hub
	if h.opts.Stop == nil {
		return nil, nil, ErrNotYours
	}
	if r.DrainMS < 0 {
		return nil, nil, invalid("drain_ms: %d is less than 0", r.DrainMS)
	}
	h.mu.Lock()
	running := h.running
	if r.IfIdle && running > 0 {
		h.mu.Unlock()
		return nil, nil, &BusyDaemonError{Turns: running}
	}
	h.closing = true // under the same lock: nothing begins in between
	h.mu.Unlock()
	h.log.Info("stop asked for", "by", c.who(), "drain_ms", r.DrainMS)
	return c.status(r.RequestID, nil), func() { h.opts.Stop(min(ms(r.DrainMS), maxDrain)) }, nil
}

// RevokeLease takes leases back from their borrowers: one by its id, or all of a client's.
func (c *Client) RevokeLease(r *wire.LeaseRevokeRequest) (*wire.StatusReply, error) {
	if err := c.Seen(r.RequestID); err != nil {
		return nil, err
	}
	if r.LeaseID == "" && r.ClientPID == 0 {
		return nil, invalid("lease_id or client_pid must be given")
	}
	if err := c.mayDecide(); err != nil {
		return nil, err
	}
	h := c.hub
	h.mu.Lock()
	var lenders []*lender
	for _, ln := range h.lenders {
		if r.ClientPID == 0 || ln.pid == r.ClientPID {
			lenders = append(lenders, ln)
		}
	}
	h.mu.Unlock()
	if len(lenders) == 0 && r.LeaseID == "" {
		return nil, &NoShellError{PID: r.ClientPID}
	}
	found := false
	for _, ln := range lenders {
		found = ln.revoke(r.LeaseID) || found
	}
	if !found && r.LeaseID != "" {
		return nil, ErrNoLease
	}
	h.log.Info("leases revoked", "lease", r.LeaseID, "client", r.ClientPID, "by", c.who())
	return c.status(r.RequestID, nil), nil
}

// revoke ends the lease with that id, or all ("").
func (ln *lender) revoke(id wire.LeaseID) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	var list []*lease.Lease
	if l := ln.m.Current(); l != nil {
		list = append(list, l)
	}
	for l := range ln.m.Waiting {
		list = append(list, l)
	}
	found := false
	for i := len(list) - 1; i >= 0; i-- { // waiters first, so that none is offered what it is about to lose
		if l := list[i]; id == "" || l.ID == string(id) {
			found = true
			ln.apply(ln.m.Revoke(time.Now(), l))
		}
	}
	return found
}
