package remote

import (
	"slices"
	"time"

	"sublet/wire"
)

// dispatch delivers one message to its receiver. It runs in the reader, so that order is kept.
func (c *Conn) dispatch(l *link, m wire.Message) {
	switch m := m.(type) {
	case *wire.Heartbeat:
		if !m.Reply {
			_ = l.wc.Send(&wire.Heartbeat{Nonce: m.Nonce, AtMS: time.Now().UnixMilli(), Reply: true}) // the reader notices a lost link
		}
		return
	case wire.OfRequest:
		if r, ok := m.(*wire.SessionReply); ok && c.moved(r) && c.o.Moved != nil {
			c.o.Moved(r)
		}
		if l.feed(*m.RequestRef(), m) {
			return
		}
	case *wire.Error:
		// The farewell of a daemon that stops. What such a daemon refuses has an id or is recoverable.
		if m.Code == wire.CodeShuttingDown && m.RequestID == "" && m.TurnID == "" && !m.Recoverable {
			l.stopped = true // the connection ends next
			return
		}
		if m.TurnID == "" && l.feed(m.RequestID, m) {
			return
		}
	case wire.LeaseMessage:
		if id := m.Ref().RequestID; id != "" {
			// The other direction: this client borrows another client's shell.
			if !l.feed(id, m) {
				c.log.Debug("lease message for nobody", "kind", wire.KindOf(m), "request", id)
			}
			return
		}
	}
	if e, ok := m.(wire.EventMessage); ok {
		if !c.fresh(e) || c.afterUnstoredEnd(e) {
			return
		}
		l.feed(e.Meta().RequestID, m)
	}
	if c.o.Handle != nil {
		c.o.Handle(m)
	}
}

// moved records the session that a reply attached this connection to, before the events that follow, and reports whether it did.
func (c *Conn) moved(r *wire.SessionReply) bool {
	if r.Op != "resume" && r.Op != "new" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = r.Session.ID
	c.settleLocked(r.Session)
	ready := *c.ready
	ready.Session = r.Session
	c.ready = &ready
	return true
}

// fresh reports whether an event is new to this client, and records its number. After a reconnect the store sends what was
// missed, and a live event may arrive twice. Live-only chunks, which have the number of the last stored event, events without
// a number and questions, which are sent again while they are open, always count as new.
func (c *Conn) fresh(e wire.EventMessage) bool {
	meta := e.Meta()
	if wire.Live(e) || meta.Seq <= 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen[meta.SessionID]
	if meta.Seq <= seen {
		_, question := e.(*wire.ConfirmationRequest)
		return question
	}
	c.seen[meta.SessionID] = meta.Seq
	return true
}

// maxUnstored is how many turns that ended so are remembered. The daemon stores such an end when it can write again, or at its next
// start.
const maxUnstored = 256

// afterUnstoredEnd reports whether e follows an end of its turn that had no number, because the daemon could not store it: such
// an event, like the end that the daemon stores later, is ignored. It records e if e is an end without a number.
func (c *Conn) afterUnstoredEnd(e wire.EventMessage) bool {
	meta := e.Meta()
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.unstored, meta.TurnID) {
		return true
	}
	if _, end := e.(*wire.AgentComplete); end && meta.Seq == 0 && meta.TurnID != "" { // that of a hosted agent's tool has no turn
		c.unstored = append(c.unstored[max(0, len(c.unstored)+1-maxUnstored):], meta.TurnID)
	}
	return false
}
