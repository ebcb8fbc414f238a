package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"sublet/client/internal/gateway/gatewaytest"
)

// TestMain is also what runs in the editor's terminals.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "show" {
		status, err := Show(context.Background(), os.Args[2], os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(status)
	}
	if len(os.Args) == 2 && os.Args[1] == "mcp" { // an editor's server
		_ = greeter().Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type (
	scene = gatewaytest.Scene
	step  = gatewaytest.Step
	call  = gatewaytest.Call
)

var bash = gatewaytest.Bash

var common = []scene{
	{Match: "^say$", Steps: []step{{Reasoning: "thinking it over", Text: "hello there", ChunkBytes: 4}}},
	{Match: "^slow$", Steps: []step{{Waits: "waiting 2s before try 2 of 4", Text: "well"}}},
	{Match: "^tool$", Steps: []step{{Text: "looking", ToolCalls: []call{bash("echo tool-ran")}}, {Text: "ok"}}},
	{Match: "^write$", Steps: []step{{ToolCalls: []call{{Name: "write", Arguments: map[string]any{"path": "made.txt", "content": "two\n"}}}}, {Text: "ok"}}},
	{Match: "^plan$", Steps: []step{{ToolCalls: []call{{Name: "todo", Arguments: map[string]any{"todos": []map[string]string{
		{"text": "first", "status": "done"}, {"text": "second", "status": "in_progress"}, {"text": "third", "status": "pending"},
	}}}}}, {Text: "ok"}}},
	{Match: "^endless$", Steps: []step{{Text: strings.Repeat("word ", 5000), ChunkBytes: 5, ChunkMS: 20}}},
	{Match: "^auth$", Steps: []step{{Error: "auth"}}},
	{Match: "@.*note.txt", Steps: []step{{Text: "linked"}}},
	{Match: "embedded words", Steps: []step{{Text: "embedded"}}},
}

// editor is the SDK's client side, as an editor has it.
type editor struct {
	t    testing.TB
	conn *sdk.ClientSideConnection
	over chan error

	mu      sync.Mutex
	updates []sdk.SessionUpdate
	asked   []sdk.RequestPermissionRequest
	first   chan struct{} // closed at the first update
	once    sync.Once
	answer  func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome

	can   bool // it has terminals
	terms terminals
}

var _ sdk.Client = (*editor)(nil)

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	e.once.Do(func() { close(e.first) })
	return nil
}

func (e *editor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.asked = append(e.asked, p)
	answer := e.answer
	e.mu.Unlock()
	return sdk.RequestPermissionResponse{Outcome: answer(ctx, p)}, nil
}

var errNotHere = errors.New("not in this test")

func (e *editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return sdk.ReadTextFileResponse{}, errNotHere
}

func (e *editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return sdk.WriteTextFileResponse{}, errNotHere
}

func start(t testing.TB, w *gatewaytest.World, change ...func(*editor)) *editor {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &editor{t: t, over: make(chan error, 1), first: make(chan struct{})}
	e.answer = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return sdk.NewRequestPermissionOutcomeSelected("allow")
	}
	for _, f := range change {
		f(e)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.over <- Serve(context.Background(), Options{
			Daemon: w.Daemon(), In: inR, Out: outW, Show: []string{os.Args[0], "show"}, Runtime: filepath.Dir(w.Paths.Socket),
		})
		outW.Close()
	}()
	e.conn = sdk.NewClientSideConnection(e, inW, outR)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		inW.Close()
		<-done
		<-e.conn.Done()
	})
	r, err := e.conn.Initialize(t.Context(), sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber, ClientCapabilities: sdk.ClientCapabilities{Terminal: e.can},
	})
	if err != nil || r.ProtocolVersion != 1 || !r.AgentCapabilities.LoadSession || !r.AgentCapabilities.PromptCapabilities.EmbeddedContext || r.AgentInfo.Name != "sublet" {
		t.Fatalf("initialize: %+v, %v", r, err)
	}
	return e
}

