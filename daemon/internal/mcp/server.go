package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// server is one server, which is down, starting or up. Slow work is done without mu.
type server struct {
	owner  *Servers
	o      *Options
	spec   Spec
	ctx    context.Context // the server's lifetime
	cancel context.CancelFunc

	mu sync.Mutex
	// below: guarded by mu
	conn     *conn         // while it is up; nil: down
	starting chan struct{} // closed when the running start has ended; nil: none runs
	place    Place         // of the last start
	starts   int           // how many began so far
	failures int           // in a row
	retryAt  time.Time     // not before, after a failure
	err      error         // of the last start or of the end of the connection
	last     *conn         // the newest, which may have ended; status reports its tools
	idle     *time.Timer   // runs while it is up and nobody holds its owner
	closed   bool
}

func (s *Servers) newServer(spec Spec) *server {
	srv := &server{owner: s, o: &s.o, spec: spec}
	srv.ctx, srv.cancel = context.WithCancel(s.ctx) // close ends it
	return srv
}

var (
	errClosed = errors.New("it was removed, or the daemon is stopping")
	errLate   = errors.New("it has not answered yet")
)

// ready starts the server in at if it is down, reads its list of tools again if that may have changed, and returns the tools,
// or none and a Note with the error. The Note's Start is that of this start.
func (s *server) ready(ctx context.Context, at Place) ([]tool.Tool, Note) {
	c, err := s.get(ctx, &at)
	if err == nil {
		if c.refresh(ctx); c.forgotten.Load() {
			s.lost(c, c.fail(sdk.ErrSessionMissing))
			c, err = s.get(ctx, &at)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := Note{Server: s.spec.Name, Start: s.starts, Err: err, What: s.what()}
	if err != nil {
		return nil, n
	}
	tools, left := c.offered()
	n.LeftOut = left
	return tools, n
}

// status is Servers.Report for one server.
func (s *server) status(client bool) wire.MCPServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := wire.MCPServerStatus{Name: s.spec.Name, Client: client, What: s.what(), State: wire.MCPResting, Tools: []string{}}
	if s.last != nil {
		var tools []tool.Tool
		tools, st.Left = s.last.offered()
		for _, t := range tools {
			st.Tools = append(st.Tools, t.Spec().Name)
		}
	}
	switch {
	case s.conn != nil:
		st.State = wire.MCPUp
	case s.starting != nil:
		st.State = wire.MCPStarting
	case s.err != nil:
		st.State, st.Error = wire.MCPFailed, visible.Exact(s.err.Error())
	}
	return st
}

// what returns the server's program or URL for people, without values of environment and headers.
func (s *server) what() string {
	if s.spec.URL != "" {
		return visible.Clip(mask.String(oneLine(s.spec.URL)), 200)
	}
	return visible.Clip(mask.String(oneLine(strings.Join(append([]string{s.spec.Command}, s.spec.Args...), " "))), 200)
}

// get returns the connection, and starts the server if it is down and the pause after a failure is over. It waits for a running
// start until ctx ends; the start itself continues. at is where to start it; nil = where it was started last.
func (s *server) get(ctx context.Context, at *Place) (*conn, error) {
	s.mu.Lock()
	if at != nil {
		s.place = *at
	}
	switch wait := time.Until(s.retryAt); {
	case s.closed:
		s.mu.Unlock()
		return nil, errClosed
	case s.conn != nil:
		c := s.conn
		s.mu.Unlock()
		return c, nil
	case s.starting == nil && wait > 0:
		err := s.err
		s.mu.Unlock()
		return nil, err
	case s.starting == nil:
		s.starting = make(chan struct{})
		s.starts++
		place := s.place
		s.owner.work.Go(func() { s.start(place) }) // Servers.Close waits for it: closed is set under mu, before that wait
	}
	starting := s.starting
	s.mu.Unlock()
	select {
	case <-starting:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == nil {
			return nil, s.err
		}
		return s.conn, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return nil, errLate
		}
		return nil, context.Cause(ctx)
	}
}

// start connects and records the result.
func (s *server) start(at Place) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Start)
	defer cancel()
	begun := time.Now()
	c, err := s.connect(ctx, at)
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s", s.o.Start)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.starting)
	s.starting = nil
	switch {
	case err == nil && s.closed:
		s.err = errClosed
		s.owner.work.Go(c.close)
		return
	case err != nil:
		s.failedLocked(err)
		s.o.Log.Warn("mcp server not started", "server", s.spec.Name, "err", err, "again", s.retryAt)
		return
	}
	s.conn, s.last, s.err = c, c, nil
	s.setIdleTimerLocked()
	s.owner.work.Go(func() { s.lost(c, c.wait()) }) // ends with the connection, which close ends
	s.o.Log.Info("mcp server up", "server", s.spec.Name, "ms", time.Since(begun).Milliseconds())
}

// failedLocked records a failure and when the server may be started again.
func (s *server) failedLocked(err error) {
	s.failures++
	pause := s.o.Retry << min(s.failures-1, 10)
	s.err, s.retryAt = err, time.Now().Add(min(pause, max(maxRetry, s.o.Retry)))
}

// lost records that a connection has ended, and why, unless it is not the server's connection any more.
func (s *server) lost(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn = nil
	s.setIdleTimerLocked()
	if time.Since(c.since) > steady {
		s.failures = 0
	}
	if c.forgotten.Load() { // it runs: the next use begins a session at once
		s.o.Log.Info("mcp server has forgotten the session", "server", s.spec.Name)
		return
	}
	s.failedLocked(err)
	s.o.Log.Warn("mcp server ended", "server", s.spec.Name, "err", err, "again", s.retryAt)
}

// holdsChanged is setIdleTimerLocked after the owner's holds have changed.
func (s *server) holdsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setIdleTimerLocked()
}

// setIdleTimerLocked starts or stops the idle timer.
func (s *server) setIdleTimerLocked() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if c := s.conn; c != nil && s.owner.holds.Load() == 0 && !s.closed {
		s.idle = time.AfterFunc(s.o.Idle, func() { s.endIdle(c) })
	}
}

// endIdle ends a connection that was idle for too long.
func (s *server) endIdle(c *conn) {
	s.mu.Lock()
	if s.conn != c || s.owner.holds.Load() > 0 || s.closed {
		s.mu.Unlock()
		return
	}
	s.conn = nil
	s.owner.work.Go(c.close) // Servers.Close waits for this, see get
	s.mu.Unlock()
	s.o.Log.Info("mcp server ended: nobody used it", "server", s.spec.Name)
}

// close ends the server for good and waits for its connection to end.
func (s *server) close() {
	s.mu.Lock()
	c := s.conn
	s.closed, s.conn = true, nil
	s.cancel()
	s.setIdleTimerLocked()
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
}
