package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// What comes back is text that a person can read, bounded (T4d: never cut inside a character).
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
	if err != nil || len(r.Content) > tool.MaxResult+100 || r.TruncatedBy < 2<<20-tool.MaxResult || !strings.HasPrefix(r.Content, "first ü") || !strings.HasSuffix(r.Content, "ü last") {
		t.Errorf("got %d bytes, %d left out, %v", len(r.Content), r.TruncatedBy, err)
	}
	r, err = call(t.Context(), tools["mcp__db__picture"], `{"text":""}`, nil)
	if err != nil || len(r.Images) != maxImages || r.Images[3].MIME != "image/png" || r.Images[3].Width != 3 ||
		!strings.HasPrefix(r.Content, "[the image 1 of mcp__db__picture (PNG, 3×2)]\n") ||
		!strings.HasSuffix(r.Content, "[an image more than 4: not shown]\n[an image, image/png, 40 bytes: not shown: a PNG image that is cut off]") {
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

// What cannot be had is told in words, at once or within the bound, and the others are there all the same.
func TestTroubles(t *testing.T) {
	missing := program("db", "plain", "A", "${NOT_SET_ANYWHERE}")
	missing.Expand = true
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nowhere\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec  Spec
		start time.Duration
		want  string
	}{
		"crash":    {program("db", "crash"), 0, "it ended: exit status 3; its last words: cannot reach the database at postgres://me:"},
		"mute":     {program("db", "mute"), 300 * time.Millisecond, "it did not answer within 300ms"},
		"spew":     {program("db", "spew"), 0, "it sent a message of more than 12 MiB"},
		"no file":  {Spec{Name: "db", Command: "/nowhere/x"}, 0, "no such file"},
		"not path": {Spec{Name: "db", Command: "sublet-no-such-program"}, 0, `"sublet-no-such-program" is not found on PATH`},
		"no shell": {Spec{Name: "db", Command: script}, 0, "no such file"},
		"variable": {missing, 0, "the daemon has no variable NOT_SET_ANYWHERE"},
		"nonsense": {Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", "echo hello there; cat >/dev/null"}}, 0, "invalid character 'h'"},
		"silent":   {Spec{Name: "db", Command: "/bin/true"}, 0, "it ended"},
		"no http":  {Spec{Name: "db", URL: "http://127.0.0.1:1/mcp"}, 0, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			specs := []Spec{tc.spec, program("other", "plain")}
			if tc.start != 0 {
				specs = specs[:1] // the other one may need longer
			}
			w := newWorld(t, Options{Start: tc.start, Retry: time.Hour}, specs...)
			for range 2 { // the second time nothing is started again, and it is told as the same
				tools, notes := w.ready()
				if err := notes[0].Err; err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") || notes[0].Number != 1 {
					t.Errorf("got %v (start %d), want %q", err, notes[0].Number, tc.want)
				}
				if len(specs) > 1 && (tools["mcp__other__echo"] == nil || notes[1].Err != nil) {
					t.Errorf("the other: %v", notes[1].Err)
				}
			}
		})
	}
}

// A server that is slow keeps nobody waiting beyond the bound, and is there later.
func TestSlowServer(t *testing.T) {
	fifo := mkfifo(t)
	spec := Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", `read -r x <"$FIFO"; exec "$SERVER"`}, Env: map[string]string{
		"FIFO": fifo, "SERVER": os.Args[0], "MCP_TEST_MODE": "plain",
	}}
	w := newWorld(t, Options{Patience: 50 * time.Millisecond}, spec)
	if tools, notes := w.ready(); len(tools) != 0 || !errors.Is(notes[0].Err, errLate) {
		t.Fatalf("got %v", notes)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "go")
	f.Close()
	srv := w.list[0]
	srv.mu.Lock()
	starting := srv.starting
	srv.mu.Unlock()
	if starting != nil {
		<-starting
	}
	if tools, notes := w.ready(); tools["mcp__db__echo"] == nil || notes[0].Number != 1 {
		t.Errorf("got %v", notes)
	}
}

// end waits for the end of the one server's connection.
func (w *world) end() error {
	w.t.Helper()
	srv := w.list[0]
	srv.mu.Lock()
	c := srv.conn
	srv.mu.Unlock()
	if c == nil {
		w.t.Fatal("it is not up")
	}
	return c.wait()
}

