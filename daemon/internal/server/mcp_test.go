package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/wire/citest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// serveMCP is an MCP server with a few tools.
func serveMCP() {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	type text struct {
		SQL string `json:"sql"`
	}
	add := func(name string, f func(ctx context.Context, sql string) string) {
		t := &sdk.Tool{Name: name, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}} // which it says, and nobody heeds
		sdk.AddTool(s, t, func(ctx context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: f(ctx, in.SQL)}}}, nil, nil
		})
	}
	add("query", func(_ context.Context, sql string) string { return "rows of " + sql })
	add("drop", func(context.Context, string) string { return "dropped" })
	add("key", func(context.Context, string) string {
		return "the key is " + os.Getenv("API_KEY") + " in " + os.Getenv("HOME")
	})
	add("cwd", func(context.Context, string) string { dir, _ := os.Getwd(); return dir })
	add("wait", func(ctx context.Context, fifo string) string {
		if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
			defer f.Close()
			<-ctx.Done()
			fmt.Fprint(f, "cancelled")
		}
		return ""
	})
	if fifo := os.Getenv("FIFO"); fifo != "" { // open as long as this process lives
		if _, err := os.OpenFile(fifo, os.O_WRONLY, 0); err != nil {
			os.Exit(1)
		}
	}
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

func testServer(env ...string) config.MCP {
	m := config.MCP{Command: os.Args[0], Env: map[string]string{"SUBLET_TEST_MCP": "1", "GORACE": "atexit_sleep_ms=0"}}
	for i := 0; i < len(env); i += 2 {
		m.Env[env[i]] = env[i+1]
	}
	return m
}

// calls is a script that calls tools, then says done.
func calls(match string, tools ...string) scripted.Script {
	s := scripted.Script{Match: match}
	for _, name := range tools {
		s.Steps = append(s.Steps, scripted.Step{ToolCalls: []scripted.Call{{Name: name, Arguments: json.RawMessage(`{"sql":"users"}`)}}})
	}
	s.Steps = append(s.Steps, scripted.Step{Text: "done with " + match})
	return s
}

// mcpRig has the server db in its settings and asks.
func mcpRig(t *testing.T, scripts ...scripted.Script) *rig {
	r := newRig(t, scripts...)
	r.set(func(c *config.Config) {
		c.Policy.Mode = "ask"
		c.MCP = map[string]config.MCP{"db": testServer()}
	})
	return r
}

func resultOf(p *peer, id wire.RequestID) *wire.CommandResult {
	p.t.Helper()
	return await(p, func(m *wire.CommandResult) bool { return m.RequestID == id })
}

func notices(p *peer) []string {
	var list []string
	for _, m := range p.all() {
		if c, ok := m.(*wire.AgentStreamChunk); ok && c.Chunk.Type == wire.ChunkNotice {
			list = append(list, c.Chunk.Text)
		}
	}
	return list
}

