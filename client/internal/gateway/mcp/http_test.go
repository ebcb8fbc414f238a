package mcp

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway/gatewaytest"
)

// serveHTTP is a gateway on a port of its own.
func serveHTTP(t *testing.T, w *gatewaytest.World) (address string) {
	t.Helper()
	return serveAt(t, w, "127.0.0.1:0")
}

func serveAt(t *testing.T, w *gatewaytest.World, at string) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- ServeHTTP(ctx, Options{Daemon: w.Daemon(), Token: "right"}, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := next(t, over); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// bearer is a transport of HTTP that adds the token, and its own connections.
type bearer struct{ http.Transport }

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer right")
	return b.Transport.RoundTrip(r)
}

func connectHTTP(t *testing.T, address, name string) *agent {
	t.Helper()
	web := &bearer{}
	t.Cleanup(web.CloseIdleConnections)
	c := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: web}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &agent{ClientSession: session, t: t}
}

// The same tools by HTTP; two clients at once each get their own answers.
func TestHTTP(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	address := serveHTTP(t, w)
	a, b := connectHTTP(t, address, "codex"), connectHTTP(t, address, "claude-code")
	if r := a.run("hi"); r.Output != "hello from an alias\n" {
		t.Errorf("got %+v", r)
	}
	if got := next(t, win.began); got != "codex: hi" {
		t.Errorf("the window shows %q", got)
	}
	b.run("true")
	if got := next(t, win.began); got != "claude: true" {
		t.Errorf("the window shows %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.call(ctx, "shell", map[string]any{"command": "sleep 600"}) //nolint:errcheck // it is cancelled
	}()
	next(t, win.began)
	cancel()
	<-over
	if r := b.run("echo free"); r.Output != "free\n" {
		t.Errorf("after a cancel: %+v", r)
	}
}

// A client by HTTP whose connection drops, without a word, frees the shell.
func TestHTTPClientDies(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	address := serveHTTP(t, w)
	other := connectHTTP(t, address, "codex")
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		send := func(session, body string) (net.Conn, string) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+address+"\r\nAuthorization: Bearer right\r\nContent-Type: application/json\r\n"+ //nolint:errcheck // the answer shows whether it arrived
				"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: "+version+"\r\n"+session+"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
			head := make([]byte, 4096)
			if session != "" && !strings.Contains(body, "notifications") {
				return c, ""
			}
			n, err := c.Read(head)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(string(head[:n]), "\r\n") {
				if strings.HasPrefix(strings.ToLower(line), "mcp-session-id:") {
					return c, line + "\r\n"
				}
			}
			return c, ""
		}
		c, session := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"dies","version":"1"}}}`)
		c.Close()
		if session == "" {
			t.Fatal("no session")
		}
		c, _ = send(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.Close()
		c, _ = send(session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"command":"sleep 600"}}}`)
		if got := next(t, win.began); got != "dies: sleep 600" {
			t.Errorf("the window shows %q", got)
		}
		c.Close()
		if r := other.run("echo free"); r.Output != "free\n" {
			t.Errorf("got %+v", r)
		}
		next(t, win.began)
	}
}

// An address of this machine other than 127.0.0.1 is a name of the server that listens there.
func TestHTTPAtAnyLoopback(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only 127.0.0.1 is set up by default") // Linux has all of 127.0.0.0/8
	}
	w := gatewaytest.New(t, nil)
	r, err := connectHTTP(t, serveAt(t, w, "127.0.0.2:0"), "codex").call(t.Context(), "shell_state", nil)
	if err != nil || !strings.Contains(r.text, errNoWindow.Error()) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Whoever does not know the token, names another host, or is a page of another origin is refused, and nothing runs.
func TestHTTPRefuses(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	address := serveHTTP(t, w)
	web := &http.Transport{}
	t.Cleanup(web.CloseIdleConnections)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell","arguments":{"command":"ls"}}}`
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		{"wrong token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }, http.StatusUnauthorized},
		{"no bearer", func(r *http.Request) { r.Header.Set("Authorization", "Basic right") }, http.StatusUnauthorized},
		{"foreign host", func(r *http.Request) { r.Host = "evil.example:80" }, http.StatusForbidden},
		{"foreign origin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		{"null origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"several origins", func(r *http.Request) { r.Header["Origin"] = []string{"http://" + address, "http://" + address} }, http.StatusForbidden},
		{"a body too long", func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", 11<<20)))
			r.ContentLength = -1
		}, http.StatusRequestEntityTooLarge},
	} {
		r, err := http.NewRequest(http.MethodPost, "http://"+address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer right")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		c.change(r)
		res, err := web.RoundTrip(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", c.name, res.StatusCode, c.want)
		}
	}
	if len(win.began) != 0 {
		t.Errorf("ran %q", <-win.began)
	}
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ServeHTTP(t.Context(), Options{Daemon: w.Daemon(), Token: "right"}, ln); err != ErrNotLoopback {
		t.Errorf("other machines: got %v", err)
	}
}