// Cancelling reaches the server, and the call ends at once; the server goes on.
func TestCancel(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "plain"))
	tools := w.up()
	fifo := mkfifo(t)
	said := make(chan string, 2)
	go func() {
		defer close(said)
		f, err := os.Open(fifo)
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			said <- s.Text()
		}
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, tools["mcp__db__wait"], fmt.Sprintf(`{"text":%q}`, fifo), nil)
		ended <- err
	}()
	if got := <-said; got != "called" {
		t.Fatalf("got %q", got)
	}
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if got := <-said; got != "cancelled" {
		t.Errorf("the server heard %q", got)
	}
	<-said
	if r, err := call(t.Context(), tools["mcp__db__echo"], `{"text":"still here"}`, nil); err != nil || r.Content != "still here" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A call without an answer ends after its time; one with signs of progress has longer.
func TestSilence(t *testing.T) {
	w := newWorld(t, Options{Silence: 100 * time.Millisecond}, program("db", "plain"))
	_, err := call(t.Context(), w.up()["mcp__db__wait"], `{"text":"/nowhere"}`, nil)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 100ms; whether it did anything is not known") {
		t.Errorf("got %v", err)
	}
}

// A server that dies in a call is told with its last words, is not called again by itself (T4f), and is started anew.
func TestDeath(t *testing.T) {
	w := newWorld(t, Options{Retry: time.Nanosecond}, program("db", "plain"))
	tools := w.up()
	_, err := call(t.Context(), tools["mcp__db__die"], `{"text":""}`, nil)
	if want := "the MCP server db was lost during the call (it ended: exit status 4; its last words: out of memory); whether it did anything is not known"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if r, err := call(t.Context(), tools["mcp__db__echo"], `{"text":"back"}`, nil); err != nil || r.Content != "back" {
		t.Errorf("got %+v, %v", r, err)
	}
	// Before its pause is over nobody waits for it.
	w = newWorld(t, Options{Retry: time.Hour}, program("db", "plain"))
	tools = w.up()
	if _, err := call(t.Context(), tools["mcp__db__die"], `{"text":""}`, nil); err == nil {
		t.Fatal("it lives")
	}
	_, err = call(t.Context(), tools["mcp__db__echo"], `{"text":"back"}`, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "not called: the MCP server db is not there: it ended: exit status 4") {
		t.Errorf("got %v", err)
	}
}

