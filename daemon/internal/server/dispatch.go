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
			c.log.Error("request panicked", "kind", wire.KindOf(m), "panic", r, "stack", string(debug.Stack()))
			c.answer(&wire.Error{
				Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInternal, Message: "internal fault", Recoverable: true,
				Hint: "`sublet daemon logs` has the details",
			})
		}
	}()
	if !wire.IsRequest(wire.KindOf(m)) {
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
	if err := c.client.RememberID(wire.RequestOf(m)); err != nil {
		c.fail(wire.RequestOf(m), err)
		return
	}
	c.done(wire.RequestOf(m), c.request(ctx, m))
}

// request carries out a request, which the hub answers. The error is why it was refused.
func (c *conn) request(ctx context.Context, m wire.Message) error {
	switch m := m.(type) {
	case *wire.AgentRequest:
		return c.client.Ask(ctx, m)
	case *wire.ShowRequest:
		return c.client.Show(ctx, m)
	case *wire.ToolRequest:
		return c.client.Tool(ctx, m)
	case *wire.UndoRequest:
		return c.client.Undo(ctx, m)
	case *wire.PolicyRequest:
		return c.client.Policy(ctx, m)
	case *wire.LeaseRunRequest:
		return c.client.LeaseRun(m)
	case *wire.LeaseRevokeRequest:
		return c.client.RevokeLease(m)
	case *wire.SessionRequest:
		return c.client.Sessions(ctx, m)
	case *wire.CompactRequest:
		return c.client.Compact(ctx, m)
	case *wire.StatusRequest:
		c.client.Status(m)
		return nil
	case *wire.ModelsRequest:
		return c.client.Models(m)
	case *wire.JobRequest:
		return c.client.Job(m)
	case *wire.AgentsRequest:
		return c.client.Agents(ctx, m)
	case *wire.ShutdownRequest:
		return c.client.Shutdown(m)
	}
	panic("no handler for " + wire.KindOf(m))
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
		if wire.Directions(wire.KindOf(m))&wire.ToDaemon == 0 {
			c.wrongWay(m)
			return
		}
		id := m.Ref().RequestID // the message is the hub's from here on
		c.done(id, c.client.LenderMessage(m))
	default:
		c.wrongWay(m)
	}
}

// wrongWay refuses a message that only the daemon may send.
func (c *conn) wrongWay(m wire.Message) {
	c.answer(&wire.Error{
		Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInvalidMessage,
		Message: "only the daemon may send " + wire.KindOf(m), Recoverable: true,
	})
}