func (e *editor) open(w *gatewaytest.World) sdk.SessionId {
	e.t.Helper()
	r, err := e.conn.NewSession(e.t.Context(), sdk.NewSessionRequest{Cwd: w.Project, McpServers: []sdk.McpServer{}})
	if err != nil || r.SessionId == "" || r.Modes == nil || r.Modes.CurrentModeId != "ask" {
		e.t.Fatalf("session/new: %+v, %v", r, err)
	}
	return r.SessionId
}

// prompt plays one turn and returns its updates.
func (e *editor) prompt(id sdk.SessionId, blocks ...sdk.ContentBlock) (sdk.PromptResponse, []sdk.SessionUpdate, error) {
	e.t.Helper()
	e.mu.Lock()
	e.updates = nil
	e.mu.Unlock()
	r, err := e.conn.Prompt(e.t.Context(), sdk.PromptRequest{SessionId: id, Prompt: blocks})
	e.mu.Lock()
	defer e.mu.Unlock()
	return r, slices.Clone(e.updates), err
}

func text(updates []sdk.SessionUpdate) string {
	var b strings.Builder
	for _, u := range updates {
		if u.AgentMessageChunk != nil {
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

func TestEditor(t *testing.T) {
	w := gatewaytest.New(t, common)
	run := func(name string, f func(t *testing.T, e *editor)) {
		t.Run(name, func(t *testing.T) { f(t, start(t, w)) })
	}
	run("text and thoughts stream, the answer comes after them", func(t *testing.T, e *editor) {
		r, updates, err := e.prompt(e.open(w), sdk.TextBlock("say"))
		if err != nil || r.StopReason != sdk.StopReasonEndTurn || text(updates) != "hello there" {
			t.Errorf("got %+v %v %q", r, err, text(updates))
		}
		if !slices.ContainsFunc(updates, func(u sdk.SessionUpdate) bool { return u.AgentThoughtChunk != nil }) {
			t.Error("no thought")
		}
	})
	run("a wait for the provider is a thought", func(t *testing.T, e *editor) {
		id := e.open(w)
		r, updates, err := e.prompt(id, sdk.TextBlock("slow"))
		isWait := func(u sdk.SessionUpdate) bool {
			return u.AgentThoughtChunk != nil && u.AgentThoughtChunk.Content.Text.Text == "waiting 2s before try 2 of 4\n\n"
		}
		if err != nil || r.StopReason != sdk.StopReasonEndTurn || text(updates) != "well" || !slices.ContainsFunc(updates, isWait) {
			t.Errorf("got %+v %v %+v", r, err, updates)
		}
		later := start(t, w)
		if _, err := later.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: w.Project, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatal(err)
		}
		later.mu.Lock()
		defer later.mu.Unlock()
		if slices.ContainsFunc(later.updates, isWait) {
			t.Error("a wait that is over is told again")
		}
	})
	run("a session that is loaded several times at once is opened once", func(t *testing.T, e *editor) { // goleak finds a second connection
		id := start(t, w).open(w)
		gatewaytest.Crowd(t, 8, func(int) error {
			_, err := e.conn.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: w.Project, McpServers: []sdk.McpServer{}})
			return err
		})
		if r, updates, err := e.prompt(id, sdk.TextBlock("say")); err != nil || r.StopReason != sdk.StopReasonEndTurn || text(updates) != "hello there" {
			t.Errorf("got %+v %v %q", r, err, text(updates))
		}
	})
	run("a tool's call and its end", func(t *testing.T, e *editor) {
		_, updates, err := e.prompt(e.open(w), sdk.TextBlock("tool"))
		if err != nil {
			t.Fatal(err)
		}
		var began *sdk.SessionUpdateToolCall
		var ended *sdk.SessionToolCallUpdate
		for _, u := range updates {
			if u.ToolCall != nil {
				began = u.ToolCall
			}
			if u.ToolCallUpdate != nil {
				ended = u.ToolCallUpdate
			}
		}
		if began == nil || ended == nil || began.ToolCallId != ended.ToolCallId || began.Kind != sdk.ToolKindExecute || began.Title != "`echo tool-ran`" {
			t.Fatalf("got %+v %+v", began, ended)
		}
		if raw, _ := ended.RawOutput.(map[string]any); raw["output"] != "tool-ran\n" || raw["exitCode"] != 0.0 || raw["status"] != "success" {
			t.Errorf("raw: %v", ended.RawOutput)
		}
		if *ended.Status != sdk.ToolCallStatusCompleted || !strings.Contains(ended.Content[0].Content.Content.Text.Text, "tool-ran") {
			t.Errorf("got %+v", ended)
		}
	})
	run("a write is asked for with its diff, and the standing grants", func(t *testing.T, e *editor) {
		path := filepath.Join(w.Project, "made.txt")
		if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		id := e.open(w)
		_, updates, err := e.prompt(id, sdk.TextBlock("write"))
		if err != nil {
			t.Fatal(err)
		}
		if len(e.asked) != 1 || e.asked[0].Options[0].Kind != sdk.PermissionOptionKindAllowOnce || len(e.asked[0].Options) < 3 ||
			!strings.Contains(fmt.Sprint(e.asked[0].ToolCall.Content[0].Content.Content.Text.Text), "Risk: medium") {
			t.Errorf("asked: %+v", e.asked)
		}
		i := slices.IndexFunc(updates, func(u sdk.SessionUpdate) bool { return u.ToolCall != nil })
		d := updates[i].ToolCall.Content[0].Diff
		if d == nil || d.Path != path || d.NewText != "two\n" || d.OldText == nil || *d.OldText != "one\n" {
			t.Errorf("diff: %+v", d)
		}
		if got, _ := os.ReadFile(path); string(got) != "two\n" {
			t.Errorf("file: %q", got)
		}
		if at := updates[i].ToolCall.Locations; len(at) != 1 || at[0].Path != path || updates[i].ToolCall.RawInput.(map[string]any)["content"] != "two\n" {
			t.Errorf("call: %+v", updates[i].ToolCall)
		}
		// Told again, the paths are absolute too, which the protocol asks, and what the file held before is not made up.
		other := start(t, w)
		if _, err := other.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: w.Project, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatal(err)
		}
		other.mu.Lock()
		defer other.mu.Unlock()
		i = slices.IndexFunc(other.updates, func(u sdk.SessionUpdate) bool { return u.ToolCall != nil })
		if c := other.updates[i].ToolCall; c.Content[0].Diff.Path != path || c.Content[0].Diff.OldText != nil || c.Locations[0].Path != path {
			t.Errorf("loaded: %+v", c)
		}
	})
	run("a refusal, and an option that was not offered", func(t *testing.T, e *editor) {
		id := e.open(w)
		for _, option := range []sdk.PermissionOptionId{"deny", "always-99", "anything"} {
			if err := os.WriteFile(filepath.Join(w.Project, "made.txt"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			e.mu.Lock()
			e.answer = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
				return sdk.NewRequestPermissionOutcomeSelected(option)
			}
			e.mu.Unlock()
			r, updates, err := e.prompt(id, sdk.TextBlock("write"))
			if err != nil || r.StopReason != sdk.StopReasonEndTurn {
				t.Fatalf("%s: %+v %v", option, r, err)
			}
			if got, _ := os.ReadFile(filepath.Join(w.Project, "made.txt")); string(got) != "old" {
				t.Errorf("%s: it ran", option)
			}
			last := updates[len(updates)-2].ToolCallUpdate
			if last == nil || *last.Status != sdk.ToolCallStatusFailed {
				t.Errorf("%s: got %+v", option, updates)
			}
		}
	})
	run("a standing permission is not asked for again", func(t *testing.T, e *editor) {
		id := e.open(w)
		e.mu.Lock()
		e.answer = func(_ context.Context, p sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
			return sdk.NewRequestPermissionOutcomeSelected(p.Options[1].OptionId)
		}
		e.mu.Unlock()
		for range 2 {
			if _, _, err := e.prompt(id, sdk.TextBlock("write")); err != nil {
				t.Fatal(err)
			}
		}
		if len(e.asked) != 1 || e.asked[0].Options[1].Kind != sdk.PermissionOptionKindAllowAlways {
			t.Errorf("asked %d times: %+v", len(e.asked), e.asked)
		}
	})
	run("the plan", func(t *testing.T, e *editor) {
		_, updates, err := e.prompt(e.open(w), sdk.TextBlock("plan"))
		i := slices.IndexFunc(updates, func(u sdk.SessionUpdate) bool { return u.Plan != nil })
		if err != nil || i < 0 {
			t.Fatalf("got %+v %v", updates, err)
		}
		var got []string
		for _, p := range updates[i].Plan.Entries {
			got = append(got, p.Content+" "+string(p.Status))
		}
		if want := []string{"first completed", "second in_progress", "third pending"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	run("cancel is answered with its stop reason", func(t *testing.T, e *editor) {
		id := e.open(w)
		go func() {
			<-e.first
			_ = e.conn.Cancel(context.WithoutCancel(t.Context()), sdk.CancelNotification{SessionId: id})
		}()
		if r, _, err := e.prompt(id, sdk.TextBlock("endless")); err != nil || r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("got %+v %v", r, err)
		}
	})
	run("cancel while the user is asked", func(t *testing.T, e *editor) {
		id := e.open(w)
		e.mu.Lock()
		e.answer = func(ctx context.Context, _ sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
			_ = e.conn.Cancel(ctx, sdk.CancelNotification{SessionId: id})
			return sdk.NewRequestPermissionOutcomeCancelled()
		}
		e.mu.Unlock()
		if r, _, err := e.prompt(id, sdk.TextBlock("write")); err != nil || r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("got %+v %v", r, err)
		}
	})
	run("a model that fails is an error with its reason", func(t *testing.T, e *editor) {
		_, _, err := e.prompt(e.open(w), sdk.TextBlock("auth"))
		if err == nil || !strings.Contains(err.Error(), "scripted auth") {
			t.Errorf("got %v", err)
		}
	})
	run("links and embedded texts", func(t *testing.T, e *editor) {
		id := e.open(w)
		path := filepath.Join(w.Project, "note.txt")
		if err := os.WriteFile(path, []byte("words"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, updates, err := e.prompt(id, sdk.TextBlock("look at"), sdk.ResourceLinkBlock("note.txt", "file://"+path))
		if err != nil || text(updates) != "linked" {
			t.Errorf("link: got %q %v", text(updates), err)
		}
		res := sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///x.txt", Text: "embedded words"}}
		if _, updates, err = e.prompt(id, sdk.ResourceBlock(res)); err != nil || text(updates) != "embedded" {
			t.Errorf("embedded: got %q %v", text(updates), err)
		}
		if _, _, err = e.prompt(id, sdk.AudioBlock("aaaa", "audio/wav")); err == nil {
			t.Error("sound was taken")
		}
	})
	run("list, load, resume, close", func(t *testing.T, e *editor) {
		id := e.open(w)
		if _, _, err := e.prompt(id, sdk.TextBlock("tool")); err != nil {
			t.Fatal(err)
		}
		list, err := e.conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &w.Project})
		if err != nil || !slices.ContainsFunc(list.Sessions, func(s sdk.SessionInfo) bool { return s.SessionId == id && *s.Title == "tool" }) {
			t.Errorf("list: %+v %v", list, err)
		}
		elsewhere := "/"
		if list, err := e.conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &elsewhere}); err != nil || len(list.Sessions) != 0 {
			t.Errorf("of another folder: %+v %v", list, err)
		}
		if _, err := e.conn.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, _, err := e.prompt(id, sdk.TextBlock("say")); err == nil {
			t.Error("a closed session took a prompt")
		}
		other := start(t, w)
		if _, err := other.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: w.Project, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatalf("load: %v", err)
		}
		other.mu.Lock()
		replayed := slices.Clone(other.updates)
		other.mu.Unlock()
		if len(replayed) < 4 || replayed[0].UserMessageChunk == nil || replayed[0].UserMessageChunk.Content.Text.Text != "tool" || text(replayed) != "lookingok" {
			t.Errorf("load: got %+v", replayed)
		}
		for _, update := range replayed {
			if c := update.ToolCall; c != nil && (c.Kind != sdk.ToolKindExecute || c.Title != "`echo tool-ran`") {
				t.Errorf("load: got %+v", c)
			}
		}
		if _, updates, err := other.prompt(id, sdk.TextBlock("say")); err != nil || text(updates) != "hello there" {
			t.Errorf("after the load: %q %v", text(updates), err)
		}
		if _, err := start(t, w).conn.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: w.Project}); err != nil {
			t.Errorf("resume: %v", err)
		}
		if _, err := other.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "none", Cwd: w.Project, McpServers: []sdk.McpServer{}}); err == nil {
			t.Error("a session that is not there was loaded")
		}
		if _, err := other.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "relative", McpServers: []sdk.McpServer{}}); err == nil {
			t.Error("a relative folder was taken")
		}
	})
	run("modes", func(t *testing.T, e *editor) {
		id := e.open(w)
		if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "plan"}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.prompt(id, sdk.TextBlock("write")); err != nil || len(e.asked) != 0 {
			t.Errorf("in plan mode: asked %v, %v", e.asked, err)
		}
		if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "full"}); err == nil {
			t.Error("full was taken")
		}
	})
}