// Servers that mean harm: nothing is lost but their own connection.
func TestHostile(t *testing.T) {
	tools := func(list ...string) string { return `{"tools":[` + strings.Join(list, ",") + `]}` }
	one := func(name, rest string) string {
		quoted, _ := json.Marshal(name)
		return fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}%s}`, quoted, rest)
	}
	t.Run("names", func(t *testing.T) {
		long := strings.Repeat("l", 100)
		var many []string
		for i := range 200 {
			many = append(many, one(fmt.Sprintf("m%d", i), ""))
		}
		list := append([]string{
			one("ok", ""), one("a b", ""), one("a.b", ""), one("ok", `,"description":"again"`), one("", ""), one("\x1b[31mred", ""), one("../../x", ""),
			one(long, ""), one(long+"2", ""), one("told", `,"description":"a\u001b[31m\u202e b\u200b","annotations":{"readOnlyHint":true}`),
			one("wordy", `,"description":"`+strings.Repeat("w", 100_000)+`"`),
		}, many...)
		w := newWorld(t, Options{}, program("db", "names", "MCP_TEST_TOOLS", tools(list...)))
		got, notes := w.ready()
		if notes[0].Err != nil {
			t.Fatal(notes[0].Err)
		}
		for _, name := range []string{"mcp__db__ok", "mcp__db__a_b", "mcp__db____31mred", "mcp__db________x", "mcp__db__told"} {
			if got[name] == nil {
				t.Errorf("%s is missing", name)
			}
		}
		if len(got) != maxTools || !strings.Contains(notes[0].Left, "a.b (another one has this name), ok (another one has this name)") {
			t.Errorf("got %d tools, left %q", len(got), notes[0].Left)
		}
		longs := 0
		for name, remote := range got {
			if len(name) > maxName || odd.MatchString(name) || len(remote.Spec().Description) > maxDescription+200 || remote.Spec().ReadOnly {
				t.Errorf("got %q: %+v", name, remote.Spec())
			}
			if strings.HasPrefix(name, "mcp__db__lll") {
				longs++
			}
		}
		if longs != 2 {
			t.Errorf("%d tools with long names, want 2", longs)
		}
		if d := got["mcp__db__told"].Spec().Description; d != "[tool of the MCP server db] a⟨U+202E⟩ b⟨U+200B⟩" {
			t.Errorf("got %q", d)
		}
	})
	t.Run("schemas", func(t *testing.T) {
		deep := `"x"`
		for range 100 {
			deep = `{"a":` + deep + `}`
		}
		w := newWorld(t, Options{}, program("db", "schemas", "MCP_TEST_TOOLS", tools(
			`{"name":"none"}`, `{"name":"list","inputSchema":[1]}`, `{"name":"text","inputSchema":{"type":"string"}}`,
			`{"name":"props","inputSchema":{"type":"object","properties":[]}}`,
			`{"name":"deep","inputSchema":{"type":"object","properties":`+deep+`}}`,
			`{"name":"large","inputSchema":{"type":"object","description":"`+strings.Repeat("d", 100_000)+`"}}`,
			`{"name":"hidden","inputSchema":{"type":"object","properties":{"a\u202eb":{}}}}`,
			`{"name":"bare","inputSchema":{"description":"a\u0007\u200bb"}}`)))
		got, notes := w.ready()
		if notes[0].Err != nil || len(got) != 1 || string(got["mcp__db__bare"].Spec().Schema) != `{"description":"a⟨U+200B⟩b","properties":{},"type":"object"}` {
			t.Fatalf("got %v, %v", got, notes)
		}
		if want := "none (its schema is no object), list (its schema is no object), text (its schema is not an object's), props (the properties of its schema are no object), …"; notes[0].Left != want {
			t.Errorf("got %q", notes[0].Left)
		}
		if r, err := call(t.Context(), got["mcp__db__bare"], `{}`, nil); err == nil {
			t.Errorf("a result of 5000 levels: got %+v", r)
		}
	})
	t.Run("endless list", func(t *testing.T) {
		w := newWorld(t, Options{}, program("db", "endless", "MCP_TEST_TOOLS", `{"tools":[],"nextCursor":"more"}`))
		if got, notes := w.ready(); len(got) != 0 || notes[0].Err != nil {
			t.Errorf("got %v %v", got, notes)
		}
	})
	t.Run("flood", func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Hour}, program("db", "flood"))
		w.up()
		if err := w.end(); err == nil || !strings.HasPrefix(err.Error(), errFlood.Error()) {
			t.Errorf("got %v", err)
		}
	})
	// A server that reads no more: a call ends when it is cancelled, and the server with it.
	t.Run("stall", func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Hour, Stuck: 100 * time.Millisecond}, program("db", "stall"))
		a := w.up()["mcp__db__a"]
		c := w.list[0].conn
		args := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1<<20)) // more than a pipe holds
		for c.ctx.Err() == nil {                                    // one may be cancelled before it is written
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, err := call(ctx, a, args, nil); err == nil {
				t.Error("it was answered")
			}
			cancel()
		}
		if err := c.wait(); err == nil || !strings.HasPrefix(err.Error(), "it does not read what it is sent") {
			t.Errorf("got %v", err)
		}
	})
}

func mkfifo(t *testing.T) string {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return fifo
}

// gone is closed when nobody has the FIFO open for writing any more.
func gone(t *testing.T, fifo string) <-chan struct{} {
	t.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		if f, err := os.Open(fifo); err == nil { // waits for the first writer
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
	}()
	return end
}

func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: a process is left", what)
	}
}

// Whatever way a server ends, nothing that it started is left, also of those that heed nothing (T6d).
func TestNothingIsLeft(t *testing.T) {
	spec := func(fifo string) Spec {
		return Spec{Name: "t", Command: "/bin/sh", Args: []string{"-c", family}, Env: map[string]string{"FIFO": fifo, "SERVER": os.Args[0], "MCP_TEST_MODE": "plain"}}
	}
	t.Run("close", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		w.up()
		w.Close()
		wait(t, "Close", end)
	})
	t.Run("taken out of the settings", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo), program("other", "plain"))
		tools := w.up()
		before, err := call(t.Context(), tools["mcp__other__pid"], `{"text":""}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Set([]Spec{program("other", "plain")})
		wait(t, "Set", end)
		if after, err := call(t.Context(), w.up()["mcp__other__pid"], `{"text":""}`, nil); err != nil || after.Content != before.Content {
			t.Errorf("the other one: got %v, %v, want %v", after.Content, err, before.Content)
		}
		if _, err := call(t.Context(), tools["mcp__t__echo"], `{"text":""}`, nil); err == nil || !strings.Contains(err.Error(), "not there any more") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it dies", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		if _, err := call(t.Context(), w.up()["mcp__t__die"], `{"text":""}`, nil); err == nil {
			t.Fatal("it lives")
		}
		wait(t, "death", end)
	})
	t.Run("nobody uses it", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{Idle: 10 * time.Millisecond}, spec(fifo))
		release := w.Hold()
		for range 3 {
			if _, err := call(t.Context(), w.up()["mcp__t__echo"], `{"text":""}`, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, notes := w.ready(); notes[0].Number != 1 {
			t.Errorf("it was started %d times while it was held", notes[0].Number)
		}
		release()
		wait(t, "idle", end)
	})
	t.Run("its client leaves", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		release := w.Hold()
		w.Retire()
		if _, err := call(t.Context(), w.up()["mcp__t__echo"], `{"text":""}`, nil); err != nil {
			t.Errorf("a turn that still runs: %v", err)
		}
		release()
		wait(t, "Retire", end)
	})
	t.Run("while it starts", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		s := spec(fifo)
		s.Env["MCP_TEST_MODE"] = "mute"
		w := newWorld(t, Options{Patience: 50 * time.Millisecond}, s)
		if _, notes := w.ready(); !errors.Is(notes[0].Err, errLate) {
			t.Fatal(notes[0].Err)
		}
		w.Close()
		wait(t, "start", end)
	})
	// The daemon is killed by force: the guard sees to it.
	t.Run("kill -9", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		owner := exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), "MCP_TEST_MODE=owner", "FIFO="+fifo)
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		if err := owner.Process.Kill(); err != nil || line != "<nil>\n" {
			t.Errorf("got %q, %v", line, err)
		}
		_ = owner.Wait()
		wait(t, "kill -9", end)
	})
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

