package hub

import (
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/lease/footprint"
	"sublet/wire"
)

// Status answers with the daemon's state, at once or, with r.Shells, when the clients have reported who has their shells.
func (c *Client) Status(r *wire.StatusRequest) {
	h := c.hub
	h.mu.Lock()
	ask := r.Shells && !h.closing
	if ask {
		// In a goroutine, since an answer may come over the connection whose reader called this. It ends within wire.ShellUseBound.
		h.work.Go(func() { c.Send(c.look(r, c.status(r.RequestID, true))) })
	}
	h.mu.Unlock()
	if !ask {
		c.Send(c.look(r, c.status(r.RequestID, false)))
	}
}

// look adds a description of the shell that a borrower would get to a status, if r asks for it.
func (c *Client) look(r *wire.StatusRequest, out *wire.StatusReply) *wire.StatusReply {
	if !r.Look {
		return out
	}
	ln := c.hub.shells.Find(0)
	if ln == nil {
		return out
	}
	look := ln.Look()
	if window := windowOf(ln); window != nil {
		for _, cmd := range window.attached().recentCommands() {
			cmd.Command, cmd.OutputTail = wire.OSString(mask.String(string(cmd.Command))), []byte(mask.String(string(cmd.OutputTail)))
			look.Recent = append(look.Recent, cmd)
		}
	}
	for i := range out.Leases {
		if out.Leases[i].ClientPID == ln.PID() {
			out.Leases[i].Look = look
		}
	}
	return out
}

// status describes the daemon; with ask, clients are asked who has their shells.
func (c *Client) status(id wire.RequestID, ask bool) *wire.StatusReply {
	h := c.hub
	leases, turns := h.shells.Status(h.ctx, ask), len(h.unfinished())
	h.mu.Lock()
	out := &wire.StatusReply{
		RequestID: id, State: "idle", Version: h.daemonInfo().Version, PID: os.Getpid(),
		UptimeMS: time.Since(h.started).Milliseconds(), Clients: len(h.clients), Turns: turns,
		Leases: leases, Goroutines: runtime.NumGoroutine(), Memory: footprint.Held(),
		StoreSize: h.opts.Store.Size(),
	}
	out.Connections = h.connectionsLocked()
	closing, running := h.closing, len(h.running)
	h.mu.Unlock()
	switch {
	case closing:
		out.State = "draining"
	case running > 0:
		out.State = "busy"
	}
	out.ConversationLength = int(c.attached().events.Info().LastSeq)
	own, _ := c.ownServers()
	out.MCPServers = append(h.opts.MCP.Report(false), own.Report(true)...)
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

// maxDrain bounds how long a stop waits for turns.
const maxDrain = 10 * time.Minute

// Shutdown asks the daemon to stop, in order: running turns get up to drain_ms. From here on new work is refused. StatusReply answers.
func (c *Client) Shutdown(r *wire.ShutdownRequest) error {
	h := c.hub
	if r.DrainMS < 0 {
		return invalid("drain_ms: %d is less than 0", r.DrainMS)
	}
	h.mu.Lock()
	running := len(h.running)
	if r.IfIdle && running > 0 {
		h.mu.Unlock()
		return &BusyDaemonError{Turns: running}
	}
	h.closing = true // under the same lock: nothing begins in between
	h.mu.Unlock()
	h.log.Info("stop asked for", "by", c.who(), "drain_ms", r.DrainMS)
	c.Send(c.status(r.RequestID, false)) // closing a connection still sends what is queued
	h.opts.Stop(min(ms(r.DrainMS), maxDrain))
	return nil
}

// RevokeLease takes leases back from their borrowers: one by its id, or all of a client's. StatusReply answers.
func (c *Client) RevokeLease(r *wire.LeaseRevokeRequest) error {
	if r.LeaseID == "" && r.ClientPID == 0 {
		return invalid("lease_id or client_pid must be given")
	}
	if err := c.mayDecide(); err != nil {
		return err
	}
	h := c.hub
	if err := h.shells.Revoke(r.LeaseID, r.ClientPID); err != nil {
		return err
	}
	h.log.Info("leases revoked", "lease", r.LeaseID, "client", r.ClientPID, "by", c.who())
	c.Send(c.status(r.RequestID, false))
	return nil
}

// Models answers which models there are, or whether one can be used, or what an agent of another program offers.
func (c *Client) Models(r *wire.ModelsRequest) error {
	if r.Agent != "" {
		return c.hostedModels(r)
	}
	h, creds := c.hub, maps.Clone(c.creds)
	return c.answerLater(&operation{request: r.RequestID}, c.held(), func(ctx context.Context) (wire.Message, error) {
		reply, err := h.opts.FindModels(ctx, r.Name, creds)
		if err != nil {
			return nil, err
		}
		reply.RequestID = r.RequestID
		return reply, nil
	})
}
