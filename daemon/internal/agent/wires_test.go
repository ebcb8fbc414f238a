package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/open"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
)

// refusing answers each request with an error and keeps the body of the newest question.
type refusing struct{ body []byte }

func (c *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		c.body = body
	}
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
}

// A wireMessage is what the rules of the three APIs are about: the messages of Anthropic's and of chat completions, and the items of
// the Responses API.
type wireMessage struct {
	Role, Type, Output string
	Content            json.RawMessage
	ToolCalls          []struct {
		ID       string
		Function struct{ Arguments string }
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	CallID     string `json:"call_id"`
	Arguments  string
}

type wireBlock struct {
	Type, Text, ID string
	Input          map[string]any
	ToolUseID      string `json:"tool_use_id"`
	Content        []wireBlock
}

// acceptable reports what a provider's API would refuse in a request; nil if nothing.
func acceptable(ctx context.Context, req provider.Request) error {
	for _, api := range []struct {
		kind, api string
		check     func(thinks bool, messages []wireMessage) error
	}{
		{config.KindAnthropic, "", acceptableToAnthropic},
		{config.KindOpenAI, "chat", acceptableToChat},
		{config.KindOpenAI, "responses", acceptableToResponses},
	} {
		asked := &refusing{}
		m, err := open.Open(provider.Config{Name: "p", Kind: api.kind, API: api.api, Model: "claude-sonnet-4-5", APIKey: "k", BaseURL: "http://x/v1", HTTP: &http.Client{Transport: asked}})
		if err != nil {
			return err
		}
		if _, err := m.Stream(ctx, req, func(provider.Delta) {}); err == nil {
			return errors.New("nothing was refused")
		}
		var body struct {
			Messages, Input []wireMessage
			Thinking        struct{ Type string }
		}
		if err := json.Unmarshal(asked.body, &body); err != nil {
			return fmt.Errorf("%w: %s", err, asked.body)
		}
		if err := api.check(body.Thinking.Type == "enabled", append(body.Messages, body.Input...)); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", api.kind, api.api, err, asked.body)
		}
	}
	return nil
}

var anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// acceptableToAnthropic holds a request to the rules of the Messages API: no blank text, each call answered at the beginning of the
// next message, and, where a model thinks, an answer that goes on after its calls began with thinking.
func acceptableToAnthropic(thinks bool, messages []wireMessage) error {
	var open map[string]bool
	begins := ""
	for i, m := range messages {
		var blocks []wireBlock
		if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) == 0 {
			return fmt.Errorf("message %d has no blocks (%w)", i, err)
		}
		if i == 0 && m.Role != "user" || i == len(messages)-1 && m.Role != "user" {
			return fmt.Errorf("message %d is the model's", i)
		}
		calls, other := map[string]bool{}, false
		for _, b := range blocks {
			switch b.Type {
			case "text":
				other = true
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Errorf("message %d has blank text", i)
				}
			case "tool_use":
				if !anthropicID.MatchString(b.ID) || calls[b.ID] || b.Input == nil {
					return fmt.Errorf("message %d has the call %+v", i, b)
				}
				calls[b.ID] = true
			case "tool_result":
				if !open[b.ToolUseID] || other || len(b.Content) == 0 || strings.TrimSpace(b.Content[0].Text) == "" {
					return fmt.Errorf("message %d has the result %+v", i, b)
				}
				delete(open, b.ToolUseID)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d does not answer %v", i, open)
		}
		if open = calls; m.Role == "assistant" && begins == "" {
			begins = blocks[0].Type
		} else if m.Role == "user" && blocks[0].Type != "tool_result" {
			begins = ""
		}
	}
	if thinks && begins != "" && !strings.HasSuffix(begins, "thinking") {
		return fmt.Errorf("the answer that goes on began with %s", begins)
	}
	return nil
}

// acceptableToChat holds a request to the rules of chat completions: each call is answered right after its message.
func acceptableToChat(_ bool, messages []wireMessage) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d answers no call", i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d does not answer %v", i, open)
		}
		if string(m.Content) == "null" && len(m.ToolCalls) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || open[c.ID] || !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Errorf("message %d has the call %+v", i, c)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 || messages[len(messages)-1].Role == "assistant" {
		return fmt.Errorf("it ends with %s, and without answers to %v", messages[len(messages)-1].Role, open)
	}
	return nil
}