// What a server writes on its standard error goes to the log, masked, bounded and as one line each.
func TestStderr(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	script := `i=0; while [ $i -lt 500 ]; do echo "line $i password=hunter2hunter2" >&2; i=$((i+1)); done; head -c 100000 /dev/zero | tr '\0' x >&2; exit 1`
	w := newWorld(t, Options{Log: log}, Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", script}})
	_, notes := w.ready()
	w.Close()
	text := buf.String()
	if n := strings.Count(text, "mcp server says"); n < 90 || n > 400 || strings.Contains(text, "hunter2") || len(text) > 64<<10 {
		t.Errorf("%d lines, %d bytes: %.300s", n, len(text), text)
	}
	if len(notes[0].Err.Error()) > 2*maxWords {
		t.Errorf("got %d bytes of last words", len(notes[0].Err.Error()))
	}
}

// Whatever text there is, a name is one that the settings would take.
func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"files": "files", "My Files!": "My_Files", "a__b": "a_b", "_x_": "x", "ü": "", "": "", "--": "", "@scope/server-x": "scope_server-x",
		strings.Repeat("n", 100): strings.Repeat("n", 32),
	} {
		if got := Name(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// However a server describes its tools, what is offered is bounded, valid, and named like nothing else.
func FuzzOffer(f *testing.F) {
	f.Add(`[{"name":"a","description":"d","inputSchema":{"type":"object"}}]`)
	f.Add(`[{"name":"a b","inputSchema":{"properties":{"x":{"enum":["\u202e"]}}}},{"name":"a.b","inputSchema":{}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var list []*sdk.Tool
		if json.Unmarshal([]byte(text), &list) != nil || slices.Contains(list, nil) {
			return
		}
		s := &server{spec: Spec{Name: "db"}}
		tools, left := s.offer(list)
		seen := map[string]bool{}
		for _, r := range tools {
			spec := r.Spec()
			if seen[spec.Name] || len(spec.Name) > maxName || odd.MatchString(spec.Name) || !json.Valid(spec.Schema) || len(spec.Schema) > maxSchema {
				t.Errorf("got %+v", spec)
			}
			seen[spec.Name] = true
		}
		if len(left) > 2<<10 {
			t.Errorf("left is %d bytes", len(left))
		}
	})
}
