package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/tool"
	"sublet/wire/visible"
)

// commonVersion is the protocol version that most servers support; the SDK's newest is tried if a server refuses it.
const commonVersion = "2025-11-25"

// conn is one connection to a server, from initialization to its end.
type conn struct {
	server    *server
	session   *sdk.ClientSession
	proc      *child.Process // nil: by HTTP
	meter     *child.Meter   // of the process's output
	http      *http.Client   // nil: a process
	since     time.Time
	ctx       context.Context // ends when the connection is given up
	cancel    context.CancelCauseFunc
	once      sync.Once
	calls     sync.WaitGroup // begun with mu held while closed is false
	changed   atomic.Bool    // the server has announced a changed list of tools
	lastToken atomic.Int64
	// forgotten is set when the server does not know the session any more.
	forgotten atomic.Bool

	mu sync.Mutex
	// below: guarded by mu
	closed  bool // no further call begins
	tools   []*remote
	leftOut string
	watched map[string]func(*sdk.ProgressNotificationParams) // by progress token
}

// connect starts the server or connects to it, initializes the session and lists its tools, all within ctx. Errors are for
// people.
func (s *server) connect(ctx context.Context, at Place) (*conn, error) {
	c, err := s.greet(ctx, at, commonVersion)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == sdk.CodeUnsupportedProtocolVersion) {
		c, err = s.greet(ctx, at, "")
	}
	if err == nil {
		if err = c.listTools(ctx); err != nil {
			err = fmt.Errorf("list its tools: %w", err)
			c.close()
		}
	}
	if err != nil {
		return nil, c.endReason(err)
	}
	return c, nil
}

// greet connects and initializes the session with a version of the protocol, "" = the SDK's newest. With an error it also returns the
// connection, which is closed.
func (s *server) greet(ctx context.Context, at Place, version string) (*conn, error) {
	c := &conn{server: s, since: time.Now(), watched: map[string]func(*sdk.ProgressNotificationParams){}}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx) // close ends it
	transport, err := c.transport(at)
	if err != nil {
		c.cancel(nil)
		return c, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "sublet", Version: s.o.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // no capabilities: it cannot request files, models or input from the user
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			c.changed.Store(true)
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress(r.Params) },
	})
	c.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		c.close()
	}
	return c, err
}

func (c *conn) transport(at Place) (sdk.Transport, error) {
	spec := c.server.spec
	if spec.URL != "" {
		headers, err := mask.Expand(spec.Headers, spec.Expand)
		if err != nil {
			return nil, err
		}
		c.http = newHTTPClient(headers, &c.forgotten)
		return &sdk.StreamableClientTransport{
			Endpoint: spec.URL, HTTPClient: c.http, MaxRetries: 2, MaxEventSize: maxMessage,
			DisableStandaloneSSE: true, // no stream outside of calls
		}, nil
	}
	proc, err := c.server.startProcess(at)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	c.meter = newMeter(proc.Stdout)
	return &sdk.IOTransport{Reader: c.meter, Writer: c.meter.Input(proc.Stdin), MaxLineLength: 2 * maxMessage}, nil // so that the meter's bound applies
}

// close ends the connection and the server's processes, and waits for both. It is idempotent.
func (c *conn) close() {
	c.cancel(errClosed)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.once.Do(func() {
		if c.proc != nil {
			c.proc.End() // first, since the SDK waits for the process's output to end
		}
		if c.session != nil {
			_ = c.session.Close() // the process reports how it ended
		}
		if c.http != nil {
			c.http.CloseIdleConnections()
		}
	})
	c.calls.Wait()
}

// wait returns when the connection has ended and everything is closed, with the reason for people.
func (c *conn) wait() error {
	err := c.session.Wait()
	if err == nil {
		err = sdk.ErrConnectionClosed
	}
	return c.fail(err)
}

// fail ends the connection with a cause, and returns how it ended, for people.
func (c *conn) fail(err error) error {
	c.cancel(err)
	c.close()
	if first := context.Cause(c.ctx); !errors.Is(first, errClosed) {
		err = first
	}
	return c.endReason(err)
}

