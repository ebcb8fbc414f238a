// Package server speaks the native protocol to clients: one message in, one call to the hub, whose words it turns into
// error codes. It checks who connects, negotiates the version, limits the rate of requests and notices dead peers.
// Sessions, turns and leases are left to the hub.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/hub"
	"sublet/daemon/internal/lend"
	"sublet/wire"
	"sublet/wire/socket"
)

// handshakeBound is how long a connection may take for its EnvSnapshot.
const handshakeBound = 10 * time.Second

// Options for New. Hub and Config must be set.
type Options struct {
	Hub    *hub.Hub
	Config func() config.Config
	Log    *slog.Logger
}

// Server serves connections. It holds nothing of its own beyond them.
type Server struct {
	hub    *hub.Hub
	config func() config.Config
	log    *slog.Logger
	conns  sync.WaitGroup
}

// New returns a Server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{hub: o.Hub, config: o.Config, log: o.Log}
}

// Serve accepts connections until ctx is done. It owns ln and every goroutine it starts, and returns after the last of
// them has ended. Processes of other users are turned away.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer s.conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()                                // runs before Wait: connections end with ctx
	context.AfterFunc(ctx, func() { ln.Close() }) // unblocks Accept
	for {
		nc, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil // asked to stop: not a failure
			}
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				continue
			}
			return fmt.Errorf("accept: %w", err)
		}
		if err := socket.CheckPeer(nc); err != nil {
			s.log.Warn("connection refused", "err", err)
			nc.Close()
			continue
		}
		pid, err := socket.PeerPID(nc)
		if err != nil || pid == 0 {
			pid = lend.Unidentified
		}
		s.conns.Go(func() { s.ServeConn(ctx, nc, pid) })
	}
}

// conn is one connection. Its reader is the goroutine that runs ServeConn; its writer belongs to wire.Conn.
type conn struct {
	*wire.Conn
	server *Server
	cancel context.CancelFunc // ends the connection, after what is queued was sent
	pid    int
	hungUp func() bool // the client has closed it: given up a daemon that was stopped for a while
	log    *slog.Logger
	client *hub.Client // set by the handshake; the reader's
	rate   bucket
	beat   heart
}

var ids atomic.Uint64

// ServeConn serves one connection, of the process pid (0 = it comes over no socket), until it ends or ctx does. It owns rw.
func (s *Server) ServeConn(ctx context.Context, rw io.ReadWriteCloser, pid int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &conn{
		Conn:   wire.NewConn(rw, wire.Options{MaxFrame: wire.MaxHandshakeFrame}),
		server: s, cancel: cancel, pid: pid, log: s.log.With("conn", ids.Add(1), "pid", pid),
	}
	c.hungUp = func() bool { nc, ok := rw.(syscall.Conn); return ok && socket.HungUp(nc) }
	c.beat.conn = c
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
			c.log.Debug("received", "kind", m.Kind())
			c.dispatch(ctx, m)
			continue
		}
		if wire.Recoverable(err) {
			c.beat.heard(nil)
			c.log.Debug("message refused", "err", err)
			c.answer(wire.Reply(err))
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrClosed) {
			c.log.Info("connection lost", "err", err)
		}
		return
	}
}

// handshake waits for the EnvSnapshot, picks the version and attaches. false: the connection is to end.
func (c *conn) handshake(ctx context.Context) bool {
	bound := time.AfterFunc(handshakeBound, func() { c.Close() })
	defer bound.Stop()
	const patience = 8 // messages that are no handshake, before the connection ends
	for range patience {
		m, err := c.Receive()
		if err != nil {
			if !wire.Recoverable(err) {
				return false
			}
			c.answer(wire.Reply(err))
			continue
		}
		env, ok := m.(*wire.EnvSnapshot)
		if !ok {
			c.answer(&wire.Error{
				Event: wire.Event{RequestID: wire.RequestOf(m)}, Code: wire.CodeInvalidMessage,
				Message: m.Kind() + " before the handshake", Hint: "EnvSnapshot comes first", Recoverable: true,
			})
			continue
		}
		if _, ok := wire.Negotiate(env.ProtocolMin, env.ProtocolMax); !ok {
			c.answer(versionError(env))
			return false
		}
		if c.hungUp() {
			c.log.Debug("closed before it was served")
			return false // attached, it would end the connection that its client made instead
		}
		bound.Stop() // the rest is this daemon's work
		client, err := c.server.hub.Attach(ctx, c, env)
		if err != nil {
			c.fail("", err)
			_, told := errors.AsType[*hub.CutOffError](err)
			if errors.Is(err, hub.ErrNoSession) && !told {
				bound.Reset(handshakeBound)
				continue
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
func (c *conn) Send(m wire.Message) error {
	err := c.Conn.Send(m)
	if err == nil {
		c.log.Debug("sent", "kind", m.Kind())
		c.beat.sent(m)
		return nil
	}
	if large := (*wire.TooLargeError)(nil); errors.As(err, &large) {
		// Outputs are bounded far below; this is a fault of ours, and must not be silent.
		c.log.Error("message too large to send", "kind", m.Kind(), "bytes", large.Size)
		if id := wire.RequestOf(m); id != "" {
			refusal := wire.Reply(err)
			refusal.RequestID = id
			return c.Conn.Send(refusal)
		}
	}
	return err
}

// End implements hub.Peer.
func (c *conn) End(m wire.Message) {
	c.answer(m)
	c.cancel()
}

// PID implements hub.Peer.
func (c *conn) PID() int { return c.pid }

// answer sends what may have no receiver any more.
func (c *conn) answer(m wire.Message) {
	if e, ok := m.(*wire.Error); ok && e.Details == nil {
		e.Details = map[string]string{}
	}
	_ = c.Send(m)
}
