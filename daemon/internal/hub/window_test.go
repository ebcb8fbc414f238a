package hub

import (
	"sync"
	"testing"

	"sublet/daemon/internal/lend"
	"sublet/wire"
)

// window is a client by its messages: what it is sent is kept, and what it reports goes in by its methods.
type window struct {
	deaf
	t *testing.T
	c *Client

	mu   sync.Mutex
	sent []wire.Message
}

func openWindow(t *testing.T, h *Hub) *window {
	t.Helper()
	w := &window{t: t}
	w.c = &Client{hub: h, Peer: w, owner: lend.OwnerOf(1, 0)}
	w.c.lender = h.shells.Link(w.c, w.c.owner, &wire.EnvSnapshot{Capabilities: []string{wire.CapRestore}}, &wire.Ready{})
	return w
}

func (w *window) Send(m wire.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
}

func (w *window) says(m wire.LeaseMessage) {
	w.t.Helper()
	if err := w.c.LenderMessage(m); err != nil {
		w.t.Errorf("%T: %v", m, err)
	}
}
