package operator

import (
	"errors"
	"sync"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// link is a connection's attachment to one session, with the turns that it began there. It stays after a turn, so that the
// session's private shell, with its folder and variables, is available for the next one.
type link struct {
	sess    *gateway.Session
	id      wire.SessionID
	confirm bool

	mu sync.Mutex
	// below: guarded by mu
	tasks    map[wire.RequestID]*task
	confirms map[wire.ConfirmationID]string // who answered a question, by the request's id
}

// task is one turn that the client began.
type task struct {
	request wire.RequestID
	id      string        // the client's; "" where S4 gave none
	cancels bool          // cancelled with the connection: S3's
	s3      *s3Turn       // translates; nil for S4
	began   chan struct{} // closed with TurnStarted, a refusal or the end
	ended   chan struct{} // closed with the end
	refusal *problem      // set before ended is closed
	turn    wire.TurnID   // set before began is closed
	handed  []string      // files to remove at its end
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
	sess, err := c.s.o.Daemon.Connect(c.ctx, o)
	if errors.Is(err, wire.ErrNotFoundSession) && create {
		o.Session = ""
		if sess, err = c.s.o.Daemon.Connect(c.ctx, o); err == nil {
			if err = sess.Create(c.ctx, id); err != nil {
				sess.Close()
			}
			if errors.Is(err, wire.ErrDuplicateID) { // another client created it meanwhile
				o.Session = id
				sess, err = c.s.o.Daemon.Connect(c.ctx, o)
			}
		}
	}
	if err != nil {
		return nil, away(err)
	}
	l := &link{
		sess: sess, id: sess.ID(), confirm: confirm,
		tasks: map[wire.RequestID]*task{}, confirms: map[wire.ConfirmationID]string{},
	}
	c.mu.Lock()
	c.links = append(c.links, l)
	c.mu.Unlock()
	c.work.Go(func() { c.pump(l) }) // ends when the session is closed; serve waits for it
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
		if l := c.links[i]; l.idle() {
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

// drop closes every link to a deleted session.
func (c *conn) drop(id wire.SessionID) {
	c.mu.Lock()
	var gone, kept []*link
	for _, l := range c.links {
		if l.id == id && l.idle() {
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

func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks) == 0
}

// abandon closes all links; it first cancels the turns that end with the connection.
func (c *conn) abandon() {
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, l := range links {
		l.mu.Lock()
		for id, t := range l.tasks {
			if t.cancels {
				l.sess.Cancel(id, "the client closed its connection")
			}
		}
		l.mu.Unlock()
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

// pump passes a session's messages to the turns they belong to. A client that does not read blocks it; the session then fetches
// what it missed from the store.
func (c *conn) pump(l *link) {
	for {
		m, err := l.sess.Next(c.ctx)
		if err != nil {
			return // closed, as the connection or this link is
		}
		e, ok := m.(wire.EventMessage)
		if !ok {
			continue
		}
		id := e.Meta().RequestID
		l.mu.Lock()
		t := l.tasks[id]
		l.mu.Unlock()
		switch {
		case t != nil:
			if c.take(t, e) {
				l.mu.Lock()
				delete(l.tasks, id)
				l.mu.Unlock()
				c.done()
				c.s.handed.Remove(t.handed...)
				close(t.ended)
			}
		case id == "":
			c.confirmFailed(l, e)
		}
	}
}

// take passes an event to its turn, and reports whether it was the last.
func (c *conn) take(t *task, e wire.EventMessage) (over bool) {
	if t.s3 != nil {
		for _, l := range t.s3.translate(e) {
			c.send(l)
		}
	}
	switch e := e.(type) {
	case *wire.TurnStarted:
		t.turn = e.TurnID
		t.begin()
	case *wire.Error:
		if e.TurnID == "" { // refused before it began
			t.refusal = problemOf(e)
			t.begin()
			return true
		}
	case *wire.AgentComplete:
		t.begin()
		return true
	}
	return false
}

// begin is called by the pump alone.
func (t *task) begin() {
	select {
	case <-t.began:
	default:
		close(t.began)
	}
}
