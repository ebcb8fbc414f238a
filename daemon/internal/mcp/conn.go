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

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/tool"
)

const (
	// widely is the protocol that servers in the field speak; one that knows only a newer one is asked with the SDK's newest.
	widely = "2025-11-25"
	// maxPages bounds a list of tools, which a server may continue without end.
	maxPages = 32
)

// conn is one connection to a server, from its greeting to its end.
type conn struct {
	server  *server
	session *sdk.ClientSession
	proc    *process     // nil: by HTTP
	meter   *meter       // of the process's output
	http    *http.Client // nil: a process
	since   time.Time
	ctx     context.Context // ends when the connection is given up
	cancel  context.CancelCauseFunc
	once    sync.Once
	calls   sync.WaitGroup
	changed atomic.Bool // the list of tools is not what it was
	number  atomic.Int64

	mu sync.Mutex
	// below: guarded by mu
	closed  bool // no further call begins
	tools   []*remote
	left    string
	watched map[string]func(*sdk.ProgressNotificationParams) // by progress token
}

// connect starts the server or reaches it, greets it and reads its tools. ctx bounds all of that. Errors are for people.
func (s *server) connect(ctx context.Context, at Place) (*conn, error) {
	c, err := s.greet(ctx, at, widely)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == sdk.CodeUnsupportedProtocolVersion) {
		c, err = s.greet(ctx, at, "")
	}
	if err == nil {
		if err = c.list(ctx); err != nil {
			err = fmt.Errorf("list its tools: %w", err)
			c.close()
		}
	}
	if err != nil {
		return nil, c.fate(err)
	}
	return c, nil
}

// greet also returns a connection, which is closed, with an error.
func (s *server) greet(ctx context.Context, at Place, version string) (*conn, error) {
	c := &conn{server: s, since: time.Now(), watched: map[string]func(*sdk.ProgressNotificationParams){}}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx) // close ends it
	transport, err := c.transport(at)
	if err != nil {
		c.cancel(nil)
		return c, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "sublet", Version: s.o.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // it may ask nothing of us: no files, no models, no questions to the user
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
		c.http = newHTTPClient(headers)
		return &sdk.StreamableClientTransport{
			Endpoint: spec.URL, HTTPClient: c.http, MaxRetries: 2, MaxEventSize: maxMessage,
			DisableStandaloneSSE: true, // nothing flows while nobody calls
		}, nil
	}
	proc, err := startProcess(spec, at, c.server.o)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	c.meter = newMeter(proc.stdout)
	return &sdk.IOTransport{Reader: c.meter, Writer: mouth{proc.stdin, c.meter}, MaxLineLength: 2 * maxMessage}, nil // the meter is first
}

// mouth is a server's input, which tells the meter where nobody reads it any more.
type mouth struct {
	io.WriteCloser
	meter *meter
}

func (m mouth) Write(p []byte) (int, error) {
	n, err := m.WriteCloser.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		m.meter.ended.Store(true)
	}
	return n, err
}

// close ends the connection and the server's processes, and waits for both. A second call waits as well.
func (c *conn) close() {
	c.cancel(errClosed)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.once.Do(func() {
		if c.proc != nil {
			c.proc.end() // first: whatever the SDK waits for comes from there
		}
		if c.session != nil {
			_ = c.session.Close() // how it ended is the process's to tell
		}
		if c.http != nil {
			c.http.CloseIdleConnections()
		}
	})
	c.calls.Wait()
}

// wait returns when the connection is over, everything ended, with the reason for people.
func (c *conn) wait() error {
	err := c.session.Wait()
	if err == nil {
		err = sdk.ErrConnectionClosed
	}
	return c.fail(err)
}

// fail ends the connection for a reason, and returns how it ended, for people.
func (c *conn) fail(err error) error {
	c.cancel(err)
	c.close()
	if first := context.Cause(c.ctx); !errors.Is(first, errClosed) {
		err = first
	}
	return c.fate(err)
}

