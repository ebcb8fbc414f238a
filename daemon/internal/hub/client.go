package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/policy"
	"sublet/lease/caller"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// Peer is the other end of a connection. The server implements it.
type Peer interface {
	// Send queues a message; it never waits for the peer. If the connection is over it does nothing: the server notices that by itself.
	Send(m wire.Message)
	// Flush waits until the peer took what is queued, or ctx ends: between the pages of a long replay.
	Flush(ctx context.Context) error
	// End sends m as the last message and ends the connection, soon; it never waits.
	End(m wire.Message)
	// PID is the process at the other end, 0 where it is not known.
	PID() int
}

// Client is one connection. Its methods are called by the connection's one reader, in the order in which messages came;
// they begin work and return. It is made by Attach and ends with Detach.
type Client struct {
	Peer
	hub     *Hub
	info    wire.ClientInfo
	owner   lend.Owner
	confirm bool              // somebody is there to answer questions
	queues  bool              // it wants TurnQueueChanged
	within  atomic.Bool       // it runs in a shell that agents use; see person
	creds   map[string]string // never stored or logged
	lender  *lend.Lender      // nil: lends no shell
	// startedBy is the agent of another program that started the client's process, the zero value where none did. It is looked
	// for once: what started a process does not change.
	startedBy func() caller.Agent

	shown map[lend.Trusting]shell.State // in which the last PolicyReply named suspects; only the connection's reader uses it

	// Used by the connection's reader alone: the ids of the newest requests, to refuse repeats.
	seen      map[wire.RequestID]struct{}
	seenOrder []wire.RequestID // the oldest first

	mu sync.Mutex
	// below: guarded by mu
	session *session                 // held
	env     map[string]wire.OSString // its own; not used if it lends a shell: see environ
	cwd     wire.OSString
	servers *mcp.Servers // MCP servers that it brought along; nil: none
	faults  []string     // what is wrong with others that it brought
}

// maxExecutionID bounds the id that a client gives to a command of its user, in bytes.
const maxExecutionID = 128

// Attach takes a client in. It sends Ready and then, in order and with nothing left out or repeated, the events that the
// client missed; from there on whatever happens. Errors leave nothing behind: the client may try again, after a *eventlog.CutOffError
// on another connection, for Ready was sent.
func (h *Hub) Attach(ctx context.Context, peer Peer, env *wire.EnvSnapshot) (*Client, error) {
	if h.refuses() {
		return nil, lend.ErrShuttingDown
	}
	c := &Client{
		hub: h, Peer: peer, info: env.Client, creds: maps.Clone(env.Credentials),
		confirm: slices.Contains(env.Capabilities, wire.CapConfirm), queues: slices.Contains(env.Capabilities, wire.CapTurns),
	}
	c.info.Name = visible.Exact(visible.Cut(c.info.Name, 64))
	c.env, c.cwd = maps.Clone(env.Env), env.Cwd
	mask.Keep(slices.Collect(maps.Values(c.creds))...)
	if c.info.PID == 0 {
		c.info.PID = peer.PID()
	}
	c.owner = lend.OwnerOf(c.info.PID, peer.PID())
	c.startedBy = sync.OnceValue(func() caller.Agent {
		if c.owner.PID() <= 0 {
			return caller.Agent{}
		}
		if name, ok := h.opts.Hosted.Started(c.owner.PID()); ok {
			return caller.Agent{Name: name, PID: c.owner.PID()}
		}
		of, _ := caller.Above(c.owner.PID())
		return of
	})
	c.confirm = c.confirm && c.mayDecide() == nil
	var s *session
	if id := named(env.SessionID); id != "" {
		var err error
		if s, err = h.session(ctx, id); err != nil {
			return nil, err
		}
	} else {
		s = h.newSession(env.Cwd, "")
	}
	c.session = s
	first, err := s.events.Missed(ctx, env.AfterSeq)
	if err != nil {
		h.release(s)
		return nil, err
	}
	c.setServers(env.MCPServers, env.Cwd)

	ready := h.ready(c, s)
	ready.Protocol, _ = wire.Negotiate(env.ProtocolMin, env.ProtocolMax) // the server refuses who has none in common
	if slices.Contains(env.Capabilities, wire.CapShell) {
		c.lender = h.shells.Link(c, c.owner, env, ready) // sends Ready before it offers anything
	} else {
		c.Send(ready)
	}
	if err := s.join(ctx, c, first, ready.Session); err != nil {
		c.Detach()
		return nil, err
	}
	h.mu.Lock()
	h.clients[c] = struct{}{}
	h.mu.Unlock()
	if c.lender != nil && c.within.Load() { // by the mark that it inherited: a window that is started in a lent shell lends none
		c.Send(&wire.Notice{
			Level: "warning", Text: "questions cannot be answered in this window: it descends from a shell in which an agent had run an unconfined command",
			Hint: "open sublet in a terminal that was not started from that shell",
		})
	}
	h.questions.Show(c)
	h.signalActivity()
	h.wakeDue(s)
	h.log.Info("client attached", "name", c.info.Name, "pid", c.info.PID, "session", s.id, "shell", c.lender != nil)
	return c, nil
}