// endReason returns err for people; if the process ended first, how it ended. The SDK reports a closed connection also when it
// closed the connection itself, so that alone does not mean that the process ended first.
func (c *conn) endReason(err error) error {
	text := visible.Clip(oneLine(err.Error()), 300)
	if c.proc == nil {
		return errors.New(text)
	}
	lost := errors.Is(err, sdk.ErrConnectionClosed) && c.meter.Ended() ||
		slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, syscall.EPIPE}, func(e error) bool { return errors.Is(err, e) })
	if fault := c.meter.Fault(); fault != nil {
		return fault
	}
	if how := c.proc.EndReason(); how != "" && lost {
		text = how
	}
	return errors.New(text + c.proc.LastWords())
}

// listTools lists the server's tools.
func (c *conn) listTools(ctx context.Context) error {
	var all []*sdk.Tool
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if all = append(all, t); len(all) > 2*maxTools {
			break
		}
	}
	tools, left := c.server.offer(all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.leftOut = tools, left
	return nil
}

// refresh lists the tools again if they may have changed. If the server does not answer, the old list stays. A server over HTTP, which
// cannot report a change, is asked each time, but at most once a second after the connection began.
func (c *conn) refresh(ctx context.Context) {
	if !c.changed.Swap(false) && c.proc != nil {
		return // the server has reported no change
	}
	if c.proc == nil && time.Since(c.since) < time.Second {
		return // the list is new
	}
	if err := c.listTools(ctx); err != nil {
		c.changed.Store(true)
		c.server.o.Log.Warn("mcp server's tools not read again", "server", c.server.spec.Name, "err", visible.Clip(oneLine(err.Error()), 300))
	}
}

func (c *conn) offered() ([]tool.Tool, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]tool.Tool, len(c.tools))
	for i, t := range c.tools {
		list[i] = t
	}
	return list, c.leftOut
}

// call calls a tool. When ctx or the server's time ends, it notifies the server and returns; a server that does not read the call is
// ended for that after Options.Stuck. said is called with progress reports, one at a time with c.mu held, and never after the return.
func (c *conn) call(ctx context.Context, name string, args json.RawMessage, said func(*sdk.ProgressNotificationParams)) (*sdk.CallToolResult, error) {
	o := c.server.o
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	silence := time.AfterFunc(o.Silence, func() { cancel(&timeoutError{c.server.spec.Name, o.Silence}) })
	defer silence.Stop()

	token := strconv.FormatInt(c.lastToken.Add(1), 10)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, sdk.ErrConnectionClosed
	}
	c.calls.Add(1) // close waits for it
	defer c.calls.Done()
	c.watched[token] = func(p *sdk.ProgressNotificationParams) {
		silence.Reset(o.Silence)
		said(p)
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.watched, token)
		c.mu.Unlock()
	}()

	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(token)
	returned := make(chan struct{})
	c.calls.Go(func() {
		select {
		case <-returned:
			return
		case <-ctx.Done():
		}
		select {
		case <-returned:
		case <-time.After(o.Stuck):
			c.giveUp(errors.New("it does not read what it is sent"))
		}
	})
	res, err := c.session.CallTool(ctx, params)
	close(returned)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	return res, err
}

// giveUp breaks a stuck connection; the goroutine in wait then ends the rest. The caller counts in c.calls.
func (c *conn) giveUp(why error) {
	c.cancel(why)
	if c.proc != nil {
		c.proc.End()
	}
}

// progress passes a progress report to its call. It holds the lock, so that none arrives after the call has returned.
func (c *conn) progress(p *sdk.ProgressNotificationParams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := c.watched[fmt.Sprint(p.ProgressToken)]; said != nil {
		said(p)
	}
}

// A timeoutError reports that a call took too long.
type timeoutError struct {
	server string
	after  time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the MCP server %s did not answer within %s; whether it did anything is not known", e.server, e.after)
}
