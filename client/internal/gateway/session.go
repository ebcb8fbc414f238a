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
	// inboxBound is the default limit in bytes of events that wait for a slow client. Beyond it the connection to the daemon is
	// closed, and opened again when they have been read; the missed events come from the store.
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

	mu sync.Mutex
	// below: guarded by mu
	o       Options
	conn    *remote.Conn // nil while paused
	number  int          // of conn: messages of older ones are dropped
	links   int          // how often a link came up
	linked  bool
	id      wire.SessionID
	seq     int64 // of the newest event in the inbox; -1 = not known yet, because only events after the daemon's answer are wanted
	ready   *wire.Ready
	down    error         // why there is no link
	changed chan struct{} // closed and replaced when linked, down or paused changes
	inbox   []wire.Message
	size    int // bytes in inbox
	paused  bool
	asks    []*ask // that have not ended, in order
	recheck bool   // requests of an older link may still wait for their turn
}

// ask is a request that has not ended.
type ask struct {
	req       *wire.AgentRequest
	turn      wire.TurnID // "" = not begun
	link      int         // number of the link on which it was sent; 0 = being sent
	cancelled string      // why; "" = not
}

// Connect attaches to a session, or a new one, and returns when the daemon has answered. ctx bounds the connecting only. Errors
// are those of d.Open, and *wire.Error such as not_found_session.
func (d *Daemon) Connect(ctx context.Context, o Options) (*Session, error) {
	s := &Session{
		d: d, log: d.Log, o: o, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		id: o.Session, seq: o.AfterSeq,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.openLocked()
	s.mu.Unlock()
	for {
		s.mu.Lock()
		linked, down, changed := s.linked, s.down, s.changed
		s.mu.Unlock()
		switch {
		case linked:
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

// ConnectOrCreate is Connect that makes the session under its id if there is none.
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
	if err = s.Create(ctx, id); err == nil {
		return s, nil
	}
	s.Close()
	if errors.Is(err, wire.ErrDuplicateID) { // another client created it meanwhile
		o.Session = id
		return d.Connect(ctx, o)
	}
	return nil, err
}

// openLocked starts to connect, to resume after the newest event in the inbox.
func (s *Session) openLocked() {
	s.number++
	number := s.number
	s.paused = false
	s.conn = remote.Keep(s.ctx, remote.Options{
		Open: s.d.Open, Find: s.d.Find, Session: s.id, AfterSeq: s.seq, Log: s.log,
		Snapshot: func() *wire.EnvSnapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.d.snapshot(s.o)
		},
		Handle: func(m wire.Message) { s.handle(number, m) },
		Up:     func(r *wire.Ready) { s.up(number, r) },
		Down:   func(err error) { s.lost(number, err) },
	})
}

// signalLocked wakes the goroutines that wait for a change of the link.
func (s *Session) signalLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Session) up(number int, r *wire.Ready) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number != s.number {
		return
	}
	s.linked, s.down, s.ready = true, nil, r
	s.links++
	if s.id != r.Session.ID {
		s.moveLocked(r.Session.ID)
	}
	if s.seq < 0 {
		s.seq = r.Session.LastSeq
	}
	s.signalLocked()
	if len(s.asks) > 0 {
		s.work.Go(s.reconcile) // Close waits for it
	}
}

// moveLocked switches to the new session that the daemon assigned. Requests of the one that is gone are ended.
func (s *Session) moveLocked(id wire.SessionID) {
	was := s.id
	s.id, s.seq = id, 0
	if was == "" {
		return
	}
	for _, a := range slices.Clone(s.asks) {
		if a.turn != "" {
			s.endLocked(a, wire.CodeNotFoundSession, "the session was deleted while the daemon was away")
		}
	}
}

func (s *Session) lost(number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number != s.number {
		return
	}
	s.linked, s.down = false, err
	s.signalLocked()
}

// handle handles messages of the daemon. It runs in the connection's reader and never blocks.
func (s *Session) handle(number int, m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number != s.number {
		return
	}
	n := sizeOf(m)
	if remote.Live(m) && s.size+n > liveBound {
		return
	}
	e, event := m.(wire.EventMessage)
	if event && s.size+n > cmp.Or(s.d.Inbox, inboxBound) && s.size > 0 && e.Meta().Seq > 0 {
		s.pauseLocked()
		return
	}
	if event && (s.takenLocked(e) || s.askedLocked(e)) {
		return
	}
	if event {
		if meta := e.Meta(); meta.SessionID == s.id {
			s.seq = max(s.seq, meta.Seq)
		}
		s.followLocked(e)
	}
	s.pushLocked(m)
}

// takenLocked reports whether e refuses a repeated request whose first copy was still on its way over the same link. The
// request itself continues.
func (s *Session) takenLocked(e wire.EventMessage) bool {
	refused, ok := e.(*wire.Error)
	return ok && refused.Code == wire.CodeDuplicateID &&
		slices.ContainsFunc(s.asks, func(a *ask) bool { return a.req.RequestID == refused.RequestID })
}

// askedLocked reports whether e is a question that was delivered already: the daemon repeats open questions after attaching.
func (s *Session) askedLocked(e wire.EventMessage) bool {
	q, ok := e.(*wire.ConfirmationRequest)
	return ok && q.SessionID == s.id && q.Seq <= s.seq
}