// ready answers the handshake.
func (h *Hub) ready(c *Client, s *session) *wire.Ready {
	cfg := h.opts.Config()
	r := &wire.Ready{
		Daemon: h.daemonInfo(), Capabilities: []string{wire.CapMCPServers, wire.CapBorrower},
		Limits: map[string]int64{
			wire.LimitFrame:             wire.MaxFrame,
			wire.LimitRequestsPerSecond: int64(cfg.Limits.RequestsPerSecond),
			wire.LimitRunningTurns:      int64(cfg.Limits.RunningTurns),
			wire.LimitOutputHead:        int64(cfg.Shell.OutputHead),
			wire.LimitOutputTail:        int64(cfg.Shell.OutputTail),
			wire.LimitLeaseGraceMS:      wire.LeaseGrace.Milliseconds(),
		},
		Session: s.snapshot(), Leases: []wire.HeldLease{}, Models: h.opts.Models(c.creds),
		Mode: string(c.tightening(s).Apply(policy.Policy{Mode: s.policyMode()}).Mode),
	}
	return r
}

// Detach removes a client whose connection has ended, or that Attach could not send all events. It cancels the client's operations that
// are attached to the connection; its turns continue, its open questions stay open, and its own shell is kept for lease.Grace. It is
// called once.
func (c *Client) Detach() {
	s := c.attached()
	if c.lender != nil {
		c.lender.Unlink(c)
	}
	c.cancelAttached()
	s.leave(c)
	h := c.hub
	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()
	h.signalActivity()
	if servers, _ := c.ownServers(); servers != nil {
		servers.Retire() // those that a turn uses end with it, the others now
	}
	h.log.Info("client detached", "name", c.info.Name, "pid", c.info.PID, "session", s.id)
}

// CanConfirm implements question.Client.
func (c *Client) CanConfirm() bool { return c.confirm }

// clientPrefix begins agent.Decision.By where a person decided: see who.
const clientPrefix = "client "

// who names the client for audit and screens.
func (c *Client) who() string {
	return fmt.Sprintf(clientPrefix+"%s %d", cmp.Or(c.info.Name, "unnamed"), c.info.PID)
}

// Busy reports whether something runs that the client waits for or takes part in: then heartbeats flow.
func (c *Client) Busy() bool {
	own := c.hub.find(func(o *operation) bool { return o.origin == c })
	return own != nil || c.attached().snapshot().Running || c.lender != nil && c.lender.Busy()
}

// sessionOf returns the session that a request is about: the one that it names, else the connection's. The caller must release it.
func (c *Client) sessionOf(ctx context.Context, id *wire.SessionID) (*session, error) {
	if name := named(id); name != "" {
		return c.hub.session(ctx, name)
	}
	return c.held(), nil
}

// named returns an optional id of a session, "" for none.
func named(id *wire.SessionID) wire.SessionID {
	if id == nil {
		return ""
	}
	return *id
}

// attached returns the connection's session.
func (c *Client) attached() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// held returns the connection's session and holds it. Only the connection's reader, which calls this, changes the session.
func (c *Client) held() *session {
	s := c.attached()
	return c.hub.hold(s.id, s)
}

// EnvChanged takes over a later EnvSnapshot's cwd and environment and, if it has a list of them, MCP servers.
func (c *Client) EnvChanged(env *wire.EnvSnapshot) {
	c.setServers(env.MCPServers, env.Cwd)
	if c.lender != nil {
		c.lender.EnvChanged(c, env)
		return
	}
	c.mu.Lock()
	c.env, c.cwd = maps.Clone(env.Env), env.Cwd
	c.mu.Unlock()
}

// LenderMessage takes a message about the shell that the client lends. The caller does not use it afterwards.
func (c *Client) LenderMessage(m wire.Message) error {
	if c.lender == nil {
		return lend.ErrNotShellOwner
	}
	switch m := m.(type) {
	case *wire.ShellState:
		return c.lender.StateChanged(c, m)
	case *wire.ShellUseReply:
		c.lender.ShellUse(c, m)
	case *wire.SecretTyped:
		mask.KeepTyped(string(m.Value))
	case wire.LeaseMessage:
		return c.lender.Report(c, m)
	}
	return nil
}

// UserCommand takes a command that the user ran: it becomes an event of the session, and context for the next question.
// Its execution_id, the client's own, stays: by it the client knows the event as its own. Of several commands in a row that
// cannot be stored, which on a full disk is each that the user types to make room, only the first returns the error.
func (c *Client) UserCommand(r *wire.CommandResult) error {
	if len(r.ExecutionID) > maxExecutionID {
		return invalid("execution_id: %d bytes, want at most %d", len(r.ExecutionID), maxExecutionID)
	}
	s := c.held()
	defer c.hub.release(s)
	if c.lender != nil { // the client may leave out when it began
		at := time.Now()
		if began := time.UnixMilli(r.StartedAtMS); r.StartedAtMS > 0 && began.Before(at) {
			at = began
		}
		c.lender.Typed(at)
	}
	r.Event, r.Agent, r.Tool, r.Output = wire.Event{}, "", "", nil
	if r.Status == "" {
		r.Status = wire.StatusOK
	}
	err := s.events.Emit(r)
	if s.remember(r, err == nil) {
		return fmt.Errorf("your commands are not in the conversation from here on: %w", err)
	}
	if err != nil {
		c.hub.log.Warn("a command of the user's was not stored", "session", s.id, "err", err)
	}
	return nil
}

// environ returns the environment and folder of the shell that the client lends or, if it lends none, its own. The caller must not change
// the map.
func (c *Client) environ() (env map[string]wire.OSString, cwd wire.OSString) {
	if c.lender != nil {
		return c.lender.Environ()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.env, c.cwd
}