// the SDK gives a connection up at a long line and says nothing to what is not a message; the gate does not.
func TestHostileLines(t *testing.T) {
	w := gatewaytest.New(t, common)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		d := w.Daemon()
		d.Limits.MessageBytes = 10_000
		done <- Serve(context.Background(), Options{Daemon: d, In: inR, Out: outW})
		outW.Close()
	}()
	out := bufio.NewReader(outR)
	for _, c := range []struct {
		line string
		code float64
	}{
		{`{`, -32700},
		{"\xff\xfe", -32700},
		{`[]`, -32600},
		{`7`, -32600},
		{`{}`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, -32600},
		{`{"a":"` + strings.Repeat("x", 20000) + `"}`, -32600},
		{strings.Repeat("[", 5000), -32700},
		{`{"jsonrpc":"2.0","id":1,"method":"dance"}`, -32601},
		{`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":7}}`, -32602},
		{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"none","prompt":[]}}`, -32602},
	} {
		if _, err := io.WriteString(inW, c.line+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Error struct{ Code float64 } }
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error.Code != c.code {
			t.Errorf("%.60q: got %s, want code %v", c.line, line, c.code)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEachEditOfACallIsADiff(t *testing.T) {
	edit := func(from, to string) map[string]any { return map[string]any{"old": from, "new": to} }
	single := edit("a", "b")
	single["path"] = "/w/f"
	several := map[string]any{"path": "/w/f", "edits": []any{edit("a", "b"), edit("c", "d")}}
	if got := (&session{}).diff("edit", single); len(got) != 1 || got[0].Diff.NewText != "b" {
		t.Errorf("single: got %+v", got)
	}
	if got := (&session{}).diff("edit", several); len(got) != 2 || *got[1].Diff.OldText != "c" || got[1].Diff.NewText != "d" {
		t.Errorf("several: got %+v", got)
	}
}
