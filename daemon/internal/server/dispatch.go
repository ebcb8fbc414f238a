package server

import (
	"context"
	"runtime/debug"

	"sublet/wire"
)

// dispatch serves one message. Requests count against the connection's rate; nothing else does.
func (c *conn) dispatch(ctx context.Context, m wire.Message) {
	defer func() { // a fault of ours in one request must not take the others with it
		if r := recover(); r != nil {
			c.log.Error("request panicked", "kind", m.Kind(), "panic", r, "stack", string(debug.Stack()))
			c.answer(&wire.Error{
				Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInternal, Message: "internal fault", Recoverable: true,
				Hint: "`sublet daemon logs` has the details",
			})
		}
	}()
	if wire.IsRequest(m.Kind()) {
		if limit := c.server.config().Limits.RequestsPerSecond; !c.rate.take(limit) {
			c.answer(rateError(wire.RequestOf(m), limit))
			return
		}
	}
	switch m := m.(type) {
	case *wire.EnvSnapshot:
		c.client.EnvChanged(m)
	case *wire.ShellState:
		c.done("", c.client.ShellState(m))
	case *wire.ShellUseReply:
		c.done("", c.client.ShellUse(m))
	case *wire.SecretTyped:
		c.done("", c.client.SecretTyped(m))
	case *wire.Heartbeat:
		if !m.Reply {
			_ = c.Conn.Send(&wire.Heartbeat{Nonce: m.Nonce, AtMS: m.AtMS, Reply: true})
		}
	case *wire.AgentRequest, *wire.ShowRequest, *wire.ToolRequest, *wire.UndoRequest, *wire.CancelRequest, *wire.CommandResult:
		c.agent(ctx, m)
	case *wire.ConfirmationResponse, *wire.PolicyRequest:
		c.policy(ctx, m)
	case *wire.LeaseRunRequest, *wire.LeaseRevokeRequest:
		c.lease(m)
	case *wire.SessionRequest, *wire.CompactRequest:
		c.session(ctx, m)
	case *wire.StatusRequest, *wire.ModelsRequest, *wire.JobRequest, *wire.ShutdownRequest:
		c.status(m)
	case *wire.Error:
		c.log.Info("client reports an error", "code", m.Code, "message", m.Message)
	case wire.LeaseMessage:
		if wire.Directions(m.Kind())&wire.ToDaemon == 0 {
			c.wrongWay(m)
			return
		}
		c.done(m.Ref().RequestID, c.client.Lease(m))
	default:
		c.wrongWay(m)
	}
}

// wrongWay answers a message that only the daemon sends.
func (c *conn) wrongWay(m wire.Message) {
	c.answer(&wire.Error{
		Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInvalidMessage,
		Message: m.Kind() + " goes from daemon to client", Recoverable: true,
	})
}
