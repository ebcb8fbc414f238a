package operator

import (
	"sync"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// link is a connection's attachment to one session. It stays after a turn, so that the
// session's private shell, with its folder and variables, is available for the next one.
type link struct {
	sess    *gateway.Session
	id      wire.SessionID
	confirm bool

	mu sync.Mutex
	// below: guarded by mu
	confirms map[wire.ConfirmationID]string // who answered a question, by the request's id
}

// attach finds or makes the link to a session: a new one where id is "", and where create says so also under the id given.
// cwd is where a new one works.
func (c *conn) attach(id wire.SessionID, create, confirm bool, cwd string) (*link, *problem) {
	if l := c.linked(id, confirm); l != nil {
		return l, nil
	}
	o := gateway.Options{
		Name: "sublet serve operator", Session: id, AfterSeq: -1, Confirm: confirm, Place: gateway.Place{Cwd: cwd},
	}
	connect := c.s.o.Daemon.Connect
	if create {
		connect = c.s.o.Daemon.ConnectOrCreate
	}
	sess, err := connect(c.ctx, o)
	if err != nil {
		return nil, away(err)
	}
	l := &link{
		sess: sess, id: sess.ID(), confirm: confirm,
		confirms: map[wire.ConfirmationID]string{},
	}
	c.mu.Lock()
	c.links = append(c.links, l)
	c.mu.Unlock()
	c.work.Go(func() { c.turns.Deliver(c.ctx, sess, func(e wire.EventMessage) { c.confirmFailed(l, e) }) }) // ends when the session is closed; serve waits for it
	c.trim()
	return l, nil
}

// linked returns an existing link and marks it as used last.
func (c *conn) linked(id wire.SessionID, confirm bool) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.links {
		if id == "" || l.id != id || l.confirm != confirm || l.sess.ID() != id {
			continue
		}
		c.links = append(append(c.links[:i:i], c.links[i+1:]...), l)
		return l
	}
	return nil
}

// trim closes the least recently used links without running turns.
func (c *conn) trim() {
	c.mu.Lock()
	var drop []*link
	for i := 0; i < len(c.links)-1 && len(c.links) > maxLinks; {
		if l := c.links[i]; c.idle(l) {
			drop = append(drop, l)
			c.links = append(c.links[:i:i], c.links[i+1:]...)
			continue
		}
		i++
	}
	c.mu.Unlock()
	for _, l := range drop {
		l.sess.Close()
	}
}

// drop closes the links to a deleted session. One whose turn's end is still to be delivered stays until trim or abandon.
func (c *conn) drop(id wire.SessionID) {
	c.mu.Lock()
	var gone, kept []*link
	for _, l := range c.links {
		if l.id == id && c.idle(l) {
			gone = append(gone, l)
		} else {
			kept = append(kept, l)
		}
	}
	c.links = kept
	c.mu.Unlock()
	for _, l := range gone {
		l.sess.Close()
	}
}

func (c *conn) idle(l *link) bool { return len(c.turns.Running(l.sess)) == 0 }

// abandon closes all links; it first cancels the turns that end with the connection.
func (c *conn) abandon() {
	c.turns.Cancel(nil, "", "", "the client closed its connection")
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, l := range links {
		l.sess.Close()
	}
}

// any returns a session for requests about sessions in general.
func (c *conn) any() (*gateway.Session, *problem) {
	c.mu.Lock()
	if n := len(c.links); n > 0 {
		l := c.links[n-1]
		c.mu.Unlock()
		return l.sess, nil
	}
	c.mu.Unlock()
	l, p := c.attach("", false, false, c.s.o.Project)
	if p != nil {
		return nil, p
	}
	return l.sess, nil
}
