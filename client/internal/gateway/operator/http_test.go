package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
)

// quiet is a server whose daemon is never asked: what it tests must be refused before.
func quiet(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{World: &gatewaytest.World{T: t}}
	o := Options{Daemon: &gateway.Daemon{Open: func(context.Context, *wireEnv) (*wireConn, *wireReady, error) {
		t.Error("the daemon was asked")
		return nil, nil, errors.New("no daemon in this test")
	}}, Project: t.TempDir(), Token: token, Page: page}
	for _, f := range change {
		f(&o)
	}
	w.serve(o)
	return w
}

// raw sends bytes and returns all that comes back until the server closes.
func (w *world) raw(text string) string {
	w.T.Helper()
	c := w.dial()
	c.write(text)
	if err := c.conn.SetReadDeadline(time.Now().Add(gatewaytest.Patience)); err != nil {
		w.T.Fatal(err)
	}
	all, err := io.ReadAll(c.r)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		w.T.Fatalf("the server did not close after %q", text)
	}
	return string(all)
}

// A6: what comes over HTTP is answered as HTTP, or the connection closed; nothing of it is ever read as a message,
// whatever its method and its body.
func TestHTTPIsNeverAMessage(t *testing.T) {
	w := quiet(t)
	body := withToken(t, msg{"type": "listSessions", "id": "1"}) + "\n"
	head := fmt.Sprintf("Host: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", w.addr, len(body))
	for _, line := range []string{
		"POST / HTTP/1.1\r\n", "GET / HTTP/1.0\r\n", "PUT /x HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "PATCH / HTTP/1.1\r\n", "X-OWN~!'`^ / HTTP/1.1\r\n",
		"delete / HTTP/1.1\r\n", "\r\n\r\nPOST / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n",
	} {
		got := w.raw(line + head + body)
		if !strings.HasPrefix(got, "HTTP/1.") || strings.Contains(got, `"type"`) {
			t.Errorf("%q: got %q", line, got)
		}
	}
	// A request line that does not end in time is cut off elsewhere; one that is too long for HTTP is not a message either.
	if got := w.raw("GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\n" + head + body); strings.Contains(got, `"sessions"`) || strings.Contains(got, "unauthorized") {
		t.Errorf("long: %q", got[:min(len(got), 300)])
	}
}

// a page of somebody else's cannot connect, neither by its Origin nor by a name that it made point here.
func TestOriginAndHost(t *testing.T) {
	w := quiet(t, func(o *Options) {
		o.Origins, o.Hosts = []string{"http://localhost:5173"}, []string{"dev.example"}
	})
	_, port, err := net.SplitHostPort(w.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		host, origin string
		status       int
	}{
		{"127.0.0.1:" + port, "", 101},
		{"localhost:" + port, "", 101},
		{"[::1]:" + port, "", 101},
		{"LOCALHOST:" + port, "", 101},
		{"dev.example:" + port, "http://dev.example:" + port, 101},
		{"127.0.0.1:" + port, "http://127.0.0.1:" + port, 101},
		{"localhost:" + port, "http://localhost:5173", 101},
		{"evil.example:" + port, "", 403},
		{"evil.example", "http://evil.example", 403},
		{"127.0.0.1", "", 403},
		{"", "", 400},
		{"127.0.0.1:" + port, "http://evil.example", 403},
		{"127.0.0.1:" + port, "null", 403},
		{"127.0.0.1:" + port, "file://", 403},
		{"127.0.0.1:" + port, "https://127.0.0.1:" + port, 403},
		{"127.0.0.1:" + port, "http://localhost:5174", 403},
		{"127.0.0.1:" + port, "http://127.0.0.1:" + port + ".evil.example", 403},
		{"127.0.0.1:" + port, "http://127.0.0.1:" + port + "\r\nOrigin: http://evil.example", 403},
	} {
		for _, upgrade := range []bool{true, false} {
			head := "GET / HTTP/1.1\r\nHost: " + tc.host + "\r\n"
			if tc.origin != "" {
				head += "Origin: " + tc.origin + "\r\n"
			}
			want := tc.status
			if upgrade {
				head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
			} else if want == 101 {
				want = 200 // the page
			}
			c := w.dial()
			c.write(head + "\r\n")
			r, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
			if err != nil {
				t.Fatalf("host %q origin %q: %v", tc.host, tc.origin, err)
			}
			if r.StatusCode != want && !(tc.status == 400 && r.StatusCode == 403) {
				t.Errorf("host %q, origin %q, upgrade %v: got %d, want %d", tc.host, tc.origin, upgrade, r.StatusCode, want)
			}
			r.Body.Close()
			c.conn.Close()
		}
	}
}

// P8: the page may load and reach nothing but this server, cannot be framed, and only reading methods are answered.
// Without --ui there is no page.
func TestPage(t *testing.T) {
	w := quiet(t)
	get := func(w *world, method, path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		r, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r, string(text)
	}
	r, text := get(w, "GET", "/")
	if r.StatusCode != 200 || !strings.Contains(text, "the page") {
		t.Errorf("page: %d %q", r.StatusCode, text)
	}
	policy := r.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "connect-src 'self' ws://" + w.addr, "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers: %v", r.Header)
	}
	if r, _ := get(w, "POST", "/"); r.StatusCode != 405 {
		t.Errorf("POST: %d", r.StatusCode)
	}
	if r, _ := get(w, "GET", "/../operator.token"); r.StatusCode == 200 {
		t.Error("a file beside the page was given")
	}
	bare := quiet(t, func(o *Options) { o.Page = nil })
	if r, text := get(bare, "GET", "/"); r.StatusCode != 426 || !strings.Contains(text, "--ui") {
		t.Errorf("without a page: %d %q", r.StatusCode, text)
	}
}

