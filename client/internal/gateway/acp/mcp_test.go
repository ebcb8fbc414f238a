package acp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway/gatewaytest"
)

// greeter is an MCP server with one tool.
func greeter() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type who struct {
		Name string `json:"name"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in who) (*mcp.CallToolResult, any, error) {
		text := "good " + os.Getenv("TIME_OF_DAY") + ", " + in.Name
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	return s
}

// An editor's MCP servers are used for its session, the user is told of each, and every call is asked for; those that
// cannot be used are told, and the prompt goes on.
func TestEditorsServers(t *testing.T) {
	greet := func(server string) step {
		return step{ToolCalls: []call{{Name: "mcp__" + server + "__greet", Arguments: map[string]any{"name": "Ada"}}}}
	}
	w := gatewaytest.New(t, append([]scene{
		{Match: "^greet$", Steps: []step{greet("local_one"), greet("remote"), {Text: "greeted"}}},
	}, common...))
	server := greeter()
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if r.Header.Get("X-Key") != "k" {
			return nil
		}
		return server
	}, nil))
	t.Cleanup(func() { // after the daemon has gone
		srv.Close()
		for s := range server.Sessions() {
			s.Close()
		}
	})
	e := start(t, w)
	ok := &sdk.RequestPermissionOutcomeSelected{Outcome: "selected", OptionId: "once"}
	e.answer = func(_ context.Context, p sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		for _, o := range p.Options {
			if o.Kind == sdk.PermissionOptionKindAllowOnce {
				ok.OptionId = o.OptionId
			}
		}
		return sdk.RequestPermissionOutcome{Selected: ok}
	}
	env := []sdk.EnvVariable{{Name: "TIME_OF_DAY", Value: "morning"}, {Name: "GORACE", Value: "atexit_sleep_ms=0"}}
	servers := []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "local one", Command: os.Args[0], Args: []string{"mcp"}, Env: env}},
		{Http: &sdk.McpServerHttpInline{Name: "remote", Type: "http", Url: srv.URL, Headers: []sdk.HttpHeader{{Name: "X-Key", Value: "k"}}}},
		{Stdio: &sdk.McpServerStdio{Name: "broken", Command: "/nowhere/x", Args: []string{}, Env: []sdk.EnvVariable{}}},
		{Sse: &sdk.McpServerSseInline{Name: "old", Type: "sse", Url: srv.URL, Headers: []sdk.HttpHeader{}}},
	}
	r, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: w.Project, McpServers: servers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, updates, err := e.prompt(r.SessionId, sdk.TextBlock("greet"))
	said := text(updates)
	for _, want := range []string{
		"MCP servers of the editor's that are not used (old: server-sent events alone are not spoken here).",
		"The client's MCP server broken cannot be used (/nowhere/x): ", "The client's MCP server local_one is in use: " + os.Args[0] + " mcp",
		"The client's MCP server remote is in use: " + srv.URL, "greeted",
	} {
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("got %q, %v, want %q in it", said, err, want)
		}
	}
	if strings.Contains(said, "morning") {
		t.Errorf("an environment is told: %q", said)
	}
	results := ""
	for _, u := range updates {
		if u.ToolCallUpdate != nil {
			for _, c := range u.ToolCallUpdate.Content {
				if c.Content != nil && c.Content.Content.Text != nil {
					results += c.Content.Content.Text.Text + "\n"
				}
			}
		}
	}
	if !strings.Contains(results, "good morning, Ada") || !strings.Contains(results, "good , Ada") || len(e.asked) != 2 {
		t.Errorf("results %q, %d questions", results, len(e.asked))
	}
	// Told once; a session that is loaded again has what it is given then.
	_, updates, err = e.prompt(r.SessionId, sdk.TextBlock("say"))
	if again := time.Since(began) > time.Second; err != nil || text(updates) != "hello there" && !again { // the broken one is tried anew then
		t.Errorf("the second time: %q, %v", text(updates), err)
	}
	if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: r.SessionId, Cwd: w.Project, McpServers: servers[1:2]}); err != nil {
		t.Fatal(err)
	}
	if _, _, err = e.prompt(r.SessionId, sdk.TextBlock("greet")); err != nil || len(e.asked) != 3 {
		t.Errorf("after load: %v, %d questions, want one more, for the server that is left", err, len(e.asked))
	}
}
