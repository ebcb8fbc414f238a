// Package remote is the daemon as the client sees it: requests and their replies, events in order as they arrive, and
// automatic reconnection. Finding, opening and greeting a connection is left to launch; the meaning of lease messages is left
// to lender.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sublet/wire"
)

// ErrDisconnected reports that there is no connection to the daemon, or that it was lost before the answer came.
var ErrDisconnected = errors.New("no connection to the daemon")

// ErrStopped reports that the daemon was stopped on request: none is started again until a request needs it.
var ErrStopped = errors.New("the daemon was stopped; your next question starts it again")

// ErrClosed reports that Close was called.
var ErrClosed = errors.New("the connection to the daemon was closed")

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// stableAfter is how long a link must have lived for the back-off to be reset, so that a daemon that dies after each start is
	// not started every second.
	stableAfter = firstRetry
	// cancelBound is how long to wait for the end of a cancelled turn; the daemon ends its command within 5 s.
	cancelBound = 7 * time.Second
	// startBound is how long a request waits for a stopped daemon to start.
	startBound = 20 * time.Second
)

// Options for Dial and Keep. Open and Snapshot are required.
type Options struct {
	// Open dials and performs the handshake: it sends the snapshot and returns the connection after Ready. ctx bounds the
	// opening only. It is called again for each reconnect.
	Open func(ctx context.Context, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)
	// Find is Open without starting a daemon, for a daemon that must stay stopped. nil = Open.
	Find func(ctx context.Context, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)
	// Snapshot describes the client now; remote fills in the protocol range, the session and after_seq.
	Snapshot func() *wire.EnvSnapshot
	// Session to attach to first; "" = a new one. AfterSeq: its stored events after that number are sent first, -1 none.
	Session  wire.SessionID
	AfterSeq int64

	// Handle receives every message that is not a reply: events once each and in order, lease messages, notices, errors. A
	// message that cannot be decoded, or whose kind is not known, arrives as a Notice.
	Handle func(wire.Message)
	Up     func(*wire.Ready)
	Down   func(error)
	// Moved receives the reply that attached the connection to another session, before any event of that session. nil = none.
	Moved func(*wire.SessionReply)

	Log *slog.Logger // nil = none
}

// Conn is a connection to the daemon. It is safe for concurrent use. It owns its goroutines; Close ends them all.
type Conn struct {
	o      Options
	log    *slog.Logger
	cancel context.CancelCauseFunc
	ctx    context.Context // the Conn's lifetime
	kick   chan struct{}   // capacity 1: a request wants the daemon now, which ends the back-off
	work   sync.WaitGroup
	done   chan struct{} // closed when there will be no further link
	faults []string      // faults of the daemon's messages that were shown; used by the reader only

	mu sync.Mutex
	// guarded by mu
	link     *link // nil while disconnected
	ready    *wire.Ready
	want     wire.SessionID           // to attach to at the next handshake; "" = a new session
	seen     map[wire.SessionID]int64 // number of the last delivered event, by session
	unstored []wire.TurnID            // the last turns whose end had no number; see afterUnstoredEnd
	err      error                    // why the last link ended
	asleep   bool                     // the daemon was stopped on request: look for one, start none
	starting chan struct{}            // closed when the attempt that a request began has ended; nil = there is none
}

