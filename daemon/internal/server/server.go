// Package server speaks the native protocol to clients: it turns each message into one call of the hub and the hub's errors
// into codes. It checks who connects, negotiates the version, limits the rate of requests and detects dead peers. Sessions,
// turns and leases are left to the hub.
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"sublet/daemon/config"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/hub"
	"sublet/daemon/internal/lend"
	"sublet/wire"
	"sublet/wire/socket"
)

// handshakeBound is how long a connection may take for its EnvSnapshot.
const handshakeBound = 10 * time.Second

// Options for New. All must be set.
type Options struct {
	Hub    *hub.Hub
	Config func() config.Config
	Log    *slog.Logger
}

// Server serves connections and has no other state.
type Server struct {
	hub    *hub.Hub
	config func() config.Config
	log    *slog.Logger
}

// New returns a Server.
func New(o Options) *Server {
	return &Server{hub: o.Hub, config: o.Config, log: o.Log}
}

// Serve serves the connections of this user's processes until ctx is done. It owns ln and every goroutine it starts, and returns after
// the last of them has ended.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return socket.Serve(ctx, ln, s.log, func(ctx context.Context, nc net.Conn) {
		pid, err := socket.PeerPID(nc)
		if err != nil || pid == 0 {
			pid = lend.Unidentified
		}
		s.ServeConn(ctx, nc, pid)
	})
}

// conn is one connection. Its reader is the goroutine that runs ServeConn; its writer belongs to wire.Conn.
type conn struct {
	*wire.Conn
	server *Server
	cancel context.CancelFunc // ends the connection, after what is queued was sent
	pid    int
	hungUp func() bool // reports whether the client has closed the connection; it does if this daemon was suspended for a while
	log    *slog.Logger
	client *hub.Client   // set by the handshake; only the reader uses it
	rate   *rate.Limiter // of requests
	beat   heart
}

var ids atomic.Uint64

// ServeConn serves one connection until it or ctx ends. pid is the process at the other end, 0 if rw is not a socket. It owns
// rw.
func (s *Server) ServeConn(ctx context.Context, rw io.ReadWriteCloser, pid int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &conn{
		Conn:   wire.NewConn(rw),
		server: s, cancel: cancel, pid: pid, log: s.log.With("conn", ids.Add(1), "pid", pid),
		rate: rate.NewLimiter(0, s.config().Limits.RequestsPerSecond),
	}
	c.hungUp = func() bool { nc, ok := rw.(syscall.Conn); return ok && socket.HungUp(nc) }
	c.beat.conn = c
	c.SetMaxFrame(wire.MaxHandshakeFrame)
	stop := context.AfterFunc(ctx, func() { c.Close() }) // unblocks Receive, after what is queued was sent
	defer func() {
		stop()
		c.Close() // waits for the writer, whoever closed first
	}()
	defer c.beat.stop()
	if !c.handshake(ctx) {
		return
	}
	defer c.client.Detach()
	c.SetMaxFrame(wire.MaxFrame)
	for {
		m, err := c.Receive()
		if err == nil {
			c.beat.heard(m)
			c.log.Debug("received", "kind", wire.KindOf(m))
			c.dispatch(ctx, m)
			continue
		}
		if answer := wire.Recoverable(err); answer != nil {
			c.beat.heard(nil)
			c.log.Debug("message refused", "err", err)
			c.answer(answer)
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrClosed) {
			c.log.Info("connection lost", "err", err)
		}
		return
	}
}

// handshake waits for the EnvSnapshot, picks the version and attaches the client. It returns false if the connection must end.
func (c *conn) handshake(ctx context.Context) bool {
	bound := time.AfterFunc(handshakeBound, func() { c.Close() })
	defer bound.Stop()
	const patience = 8 // messages other than EnvSnapshot that are answered before the connection ends
	for range patience {
		m, err := c.Receive()
		if err != nil {
			answer := wire.Recoverable(err)
			if answer == nil {
				return false
			}
			c.answer(answer)
			continue
		}
		env, ok := m.(*wire.EnvSnapshot)
		if !ok {
			c.answer(&wire.Error{
				Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInvalidMessage,
				Message: wire.KindOf(m) + " before the handshake", Hint: "EnvSnapshot comes first", Recoverable: true,
			})
			continue
		}
		if _, ok := wire.Negotiate(env.ProtocolMin, env.ProtocolMax); !ok {
			c.answer(versionError(env))
			return false
		}
		if c.hungUp() {
			c.log.Debug("closed before it was served")
			return false // attaching this one would end the connection that the client has opened since
		}
		bound.Stop() // from here on only this daemon can be slow
		client, err := c.server.hub.Attach(ctx, c, env)
		if err != nil {
			c.fail("", err)
			_, greeted := errors.AsType[*eventlog.CutOffError](err) // Ready was sent; a second attempt needs another connection
			if errors.Is(err, hub.ErrNoSession) && !greeted {
				bound.Reset(handshakeBound)
				continue // the client may name another session
			}
			return false
		}
		c.client = client
		c.beat.attached(client)
		return true
	}
	return false
}

// Send implements hub.Peer.
func (c *conn) Send(m wire.Message) {
	err := c.Conn.Send(m)
	if err == nil {
		c.log.Debug("sent", "kind", wire.KindOf(m))
		c.beat.sent()
		return
	}
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		// Outputs are bounded far below the limit, so this is a bug that must be visible.
		c.log.Error("message too large to send", "kind", wire.KindOf(m), "bytes", refusal.Details["size"])
		if refusal.RequestID = wire.RequestOf(m); refusal.RequestID != "" {
			_ = c.Conn.Send(refusal) // an error: the connection is over
		}
	}
}

// End implements hub.Peer.
func (c *conn) End(m wire.Message) {
	c.answer(m)
	c.cancel()
}

// PID implements hub.Peer.
func (c *conn) PID() int { return c.pid }

// answer sends m, with its details where it is an error.
func (c *conn) answer(m wire.Message) {
	if e, ok := m.(*wire.Error); ok && e.Details == nil {
		e.Details = map[string]string{}
	}
	c.Send(m)
}
