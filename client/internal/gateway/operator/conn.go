package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

const (
	maxLinks   = 8               // sessions a connection stays attached to, so that their shells live on
	closeBound = 5 * time.Second // how long queued lines are sent to a client that has closed its sending half
)

// conn is one client. Its reader begins requests in order; each continues in a goroutine of its own, which the conn owns.
type conn struct {
	s      *Server
	rw     io.ReadWriteCloser // closing it unblocks reader and writer
	peer   string
	out    *gateway.Writer
	ctx    context.Context // the connection's
	cancel context.CancelFunc
	work   sync.WaitGroup
	turns  gateway.Turns

	// Used by the reader only.
	authorized bool
	s4         bool // the dialect spoken last
	rate       gateway.Rate

	mu sync.Mutex
	// below: guarded by mu
	links []*link // least recently used first
}

// serve serves one client until it closes its sending half, or the server stops; then the turns of S3 are cancelled, those of S4
// left to the daemon.
func (s *Server) serve(ctx context.Context, rw io.ReadWriteCloser, peer string, authorized bool) {
	c := &conn{
		s: s, rw: rw, peer: peer, out: gateway.NewWriter(rw), authorized: authorized, turns: gateway.Turns{Handed: &s.handed},
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	err := gateway.NewLineReader(rw, s.limits.MessageBytes).Each(c.handleLine, c.handleTooLong)
	c.cancel()
	c.closeLinks()
	c.work.Wait()
	_ = c.out.CloseWithin(c.ctx.Done(), closeBound) // an error: the client does not read
	rw.Close()
	s.log.Debug("connection ended", "peer", peer, "err", err)
}

// handleLine handles one line. After an error nothing more is read.
func (c *conn) handleLine(raw []byte) error {
	r, p := parse(raw, c.s4)
	c.s4 = r.s4
	if over := c.overRate(); over != nil {
		p = over
	}
	if p == nil {
		p = c.check(r)
	}
	if p == nil {
		p = r.kind.serve(c, r)
	}
	if p != nil {
		c.refuse(r, p)
	}
	return context.Cause(c.ctx)
}

// handleTooLong answers a line over the limit, which is not parsed.
func (c *conn) handleTooLong(e *gateway.LineTooLongError) error {
	p := c.overRate()
	if p == nil {
		p = invalid("%v", e).with("limit", e.Limit)
		p.s4 = codeTooLarge
	}
	c.refuse(&request{s4: c.s4}, p)
	return context.Cause(c.ctx)
}

// overRate counts a message, and refuses one over the rate.
func (c *conn) overRate() *problem {
	limit := c.s.limits.RequestsPerSecond
	ok, retry := c.rate.Take(limit)
	if ok {
		return nil
	}
	return busy(limit, "rate limit: at most %d requests a second").with("retryAfterMs", retry.Milliseconds())
}

// busy refuses what is over a limit.
func busy(limit int, format string) *problem {
	p := &problem{s3: codeRate, s4: codeRateExceeds, recoverable: true, message: fmt.Sprintf(format, limit)}
	return p.with("limit", limit)
}

// check refuses a request without the token.
func (c *conn) check(r *request) *problem {
	if c.authorized || c.s.guard.IsToken(r.Metadata.Token) {
		return nil
	}
	return invalid("metadata.token is missing, or not this server's").with("field", "metadata.token").with("reason", "unauthorized")
}

// refuse answers a failed request in its dialect.
func (c *conn) refuse(r *request, p *problem) {
	c.s.log.Debug("request refused", "peer", c.peer, "type", clip(r.Type), "code", p.s3, "why", p.message)
	if r.s4 {
		c.send(gateway.Line(s4Refusal(r.ID, r.Session, r.Agent, p)))
		return
	}
	c.send(gateway.Line(s3Refusal(r.ID, "", p, 0)))
}

// send queues a line. It blocks while the client does not read, and thereby stops the producers of lines.
func (c *conn) send(l []byte) {
	if err := c.out.Send(c.ctx, l); err != nil {
		c.cancel()
		c.rw.Close()
	}
}

// problemFor converts an error of the gateway, or of the daemon, to an answer.
func problemFor(err error) *problem {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return problemOf(e)
	}
	return &problem{s3: codeInternal, s4: codeInternal, message: err.Error(), hint: wire.HintOf(err), recoverable: true}
}
