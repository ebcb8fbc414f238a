package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, script string) *scripted.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := scripted.Open(provider.Config{Name: "test", Model: "one", Script: path})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func user(text string) provider.Message {
	return provider.Message{Role: provider.User, Parts: []provider.Part{{Text: text}}}
}

func results(calls ...*provider.ToolCall) provider.Message {
	m := provider.Message{Role: provider.User}
	for _, c := range calls {
		m.Parts = append(m.Parts, provider.Part{ToolResult: &provider.ToolResult{CallID: c.ID, Content: "ok"}})
	}
	return m
}

func TestStepsFollowTheConversation(t *testing.T) {
	m := open(t, `[
	 {"match": "^deploy", "steps": [
	   {"reasoning": "hm", "text": "looking", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}, {"name": "read", "arguments": "not json"}]},
	   {"text": "all done"}]},
	 {"match": ".", "steps": [{"text": "other"}]}]`)
	req := provider.Request{Messages: []provider.Message{user("old"), {Role: provider.Assistant, Parts: []provider.Part{{Text: "x"}}}, user("deploy it")}}
	var texts []string
	resp, err := m.Stream(t.Context(), req, func(d provider.Delta) { texts = append(texts, string(d.Type)+":"+d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(texts, "|"), `reasoning:hm|text:looking|tool_call:{"command": "ls"}|tool_call:not json`; got != want {
		t.Errorf("deltas: got %q, want %q", got, want)
	}
	if resp.StopReason != provider.ToolUse || len(resp.Message.Parts) != 4 {
		t.Fatalf("got %+v", resp)
	}
	a, b := resp.Message.Parts[2].ToolCall, resp.Message.Parts[3].ToolCall
	if a.ID == b.ID || !json.Valid(a.Arguments) || string(b.Arguments) != "not json" {
		t.Errorf("calls: got %+v and %+v", a, b)
	}
	req.Messages = append(req.Messages, resp.Message, results(a, b))
	for _, want := range []string{"all done", "done", "done"} {
		resp, err = m.Stream(t.Context(), req, func(provider.Delta) {})
		if err != nil || resp.Message.Parts[0].Text != want || resp.StopReason != provider.EndTurn {
			t.Errorf("got %+v, %v, want %q", resp, err, want)
		}
		req.Messages = append(req.Messages, resp.Message)
	}
}

func TestNoScript(t *testing.T) {
	m := open(t, `[{"match": "x", "steps": []}]`)
	resp, err := m.Stream(t.Context(), provider.Request{Messages: []provider.Message{user("hello")}}, func(provider.Delta) {})
	if err != nil || resp.Message.Parts[0].Text != "no script for: hello" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestChunksKeepCharacters(t *testing.T) {
	m := open(t, `[{"match": "", "steps": [{"text": "aé日本x", "chunk_bytes": 2}]}]`)
	var got []string
	if _, err := m.Stream(t.Context(), provider.Request{Messages: []provider.Message{user("q")}}, func(d provider.Delta) { got = append(got, d.Text) }); err != nil {
		t.Fatal(err)
	}
	if j := strings.Join(got, "|"); j != "aé|日|本|x" {
		t.Errorf("got %q", j)
	}
}

func TestErrors(t *testing.T) {
	m := open(t, `{"context_window": 4000, "scripts": [
	 {"match": "broken", "steps": [{"text": "half", "error": "broken"}]},
	 {"match": "long", "steps": [{"text": "fits", "error": "context_too_long", "error_over_bytes": 50}]},
	 {"match": "busy", "steps": [{"error": "overloaded"}]}]}`)
	if m.Info().ContextWindow != 4000 {
		t.Errorf("window: got %d, want 4000", m.Info().ContextWindow)
	}
	for _, c := range []struct {
		prompt string
		kind   provider.ErrorKind
		text   string
	}{
		{"broken", provider.ErrBroken, "half"},
		{"busy", provider.ErrOverloaded, ""},
		{"long", "", "fits"},
		{"long " + strings.Repeat("x", 50), provider.ErrContextTooLong, ""},
	} {
		text := ""
		_, err := m.Stream(t.Context(), provider.Request{Messages: []provider.Message{user(c.prompt)}}, func(d provider.Delta) { text += d.Text })
		var kind provider.ErrorKind
		if pe, ok := errors.AsType[*provider.Error](err); ok {
			kind = pe.Kind
		}
		if kind != c.kind || text != c.text {
			t.Errorf("%s: got %q, %q (%v), want %q, %q", c.prompt, kind, text, err, c.kind, c.text)
		}
	}
}

func TestWaitFileAndCancel(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	m := open(t, `[{"match": "", "steps": [{"text": "through", "wait_file": "`+gate+`"}]}]`)
	req := provider.Request{Messages: []provider.Message{user("q")}}
	cause := errors.New("stopped by user")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err := m.Stream(ctx, req, func(provider.Delta) {}); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := m.Stream(t.Context(), req, func(provider.Delta) {})
	if err != nil || resp.Message.Parts[0].Text != "through" {
		t.Errorf("got %+v, %v", resp, err)
	}
}
