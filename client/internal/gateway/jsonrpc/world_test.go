package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	scene = gatewaytest.Scene
	step  = gatewaytest.Step
	call  = gatewaytest.Call
)

var bash = gatewaytest.Bash

// world is a user with a daemon and `serve jsonrpc` in front of it.
type world struct {
	*gatewaytest.World
	o    Options
	stop func()
}

func newWorld(t testing.TB, scenes []scene, change ...func(*Options)) *world {
	t.Helper()
	return settled(t, scenes, "", change...)
}

// settled is newWorld with lines for the settings file.
func settled(t testing.TB, scenes []scene, settings string, change ...func(*Options)) *world {
	t.Helper()
	w := &world{World: gatewaytest.New(t, scenes, settings)}
	w.o = Options{Daemon: w.Daemon(), Socket: w.Path("rpc.sock")}
	for _, f := range change {
		f(&w.o)
	}
	w.serve()
	return w
}

func (w *world) serve() {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, over := make(chan struct{}), make(chan error, 1)
	w.o.Ready = func() { close(ready) }
	go func() { over <- Serve(ctx, w.o) }()
	stopped := false
	w.stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-over; err != nil {
				w.T.Errorf("serve: %v", err)
			}
		}
	}
	w.T.Cleanup(w.stop)
	select {
	case <-ready:
	case err := <-over:
		over <- nil // told here; stop looks for it too
		w.T.Fatalf("serve: %v", err)
	}
}

// client is one that speaks the protocol.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	id   int
	// notifications that came while an answer was waited for
	waiting []map[string]any
}

func (w *world) dial() *client {
	w.T.Helper()
	conn, err := net.Dial("unix", w.o.Socket)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { conn.Close() })
	return &client{t: w.T, conn: conn, r: bufio.NewReaderSize(conn, 1<<20)}
}

// ready is a client that has shaken hands as the document's example does.
func (w *world) ready(change ...string) *client {
	w.T.Helper()
	c := w.dial()
	params := `{"protocol_version":"1.0.0","client_info":{"name":"t","version":"0"},"capabilities":["streaming","blocks","tool_approval"]}`
	if len(change) > 0 {
		params = change[0]
	}
	if r := c.call("initialize", params); r["error"] != nil {
		w.T.Fatalf("initialize: %v", r)
	}
	return c
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// next is the next line as it came.
func (c *client) next() map[string]any {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(gatewaytest.Patience)); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read: %v after %q", err, line)
	}
	var m map[string]any
	if strings.HasPrefix(line, "[") {
		var list []any
		if err := json.Unmarshal([]byte(line), &list); err != nil {
			c.t.Fatalf("%v in %q", err, line)
		}
		for _, one := range list {
			c.check(one.(map[string]any))
		}
		return map[string]any{"batch": list}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatalf("%v in %q", err, line)
	}
	c.check(m)
	return m
}

var (
	s2 = gatewaytest.Document("S2")
	// The types of its notifications, and of its methods' results.
	notified = map[string]string{
		"stream.token": "Token", "stream.tokens": "Tokens", "stream.block": "Block", "stream.complete": "Complete", "stream.error": "StreamError",
		"tool.request_approval": "RequestApproval", "tool.progress": "Progress", "tool.complete": "ToolComplete", "agent.thinking": "Thinking",
		"suggestion.inline": "Suggestion",
	}
	answered = map[string]string{
		"initialize": "Initialized", "agent.query": "Queried", "agent.cancel": "Cancelled", "tool.approve": "Approved", "session.save": "Saved",
		"session.load": "Loaded",
	}
)

// check holds every message that any test reads to the document's types.
func (c *client) check(m map[string]any) {
	c.t.Helper()
	var err error
	switch method, ok := m["method"].(string); {
	case ok:
		err = errors.Join(s2.Check("Notification", m), s2.Check(notified[method], m["params"]))
	case m["error"] != nil:
		err = s2.Check("Failure", m)
		if _, both := m["result"]; both {
			err = errors.New("a result beside an error")
		}
	default:
		err = s2.Check("Answer", m)
	}
	if err != nil {
		c.t.Errorf("%v: %v", m, err)
	}
}

// call makes a request and returns its answer; notifications meanwhile are kept.
func (c *client) call(method, params string) map[string]any {
	c.t.Helper()
	c.id++
	c.write(`{"jsonrpc":"2.0","id":` + strconv.Itoa(c.id) + `,"method":"` + method + `","params":` + params + "}\n")
	for {
		m := c.next()
		if _, ok := m["id"]; ok {
			if m["id"] != float64(c.id) {
				c.t.Fatalf("answer to %v, want %d: %v", m["id"], c.id, m)
			}
			if name := answered[method]; name != "" && m["error"] == nil {
				if err := s2.Check(name, m["result"]); err != nil {
					c.t.Errorf("%s: %v", method, err)
				}
			}
			return m
		}
		c.waiting = append(c.waiting, m)
	}
}

// notification is the next one, of any method.
func (c *client) notification() (string, map[string]any) {
	c.t.Helper()
	var m map[string]any
	if len(c.waiting) > 0 {
		m, c.waiting = c.waiting[0], c.waiting[1:]
	} else {
		m = c.next()
	}
	method, ok := m["method"].(string)
	if !ok {
		c.t.Fatalf("want a notification, got %v", m)
	}
	params, _ := m["params"].(map[string]any)
	return method, params
}

// until returns the params of the next notification of that method; those before it are in seen.
func (c *client) until(method string) (params map[string]any, seen []map[string]any) {
	c.t.Helper()
	for {
		got, params := c.notification()
		if got == method {
			return params, seen
		}
		params["method"] = got
		seen = append(seen, params)
	}
}

// query asks and returns the query's id.
func (c *client) query(message string, more ...string) string {
	c.t.Helper()
	text, _ := json.Marshal(message)
	r := c.call("agent.query", `{"message":`+string(text)+strings.Join(more, "")+`}`)
	result, _ := r["result"].(map[string]any)
	id, _ := result["query_id"].(string)
	if id == "" || result["status"] != "processing" {
		c.t.Fatalf("agent.query: %v", r)
	}
	return id
}

// outcome reads a query to its end: its text, and its stream.complete.
func (c *client) outcome(id string) (text string, complete map[string]any, seen []map[string]any) {
	c.t.Helper()
	complete, seen = c.until("stream.complete")
	if complete["query_id"] != id {
		c.t.Fatalf("stream.complete of %v, want %s", complete["query_id"], id)
	}
	return said(seen), complete, seen
}

func said(seen []map[string]any) string {
	var text strings.Builder
	for _, p := range seen {
		switch p["method"] {
		case "stream.token":
			text.WriteString(p["token"].(string))
		case "stream.tokens":
			for _, t := range p["tokens"].([]any) {
				text.WriteString(t.(map[string]any)["token"].(string))
			}
		}
	}
	return text.String()
}

func errorCode(m map[string]any) int {
	e, _ := m["error"].(map[string]any)
	code, _ := e["code"].(float64)
	return int(code)
}

func result(t testing.TB, m map[string]any) map[string]any {
	t.Helper()
	r, ok := m["result"].(map[string]any)
	if !ok {
		t.Fatalf("want a result, got %v", m)
	}
	return r
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

var gatewayOptions = gateway.Options{Name: "test"}
