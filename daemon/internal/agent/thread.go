package agent

import (
	"maps"
	"slices"
	"sync"

	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// Snapshot returns History of the events added. Later additions do not change it.
func (h *Thread) Snapshot() Conversation {
	c := h.clone()
	c.endTurn("interrupted")
	c.entries = foldRanges(c.entries, outermost(c.compactions))
	return c.Conversation
}

// maxCached bounds the conversation that a Cache may hold between two turns, in bytes.
const maxCached = 16 << 20

// Cache keeps the thread of a session between two turns, so that a turn reads only what was stored since the one before. The zero
// value is empty; it is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	thread *Thread // guarded by mu
}

// History returns the conversation before a turn, and the number of its TurnStarted; 0 if there is none. page returns stored events
// after a number. It is called by one turn at a time.
func (c *Cache) History(turn wire.TurnID, page func(after int64) (events []wire.EventMessage, more bool, err error)) (Conversation, int64, error) {
	c.mu.Lock()
	t := c.thread
	c.thread = nil
	c.mu.Unlock()
	if t == nil {
		t = &Thread{}
	}
	startSeq, err := t.read(turn, page)
	if err != nil {
		return Conversation{}, 0, err
	}
	if (provider.Request{Messages: render(t.entries)}).Bytes() <= maxCached {
		c.mu.Lock()
		c.thread = t
		c.mu.Unlock()
	}
	return t.Snapshot(), startSeq, nil
}

// read adds the events that follow, page by page, up to that turn's TurnStarted, which it does not add but returns the number of; 0 if
// there is none.
func (h *Thread) read(turn wire.TurnID, page func(after int64) (events []wire.EventMessage, more bool, err error)) (startSeq int64, err error) {
	for {
		events, more, err := page(h.last)
		if err != nil {
			return 0, err
		}
		for _, m := range events {
			if _, ok := m.(*wire.TurnStarted); ok && m.Meta().TurnID == turn {
				return m.Meta().Seq, nil
			}
			h.Add(m)
		}
		if !more {
			return 0, nil
		}
	}
}

// Drop empties the cache.
func (c *Cache) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thread = nil
}

// clone returns a copy that can be extended without changing h. It copies only the last two entries: an answer and its results
// may still grow, those before are complete.
func (h *Thread) clone() Thread {
	c := *h
	c.entries = slices.Clone(h.entries)
	for i := max(len(c.entries)-2, 0); i < len(c.entries); i++ {
		e := &c.entries[i]
		e.msg.Parts = slices.Clone(e.msg.Parts)
		e.facts = maps.Clone(e.facts)
	}
	c.pending = slices.Clone(h.pending)
	c.calls, c.order = maps.Clone(h.calls), slices.Clone(h.order)
	c.asked, c.answers = maps.Clone(h.asked), maps.Clone(h.answers)
	return c
}
