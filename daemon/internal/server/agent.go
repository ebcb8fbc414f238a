package server

import (
	"context"

	"sublet/wire"
)

// agent serves what begins and ends agents' work: AgentRequest, ShowRequest, ToolRequest, UndoRequest, CancelRequest, and the user's
// own commands.
func (c *conn) agent(ctx context.Context, m wire.Message) {
	switch m := m.(type) {
	case *wire.AgentRequest:
		c.done(m.RequestID, c.client.Ask(ctx, m))
	case *wire.ShowRequest:
		c.done(m.RequestID, c.client.Show(ctx, m))
	case *wire.ToolRequest:
		c.done(m.RequestID, c.client.Tool(ctx, m))
	case *wire.UndoRequest:
		c.done(m.RequestID, c.client.Undo(ctx, m))
	case *wire.CancelRequest:
		id := wire.RequestID("")
		if m.RequestID != nil && m.TurnID == nil { // with both, the request may run: no Error is its end
			id = *m.RequestID
		}
		c.done(id, c.client.Cancel(m))
	case *wire.CommandResult:
		c.done("", c.client.UserCommand(m))
	}
}