// wsClient is one over WebSocket.
type wsClient struct {
	t testing.TB
	c *websocket.Conn
}

func (w *world) ws(head http.Header) *wsClient {
	w.T.Helper()
	c, _, err := websocket.Dial(w.T.Context(), "ws://"+w.addr, &websocket.DialOptions{HTTPHeader: head})
	if err != nil {
		w.T.Fatal(err)
	}
	c.SetReadLimit(gateway.MaxLine + 1<<10)
	w.T.Cleanup(func() { c.CloseNow() })
	return &wsClient{w.T, c}
}

func (c *wsClient) write(text string) {
	c.t.Helper()
	if err := c.c.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *wsClient) next() msg {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), gatewaytest.Patience)
	defer cancel()
	kind, raw, err := c.c.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	if kind != websocket.MessageText || strings.Contains(string(raw), "\n") {
		c.t.Fatalf("got a %v message %q, want one JSON object as text", kind, raw)
	}
	return decode(c.t, raw)
}

// A6, R3, P3: both dialects over WebSocket; the token in each request, or once in the Authorization header.
func TestWebSocket(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "over a socket"}}}})
	c := w.ws(nil)
	c.write(`{"type":"listSessions","id":"0"}`)
	if m := c.next(); m.str("code") != "INVALID_REQUEST" || m.obj("details").str("reason") != "unauthorized" {
		t.Errorf("without a token: %v", m)
	}
	c.write(withToken(t, ask("1", "x")))
	var all []msg
	for {
		m := c.next()
		all = append(all, m)
		if final(m) {
			break
		}
	}
	if got, want := types(all), "turn-started response-block turn-completed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a := w.ws(http.Header{"Authorization": {"Bearer " + token}})
	a.write(`{"type":"query","id":"q","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`)
	if m := a.next(); m.str("stopReason") != "end_turn" {
		t.Errorf("S4 with the header: %v", m)
	}
	// Several lines in one message are several requests; an over-long message is answered, and the connection goes on.
	a.write("{\"type\":\"listSessions\",\"id\":\"l1\"}\n\n{\"type\":\"listSessions\",\"id\":\"l2\"}")
	if m, n := a.next(), a.next(); m.str("id") != "l1" || n.str("id") != "l2" {
		t.Errorf("two lines: %v, %v", m, n)
	}
	a.write(`{"type":"listSessions","id":"` + strings.Repeat("x", gateway.MaxLine) + `"}`)
	if m := a.next(); m.str("code") != "INVALID_REQUEST" || !strings.Contains(m.str("message"), "10485760") {
		t.Errorf("too long: %v", m)
	}
	a.write("") // as a blank line, it is nothing
	a.write(`{"type":"listSessions","id":"l3"}`)
	if m := a.next(); m.str("id") != "l3" {
		t.Errorf("afterwards: %v", m)
	}
	if _, r, err := websocket.Dial(t.Context(), "ws://"+w.addr, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer wrong"}}}); err == nil || r == nil || r.StatusCode != 401 {
		t.Errorf("a wrong header: %v, %v", r, err)
	}
	if err := a.c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Errorf("close: %v", err)
	}
}

// from is a connection of another machine's.
type from struct{ net.Conn }

func (from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7} }

// P12: without a token only this machine is served.
func TestNoTokenFromElsewhere(t *testing.T) {
	w := quiet(t)
	for _, tok := range []string{"", token} {
		s := New(Options{Daemon: w.Daemon(), Project: w.Project, Token: tok})
		theirs, ours := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serveConn(t.Context(), from{ours}, nil)
			ours.Close()
		}()
		_, sent := io.WriteString(theirs, `{"type":"jump","id":"1"}`+"\n")
		_, err := theirs.Read(make([]byte, 1))
		if served := sent == nil && err == nil; served != (tok != "") {
			t.Errorf("token %q: served %v (%v, %v)", tok, served, sent, err)
		}
		theirs.Close()
		<-done
	}
}

// P3, P12: no request passes without the token, of whatever kind and dialect; none is needed where the server was told so.
func TestToken(t *testing.T) {
	w := quiet(t)
	c := w.dial()
	for i, m := range []msg{
		ask("", "x"),
		{"type": "getSession", "sessionID": "s"},
		{"type": "listSessions"},
		{"type": "deleteSession", "sessionID": "s"},
		{"type": "cancel", "requestID": "r"},
		{"type": "confirm", "sessionID": "s", "confirmationID": "c", "decision": "allow"},
		{"type": "query", "messages": user("x")},
		{"type": "dispatch", "messages": user("x")},
		{"type": "stream", "sessionID": "s"},
		{"type": "send_context_request", "context": msg{"userMessage": "x"}},
	} {
		for j, meta := range []any{nil, msg{}, msg{"token": ""}, msg{"token": token + "x"}, msg{"token": token[1:]}} {
			m["id"] = fmt.Sprint(i, "-", j)
			if m["metadata"] = meta; meta == nil {
				delete(m, "metadata")
			}
			c.write(string(gateway.Line(m)))
			got := c.next()
			if code := got.str("code") + s4Code(got); code != "INVALID_REQUEST" || !strings.Contains(fmt.Sprint(got), "token") {
				t.Errorf("%v: got %v", m, got)
			}
		}
	}
	open := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "hi"}}}}, func(o *Options) { o.Token = "" })
	d := open.dial()
	d.write(string(gateway.Line(ask("1", "x"))))
	if all := d.turn("1"); types(all) != "turn-started response-block turn-completed" {
		t.Errorf("--no-token: %v", all)
	}
}
