package jsonrpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"sublet/client/internal/gateway"
)

const (
	// protocolVersion is the document's. A client of another major version is refused (B3, B4).
	protocolVersion = "1.0.0"
	protocolMajor   = "1"

	closeBound = 5 * time.Second // for running queries to report their end when the server stops
	writeBound = 2 * time.Second // for a client to read what is left then
)

// conn is one client: a reader that answers requests in order and, once there is a session, a goroutine that translates its events.
type conn struct {
	s   *server
	log *slog.Logger
	out *gateway.Writer
	ctx context.Context // the connection's lifetime

	rate        gateway.Rate // used by the reader only
	afterAnswer []func()     // used by the reader only: what requests begin after their answers are queued, so that these come first
	session     *gateway.Session
	can         map[string]bool // the client's capabilities; set with session
	work        sync.WaitGroup
	turns       gateway.Turns

	mu sync.Mutex
	// guarded by mu
	questions []question // the latest, for approve
	history   history
}

// serve serves one client until it disconnects or ctx ends.
func (s *server) serve(ctx context.Context, nc net.Conn) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &conn{s: s, log: s.log, out: gateway.NewWriter(nc), ctx: own}
	s.log.Debug("client connected")
	// Once the server stops nothing is read any more; running queries still report their end, and the reader waits no longer for a client
	// that does not read.
	stop := context.AfterFunc(ctx, func() {
		_ = nc.SetReadDeadline(time.Unix(1, 0))
		_ = nc.SetWriteDeadline(time.Now().Add(closeBound))
	})
	err := gateway.NewLineReader(nc, s.limits.MessageBytes).Each(c.handleLine, func(long *gateway.LineTooLongError) error {
		// Reading continues after its newline. The message was not parsed, so the answer has no id.
		return c.send(answer(nil, nil, failed(codeRequest, "%s", long).with("limit", long.Limit)))
	})
	stop()
	if err == nil {
		c.linger(ctx)
	}
	s.log.Debug("client leaves", "err", err)
	c.cancelAll(ctx.Err() != nil)
	_ = nc.SetWriteDeadline(time.Now().Add(writeBound)) // bounds Close
	_ = c.out.Close()                                   // an error: the client does not read
	cancel(gateway.ErrClosed)
	if c.session != nil {
		c.session.Close()
	}
	c.work.Wait()
}

// linger lets running queries continue after the client's last line while the client reads: a script may close its writing side
// once it has asked (C3).
func (c *conn) linger(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.work.Go(func() { // ends with linger
		select {
		case <-c.out.Broken():
			stop()
		case <-ctx.Done():
		}
	})
	c.turns.Wait(ctx, nil)
}

// cancelAll cancels the client's queries. If the server stops, it waits for their ends, at most closeBound, so that the client gets them;
// otherwise the client has left.
func (c *conn) cancelAll(stopping bool) {
	if !stopping {
		c.turns.Cancel(nil, "", "", "the client left")
		return
	}
	c.turns.Cancel(nil, "", "", "the server stops")
	ctx, cancel := context.WithTimeout(c.ctx, closeBound)
	defer cancel()
	c.turns.Wait(ctx, nil)
}

func (c *conn) send(v any) error { return c.out.Send(c.ctx, gateway.Line(v)) }

// notify sends a notification. The reader notices if the client has disconnected.
func (c *conn) notify(method string, params any) {
	c.log.Debug("sent", "method", method)
	_ = c.send(&notification{Version: "2.0", Method: method, Params: params})
}

// handleLine handles one line. The checks are in this order: parse, rate, envelope, initialized, method, params, concurrency.
func (c *conn) handleLine(line []byte) error {
	if !utf8.Valid(line) {
		return c.send(answer(nil, nil, failed(codeParse, "the line is not UTF-8")))
	}
	list, batch, f := values(line)
	if f != nil {
		return c.send(answer(nil, nil, f))
	}
	var (
		answers []*response
		seen    []json.RawMessage
	)
	for _, raw := range list {
		if a := c.handle(raw, seen); a != nil {
			answers = append(answers, a)
			if batch {
				seen = append(seen, a.ID)
			}
		}
	}
	var err error
	switch {
	case len(answers) == 0: // only notifications: no answer, not even an empty one
	case batch:
		err = c.send(answers)
	default:
		err = c.send(answers[0])
	}
	begin := c.afterAnswer
	c.afterAnswer = nil
	for _, f := range begin { // also after an error: a registered query must be asked or abandoned
		f()
	}
	return err
}

// handle handles one message of a line, and returns its answer; nil for a notification. seen has the ids of the batch so far.
func (c *conn) handle(raw json.RawMessage, seen []json.RawMessage) *response {
	limit := c.s.limits.RequestsPerSecond
	ok, retry := c.rate.Take(limit)
	r, bad := parse(raw)
	c.log.Debug("received", "method", gateway.Clip(r.Method), "bytes", len(raw))
	var result any
	f := bad
	switch {
	case !ok:
		f = failed(codeAgent, "rate limit: more than %d requests in a second", limit).
			with("limit", limit).with("retry_after_ms", max(retry.Milliseconds(), 1))
	case bad != nil:
	case r.ID != nil && repeatsID(seen, r.ID):
		f = failed(codeRequest, "id: the batch has it twice")
	default:
		result, f = c.dispatch(&r)
	}
	if f != nil {
		c.log.Debug("refused", "method", gateway.Clip(r.Method), "code", f.Code, "message", f.Message)
	}
	if bad == nil && r.ID == nil {
		return nil // a notification has no answer, whatever becomes of it
	}
	return answer(r.ID, result, f)
}

var methods = map[string]func(*conn, *request) (result any, f *failure){
	"agent.query":    (*conn).query,
	"agent.cancel":   (*conn).cancel,
	"tool.approve":   (*conn).approve,
	"context.update": (*conn).update,
	"session.save":   (*conn).save,
	"session.load":   (*conn).load,
}

func (c *conn) dispatch(r *request) (any, *failure) {
	if r.Method == "initialize" {
		if c.session != nil {
			return nil, failed(codeRequest, "initialize was called before")
		}
		return c.initialize(r)
	}
	if c.session == nil {
		return nil, failed(codeRequest, "initialize must come first")
	}
	m, ok := methods[r.Method]
	if !ok {
		return nil, failed(codeMethod, "%s", strconv.Quote(gateway.Clip(r.Method)))
	}
	return m(c, r)
}