// fate is err for people: in the words of the process's end where that came first. The SDK tells that a connection is closed
// also where it was the one that gave it up.
func (c *conn) fate(err error) error {
	text := clip(oneLine(err.Error()), 300)
	if c.proc == nil {
		return errors.New(text)
	}
	lost := errors.Is(err, sdk.ErrConnectionClosed) && c.meter.ended.Load() ||
		slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, syscall.EPIPE}, func(e error) bool { return errors.Is(err, e) })
	if fault := c.meter.fault.Load(); fault != nil {
		return *fault
	}
	if how := c.proc.fate(); how != "" && lost {
		text = how
	}
	if last := c.proc.lastWords(); last != "" {
		text += "; its last words: " + last
	}
	return errors.New(text)
}

// list reads the tools.
func (c *conn) list(ctx context.Context) error {
	var all []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return err
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" || len(all) > 2*maxTools {
			break
		}
		params.Cursor = page.NextCursor
	}
	tools, left := c.server.offer(all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.left = tools, left
	return nil
}

// refresh reads the tools again where they may have changed. A server that does not answer keeps those it had.
func (c *conn) refresh(ctx context.Context) {
	if !c.changed.Swap(false) && c.proc != nil {
		return // an HTTP server has no way to tell
	}
	if c.proc == nil && time.Since(c.since) < time.Second {
		return // just read
	}
	if err := c.list(ctx); err != nil {
		c.changed.Store(true)
		c.server.o.Log.Warn("mcp server's tools not read again", "server", c.server.spec.Name, "err", clip(oneLine(err.Error()), 300))
	}
}

func (c *conn) offered() ([]tool.Tool, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]tool.Tool, len(c.tools))
	for i, t := range c.tools {
		list[i] = t
	}
	return list, c.left
}

// answer is what came of a call.
type answer struct {
	result *sdk.CallToolResult
	err    error
}

// call calls a tool. When ctx ends, or the call's own time, it tells the server and returns at once. said receives signs
// of progress, one at a time and none after the return.
func (c *conn) call(ctx context.Context, name string, args json.RawMessage, said func(*sdk.ProgressNotificationParams)) (*sdk.CallToolResult, error) {
	o := c.server.o
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	most := time.AfterFunc(o.Most, func() { cancel(&timeoutError{c.server.spec.Name, o.Most}) })
	defer most.Stop()
	silence := time.AfterFunc(o.Silence, func() { cancel(&timeoutError{c.server.spec.Name, o.Silence}) })
	defer silence.Stop()

	token := strconv.FormatInt(c.number.Add(1), 10)
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
	ended := make(chan answer, 1)
	c.calls.Go(func() {
		res, err := c.session.CallTool(ctx, params)
		ended <- answer{res, err}
	})
	select {
	case a := <-ended:
		if cause := context.Cause(ctx); a.err != nil && cause != nil {
			return nil, cause
		}
		return a.result, a.err
	case <-ctx.Done():
		c.calls.Go(func() { c.notice(ended) })
		return nil, context.Cause(ctx)
	}
}

// notice waits until a cancelled call has left the connection: one that cannot be written is of a server that does not read
// any more, which is given up.
func (c *conn) notice(ended <-chan answer) {
	timer := time.NewTimer(c.server.o.Stuck)
	defer timer.Stop()
	select {
	case <-ended:
	case <-c.ctx.Done():
	case <-timer.C:
		c.giveUp(errors.New("it does not read what it is sent"))
	}
}

// giveUp breaks a connection that is stuck; whoever waits for its end ends the rest. The caller is one of calls.
func (c *conn) giveUp(why error) {
	c.cancel(why)
	if c.proc != nil {
		c.proc.end()
	}
}

// progress passes a sign of progress to its call. It is held under the lock: none comes after the call has returned.
func (c *conn) progress(p *sdk.ProgressNotificationParams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := c.watched[fmt.Sprint(p.ProgressToken)]; said != nil {
		said(p)
	}
}

// A timeoutError says that a call took too long.
type timeoutError struct {
	server string
	after  time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the MCP server %s did not answer within %s; whether it did anything is not known", e.server, e.after)
}