// A tool of a server goes the way of every call: it is asked for with its arguments, at high, whatever the server says of
// it; what is granted is one tool, and rules on its name hold.
func TestServerTools(t *testing.T) {
	r := mcpRig(t, calls("query", "mcp__db__query"), calls("drop", "mcp__db__drop"), calls("gone", "mcp__db__none"))
	p := r.dial()
	id := p.ask("query")
	q := question(p, anyQuestion)
	if q.Tool != "mcp__db__query" || q.Arguments != `{"sql":"users"}` || q.Verdict.Level != "high" || q.Verdict.Reversible ||
		q.Verdict.Reasons[0].Text != "calls a tool of the MCP server db: what it does is not known here" || q.Verdict.Reasons[0].Effect != "unknown" ||
		q.Preview.Content != "{\n  \"sql\": \"users\"\n}" {
		t.Errorf("got %+v", q)
	}
	var scopes []string
	for _, g := range q.Grants {
		scopes = append(scopes, g.Scope)
		if g.Rule != "tool: mcp__db__query" || !strings.HasPrefix(g.Covers, "every call of mcp__db__query, whatever its arguments") {
			t.Errorf("got %+v", g)
		}
	}
	if !slices.Equal(scopes, []string{"session", "project", "always"}) {
		t.Errorf("scopes: %v", scopes)
	}
	p.answer(q, "allow")
	p.ended(id)
	if res := resultOf(p, id); res.Status != "success" || string(res.Output) != "rows of users" || res.Tool != "mcp__db__query" {
		t.Errorf("got %+v", res)
	}
	id = p.ask("query")
	q = question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id })
	p.answer(q, "deny")
	p.ended(id)
	if res := resultOf(p, id); res.Status != "denied" {
		t.Errorf("denied: got %s %s", res.Status, res.Output)
	}
	id = p.ask("query")
	q = question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id })
	p.answer(q, "allow_always", func(a *wire.ConfirmationResponse) { a.Grant = &q.Grants[0] })
	p.ended(id)
	asked := count[*wire.ConfirmationRequest](p)
	id = p.ask("query")
	p.ended(id)
	if res := resultOf(p, id); res.Status != "success" || count[*wire.ConfirmationRequest](p) != asked {
		t.Errorf("granted: got %s, %d questions", res.Status, count[*wire.ConfirmationRequest](p))
	}
	id = p.ask("drop")
	p.answer(question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id }), "deny")
	p.ended(id)
	id = p.ask("gone")
	p.ended(id)
	if res := resultOf(p, id); res.Status != "error" || !strings.Contains(string(res.Output), "there is no tool") {
		t.Errorf("a tool that is not there: got %s %s", res.Status, res.Output)
	}
	if len(notices(p)) != 0 {
		t.Errorf("notices: %q", notices(p))
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "audit.log"))
	if err != nil || !strings.Contains(string(text), `mcp__db__query {\"sql\":\"users\"}`) {
		t.Errorf("audit: %v %s", err, text)
	}

	// Modes and rules, for one who can be asked (window) and one who cannot.
	for _, tc := range []struct {
		mode        string
		allow, deny []string
		want        string
	}{
		{"plan", nil, nil, "error"}, // it is not offered
		{"auto", nil, nil, "asked"},
		{"full", nil, nil, "success"},
		{"ask", []string{"tool: mcp__*"}, nil, "success"},
		{"ask", []string{"tool: mcp__db__q*"}, nil, "success"},
		{"ask", []string{"tool: mcp__other__*"}, nil, "asked"},
		{"ask", []string{"tool[medium]: mcp__db__query"}, nil, "asked"},
		{"full", []string{"tool: mcp__*"}, []string{"tool: mcp__db__query"}, "denied"},
		{"full", nil, []string{"effect: unknown"}, "denied"},
	} {
		r.set(func(c *config.Config) { c.Policy.Mode, c.Policy.Allow, c.Policy.Deny = tc.mode, tc.allow, tc.deny })
		p, q := r.dial(), r.dial(script)
		id := p.ask("query")
		if tc.want == "asked" {
			p.answer(question(p, anyQuestion), "deny")
		}
		p.ended(id)
		if res := resultOf(p, id); res.Status != tc.want && tc.want != "asked" {
			t.Errorf("%+v: got %s %s", tc, res.Status, res.Output)
		}
		end := q.ended(q.ask("query"))
		if refused := len(end.Refused) > 0; refused != (tc.want != "success") {
			t.Errorf("%+v: who cannot be asked: got %+v", tc, end)
		}
	}
}

// Who only reads has a server's tools where the user names them, and is asked like everybody; engineers have them.
func TestServerToolsByRole(t *testing.T) {
	r := mcpRig(t, calls("query", "mcp__db__query"))
	p := r.dial()
	as := func(role string) func(*wire.AgentRequest) { return func(r *wire.AgentRequest) { r.Agent = role } }
	only := func(r *wire.AgentRequest) { r.Options.Tools = []string{"read"} }
	for _, tc := range []struct {
		name    string
		options []func(*wire.AgentRequest)
		tools   []string // of [agents.reviewer]
		asked   bool
	}{
		{"reviewer", []func(*wire.AgentRequest){as("reviewer")}, nil, false},
		{"engineer", []func(*wire.AgentRequest){as("engineer")}, nil, true},
		{"a request that names others", []func(*wire.AgentRequest){only}, nil, false},
		{"reviewer by name", []func(*wire.AgentRequest){as("reviewer")}, []string{"read", "mcp__db__query"}, true},
		{"reviewer by server", []func(*wire.AgentRequest){as("reviewer")}, []string{"read", "mcp__db__*"}, true},
		{"reviewer by another name", []func(*wire.AgentRequest){as("reviewer")}, []string{"read", "mcp__db__drop"}, false},
	} {
		r.set(func(c *config.Config) { c.Agents = map[string]config.Agent{"reviewer": {Tools: tc.tools}} })
		before := count[*wire.ConfirmationRequest](p)
		id := p.ask("query", tc.options...)
		if tc.asked {
			p.answer(question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id }), "allow")
		}
		p.ended(id)
		res := resultOf(p, id)
		if asked := count[*wire.ConfirmationRequest](p) > before; asked != tc.asked || (res.Status == "success") != tc.asked {
			t.Errorf("%s: asked %v, %s %s", tc.name, asked, res.Status, res.Output)
		}
	}
}

