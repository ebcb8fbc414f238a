package server

import (
	"context"
	"runtime/debug"

	"golang.org/x/time/rate"

	"sublet/wire"
)

// dispatch handles one message. Only requests count against the connection's rate.
func (c *conn) dispatch(ctx context.Context, m wire.Message) {
	defer func() { // a panic in one request must not end the daemon
		if r := recover(); r != nil {
			c.log.Error("request panicked", "kind", m.Kind(), "panic", r, "stack", string(debug.Stack()))
			c.answer(&wire.Error{
				Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInternal, Message: "internal fault", Recoverable: true,
				Hint: "`sublet daemon logs` has the details",
			})
		}
	}()
	if !wire.IsRequest(m.Kind()) {
		c.message(ctx, m)
		return
	}
	limit := c.server.config().Limits.RequestsPerSecond
	c.rate.SetLimit(rate.Limit(limit))
	c.rate.SetBurst(limit)
	if !c.rate.Allow() {
		c.answer(rateError(wire.RequestOf(m), limit))
		return
	}
	if err := c.client.Seen(wire.RequestOf(m)); err != nil {
		c.fail(wire.RequestOf(m), err)
		return
	}
	c.request(ctx, m)
}

// request handles messages that are answered by a reply or an Error.
func (c *conn) request(ctx context.Context, m wire.Message) {
	switch m := m.(type) {
	case *wire.AgentRequest:
		c.done(m.RequestID, c.client.Ask(ctx, m))
	case *wire.ShowRequest:
		c.done(m.RequestID, c.client.Show(ctx, m))
	case *wire.ToolRequest:
		c.done(m.RequestID, c.client.Tool(ctx, m))
	case *wire.UndoRequest:
		c.done(m.RequestID, c.client.Undo(ctx, m))
	case *wire.PolicyRequest:
		reply, err := c.client.Policy(ctx, m)
		c.reply(m.RequestID, reply, err)
	case *wire.LeaseRunRequest:
		c.done(m.RequestID, c.client.LeaseRun(m))
	case *wire.LeaseRevokeRequest:
		reply, err := c.client.RevokeLease(m)
		c.reply(m.RequestID, reply, err)
	case *wire.SessionRequest:
		c.done(m.RequestID, c.client.Sessions(ctx, m, func(r *wire.SessionReply) { c.answer(r) }))
	case *wire.CompactRequest:
		c.done(m.RequestID, c.client.Compact(ctx, m))
	case *wire.StatusRequest:
		c.done(m.RequestID, c.client.Status(m))
	case *wire.ModelsRequest:
		c.done(m.RequestID, c.client.Models(m))
	case *wire.JobRequest:
		c.done(m.RequestID, c.client.Job(m))
	case *wire.AgentsRequest:
		c.done(m.RequestID, c.client.Agents(ctx, m))
	case *wire.ShutdownRequest:
		reply, stop, err := c.client.Shutdown(m)
		if c.reply(m.RequestID, reply, err) {
			stop() // once the reply is queued; closing a connection still sends it
		}
	default:
		panic("no handler for " + m.Kind())
	}
}

// message handles messages that are not requests: the client's answers and reports, and its side of a lease.
func (c *conn) message(ctx context.Context, m wire.Message) {
	switch m := m.(type) {
	case *wire.EnvSnapshot:
		c.client.EnvChanged(m)
	case *wire.ShellState, *wire.ShellUseReply, *wire.SecretTyped:
		c.done("", c.client.LenderMessage(m))
	case *wire.Heartbeat:
		if !m.Reply {
			// c.Send would count as a message to the client, and so start the heartbeats.
			_ = c.Conn.Send(&wire.Heartbeat{Nonce: m.Nonce, AtMS: m.AtMS, Reply: true})
		}
	case *wire.CancelRequest:
		id := wire.RequestID("")
		if m.RequestID != nil && m.TurnID == nil { // with both ids set, an Error with the request_id would wrongly end the request
			id = *m.RequestID
		}
		c.done(id, c.client.Cancel(m))
	case *wire.CommandResult:
		c.done("", c.client.UserCommand(m))
	case *wire.ConfirmationResponse:
		if err := c.client.Confirm(ctx, m); err != nil {
			e := errorOf(err)
			e.Details["confirmation_id"] = string(m.ConfirmationID)
			c.answer(e)
		}
	case *wire.Error:
		c.log.Info("client reports an error", "code", m.Code, "message", m.Message)
	case wire.LeaseMessage:
		if wire.Directions(m.Kind())&wire.ToDaemon == 0 {
			c.wrongWay(m)
			return
		}
		c.done(m.Ref().RequestID, c.client.LenderMessage(m))
	default:
		c.wrongWay(m)
	}
}

// wrongWay refuses a message that only the daemon may send.
func (c *conn) wrongWay(m wire.Message) {
	c.answer(&wire.Error{
		Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInvalidMessage,
		Message: "only the daemon may send " + m.Kind(), Recoverable: true,
	})
}
