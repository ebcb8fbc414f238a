package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sublet/client/internal/remote"
	"sublet/wire"
)

const (
	// inboxBound is the default limit in bytes of events that wait for a slow client. Beyond it nothing more is read from the daemon,
	// which cuts off a connection that is not read; the session then resumes after its last event.
	inboxBound = 4 << 20
	// liveBound is the size of the inbox from which live output is dropped; the tool's result contains it.
	liveBound = 256 << 10
)

// Session is one conversation for a gateway. It resumes after a lost connection, a restart of the daemon, or a client that did
// not read for a while, and repeats requests that never began. It is safe for concurrent use, except that only one goroutine
// may call Next. It owns its goroutines; Close ends them all.
type Session struct {
	d      *Daemon
	log    *slog.Logger
	ctx    context.Context // the session's lifetime
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	wake   chan struct{} // capacity 1: the inbox is not empty, or Close was called
	conn   *remote.Conn  // set by Connect

	confirm bool // Options.Confirm

	mu sync.Mutex
	// below: guarded by mu
	o       Options
	links   int // how often a link came up
	id      wire.SessionID
	down    error         // why there is no link
	changed chan struct{} // closed and replaced when links or down changes
	inbox   []received
	size    int           // bytes in inbox
	room    chan struct{} // closed and replaced when messages are taken from inbox
	turns   []*Turn       // that were asked here, until their ends are in the inbox, in order
	recheck bool          // at the end of a turn, reconcile must ask again about requests that were sent on an older link
}

// received is an event in the inbox.
type received struct {
	wire.EventMessage
	turn *Turn // that was asked in this session, and to which the event belongs; nil = none
	last bool  // the turn ends with this event
}

// Connect attaches to a session, or a new one, and returns when the daemon has answered. ctx bounds the connecting only. Errors
// are those of d.Open, ErrNoAnswer, and *wire.Error such as not_found_session.
func (d *Daemon) Connect(ctx context.Context, o Options) (*Session, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	s := &Session{
		d: d, log: d.Logger(), o: o, wake: make(chan struct{}, 1), changed: make(chan struct{}), room: make(chan struct{}),
		id: o.Session, confirm: o.Confirm,
	}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock() // what conn calls waits until it is set
	s.conn = remote.Keep(s.ctx, remote.Options{
		Open: d.Open, Find: d.Find, Session: o.Session, AfterSeq: -1, Log: s.log,
		Snapshot: func() *wire.EnvSnapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			return d.snapshot(s.o)
		},
		Handle: s.handle, Up: s.up, Down: s.lost,
	})
	s.mu.Unlock()
	for {
		s.mu.Lock()
		links, down, changed := s.links, s.down, s.changed
		s.mu.Unlock()
		switch {
		case links > 0:
			return s, nil
		case down != nil:
			s.Close()
			return nil, down
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// ConnectOrCreate is Connect that creates the session under its id if there is none. For that it first attaches to a new session
// without a chosen id, of which nothing is left: the daemon does not store a session in which nothing was asked.
func (d *Daemon) ConnectOrCreate(ctx context.Context, o Options) (*Session, error) {
	s, err := d.Connect(ctx, o)
	id := o.Session
	if id == "" || !errors.Is(err, wire.ErrNotFoundSession) {
		return s, err
	}
	o.Session = ""
	if s, err = d.Connect(ctx, o); err != nil {
		return nil, err
	}
	if err = s.Create(ctx, id); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// signalLocked wakes the goroutines that wait for a change of the link.
func (s *Session) signalLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// up records a new link. Turns that were asked on an older one may have ended, or never begun: reconcile finds out.
func (s *Session) up(r *wire.Ready) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
	s.links++
	if s.id != r.Session.ID {
		s.moveLocked(r.Session.ID)
	}
	s.signalLocked()
	if len(s.turns) > 0 {
		s.work.Go(s.reconcile) // Close waits for it
	}
}

// moveLocked switches to the new session that the daemon assigned. Turns that had begun in the one that is gone are ended.
func (s *Session) moveLocked(id wire.SessionID) {
	was := s.id
	s.id = id
	if was == "" {
		return
	}
	for _, t := range slices.Clone(s.turns) {
		if t.turn != "" {
			s.endLocked(t, wire.CodeNotFoundSession, "the session was deleted while the daemon was away")
		}
	}
}

func (s *Session) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
	s.signalLocked()
}

// handle handles messages of the daemon, of which only events concern a gateway. It runs in the connection's reader, and blocks while
// the inbox is full.
func (s *Session) handle(m wire.Message) {
	e, ok := m.(wire.EventMessage)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := remote.Size(e)
	if wire.Live(e) && s.size+n > liveBound {
		return
	}
	for s.size > 0 && s.size+n > cmp.Or(s.d.Inbox, inboxBound) && s.ctx.Err() == nil { // an empty inbox takes a message of any size
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-s.ctx.Done():
		}
		s.mu.Lock()
	}
	t := s.turnLocked(e.Meta().RequestID)
	if refused, ok := e.(*wire.Error); ok && t != nil && refused.Code == wire.CodeDuplicateID {
		return // the request was sent again in case a link had lost it, which was not so: the turn continues
	}
	s.pushLocked(received{e, t, t != nil && s.followLocked(t, e)})
	if _, ended := e.(*wire.AgentComplete); ended && s.recheck && len(s.turns) > 0 { // ours may have waited for it
		s.recheck = false
		s.work.Go(s.reconcile)
	}
}

