package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// D3 to D6, E2, E3: what the document's own example asks is what the daemon is told, whole.
func TestE2_AgentQuery(t *testing.T) {
	r := &request{Params: json.RawMessage(`{
		"message": "How do I optimize this Rust code?",
		"context": {
			"cwd": "/home/user/project", "shell": "bash", "env": {"USER": "user", "PWD": "/home/user/project"},
			"recent_commands": [
				{"command": "cargo build", "exit_code": 0, "timestamp": 1696435200},
				{"command": "cargo test", "exit_code": 1, "timestamp": 1696435210}
			],
			"recent_output": "thread 'main' panicked at...", "open_files": ["src/main.rs", "Cargo.toml"]
		},
		"options": {"stream": true, "max_tokens": 2048, "temperature": 0.7, "tools_enabled": true, "require_approval": true}
	}`)}
	var p queryParams
	if f := r.decode(&p); f != nil {
		t.Fatal(f)
	}
	got, f := p.request()
	if f != nil {
		t.Fatal(f)
	}
	zero, one, tokens, temperature := 0, 1, 2048, 0.7
	want := &wire.AgentRequest{
		Prompt: "How do I optimize this Rust code?", Attachments: []wire.Attachment{},
		Context: wire.RequestContext{
			Cwd: "/home/user/project", RecentOutput: []byte("thread 'main' panicked at..."), OpenFiles: []wire.OSString{"src/main.rs", "Cargo.toml"},
			RecentCommands: []wire.RecentCommand{
				{Command: "cargo build", ExitCode: &zero, StartedAtMS: 1696435200000, OutputTail: []byte{}},
				{Command: "cargo test", ExitCode: &one, StartedAtMS: 1696435210000, OutputTail: []byte{}},
			},
		},
		Options: wire.RequestOptions{MaxTokens: &tokens, Temperature: &temperature},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	off := false
	p.Options.ToolsEnabled, p.Options.RequireApproval = &off, &off
	if got, _ := p.request(); got.Options.Tools == nil || len(got.Options.Tools) != 0 || *got.Options.RequireApproval {
		t.Errorf("no tools, no questions: got %+v", got.Options)
	}
}

// B12, D2: the daemon is told how large the client's terminal is, at the handshake and when it changes.
func TestB12_TerminalSize(t *testing.T) {
	var mu sync.Mutex
	var told []wire.TermInfo
	w := newWorld(t, common, func(o *Options) {
		open := o.Daemon.Open
		o.Daemon.Open = func(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
			mu.Lock()
			told = append(told, s.Term)
			mu.Unlock()
			return open(ctx, s)
		}
	})
	w.ready(`{"protocol_version":"1.0.0","terminal_size":{"cols":80,"rows":24,"pixel_width":800,"pixel_height":600}}`)
	mu.Lock()
	if last := told[len(told)-1]; last != (wire.TermInfo{Cols: 80, Rows: 24, PixelWidth: 800, PixelHeight: 600}) {
		t.Errorf("initialize: told %+v", last)
	}
	mu.Unlock()
	session, err := w.o.Daemon.Connect(t.Context(), gatewayOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	c := &conn{s: &server{o: w.o}, ctx: t.Context(), session: session}
	if _, f := c.update(&request{Params: json.RawMessage(`{"cwd":"/","terminal_size":{"cols":100,"rows":30}}`)}); f != nil {
		t.Fatal(f)
	}
	if p := session.Place(); p.Term != (wire.TermInfo{Cols: 100, Rows: 30}) || p.Cwd != "/" {
		t.Errorf("context.update: told %+v", p)
	}
	if _, f := c.update(&request{Params: json.RawMessage(`{"env":{"A":"1"}}`)}); f != nil || session.Place().Term.Cols != 100 {
		t.Errorf("an update without a size: %v, %+v", f, session.Place())
	}
}

// stage is a connection without a daemon: what it translates goes to the returned function's caller.
func stage(t *testing.T, can ...string) (c *conn, q *query, told func() []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	c = &conn{
		s: &server{o: Options{approvalTimeout: approvalBound}}, log: slog.New(slog.DiscardHandler), out: gateway.NewWriter(&out), ctx: t.Context(),
	}
	q = &query{Turn: gateway.Turn{ID: "q-1"}, began: time.Now(), progressAt: map[wire.ExecutionID]time.Time{}, stream: slices.Contains(can, "streaming"), blocks: slices.Contains(can, "blocks")}
	t.Cleanup(c.work.Wait)
	reader := &client{t: t}
	return c, q, func() (list []map[string]any) {
		t.Helper()
		if err := c.out.Close(); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			reader.check(m)
			params := m["params"].(map[string]any)
			params["method"] = m["method"]
			list = append(list, params)
		}
		return list
	}
}

// deliver gives a query events that wait together.
func deliver(c *conn, q *query, events ...wire.EventMessage) {
	for _, e := range events {
		switch e := e.(type) {
		case *wire.AgentComplete:
			q.End = e
			status, why := q.Outcome()
			c.end(q, status, why)
		case *wire.Error:
			if q.Problem = e; e.TurnID == "" {
				status, why := q.Outcome()
				c.end(q, status, why)
			}
		case *wire.ConfirmationRequest:
			c.ask(q, gateway.NewQuestion(c.ctx, nil, e))
		}
		c.translate(q, e)
	}
	c.flush(q)
}

var of = wire.Event{SessionID: "s", TurnID: "t", RequestID: "q-1", Seq: 1}

func piece1(text string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{Event: of, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text}}
}