func newConn(ctx context.Context, o Options) *Conn {
	c := &Conn{
		o: o, log: o.Log, kick: make(chan struct{}, 1), done: make(chan struct{}),
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

// Dial opens one connection and returns when the daemon is ready. It does not reconnect: Done is closed when the connection
// breaks. ctx bounds the opening; the connection lives until Close.
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

// Keep returns at once, connects in the background and reconnects for ever: after 1 s, doubling to 30 s, or at once when a
// request is made (at most once a second). It resumes its session and delivers exactly the events that it missed. After a
// daemon was stopped on request, Keep only looks for another until a request needs one. ctx ends it like Close.
func Keep(ctx context.Context, o Options) *Conn {
	c := newConn(ctx, o)
	c.work.Go(func() {
		defer close(c.done)
		c.keep()
	})
	return c
}

// keep connects again and again until the Conn is closed. quiet is set while a daemon that was stopped on request must stay stopped.
func (c *Conn) keep() {
	wait := firstRetry
	reported := "" // the failure that was reported last
	for {
		quiet, open := c.sleeping(), c.o.Open
		if quiet && c.o.Find != nil {
			open = c.o.Find
		}
		wc, ready, err := c.open(c.ctx, open)
		switch {
		case err == nil:
			reported = ""
			began := time.Now()
			quiet = errors.Is(c.serve(c.attach(wc, ready), ready), ErrStopped) // Down has reported it
			if quiet || time.Since(began) >= stableAfter {
				wait = firstRetry
			}
		case quiet:
			c.log.Debug("no daemon found", "err", err)
		case c.ctx.Err() == nil && err.Error() != reported:
			// The same failure is reported once, not every 30 s.
			reported = err.Error()
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			if refused, ok := errors.AsType[*wire.Error](err); ok { // the caller handles what was refused, such as a session that does not exist
				c.log.Debug("refused by the daemon", "code", refused.Code, "err", err)
			} else {
				c.log.Warn("daemon not reached", "err", err)
			}
			if c.o.Down != nil {
				c.o.Down(err)
			}
		}
		if !quiet {
			c.releaseStartWaiters()
		}
		if !c.pause(wait, quiet) {
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

// releaseStartWaiters releases the requests that wait for an attempt.
func (c *Conn) releaseStartWaiters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starting != nil {
		close(c.starting)
		c.starting = nil
	}
}

// pause waits for d, or until a request wants the daemon, but at least firstRetry, so that a daemon that cannot start is not
// started with each key. While a stopped daemon must stay stopped (quiet), it ends as soon as a request clears that. It returns false
// if the Conn was closed.
func (c *Conn) pause(d time.Duration, quiet bool) bool {
	select {
	case <-c.kick: // may be a signal from before the loss, or from a failed attempt
	default:
	}
	most := time.NewTimer(d)
	defer most.Stop()
	if !quiet {
		select {
		case <-time.After(firstRetry):
		case <-c.ctx.Done():
			return false
		}
	}
	for !quiet || c.sleeping() {
		select {
		case <-most.C:
			return true
		case <-c.kick:
			if !quiet {
				return true
			}
		case <-c.ctx.Done():
			return false
		}
	}
	return c.ctx.Err() == nil
}

// open makes one handshake. A session that the daemon does not have (nothing was stored in it, or it was deleted) is replaced
// by a new one, unless the caller named it and it was never attached.
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

// attach makes wc the current link.
func (c *Conn) attach(wc *wire.Conn, ready *wire.Ready) *link {
	l := newLink(wc)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.ready, c.want, c.asleep = l, ready, ready.Session.ID, false
	c.settleLocked(ready.Session)
	return l
}

// serve reads one link until it breaks and returns the reason.
func (c *Conn) serve(l *link, ready *wire.Ready) error {
	stop := context.AfterFunc(c.ctx, func() { l.wc.Close() })
	c.log.Info("connected", "daemon", ready.Daemon.PID, "version", ready.Daemon.Version, "protocol", ready.Protocol)
	if c.o.Up != nil {
		c.o.Up(ready)
	}
	c.releaseStartWaiters()
	err := c.receive(l)
	stop()
	if l.stopped {
		err = fmt.Errorf("%w: %w", ErrDisconnected, ErrStopped)
	}
	c.mu.Lock()
	c.link, c.err, c.asleep = nil, err, l.stopped
	c.mu.Unlock()
	l.end()
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
		if answer := wire.Recoverable(err); answer != nil { // an invalid message does not end the link
			_ = l.wc.Send(answer) // the next Receive reports a lost link
			c.unread(err)
			continue
		}
		if err != nil {
			if cause := l.cause(); cause != nil {
				err = cause
			}
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		l.heard(m)
		c.dispatch(l, m)
	}
}

// maxUnread bounds how many different faults of the daemon's messages are shown.
const maxUnread = 8

// unread shows the user that a message of the daemon was left out, once for each fault.
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

// Done is closed when there will be no connection any more: after Close or, after Dial, when it broke.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the last link ended; nil if none has.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Connected reports whether a request can be made now: there is a link, or the daemon was stopped and a request would start
// it. Otherwise it makes the next attempt earlier. It starts no stopped daemon: it is called after each of the user's own commands.
func (c *Conn) Connected() bool {
	c.mu.Lock()
	startable := c.asleep || c.starting != nil
	c.mu.Unlock()
	if startable && c.ctx.Err() == nil {
		return true
	}
	_, err := c.current()
	return err == nil
}

// Ready returns the last Ready, with the session that a later request has attached the Conn to; nil before the first. It is shared: do
// not change it.
func (c *Conn) Ready() *wire.Ready {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}
