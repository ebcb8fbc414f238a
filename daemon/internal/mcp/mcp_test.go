package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/internal/tool"
)

type jsonrpcError = jsonrpc.Error

const patience = 60 * time.Second // bounds every wait; nothing is slept for

// world is one owner's servers.
type world struct {
	t *testing.T
	*Servers
	at Place
}

func newWorld(t *testing.T, o Options, specs ...Spec) *world {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = patience
	}
	w := &world{t: t, Servers: New(o), at: Place{Env: []string{"PATH=/usr/bin:/bin", "LANG=C", "GORACE=atexit_sleep_ms=0"}, Home: t.TempDir()}}
	t.Cleanup(w.Close)
	w.Set(specs)
	return w
}

// server is this program in a mode.
func program(name, mode string, env ...string) Spec {
	s := Spec{Name: name, Command: os.Args[0], Env: map[string]string{"MCP_TEST_MODE": mode}}
	for i := 0; i < len(env); i += 2 {
		s.Env[env[i]] = env[i+1]
	}
	return s
}

func (w *world) ready() (map[string]tool.Tool, []Note) {
	w.t.Helper()
	list, notes := w.Ready(w.t.Context(), w.at, nil)
	tools := map[string]tool.Tool{}
	for _, t := range list {
		tools[t.Spec().Name] = t
	}
	return tools, notes
}

// up is ready for one server that has to be there.
func (w *world) up() map[string]tool.Tool {
	w.t.Helper()
	tools, notes := w.ready()
	for _, n := range notes {
		if n.Err != nil {
			w.t.Fatalf("%s: %v", n.Server, n.Err)
		}
	}
	return tools
}

// call plans and runs a tool as an agent does.
func call(ctx context.Context, t tool.Tool, args string, live func([]byte)) (tool.Result, error) {
	if t == nil {
		return tool.Result{}, errors.New("there is no such tool")
	}
	a, err := t.Plan(ctx, tool.Env{}, json.RawMessage(args))
	if err != nil {
		return tool.Result{}, err
	}
	return t.Run(ctx, tool.Env{}, json.RawMessage(args), a, live)
}

