package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

const (
	maxStreams = 16 // streams open at once on one connection
	maxLinks   = 8  // sessions a connection stays attached to, so that their shells live on
)

// conn is one client. Its reader begins requests in order; each continues in a goroutine of its own, which the conn owns.
type conn struct {
	s      *Server
	t      transport
	out    *gateway.Writer
	ctx    context.Context // the connection's
	cancel context.CancelFunc
	work   sync.WaitGroup
	turns  gateway.Turns

	// The reader's own.
	authorized bool
	s4         bool // the dialect spoken last
	rate       gateway.Rate
	ids        []string // the last, to refuse repeats (E22)

	mu sync.Mutex
	// below: guarded by mu
	links   []*link // least recently used first
	streams int
}

func newConn(ctx context.Context, s *Server, t transport, authorized bool) *conn {
	c := &conn{s: s, t: t, authorized: authorized, turns: gateway.Turns{Handed: &s.handed}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.out = gateway.NewWriter(t)
	return c
}

// serve reads until the peer closes, or the server stops; then the turns of S3 are cancelled, those of S4 left to the
// daemon.
func (c *conn) serve() error {
	err := c.read()
	c.cancel()
	c.abandon()
	c.work.Wait()
	c.t.close() // unblocks writers
	_ = c.out.Close()
	return err
}

func (c *conn) read() error {
	for {
		raw, err := c.t.next()
		long := (*gateway.LineTooLongError)(nil)
		switch {
		case errors.As(err, &long):
		case errors.Is(err, errPlain):
			_ = c.out.Send(c.ctx, []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
			_ = c.out.Close()
			return err
		case err != nil:
			return err
		}
		if ok, retry := c.rate.Take(c.s.o.RequestsPerSecond); !ok {
			c.refuse(&request{s4: c.s4, id: idOf(raw)}, &problem{
				s3: codeRate, s4: codeRateExceeds, recoverable: true,
				message: fmt.Sprintf("rate limit: at most %d requests a second", c.s.o.RequestsPerSecond),
				details: map[string]any{"limit": c.s.o.RequestsPerSecond, "retryAfterMs": retry.Milliseconds()},
			})
			continue
		}
		if long != nil {
			p := invalid("%v", long).with("limit", long.Limit)
			p.s4 = codeTooLarge
			c.refuse(&request{s4: c.s4}, p)
			continue
		}
		r, p := parse(raw, c.s4)
		c.s4 = r.s4
		if p == nil {
			p = c.check(r)
		}
		if p == nil {
			p = c.begin(r)
		}
		if p != nil {
			c.refuse(r, p)
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
}

// check refuses a request without the token, or whose id was used.
func (c *conn) check(r *request) *problem {
	if !c.authorized && !c.s.guard.IsToken(r.token) {
		return invalid("metadata.token is missing, or not this server's").with("field", "metadata.token").with("reason", "unauthorized")
	}
	if r.id == "" {
		return nil
	}
	if slices.Contains(c.ids, r.id) {
		return invalid("id %q was used before on this connection", r.id).with("field", "id")
	}
	c.ids = gateway.Remember(c.ids, r.id)
	return nil
}

// refuse answers a failed request in its dialect.
func (c *conn) refuse(r *request, p *problem) {
	c.s.log.Debug("request refused", "peer", c.t.peer(), "kind", r.kind, "code", p.s3, "why", p.message)
	if r.s4 {
		c.send(line(s4Refusal(r.id, r.session, r.agent, p)))
		return
	}
	c.send(line(s3Refusal(r.id, "", p, 0)))
}

// send queues a line. It blocks while the client does not read, and thereby stops the producers of lines.
func (c *conn) send(l []byte) {
	if err := c.out.Send(c.ctx, l); err != nil {
		c.cancel()
		c.t.close() // unblocks the reader
	}
}

// begin starts a request. A problem that it returns is the answer to a refused one.
func (c *conn) begin(r *request) *problem {
	switch r.kind {
	case kindDispatch, kindQuery, kindContext:
		return c.dispatch(r)
	case kindStream:
		return c.stream(r)
	case kindGet:
		return c.getSession(r)
	case kindList:
		return c.listSessions(r)
	case kindDelete:
		return c.deleteSession(r)
	case kindCancel:
		return c.cancelRequest(r)
	default:
		return c.confirm(r)
	}
}

// away converts an error of the gateway, or of the daemon, to an answer.
func away(err error) *problem {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return problemOf(e)
	}
	return &problem{s3: codeInternal, s4: codeInternal, message: err.Error(), hint: wire.HintOf(err), recoverable: true}
}