// A server that cannot be had is told once, and the turn goes on; one that is taken out of the settings is not used.
func TestServerTroubles(t *testing.T) {
	r := mcpRig(t, calls("query", "mcp__db__query"), say("hello", "hi"))
	r.set(func(c *config.Config) {
		c.MCP = map[string]config.MCP{"bad": {Command: "/nowhere/server", Args: []string{"--token=ghp_0123456789abcdefghijklmnopqrstuvwxyz"}}}
	})
	p := r.dial()
	for range 2 {
		if end := p.ended(p.ask("hello")); end.Status != wire.StatusSuccess {
			t.Errorf("got %+v", end)
		}
	}
	list := notices(p)
	if len(list) != 1 || !strings.HasPrefix(list[0], "The MCP server bad cannot be used (/nowhere/server --token=") || strings.Contains(list[0], "ghp_0123") ||
		!strings.HasSuffix(list[0], "no such file or directory. The turn goes on without its tools.") {
		t.Errorf("got %q", list)
	}
	r.set(func(c *config.Config) { c.MCP = map[string]config.MCP{"db": testServer()} })
	id := p.ask("query")
	p.answer(question(p, anyQuestion), "allow")
	p.ended(id)
	r.set(func(c *config.Config) { c.MCP = nil })
	id = p.ask("query")
	p.ended(id)
	if res := resultOf(p, id); !strings.Contains(string(res.Output), "there is no tool") {
		t.Errorf("got %s", res.Output)
	}
}

// Cancel reaches the server, and the turn ends.
func TestServerCancel(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := scripted.Script{Match: "wait", Steps: []scripted.Step{{ToolCalls: []scripted.Call{{Name: "mcp__db__wait", Arguments: json.RawMessage(fmt.Sprintf(`{"sql":%q}`, fifo))}}}}}
	r := mcpRig(t, s)
	r.set(func(c *config.Config) { c.Policy.Mode = "full" })
	p := r.dial()
	id := p.ask("wait")
	f, err := os.Open(fifo) // waits until the call runs
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.send(&wire.CancelRequest{RequestID: &id, Reason: "enough"})
	if end := p.ended(id); end.Status != wire.StatusCancelled {
		t.Errorf("got %+v", end)
	}
	if said, err := io.ReadAll(f); err != nil || string(said) != "cancelled" {
		t.Errorf("the server heard %q, %v", said, err)
	}
}

// A tool is a command of its own under the same policy.
func TestServerToolRequest(t *testing.T) {
	r := mcpRig(t)
	p := r.dial()
	run := func(tool string) *wire.CommandResult {
		id := requestID()
		p.send(&wire.ToolRequest{RequestID: id, Tool: tool, Arguments: `{"sql":"x"}`})
		if strings.HasPrefix(tool, "mcp__db__query") {
			p.answer(question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id }), "allow")
		}
		p.ended(id)
		return resultOf(p, id)
	}
	if res := run("mcp__db__query"); string(res.Output) != "rows of x" {
		t.Errorf("got %s %s", res.Status, res.Output)
	}
	if res := run("mcp__nobody__query"); res.Status != "error" {
		t.Errorf("got %s %s", res.Status, res.Output)
	}
}