// A server's tools are had under their names with their schemas; what they are given and give is passed on; a tool's own
// failure is one.
func TestTools(t *testing.T) {
	for _, mode := range []string{"plain", "modern"} {
		w := newWorld(t, Options{}, program("db", mode))
		tools := w.up()
		echo := tools["mcp__db__echo"]
		if echo == nil {
			t.Fatalf("%s: got %v", mode, tools)
		}
		spec := echo.Spec()
		if !strings.Contains(string(spec.Schema), `"text":{"type":"string"}`) || spec.Description != "[tool of the MCP server db] the echo tool" || spec.ReadOnly {
			t.Errorf("%s: got %+v %s", mode, spec, spec.Schema)
		}
		a, err := echo.Plan(t.Context(), tool.Env{}, json.RawMessage(`{"text":"a  b"}`))
		if err != nil || a.Server != "db" || a.Preview.Content != "{\n  \"text\": \"a  b\"\n}" {
			t.Errorf("got %+v, %v", a, err)
		}
		if r, err := call(t.Context(), echo, `{"text":"a  b"}`, nil); err != nil || r.Content != "a  b" || r.IsError {
			t.Errorf("%s: got %+v, %v", mode, r, err)
		}
		if r, err := call(t.Context(), tools["mcp__db__fail"], `{"text":""}`, nil); err != nil || r.Content != "no such table" || !r.IsError {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := call(t.Context(), echo, `{"text":7}`, nil); err != nil || !r.IsError {
			t.Errorf("wrong arguments: got %+v, %v", r, err)
		}
		for _, bad := range []string{``, `[]`, `"x"`, `null`, `{`} {
			if _, err := echo.Plan(t.Context(), tool.Env{}, json.RawMessage(bad)); err == nil {
				t.Errorf("arguments %q were taken", bad)
			}
		}
		if _, err := echo.Run(t.Context(), tool.Env{}, json.RawMessage(`{}`), tool.Action{}, nil); !errors.Is(err, tool.ErrChanged) {
			t.Errorf("ran what was judged as something else: %v", err)
		}
	}
}

// What comes back is text that a person can read, bounded, and never cut inside a character.
func TestResults(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "plain"))
	tools := w.up()
	r, err := call(t.Context(), tools["mcp__db__odd"], `{"text":""}`, nil)
	want := "red text\nnext\n[an image, image/png, 4 bytes: not shown: not a PNG, JPEG, GIF or WebP image]\nfile:///x:\ninside\n[resource link: file:///y]"
	if err != nil || r.Content != want {
		t.Errorf("got %q, %v, want %q", r.Content, err, want)
	}
	if r, err := call(t.Context(), tools["mcp__db__shape"], `{"text":""}`, nil); err != nil || r.Content != `{"rows":3}` {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = call(t.Context(), newWorld(t, Options{}, program("db", "big")).up()["mcp__db__a"], `{}`, nil)
	if err != nil || len(r.Content) > tool.MaxWhole+100 || r.TruncatedBy < 6<<20-tool.MaxWhole || !strings.HasPrefix(r.Content, "first ü") || !strings.HasSuffix(r.Content, "ü last") {
		t.Errorf("got %d bytes, %d left out, %v", len(r.Content), r.TruncatedBy, err)
	}
	r, err = call(t.Context(), tools["mcp__db__picture"], `{"text":""}`, nil)
	if err != nil || len(r.Images) != maxImages || r.Images[3].MIME != "image/png" || r.Images[3].Width != 3 ||
		!strings.HasPrefix(r.Content, "[the image 1 of mcp__db__picture (PNG, 3×2)]\n") ||
		!strings.HasSuffix(r.Content, "[more than 4 images: not shown]\n[an image, image/png, 40 bytes: not shown: a PNG image that is cut off]") {
		t.Errorf("got %+v, %v", r, err)
	}
	var live []string
	fifo := mkfifo(t)
	r, err = call(t.Context(), tools["mcp__db__progress"], fmt.Sprintf(`{"text":%q}`, fifo), func(p []byte) {
		if live = append(live, string(p)); len(live) == 3 {
			if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
				f.Close()
			}
		}
	})
	if want := []string{"1/3 step\n", "2/3 step\n", "3/3 step\n"}; err != nil || r.Content != "done" || !slices.Equal(live, want) {
		t.Errorf("got %+v, %v, live %q", r, err, live)
	}
}

// A server gets the environment of a private shell and what its settings name, nothing else of the daemon's.
func TestEnvironment(t *testing.T) {
	t.Setenv("DAEMONS_OWN", "no")
	t.Setenv("DEPLOY_TOKEN", "t0ps3cret-value")
	spec := program("db", "plain", "TOKEN", "x-${DEPLOY_TOKEN}", "LANG", "de_DE", "PLAIN", "$HOME ${1} $$")
	spec.Expand = true
	w := newWorld(t, Options{}, spec)
	r, err := call(t.Context(), w.up()["mcp__db__env"], `{"text":""}`, nil)
	want := "GORACE=atexit_sleep_ms=0\nLANG=de_DE\nMCP_TEST_MODE=plain\nPATH=/usr/bin:/bin\nPLAIN=$HOME ${1} $$\nTOKEN=x-t0ps3cret-value"
	if err != nil || r.Content != want {
		t.Errorf("got %q, %v, want %q", r.Content, err, want)
	}
}

// What a server lists may change while it runs; a later turn has it.
func TestToolsChange(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "plain"))
	if _, err := call(t.Context(), w.up()["mcp__db__grow"], `{"text":""}`, nil); err != nil {
		t.Fatal(err)
	}
	c := w.list[0].conn
	for end := time.Now().Add(patience); !c.changed.Load(); time.Sleep(time.Millisecond) { // the server tells it a little later
		if time.Now().After(end) {
			t.Fatal("the change was not told")
		}
	}
	if w.up()["mcp__db__grown"] == nil {
		t.Error("the new tool is missing")
	}
}

