package operator

import (
	"slices"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// link is a connection's attachment to one session. It stays after a turn, so that the session's private shell, with its folder and
// variables, is available for the next one.
type link struct {
	sess    *gateway.Session
	id      wire.SessionID // that was attached to; sess has another one if it was deleted while the daemon was away
	confirm bool
}

// attach returns the link to a session, which it opens if there is none, without the session's earlier events. It creates the session if
// id is "", or if create is set and no session has the id. cwd is the folder in which a new session works.
func (c *conn) attach(id wire.SessionID, create, confirm bool, cwd string) (*link, *problem) {
	if l := c.linked(id, confirm); l != nil {
		return l, nil
	}
	connect := c.s.o.Daemon.Connect
	if create {
		connect = c.s.o.Daemon.ConnectOrCreate
	}
	sess, err := connect(c.ctx, gateway.Options{
		Name: "sublet serve operator", Session: id, Confirm: confirm, Place: gateway.Place{Cwd: cwd},
	})
	if err != nil {
		return nil, problemFor(err)
	}
	l := &link{sess, sess.ID(), confirm}
	c.mu.Lock()
	c.links = append(c.links, l)
	over := len(c.links) - maxLinks
	c.mu.Unlock()
	c.work.Go(func() { c.turns.Deliver(c.ctx, sess) }) // ends when the session is closed; serve waits for it
	c.release(func(other *link) bool {
		over--
		return over >= 0 && other != l
	})
	return l, nil
}

// connect opens a connection apart from the links: to a session, without its earlier events, or for "" to a new one, which leaves
// nothing behind because nothing is asked in it.
func (c *conn) connect(id string) (*gateway.Session, error) {
	return c.s.o.Daemon.Connect(c.ctx, gateway.Options{
		Name: "sublet serve operator", Session: wire.SessionID(id), Place: gateway.Place{Cwd: c.s.o.Project},
	})
}

// linked returns an existing link, or nil, and marks it as used last.
func (c *conn) linked(id wire.SessionID, confirm bool) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.links, func(l *link) bool { return id != "" && l.id == id && l.confirm == confirm && l.sess.ID() == id })
	if i < 0 {
		return nil
	}
	l := c.links[i]
	c.links = append(slices.Delete(c.links, i, i+1), l)
	return l
}

// release closes links without a running turn. For each, the least recently used first, it calls pick with c.mu held; pick reports
// whether to close it. Only the reader calls release and attach, so a link stays until its turn has begun.
func (c *conn) release(pick func(*link) bool) {
	c.mu.Lock()
	var gone []*link
	c.links = slices.DeleteFunc(c.links, func(l *link) bool {
		if len(c.turns.Running(l.sess)) > 0 || !pick(l) {
			return false
		}
		gone = append(gone, l)
		return true
	})
	c.mu.Unlock()
	for _, l := range gone {
		l.sess.Close()
	}
}

// closeLinks closes all links; it first cancels the turns that end with the connection.
func (c *conn) closeLinks() {
	c.turns.Cancel(nil, "", "", "the client closed its connection")
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, l := range links {
		l.sess.Close()
	}
}
