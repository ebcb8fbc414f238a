package hub

import (
	"context"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/picture"
)

// keptImages keeps a turn's images in the store. It implements agent.Images.
type keptImages struct{ t *turn }

func (k keptImages) Keep(seq int64, images []*picture.Image) {
	k.do("keep", seq, func(ctx context.Context) error { return k.t.hub.opts.Store.KeepImages(ctx, k.t.s.id, seq, images) })
}

func (k keptImages) Forget(seq int64) {
	k.do("forget", seq, func(ctx context.Context) error { return k.t.hub.opts.Store.ForgetImages(ctx, k.t.s.id, seq) })
}

// do bounds one write. That it failed costs later turns a picture, and no more.
func (k keptImages) do(what string, seq int64, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.t.hub.ctx), storeBound)
	defer cancel()
	if err := write(ctx); err != nil {
		k.t.hub.log.Error("images of a turn", "do", what, "turn", k.t.id, "event", seq, "err", err)
	}
}

// images are those that were kept with the events of a conversation.
func (s *session) images(ctx context.Context, c agent.Conversation) (map[int64][]*picture.Image, error) {
	events := c.Events()
	return s.hub.opts.Store.Images(ctx, s.id, func(seq int64) bool { return events[seq] })
}
