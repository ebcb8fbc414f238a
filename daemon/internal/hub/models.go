package hub

import (
	"context"
	"maps"

	"sublet/wire"
)

// Models answers which models there are, or whether one can be used.
func (c *Client) Models(r *wire.ModelsRequest) error {
	h, creds := c.hub, maps.Clone(c.creds)
	return c.aside(r.RequestID, func(ctx context.Context) (wire.Message, error) {
		reply, err := h.opts.FindModels(ctx, r.Name, creds)
		if err != nil {
			return nil, err
		}
		reply.RequestID = r.RequestID
		return reply, nil
	})
}
