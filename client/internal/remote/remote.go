// Package remote is the daemon as the client sees it: one typed method for each request, events as they arrive and in
// order, and a link that mends itself. How a connection is found, opened and greeted is left to launch; what the
// messages of a lease mean is left to lender.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sublet/wire"
)

// ErrDisconnected says that there is no connection to the daemon just now, or that it was lost before the answer came.
var ErrDisconnected = errors.New("no connection to the daemon")

// ErrStopped says that the daemon stopped because somebody asked it to: none is started again until a request needs it.
var ErrStopped = errors.New("the daemon was stopped; your next question starts it again")

// ErrClosed says that Close was called.
var ErrClosed = errors.New("the connection to the daemon was closed")

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// stableAfter is how long a link must have lived for its loss to start the back-off anew: a daemon that dies
	// right after each start is not started once a second for ever.
	stableAfter = firstRetry
	// cancelBound is how long a cancelled turn may take to report its end: its command is proved ended within 5 s.
	cancelBound = 7 * time.Second
	// rouseBound is how long a request waits for a daemon that was stopped and is started for it.
	rouseBound = 20 * time.Second
)

// Options for Dial and Keep. Open and Snapshot are required.
type Options struct {
	// Open dials and shakes hands: it sends the snapshot and returns the connection with Ready already received.
	// ctx bounds the opening only. It is called again for each reconnect.
	Open func(ctx context.Context, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)
	// Find is Open that starts no daemon; it is called while a stopped one is to stay stopped. nil = Open.
	Find func(ctx context.Context, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)
	// Snapshot describes the client as it is now; remote fills in the protocol range, the session and after_seq.
	Snapshot func() *wire.EnvSnapshot
	// Session to attach to first; "" = a new one. AfterSeq: its events after that number are sent again, -1 none.
	Session  wire.SessionID
	AfterSeq int64

	// Handle receives every message that is no reply: events once each and in order, lease messages, notices, errors. One
	// that cannot be read, or whose kind is not known, arrives as a Notice.
	// Up and Down frame the life of each link; Down also reports a first connection that failed, and then only changes
	// of the reason; errors.Is(err, ErrStopped) where the daemon was told to stop. All three come from one goroutine, must not wait for a reply of this Conn, and may be nil.
	Handle func(wire.Message)
	Up     func(*wire.Ready)
	Down   func(error)

	Log *slog.Logger // nil = none
}

// Conn is the daemon. Its methods are safe for concurrent use. It owns its goroutines; Close ends them all.
type Conn struct {
	o      Options
	log    *slog.Logger
	cancel context.CancelCauseFunc
	ctx    context.Context // the Conn's lifetime
	kick   chan struct{}   // somebody wants the daemon now: end the back-off's wait
	wake   chan struct{}   // capacity 1: asleep was ended by a request
	work   sync.WaitGroup
	done   chan struct{} // closed when no further link will come
	faults []string      // of the daemon's messages, as the user was shown; the reader's

	mu sync.Mutex
	// guarded by mu
	link     *link // nil while disconnected
	ready    *wire.Ready
	session  wire.SessionInfo
	want     wire.SessionID           // to attach to at the next handshake; "" = a new session
	seen     map[wire.SessionID]int64 // number of the last event handed on, by session
	unstored []wire.TurnID            // whose end came without a number; see endedUnstored
	err      error                    // why the last link ended
	asleep   bool                     // the daemon was stopped on purpose: look for one, start none
	rousing  chan struct{}            // closed when the attempt that a request ended asleep for is over; nil = none under way
}

