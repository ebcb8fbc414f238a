package server

import (
	"context"

	"sublet/wire"
)

// session serves SessionRequest and CompactRequest.
func (c *conn) session(ctx context.Context, m wire.Message) {
	switch m := m.(type) {
	case *wire.SessionRequest:
		c.done(m.RequestID, c.client.Sessions(ctx, m, func(r *wire.SessionReply) { c.answer(r) }))
	case *wire.CompactRequest:
		c.done(m.RequestID, c.client.Compact(ctx, m))
	}
}
