package hub

import (
	"context"
	"errors"
	"maps"

	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// Models answers which models there are, or whether one can be used.
func (c *Client) Models(r *wire.ModelsRequest) error {
	h, creds := c.hub, maps.Clone(c.creds)
	return c.aside(r.RequestID, func(ctx context.Context) (wire.Message, error) {
		reply, err := h.models(ctx, r.Name, creds)
		if err == nil {
			reply.RequestID = r.RequestID
		}
		return reply, err
	})
}

// models lists the models of all providers, or looks up the one of that name. A panic in a provider's library is an error.
func (h *Hub) models(ctx context.Context, name string, creds map[string]string) (reply *wire.ModelsReply, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("listing models panicked", "panic", r, "stack", stack())
			err = &panicError{r}
		}
	}()
	none := &wire.ModelsReply{Models: []wire.Model{}, Faults: []wire.ModelFault{}}
	switch {
	case name == "" && h.opts.ListModels == nil:
		return none, nil
	case name == "":
		return h.opts.ListModels(ctx, creds), nil
	}
	model, err := h.opts.OpenModel(ctx, name, creds)
	if err != nil {
		return nil, err
	}
	info := model.Info()
	if !info.Loaded { // it refuses at once, without a request, and says what is missing
		if _, err := model.Stream(ctx, provider.Request{}, func(provider.Delta) {}); err != nil {
			return nil, err
		}
		return nil, errors.New("it cannot be used")
	}
	none.Models = []wire.Model{{Name: info.Name, ContextWindow: info.ContextWindow, MaxOutput: info.MaxOutput}}
	return none, nil
}