// A server that is reached by HTTP gets its headers, and nobody else does.
func TestHTTP(t *testing.T) {
	t.Setenv("HTTP_KEY", "t0ps3cret-value")
	server := newServer()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	t.Cleanup(func() { // the last of all
		for s := range server.Sessions() {
			s.Close()
		}
	})
	var other, long bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other = true }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer t0ps3cret-value":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case r.URL.Path == "/long":
			long = true
			w.Header().Set("Content-Type", "application/json")
			for block := bytes.Repeat([]byte(" "), 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	spec := Spec{Name: "web", URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer ${HTTP_KEY}"}, Expand: true}
	w := newWorld(t, Options{Retry: time.Nanosecond}, spec)
	if r, err := call(t.Context(), w.up()["mcp__web__echo"], `{"text":"over there"}`, nil); err != nil || r.Content != "over there" {
		t.Errorf("got %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := call(ctx, w.up()["mcp__web__wait"], `{"text":"/nowhere"}`, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for path, want := range map[string]string{"/away": "redirected to another host", "/long": "12 MiB"} {
		bad := spec
		bad.URL += path
		w := newWorld(t, Options{}, bad)
		if _, notes := w.ready(); notes[0].Err == nil || !strings.Contains(notes[0].Err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, notes[0].Err, want)
		}
	}
	if other || !long {
		t.Errorf("other host asked: %v, long answer asked for: %v", other, long)
	}
	bare := newWorld(t, Options{}, Spec{Name: "web", URL: srv.URL})
	if _, notes := bare.ready(); notes[0].Err == nil || !strings.Contains(notes[0].Err.Error(), "Unauthorized") {
		t.Errorf("without the header: got %v", notes[0].Err)
	}
	srv.CloseClientConnections()
	srv.Close()
	if r, err := call(t.Context(), w.up()["mcp__web__echo"], `{"text":""}`, nil); err == nil || !strings.Contains(err.Error(), "lost during the call") {
		t.Errorf("a server that is gone: got %+v %v", r, err)
	}
}

// A server that has forgotten the session, as one that was started again has, gets a new one, after a call that fails and at the start of
// a turn. Some say so by an error of the protocol, which was taken for one of the tool in every call from then on.
func TestForgottenSession(t *testing.T) {
	for _, body := range []string{"", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`} {
		var mu sync.Mutex
		var handler http.Handler
		known := false // whether a session has begun since the last one was forgotten
		forget := func() {
			mu.Lock()
			defer mu.Unlock()
			known = false
			server := newServer()
			handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
			t.Cleanup(func() { // the last of all
				for s := range server.Sessions() {
					s.Close()
				}
			})
		}
		forget()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			known = known || r.Header.Get("Mcp-Session-Id") == ""
			h, answers := handler, known
			mu.Unlock()
			if answers {
				h.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, body)
		}))
		defer srv.Close()
		w := newWorld(t, Options{}, Spec{Name: "web", URL: srv.URL})
		echo := w.up()["mcp__web__echo"]
		for i := range 3 {
			forget()
			if i == 2 {
				w.list[0].conn.since = time.Time{} // the list of tools is not new
				echo = w.up()["mcp__web__echo"]
			} else if r, err := call(t.Context(), echo, `{"text":"over there"}`, nil); err == nil || !strings.Contains(err.Error(), "was lost during the call") {
				t.Errorf("%q: got %+v, %v", body, r, err)
			}
			if r, err := call(t.Context(), echo, `{"text":"over there"}`, nil); err != nil || r.Content != "over there" {
				t.Errorf("%q: got %+v, %v", body, r, err)
			}
		}
	}
}

// What a server writes on its standard error goes to the log, masked, bounded and as one line each.
func TestStderr(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	script := `i=0; while [ $i -lt 500 ]; do echo "line $i password=hunter2hunter2" >&2; i=$((i+1)); done; head -c 100000 /dev/zero | tr '\0' x >&2; exit 1`
	w := newWorld(t, Options{Log: log}, Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", script}})
	_, notes := w.ready()
	w.Close()
	text := buf.String()
	if n := strings.Count(text, "a program says"); n < 90 || n > 400 || strings.Contains(text, "hunter2") || len(text) > 64<<10 {
		t.Errorf("%d lines, %d bytes: %.300s", n, len(text), text)
	}
	if len(notes[0].Err.Error()) > 2*200 {
		t.Errorf("got %d bytes of last words", len(notes[0].Err.Error()))
	}
}