// Servers that a client brings along are those of its turns only; they work where it does, are told, and end with it.
// What is in their environment is nowhere to be found.
func TestClientsServers(t *testing.T) {
	const key = "zq83-opaque-value-1177"
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if f, err := os.Open(fifo); err == nil {
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
	}()
	r := mcpRig(t, calls("key", "mcp__my_files__key"), calls("cwd", "mcp__my_files__cwd"), calls("query", "mcp__db__query"))
	log := &citest.Buffer{}
	r.close()
	r.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.start()
	brought := func(name string, m config.MCP) wire.MCPServer {
		s := wire.MCPServer{Name: name, Command: wire.OSString(m.Command), Env: map[string]wire.OSString{}}
		for k, v := range maps.All(m.Env) {
			s.Env[k] = wire.OSString(v)
		}
		return s
	}
	p := r.dial(withoutShell, func(env *wire.EnvSnapshot) {
		env.Cwd = wire.OSString(dir)
		env.MCPServers = []wire.MCPServer{
			brought("my files", testServer("API_KEY", key, "FIFO", fifo)),
			brought("my_files", testServer()), brought("db", testServer()), brought("!!", testServer()),
			{Name: "empty"},
		}
	})
	if !slices.Contains(p.ready.Capabilities, wire.CapMCPServers) {
		t.Errorf("Ready: %v", p.ready.Capabilities)
	}
	id := p.ask("key")
	q := question(p, anyQuestion)
	if len(q.Grants) != 1 || q.Grants[0].Scope != "session" {
		t.Errorf("grants: %+v", q.Grants)
	}
	p.answer(q, "allow_always", func(a *wire.ConfirmationResponse) { a.Grant = &q.Grants[0] })
	p.ended(id)
	// The key is masked, since its name says what it is; HOME is the client's.
	if res := resultOf(p, id); !strings.HasPrefix(string(res.Output), "the key is ") || !strings.HasSuffix(string(res.Output), " in /home/u") || strings.Contains(string(res.Output), key) {
		t.Errorf("got %s %q", res.Status, res.Output)
	}
	id = p.ask("cwd")
	p.answer(question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id }), "allow")
	p.ended(id)
	if res := resultOf(p, id); string(res.Output) != dir {
		t.Errorf("it works in %q, want %q", res.Output, dir)
	}
	want := []string{
		`The MCP server "my_files" of the client is not used: another one is called my_files.`,
		`The MCP server "!!" of the client is not used: its name has no letter and no digit.`,
		`The MCP server "empty" of the client is not used: it needs either a command or a url.`,
		`The MCP server db of the client is not used: the settings have one of that name.`,
		`The client's MCP server my_files is in use: ` + os.Args[0],
	}
	if got := notices(p); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// Another client, also of the same session, has them not.
	other := r.dial(withoutShell, inSession(p.session, -1))
	id = other.ask("key")
	other.ended(id)
	if res := resultOf(other, id); !strings.Contains(string(res.Output), "there is no tool") {
		t.Errorf("another client: got %s", res.Output)
	}
	// How they are is told to those who have them; nothing is started for it.
	type how struct {
		name, state string
		client      bool
		tools       int
	}
	status := func(p *peer) (list []how, of []wire.Connections) {
		ask := requestID()
		p.send(&wire.StatusRequest{RequestID: ask})
		reply := await(p, func(m *wire.StatusReply) bool { return m.RequestID == ask })
		for _, s := range reply.MCPServers {
			if strings.Contains(s.What, key) || s.What != os.Args[0] || len(s.Tools) > 0 && !slices.Contains(s.Tools, "mcp__"+s.Name+"__query") {
				t.Errorf("got %+v", s)
			}
			list = append(list, how{s.Name, s.State, s.Client, len(s.Tools)})
		}
		return list, reply.Connections
	}
	settings := how{"db", wire.MCPUp, false, 5} // the other client's turn needed it
	if list, _ := status(p); !slices.Equal(list, []how{settings, {"db", wire.MCPResting, true, 0}, {"my_files", wire.MCPUp, true, 5}}) {
		t.Errorf("the client: got %+v", list)
	}
	script := r.dial(withoutShell, func(env *wire.EnvSnapshot) { env.Client.Name = "sublet lease run" })
	list, connections := status(script)
	if !slices.Equal(list, []how{settings}) {
		t.Errorf("a script: got %+v", list)
	}
	if want := []wire.Connections{{Name: "sublet lease run", Count: 1}, {Name: "test", Count: 2}}; !slices.Equal(connections, want) {
		t.Errorf("got connections %+v, want %+v", connections, want)
	}
	window := r.dial()
	if _, connections := status(window); !slices.Contains(connections, wire.Connections{Name: "test", Shell: true, Count: 1}) {
		t.Errorf("got connections %+v, want a window among them", connections)
	}
	// A new list replaces them, nil does not.
	p.send(&wire.EnvSnapshot{Client: wire.ClientInfo{Name: "test"}, Env: map[string]wire.OSString{"HOME": "/home/u"}, Cwd: wire.OSString(dir)})
	id = p.ask("key")
	p.ended(id)
	if res := resultOf(p, id); res.Status != "success" {
		t.Errorf("after nil: %s", res.Output)
	}
	p.close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the server outlived its client")
	}
	r.close()
	for _, pattern := range []string{"*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(r.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(key)) {
				t.Errorf("the key is in %s", file)
			}
		}
	}
	if text := log.String(); strings.Contains(text, key) || !strings.Contains(text, "mcp server up") {
		t.Errorf("log: %s", text)
	}
}