func (s *Session) pushLocked(r received) {
	s.inbox = append(s.inbox, r)
	s.size += remote.Size(r.EventMessage)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next waits for events of the session, and refusals (a *wire.Error without a turn), and returns up to most of those that wait. It
// returns context.Cause(ctx), and ErrClosed after Close. The caller owns the events.
func (s *Session) Next(ctx context.Context, most int) ([]wire.EventMessage, error) {
	list, err := s.nextBatch(ctx, most)
	all := make([]wire.EventMessage, len(list))
	for i, r := range list {
		all[i] = r.EventMessage
	}
	return all, err
}

// nextBatch is Next with the turns that the events belong to.
func (s *Session) nextBatch(ctx context.Context, most int) ([]received, error) {
	for {
		s.mu.Lock()
		if n := min(len(s.inbox), most); n > 0 {
			list := slices.Clone(s.inbox[:n])
			clear(s.inbox[:n])
			for _, r := range list {
				s.size -= remote.Size(r.EventMessage)
			}
			s.inbox = s.inbox[n:]
			close(s.room)
			s.room = make(chan struct{})
			s.mu.Unlock()
			return list, nil
		}
		s.mu.Unlock()
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// UseMCPServers replaces the session's MCP servers for the requests that follow.
func (s *Session) UseMCPServers(ctx context.Context, servers []wire.MCPServer) {
	s.mu.Lock()
	s.o.MCPServers = servers
	s.mu.Unlock()
	_ = s.conn.EnvChanged() // after a failure the handshake of the next link contains them, as every one does
}

// ID returns the current session; it changes with Attach.
func (s *Session) ID() wire.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Ready returns the last Ready. It is shared: do not change it.
func (s *Session) Ready() *wire.Ready { return s.conn.Ready() }

// Close ends the session's goroutines; running turns continue in the daemon.
func (s *Session) Close() {
	s.cancel(ErrClosed)
	s.conn.Close()
	s.work.Wait()
}

// withConn calls f with a connection on which a request can be made and the number of its link, and again with the next one while f
// returns remote.ErrDisconnected. It returns ErrAway if there is none when linkBound has passed; it does not interrupt f.
func (s *Session) withConn(ctx context.Context, f func(c *remote.Conn, link int) error) error {
	bound := time.NewTimer(linkBound)
	defer bound.Stop()
	for {
		s.mu.Lock()
		link, down, changed := s.links, s.down, s.changed
		s.mu.Unlock()
		if s.conn.Connected() { // or f starts a daemon that was stopped; else the next attempt is made earlier
			err := f(s.conn, link)
			if !errors.Is(err, remote.ErrDisconnected) { // else it may succeed on the next link
				return err
			}
		}
		select {
		case <-changed:
		case <-bound.C:
			if down != nil {
				return fmt.Errorf("%w: %w", ErrAway, down)
			}
			return ErrAway
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return ErrClosed
		}
	}
}