// A18, F2, F3: tokens that wait together go out in one message, each with its index; one that waits alone, alone. What comes
// between them ends the batch.
func TestF3_TokenBatch(t *testing.T) {
	c, q, told := stage(t, "streaming", "blocks")
	deliver(c, q, piece1("a"), piece1("b"), piece1("c\n"), piece1("```sh\nls\n```\n"), piece1("x"), &wire.AgentThinking{Event: of, Phase: wire.PhasePlanning}, piece1("y"))
	var got []string
	for _, m := range told() {
		switch m["method"] {
		case "stream.token":
			got = append(got, fmt.Sprint(m["token"], m["index"]))
		case "stream.tokens":
			var all []string
			for _, v := range m["tokens"].([]any) {
				tok := v.(map[string]any)
				all = append(all, fmt.Sprint(tok["token"], tok["index"]))
			}
			got = append(got, fmt.Sprint(all))
		default:
			got = append(got, m["method"].(string))
		}
	}
	if want := "[[a0 b1 c\n2] stream.block x3 agent.thinking y4]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// F5: metadata says what is a diff and what can be run.
func TestF5_BlockMetadata(t *testing.T) {
	for language, want := range map[string]blockMetadata{"sh": {Executable: true}, "console": {Executable: true}, "rust": {}, "diff": {Diff: true}, "error": {}} {
		if b := fenced(gateway.Piece{Text: "x", Code: true, Info: language}); b.Metadata != want {
			t.Errorf("%s: got %+v", language, b.Metadata)
		}
	}
}

// F6, F16, G5, G6, K9: what is told of a tool and of the end, with the values that the daemon gave.
func TestToolAndEnd(t *testing.T) {
	c, q, told := stage(t, "streaming", "blocks")
	chunk := func(k wire.Chunk) *wire.AgentStreamChunk {
		k.ExecutionID = "e1"
		return &wire.AgentStreamChunk{Event: of, Agent: "orchestrator", Chunk: k}
	}
	three := 3
	deliver(
		c, q,
		&wire.AgentThinking{Event: of, Phase: wire.PhaseWaiting, Message: "waiting 2s"},
		chunk(wire.Chunk{Type: wire.ChunkReasoning, Text: "step by step"}),
		chunk(wire.Chunk{Type: wire.ChunkToolCall, Tool: "bash", Arguments: `{"command":"make"}`}),
		chunk(wire.Chunk{Type: wire.ChunkToolOutput, Data: []byte("10 %\r\x1b[1m45.5 %\x1b[0m of it\r")}),
		&wire.CommandResult{Event: of, ExecutionID: "e1", Tool: "bash", Status: wire.StatusError, Output: []byte("made"), ExitCode: &three, FilesModified: []wire.OSString{"a", "b"}, DurationMS: 125},
		&wire.AgentComplete{Event: of, Status: wire.StatusSuccess, Usage: wire.Usage{Total: 150, Output: 51}, ToolsExecuted: []string{"bash"}, Model: "m", DurationMS: 2000},
	)
	got := told()
	want := []map[string]any{
		{"method": "agent.thinking", "query_id": "q-1", "phase": "planning", "message": "waiting 2s"},
		{"method": "agent.thinking", "query_id": "q-1", "phase": "planning", "message": "step by step"},
		{"method": "tool.progress", "execution_id": "e1", "progress": map[string]any{"percentage": 0.0, "status": "processing", "message": "bash make"}},
		{"method": "tool.progress", "execution_id": "e1", "progress": map[string]any{"percentage": 45.0, "status": "processing", "message": "45.5 % of it"}},
		{"method": "tool.complete", "execution_id": "e1", "status": "error", "result": map[string]any{"output": "made", "files_modified": []any{"a", "b"}, "duration_ms": 125.0, "exit_code": 3.0}},
		{"method": "stream.block", "query_id": "q-1", "block_id": "block-1-1", "block": map[string]any{
			"type": "tool_output", "language": "", "content": "made", "metadata": map[string]any{"diff": false, "executable": false, "execution_id": "e1"}, "annotations": []any{},
		}},
		{"method": "stream.complete", "query_id": "q-1", "status": "success", "metadata": map[string]any{
			"total_tokens": 150.0, "tokens_per_second": 25.5, "tools_executed": []any{"bash"}, "model_used": "m", "duration_ms": 2000.0,
		}},
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("message %d:\n got %v\nwant %v", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

// F6, G8, H3, H6 to H9: a question says what is asked, as the daemon judged it.
func TestH3_RequestApproval(t *testing.T) {
	for _, m := range []struct {
		tool, category, level, preview, content string
		reversible                              bool
	}{
		{"bash", "shell", "low", "none", "rm x", true},
		{"write", "file_system", "medium", "diff", "-a\n+b", true},
		{"fetch", "network", "high", "text", "GET", false},
		{"of_tomorrow", "other", "critical", "text", "x", false},
	} {
		c, q, told := stage(t, "streaming", "blocks")
		ask := &wire.ConfirmationRequest{
			Event: of, ConfirmationID: "c1", ExecutionID: "e1", Tool: m.tool, Arguments: `{"path":"x"}`, Cwd: "/w",
			Verdict: wire.Verdict{Level: m.level, Reversible: m.reversible, Reasons: []wire.Reason{{Text: "one"}, {Text: "two"}}},
			Preview: wire.Preview{Type: m.preview, Content: m.content},
		}
		if m.preview == "none" {
			ask.Command, ask.Preview.Content = "rm x", ""
		}
		deliver(c, q, ask)
		got := told()
		if len(got) != 2 || got[0]["block"].(map[string]any)["type"] != "interactive" {
			t.Fatalf("%s: got %v", m.tool, got)
		}
		kind := m.preview
		if kind == "none" {
			kind = "text"
		}
		description := m.tool + " x"
		if m.tool == "bash" {
			description = "Run `rm x` in /w"
		}
		want := map[string]any{
			"method": "tool.request_approval", "execution_id": "e1", "query_id": "q-1", "arguments": map[string]any{"path": "x"}, "timeout": 30.0,
			"tool":            map[string]any{"name": m.tool, "description": description, "category": m.category},
			"preview":         map[string]any{"type": kind, "content": m.content},
			"risk_assessment": map[string]any{"level": m.level, "reasons": []any{"one", "two"}, "reversible": m.reversible},
		}
		if !reflect.DeepEqual(got[1], want) {
			t.Errorf("got  %v\nwant %v", got[1], want)
		}
	}
}

// H5: which of the standing permissions on offer is taken; critical is never remembered.
func TestH5_Grant(t *testing.T) {
	// remember_choice for this very action took the offer of all edits and builds in the project, which is the first.
	if g := grant(&wire.ConfirmationRequest{Grants: []wire.Grant{{Scope: "project", Rule: "reach: project"}}}, true, false); g != nil {
		t.Errorf("got %+v, want nothing remembered", g)
	}
	ask := &wire.ConfirmationRequest{Verdict: wire.Verdict{Level: "medium"}, Grants: []wire.Grant{
		{Scope: "session", Rule: "s-narrow"}, {Scope: "session", Rule: "s-wide"}, {Scope: "project", Rule: "reach: project"}, {Scope: "project", Rule: "p-narrow"}, {Scope: "project", Rule: "p-wide"},
	}}
	for _, c := range []struct {
		remember, similar bool
		want              string
	}{{false, false, ""}, {true, false, "p-narrow"}, {false, true, "s-wide"}, {true, true, "p-wide"}} {
		for _, level := range []string{"medium", "critical"} {
			ask.Verdict.Level = level
			rule := ""
			if g := grant(ask, c.remember, c.similar); g != nil {
				rule = g.Rule
			}
			if want := c.want; level == "medium" && rule != want || level == "critical" && rule != "" {
				t.Errorf("%s, %+v: got %q", level, c, rule)
			}
		}
	}
}

// H4: a command that is asked about once more, as when it was edited elsewhere or its folder changed, has another id in that question: a
// late or repeated answer to the first does not allow it.
func TestH4_AskedAgain(t *testing.T) {
	c, q, told := stage(t, "streaming")
	ask := func(id wire.ConfirmationID, command wire.OSString) *wire.ConfirmationRequest {
		return &wire.ConfirmationRequest{Event: of, ConfirmationID: id, ExecutionID: "e1", Tool: "bash", Command: command, Arguments: "{}", Verdict: wire.Verdict{Level: "high"}, Preview: wire.Preview{Type: "none"}}
	}
	deliver(c, q, ask("c1", "make"), &wire.ConfirmationResolved{Event: of, ConfirmationID: "c1"}, ask("c2", "rm -rf /"))
	if first, again := c.asked("e1"), c.asked("c2"); first == nil || first.ConfirmationID != "c1" || again == nil || again.ConfirmationID != "c2" {
		t.Errorf("got %+v, %+v", first, again)
	}
	if got := told(); len(got) != 2 || got[0]["execution_id"] != "e1" || got[1]["execution_id"] != "c2" {
		t.Errorf("got %v", got)
	}
}

// L28: each way for a query to fail is one stream.error, with the document's words and what happened, and one stream.complete.
func TestL28_StreamError(t *testing.T) {
	for _, c := range []struct {
		event           wire.EventMessage
		status, details string
		code            float64
	}{
		{&wire.AgentComplete{Event: of, Status: wire.StatusTimeout, ToolsExecuted: []string{}}, "timeout", "the turn took too long", codeTimeout},
		{&wire.AgentComplete{Event: of, Status: wire.StatusError, ToolsExecuted: []string{}}, "error", "the turn failed", codeInternal},
		{&wire.Error{Event: wire.Event{RequestID: "q-1"}, Code: wire.CodeModel, Message: "CUDA out of memory"}, "error", "CUDA out of memory", codeModel},
		{&wire.Error{Event: wire.Event{RequestID: "q-1"}, Code: wire.CodeCancelled, Message: "before it began"}, "cancelled", "", 0},
	} {
		k, q, told := stage(t)
		deliver(k, q, c.event)
		got := told()
		end := got[len(got)-1]
		if end["method"] != "stream.complete" || end["status"] != c.status {
			t.Errorf("%v: end %v", c.event, end)
		}
		if c.code == 0 && len(got) == 1 {
			continue
		}
		e, _ := got[0]["error"].(map[string]any)
		if len(got) != 2 || e["code"] != c.code || e["message"] != longTitles[int(c.code)] || !strings.Contains(e["details"].(string), c.details) {
			t.Errorf("%v: got %v", c.event, got)
		}
	}
}
