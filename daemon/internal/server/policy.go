package server

import (
	"context"

	"sublet/wire"
)

// policy serves ConfirmationResponse and PolicyRequest.
func (c *conn) policy(ctx context.Context, m wire.Message) {
	switch m := m.(type) {
	case *wire.ConfirmationResponse:
		if err := c.client.Confirm(ctx, m); err != nil {
			e := errorOf(err)
			e.Details["confirmation_id"] = string(m.ConfirmationID)
			c.answer(e)
		}
	case *wire.PolicyRequest:
		reply, err := c.client.Policy(ctx, m)
		if err != nil {
			c.fail(m.RequestID, err)
			return
		}
		c.answer(reply)
	}
}