func (s *Session) pushLocked(m wire.Message) {
	s.inbox = append(s.inbox, m)
	s.size += sizeOf(m)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pauseLocked closes the connection until the inbox has been read.
func (s *Session) pauseLocked() {
	s.log.Debug("paused: the client reads slowly", "session", s.id, "seq", s.seq, "bytes", s.size)
	conn := s.conn
	s.conn, s.linked, s.paused = nil, false, true
	s.number++
	s.signalLocked()
	s.work.Go(func() { conn.Close() }) // not here: this runs in its reader
}

// followLocked updates the list of requests.
func (s *Session) followLocked(e wire.EventMessage) {
	meta := e.Meta()
	i := slices.IndexFunc(s.asks, func(a *ask) bool { return meta.RequestID != "" && a.req.RequestID == meta.RequestID })
	switch e := e.(type) {
	case *wire.TurnStarted:
		if i >= 0 {
			s.asks[i].turn = meta.TurnID
			if why := s.asks[i].cancelled; why != "" {
				s.cancelLocked(s.asks[i])
			}
			s.endWaitingLocked()
		}
	case *wire.AgentComplete:
		if i >= 0 {
			s.asks = slices.Delete(s.asks, i, i+1)
		}
		if s.recheck && len(s.asks) > 0 {
			s.recheck = false
			s.work.Go(s.reconcile)
		}
	case *wire.Error:
		if i >= 0 && e.TurnID == "" { // refused
			s.asks = slices.Delete(s.asks, i, i+1)
		}
	}
}

// reconcile finds out, after a link came up, what became of requests that had not begun on an older one. All missed events
// come before the daemon's answer to its StatusRequest.
func (s *Session) reconcile() {
	s.mu.Lock()
	conn, link := s.conn, s.links
	s.mu.Unlock()
	if conn == nil {
		return
	}
	r, err := wire.Call(s.ctx, conn, &wire.SessionRequest{Op: "get"})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || conn != s.conn || link != s.links {
		return // repeated with the next link
	}
	for _, a := range slices.Clone(s.asks) {
		switch {
		case a.turn != "":
			if a.cancelled != "" {
				s.cancelLocked(a)
			}
		case a.link == 0 || a.link == link:
		case r.Session.Running:
			s.recheck = true // it waits or never arrived: check again when the running one ends
		case a.cancelled != "":
			s.endLocked(a, wire.CodeCancelled, a.cancelled+", before it began")
		default:
			a.link = link
			s.log.Info("asked again", "request", a.req.RequestID)
			again := *a.req
			s.work.Go(func() { _ = conn.Post(s.ctx, &again) }) // if this link is lost too, reconcile runs again
		}
	}
}

// endLocked ends a request here, without an end from the daemon.
func (s *Session) endLocked(a *ask, code, message string) {
	s.asks = slices.DeleteFunc(s.asks, func(b *ask) bool { return a == b })
	s.pushLocked(&wire.Error{
		Event: wire.Event{SessionID: s.id, RequestID: a.req.RequestID, AtMS: time.Now().UnixMilli()},
		Code:  code, Message: message, Details: map[string]string{}, Recoverable: true,
	})
}

// Next waits for the next message: an event of the session, a refusal (a *wire.Error without a turn), or a notice. It returns
// context.Cause(ctx), and ErrClosed after Close. The caller owns the message.
func (s *Session) Next(ctx context.Context) (wire.Message, error) {
	list, err := s.NextBatch(ctx, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// NextBatch is Next for up to most messages. It waits for the first one only.
func (s *Session) NextBatch(ctx context.Context, most int) ([]wire.Message, error) {
	for {
		s.mu.Lock()
		if n := min(len(s.inbox), most); n > 0 {
			list := slices.Clone(s.inbox[:n])
			for i, m := range list {
				s.inbox[i] = nil
				s.size -= sizeOf(m)
			}
			s.inbox = s.inbox[n:]
			s.mu.Unlock()
			return list, nil
		}
		if s.paused && s.ctx.Err() == nil {
			s.openLocked()
		}
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			return nil, ErrClosed
		}
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
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.EnvChanged(ctx) // after a failure the handshake of the next link contains them, as every one does
	}
}

// ID returns the current session; it changes with Attach.
func (s *Session) ID() wire.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Ready returns the last Ready. It is shared: do not change it.
func (s *Session) Ready() *wire.Ready {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// Close ends the session's goroutines; running turns continue in the daemon.
func (s *Session) Close() {
	s.cancel(ErrClosed)
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	s.work.Wait()
}

// sizeOf returns the approximate bytes of a message in memory.
func sizeOf(m wire.Message) int {
	const head = 256
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		n := head + len(m.Chunk.Text) + len(m.Chunk.Arguments) + len(m.Chunk.Data)
		if m.Chunk.Block != nil {
			n += len(m.Chunk.Block.Content)
		}
		return n
	case *wire.CommandResult:
		return head + len(m.Command) + len(m.Output) + len(m.OutputTail)
	case *wire.TurnStarted:
		return head + len(m.Prompt)
	case *wire.AgentComplete:
		return head + len(m.Summary)
	case *wire.ConfirmationRequest:
		return head + len(m.Command) + len(m.Arguments) + len(m.Preview.Content)
	}
	return head
}

// on calls f with a connection, again with the next one if that was lost, for at most linkBound.
func (s *Session) on(ctx context.Context, f func(c *remote.Conn, link int) error) error {
	bound := time.NewTimer(linkBound)
	defer bound.Stop()
	for {
		s.mu.Lock()
		conn, link, linked, down, changed := s.conn, s.links, s.linked, s.down, s.changed
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			return ErrClosed
		}
		if conn != nil && (linked || conn.Connected()) { // Connected makes the next attempt earlier
			err := f(conn, link)
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