// acceptableToResponses holds a request to the rules of the Responses API: each call has one answer after it, and reasoning is
// followed by what it led to.
func acceptableToResponses(_ bool, items []wireMessage) error {
	open := map[string]bool{}
	for i, m := range items {
		switch m.Type {
		case "function_call":
			if m.CallID == "" || open[m.CallID] || !json.Valid([]byte(m.Arguments)) {
				return fmt.Errorf("item %d is the call %+v", i, m)
			}
			open[m.CallID] = true
		case "function_call_output":
			if !open[m.CallID] {
				return fmt.Errorf("item %d answers no call", i)
			}
			delete(open, m.CallID)
		case "reasoning":
			if next := items[min(i+1, len(items)-1)]; next.Type != "function_call" && next.Type != "reasoning" && next.Role != "assistant" {
				return fmt.Errorf("item %d is reasoning that leads to nothing", i)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v is not answered", open)
	}
	return nil
}

// anyAnswer is an answer of one of the providers: thinking of its own form, text, calls.
func anyAnswer(t *rapid.T) step {
	s := step{text: rapid.SampledFrom([]string{"", "", "word", " \n", "two\n\nlines\n"}).Draw(t, "text")}
	for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
		s.calls = append(s.calls, calling(fmt.Sprint("call", i), "sh", rapid.SampledFrom([]string{`{"command":"ls"}`, `{}`, `broken`, ``}).Draw(t, "arguments")))
	}
	if s.reasoning = rapid.SampledFrom([]string{"", "hm"}).Draw(t, "reasoning"); s.reasoning != "" {
		s.signature = rapid.SampledFrom([]string{
			"", "x:y", provider.Seal(config.KindAnthropic, "sig"), provider.Seal(config.KindOpenAI, `item {"type":"reasoning","id":"r","encrypted_content":"e"}`),
			provider.Seal(config.KindOpenAI, "reasoning_content"),
		}).Draw(t, "signature")
	}
	return s
}

// Each request of a session is one that each provider accepts, whichever answered before, and however its turns ended: by themselves, by
// a cancel, or with their daemon, which may be killed at any event.
func TestRequestsAreAlwaysAcceptable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec := &recorder{}
		for n := range rapid.IntRange(1, 4).Draw(rt, "turns") {
			ctx, cancel := context.WithCancel(t.Context())
			sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
				if rapid.IntRange(0, 9).Draw(rt, "cancels") == 0 {
					cancel()
				}
				return tool.Result{Content: rapid.SampledFrom([]string{"", "out", "\n"}).Draw(rt, "output")}, nil
			}}
			var steps []step
			for range rapid.IntRange(1, 4).Draw(rt, "answers") {
				steps = append(steps, anyAnswer(rt))
			}
			model := newModel(append(steps, step{text: "end"})...)
			turn := Turn{Model: model, Prompt: rapid.SampledFrom([]string{"", "go", " "}).Draw(rt, "prompt"), Tools: []tool.Tool{sh}}
			turn.Options.Thinking = rapid.SampledFrom([]string{"", "off", "high"}).Draw(rt, "thinking")
			rec.turn = ""
			begun := len(rec.events)
			rec.play(ctx, turn)
			cancel()
			if rapid.Bool().Draw(rt, "killed") {
				rec.events = rec.events[:rapid.IntRange(begun+1, len(rec.events)-1).Draw(rt, "events")]
				for _, end := range (store.Unfinished{TurnID: rec.turn, Agent: Orchestrator}).Ends(rec.events, "daemon restarted") {
					rec.emit(end)
				}
			}
			for i, req := range model.requests() {
				if err := acceptable(t.Context(), req); err != nil {
					rt.Fatalf("turn %d, request %d: %v", n, i, err)
				}
			}
			if rapid.Bool().Draw(rt, "folds") {
				done, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(step{text: "It went well."})})
				if err != nil {
					rt.Fatal(err)
				}
				rec.emit(done)
			}
		}
	})
}