func newConn(ctx context.Context, o Options) *Conn {
	c := &Conn{
		o: o, log: o.Log, kick: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{}),
		want: o.Session, seen: map[wire.SessionID]int64{},
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if o.Session != "" {
		c.seen[o.Session] = o.AfterSeq
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// Dial opens one connection and returns when the daemon is ready. It is not mended when it breaks: Done closes then.
// ctx bounds the opening; the connection lives until Close.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	c := newConn(context.WithoutCancel(ctx), o)
	wc, ready, err := c.open(ctx, o.Open)
	if err != nil {
		c.cancel(ErrClosed)
		return nil, err
	}
	l := c.attach(wc, ready)
	c.work.Go(func() {
		defer close(c.done)
		c.serve(l, ready)
	})
	return c, nil
}

// Keep returns at once, connects in the background and reconnects for ever: after 1 s, doubling to 30 s, or at once
// when a request is made meanwhile (at most once a second). It goes back to the session it was in and gets exactly the events it missed.
// A daemon that says it was told to stop stays stopped: until a request needs one, Keep only looks for another, quietly.
// ctx ends it like Close.
func Keep(ctx context.Context, o Options) *Conn {
	c := newConn(ctx, o)
	c.work.Go(func() {
		defer close(c.done)
		c.keep()
	})
	return c
}

func (c *Conn) keep() {
	wait := firstRetry
	said := ""
	for {
		quiet, open := c.sleeping(), c.o.Open
		if quiet && c.o.Find != nil {
			open = c.o.Find
		}
		wc, ready, err := c.open(c.ctx, open)
		switch {
		case err == nil:
			said = ""
			began := time.Now()
			quiet = errors.Is(c.serve(c.attach(wc, ready), ready), ErrStopped) // told by Down
			if quiet || time.Since(began) >= stableAfter {
				wait = firstRetry
			}
		case quiet:
			c.log.Debug("no daemon found", "err", err)
		case c.ctx.Err() == nil && err.Error() != said:
			// The same failure is told once, not every 30 s.
			said = err.Error()
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			if refused, ok := errors.AsType[*wire.Error](err); ok { // what it refused is the caller's affair, such as a session that is to be made
				c.log.Debug("refused by the daemon", "code", refused.Code, "err", err)
			} else {
				c.log.Warn("daemon not reached", "err", err)
			}
			if c.o.Down != nil {
				c.o.Down(err)
			}
		}
		if !quiet {
			c.roused()
		}
		rested := false
		if quiet {
			rested = c.rest(wait)
		} else {
			rested = c.pause(wait)
		}
		if !rested {
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

func (c *Conn) sleeping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asleep
}

// roused lets the requests go on that wait for an attempt.
func (c *Conn) roused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rousing != nil {
		close(c.rousing)
		c.rousing = nil
	}
}

// rest waits for d while a stopped daemon is to stay stopped, or until a request ends that: then there is no least
// wait, since nothing was started. It reports false when the Conn is over.
func (c *Conn) rest(d time.Duration) bool {
	select {
	case <-c.wake: // from before; what counts is asleep
	default:
	}
	if !c.sleeping() {
		return c.ctx.Err() == nil
	}
	most := time.NewTimer(d)
	defer most.Stop()
	select {
	case <-most.C:
	case <-c.wake:
	case <-c.ctx.Done():
		return false
	}
	return true
}

// pause waits for d, or until somebody wants the daemon, but for firstRetry at least: a daemon that cannot start is not
// started with each key. It reports false when the Conn is over.
func (c *Conn) pause(d time.Duration) bool {
	select {
	case <-c.kick: // from before the loss, or from an attempt that failed
	default:
	}
	least, most := time.NewTimer(firstRetry), time.NewTimer(d)
	defer least.Stop()
	defer most.Stop()
	select {
	case <-least.C:
	case <-c.ctx.Done():
		return false
	}
	select {
	case <-most.C:
	case <-c.kick:
	case <-c.ctx.Done():
		return false
	}
	return true
}

// open makes one handshake. A session that the daemon does not have (nothing was ever stored in it, or it was deleted
// meanwhile) is given up for a new one, unless the caller named it and never had it.
func (c *Conn) open(ctx context.Context, by func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)) (*wire.Conn, *wire.Ready, error) {
	for {
		c.mu.Lock()
		want, had := c.want, c.ready != nil
		after := c.seen[want]
		c.mu.Unlock()
		s := c.o.Snapshot()
		s.ProtocolMin, s.ProtocolMax = wire.MinVersion, wire.Version
		s.SessionID, s.AfterSeq = nil, 0
		if want != "" {
			s.SessionID, s.AfterSeq = &want, after
		}
		wc, ready, err := by(ctx, s)
		if err == nil || !errors.Is(err, wire.ErrNotFoundSession) || want == "" || !had {
			return wc, ready, err
		}
		c.mu.Lock()
		c.want = ""
		c.mu.Unlock()
	}
}

// attach makes wc the link in force.
func (c *Conn) attach(wc *wire.Conn, ready *wire.Ready) *link {
	l := newLink(wc)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.ready, c.session, c.want, c.asleep = l, ready, ready.Session, ready.Session.ID, false
	c.settleLocked(ready.Session)
	return l
}

// serve reads one link until it breaks and returns why. It waits for the link's other goroutine.
func (c *Conn) serve(l *link, ready *wire.Ready) error {
	stop := context.AfterFunc(c.ctx, func() { l.wc.Close() })
	var pulse sync.WaitGroup
	pulse.Go(func() { l.pulse() })
	c.log.Info("connected", "daemon", ready.Daemon.PID, "version", ready.Daemon.Version, "protocol", ready.Protocol)
	if c.o.Up != nil {
		c.o.Up(ready)
	}
	c.roused()
	err := c.receive(l)
	stop()
	if l.stopped {
		err = fmt.Errorf("%w: %w", ErrDisconnected, ErrStopped)
	}
	c.mu.Lock()
	c.link, c.err, c.asleep = nil, err, l.stopped
	c.mu.Unlock()
	l.end()
	pulse.Wait()
	if c.ctx.Err() == nil {
		c.log.Info("connection lost", "err", err)
		if c.o.Down != nil {
			c.o.Down(err)
		}
	}
	return err
}

func (c *Conn) receive(l *link) error {
	for {
		m, err := l.wc.Receive()
		switch {
		case err == nil:
		case wire.Recoverable(err):
			// One bad message costs itself only.
			_ = l.wc.Send(wire.Reply(err)) // a link that is gone says so at the next Receive
			c.unread(err)
			continue
		default:
			if cause := l.cause(); cause != nil {
				err = cause
			}
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		l.heard()
		c.dispatch(l, m)
	}
}

// maxUnread bounds how many different faults of the daemon's messages the user is shown.
const maxUnread = 8

// unread shows the user that something of the daemon's is missing, once for each fault.
func (c *Conn) unread(err error) {
	c.log.Warn("message not understood", "err", err)
	text := err.Error()
	if c.o.Handle == nil || len(c.faults) == maxUnread || slices.Contains(c.faults, text) {
		return
	}
	c.faults = append(c.faults, text)
	c.o.Handle(&wire.Notice{
		Level: "warning", Text: "a message of the daemon cannot be shown: " + text,
		Hint: "where this program is older than the daemon, leave it and start it again",
	})
}

// Close ends the connection: what was queued is sent, within the bound of wire.Conn, and every waiting call returns.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil {
		l.wc.Close()
	}
	c.work.Wait()
	return nil
}

// Done closes when the connection is over for good: after Close, or, of one made by Dial, when it broke.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err tells why the last link ended; nil while none did.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Connected reports whether a request can be made now: there is a link, or the daemon was stopped and the request would
// start it again and wait for it. Otherwise asking hurries the next attempt. It starts nothing by itself, so that the
// user's own commands do not bring a stopped daemon back.
func (c *Conn) Connected() bool {
	c.mu.Lock()
	startable := c.asleep || c.rousing != nil
	c.mu.Unlock()
	if startable && c.ctx.Err() == nil {
		return true
	}
	_, err := c.current()
	return err == nil
}

// Ready is the daemon's last greeting; nil before the first. It is shared: do not change it.
func (c *Conn) Ready() *wire.Ready {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// Session is the session in force: of the last Ready, or of a Resume since.
func (c *Conn) Session() wire.SessionInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Seen returns the number of the last event handed on, by session. The map is the caller's.
func (c *Conn) Seen() map[wire.SessionID]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}
