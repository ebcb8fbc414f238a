package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"sublet/client/internal/gateway/gatewaytest"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	scene = gatewaytest.Scene
	step  = gatewaytest.Step
	call  = gatewaytest.Call
)

var bash = gatewaytest.Bash

const token = "the-test-token"

// world is a user with a daemon and `serve operator` in front of it.
type world struct {
	*gatewaytest.World
	addr string
	stop func()
}

func newWorld(t testing.TB, scenes []scene, change ...func(*Options)) *world {
	t.Helper()
	return settled(t, scenes, nil, change...)
}

// settled is newWorld with lines for the settings file.
func settled(t testing.TB, scenes []scene, settings []string, change ...func(*Options)) *world {
	t.Helper()
	w := &world{World: gatewaytest.New(t, scenes, settings...)}
	o := Options{Daemon: w.Daemon(), Project: w.Project, Mode: "ask", Token: token, Page: page}
	for _, f := range change {
		f(&o)
	}
	w.serve(o)
	return w
}

var page = fstest.MapFS{"index.html": {Data: []byte("<!doctype html><title>the page</title>")}}

func (w *world) serve(o Options) {
	w.T.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.T.Fatal(err)
	}
	w.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- New(o).Serve(ctx, tight{ln}) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-over:
			if err != nil {
				w.T.Errorf("serve: %v", err)
			}
		case <-time.After(gatewaytest.Patience):
			w.T.Error("the server did not stop")
		}
	})
	w.T.Cleanup(func() { w.stop() })
}

// tight is a listener whose connections have small buffers: left alone the kernel takes up to 4 MiB for a client that does
// not read (tcp_wmem), or not, as it likes.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.SetWriteBuffer(16<<10))
	}
	return c, err
}

// msg is a message as it came.
type msg map[string]any

func (m msg) str(key string) string {
	s, _ := m[key].(string)
	return s
}

func (m msg) list(key string) []any {
	l, _ := m[key].([]any)
	return l
}

func (m msg) obj(key string) msg {
	o, _ := m[key].(map[string]any)
	return o
}

// client is one that speaks over TCP.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func (w *world) dial() *client {
	w.T.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { conn.Close() })
	return &client{t: w.T, conn: conn, r: bufio.NewReaderSize(conn, 1<<16)}
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// send sends one request with the token.
func (c *client) send(m msg) {
	c.t.Helper()
	c.write(withToken(c.t, m) + "\n")
}

func withToken(t testing.TB, m msg) string {
	t.Helper()
	with := msg{}
	for k, v := range m {
		with[k] = v
	}
	meta := msg{"token": token}
	if given, ok := m["metadata"].(msg); ok {
		for k, v := range given {
			meta[k] = v
		}
	}
	with["metadata"] = meta
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// next is the next message; io.EOF is a failure.
func (c *client) next() msg {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return m
}

func (c *client) read() (msg, error) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(gatewaytest.Patience)); err != nil {
		return nil, err
	}
	l, err := c.r.ReadString('\n')
	if err != nil {
		if l != "" {
			return nil, errors.New("half a line: " + l)
		}
		return nil, err
	}
	if strings.TrimSpace(l) == "" {
		c.t.Fatal("an empty line")
	}
	return decode(c.t, []byte(l)), nil
}

var s3, s4 = gatewaytest.Document("S3"), gatewaytest.Document("S4")

// check holds every message that any test reads to the types of its document.
func check(t testing.TB, m msg) {
	t.Helper()
	err := typed(m)
	if at, ok := m["timestamp"].(float64); m.str("type") != "" && (!ok || time.Since(time.UnixMilli(int64(at))).Abs() > time.Hour) { // F18
		err = errors.Join(err, errors.New("its timestamp"))
	}
	if err != nil {
		t.Errorf("%.2000v: %v", m, err)
	}
}

// typed says where a message is not of its document's type.
func typed(m msg) (err error) {
	switch kind := m.str("type"); kind {
	case "":
		err = s4.Check("DispatchResult", map[string]any(m))
	case "turn-started", "response-block", "tool-call", "tool-result", "response-chunk", "turn-completed", "error":
		err = s3.Check("ResponseEvent", map[string]any(m))
	case "tool-results-batch":
		err = s3.Check("ToolResultsBatch", map[string]any(m))
	case "session":
		for _, turn := range m.obj("session").list("turns") {
			err = errors.Join(err, s3.Check("Turn", turn))
		}
	case "sessions", "session-deleted", "ok", "confirmation-request", "confirmation-resolved", "thinking", "reasoning-chunk", "tool-output", "notice":
	default:
		err = fmt.Errorf("an event %q that nobody told of", kind)
	}
	return err
}

// final reports whether m ends an S3 request.
func final(m msg) bool {
	return m.str("type") == "turn-completed" || m.str("type") == "error" && m["turnID"] == nil
}

// turn reads an S3 request to its end.
func (c *client) turn(id string) []msg {
	c.t.Helper()
	var all []msg
	for {
		m := c.next()
		if m.str("id") != id {
			c.t.Fatalf("event of %q, want %q: %v", m.str("id"), id, m)
		}
		all = append(all, m)
		if final(m) {
			return all
		}
	}
}

func types(all []msg) string {
	var kinds []string
	for _, m := range all {
		if n := len(kinds); n == 0 || kinds[n-1] != m.str("type") {
			kinds = append(kinds, m.str("type"))
		}
	}
	return strings.Join(kinds, " ")
}

func of(all []msg, kind string) []msg {
	var found []msg
	for _, m := range all {
		if m.str("type") == kind {
			found = append(found, m)
		}
	}
	return found
}

// said puts block and chunks together as a client does.
func said(all []msg) string {
	text := ""
	for _, m := range all {
		switch m.str("type") {
		case "response-block":
			text = m.str("content")
		case "response-chunk":
			text += m.str("delta")
		}
	}
	return text
}

func ask(id, content string) msg {
	return msg{"type": "dispatch", "id": id, "agentID": "architect", "content": content}
}

func user(text string) []msg {
	return []msg{{"role": "user", "content": []msg{{"type": "text", "text": text}}}}
}

// s4Code is the code of a result that is an error.
func s4Code(m msg) string {
	for _, b := range m.list("content") {
		if b := msg(b.(map[string]any)); b.str("type") == "error" {
			return b.str("code")
		}
	}
	return ""
}

// results reads a stream to its end.
func (c *client) results(id string) []msg {
	c.t.Helper()
	var all []msg
	for {
		m := c.next()
		if m.str("id") != id {
			c.t.Fatalf("result of %q, want %q: %v", m.str("id"), id, m)
		}
		all = append(all, m)
		if stop := m.str("stopReason"); stop != "" && stop != "stream_start" {
			return all
		}
	}
}

type (
	wireEnv   = wire.EnvSnapshot
	wireConn  = wire.Conn
	wireReady = wire.Ready
)

func decode(t testing.TB, raw []byte) msg {
	t.Helper()
	var m msg
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	check(t, m)
	return m
}
