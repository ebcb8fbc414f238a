package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/providertest"
)

func openResponses(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) (*Model, *providertest.Server) {
	t.Helper()
	s := providertest.Serve(t, "/responses", http.NotFound, handle)
	m := Open(provider.Config{Name: "openai", Kind: config.KindOpenAI, API: "responses", BaseURL: s.URL + "/v1", APIKey: "sk-test-0123456789", Model: "gpt-5", ContextWindow: 1000, HTTP: s.Client()})
	m.retry.Sleep = noSleep
	return m, s
}

const reasoningItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look first."}],"encrypted_content":"SEALED"}`

// Reasoning goes back encrypted within the turn in hand, and is gone in the next; nothing is kept at the provider.
func TestResponses(t *testing.T) {
	m, s := openResponses(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 1 {
			providertest.Stream(w, data(`{"type":"response.output_text.delta","delta":"Done."}`), data(`{"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":1}}}`))
			return
		}
		providertest.Stream(w, "event: response.created", data(`{"type":"response.created","response":{"status":"in_progress"}}`),
			data(`{"type":"response.output_item.added","item":{"id":"rs_1","type":"reasoning","summary":[]}}`),
			data(`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","delta":"Look first."}`),
			data(`{"type":"response.output_item.done","item":%s}`, reasoningItem),
			data(`{"type":"response.output_text.delta","item_id":"m","delta":"I look."}`),
			data(`{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"bash","arguments":""}}`),
			data(`{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{\"command\":"}`),
			data(`{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"\"ls\"}"}`),
			data(`{"type":"response.output_item.done","item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls\"}"}}`),
			data(`{"type":"response.completed","response":{"usage":{"input_tokens":100,"output_tokens":7,"input_tokens_details":{"cached_tokens":60}}}}`))
	})
	req := prompt("hi")
	req.Thinking = "low"
	req.Tools = []provider.ToolSpec{{Name: "bash", Description: "runs", Schema: json.RawMessage(`{"type":"object"}`)}}
	resp, deltas, err := run(t, m, req)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reasoning:Look first.", "text:I look.", "tool_call:bash:", `tool_call:bash:{"command":`, `tool_call:bash:"ls"}`}; !slices.Equal(deltas, want) {
		t.Errorf("got %q, want %q", deltas, want)
	}
	parts := resp.Message.Parts
	if len(parts) != 3 || parts[0].Reasoning.Text != "Look first." || parts[1].Text != "I look." || parts[2].ToolCall.ID != "call_1" || string(parts[2].ToolCall.Arguments) != `{"command":"ls"}` {
		t.Fatalf("got %+v", parts)
	}
	if u := resp.Usage; resp.StopReason != provider.ToolUse || u.Input != 40 || u.CacheRead != 60 || u.Output != 7 {
		t.Errorf("got %+v", resp)
	}
	first, _ := json.Marshal(s.Requests[0])
	if want := `{"include":["reasoning.encrypted_content"],"input":[{"content":[{"text":"hi","type":"input_text"}],"role":"user"}],"instructions":"be brief","model":"gpt-5",` +
		`"reasoning":{"effort":"low","summary":"auto"},"store":false,"stream":true,"tools":[{"description":"runs","name":"bash","parameters":{"type":"object"},"strict":false,"type":"function"}]}`; string(first) != want {
		t.Errorf("got  %s\nwant %s", first, want)
	}

	req.Messages = append(req.Messages, resp.Message, provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "call_1", Content: "a.txt"}}}})
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	input, _ := json.Marshal(s.Requests[1]["input"])
	if want := `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"},` +
		`{"encrypted_content":"SEALED","id":"rs_1","summary":[{"text":"Look first.","type":"summary_text"}],"type":"reasoning"},` +
		`{"content":[{"text":"I look.","type":"output_text"}],"role":"assistant"},{"arguments":"{\"command\":\"ls\"}","call_id":"call_1","name":"bash","type":"function_call"},` +
		`{"call_id":"call_1","output":"a.txt","type":"function_call_output"}]`; string(input) != want {
		t.Errorf("got  %s\nwant %s", input, want)
	}
	req.Messages = append(req.Messages, provider.Message{Role: provider.Assistant, Parts: []provider.Part{{Text: "Done."}}}, provider.Message{Role: provider.User, Parts: []provider.Part{{Text: "more"}}})
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	for _, item := range s.Requests[2]["input"].([]any) {
		if item.(map[string]any)["type"] == "reasoning" {
			t.Errorf("reasoning of an earlier turn went back: %v", item)
		}
	}
}

// How an answer of the Responses API ends is known by its last event; without one it is broken.
func TestResponsesEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		last string
		stop provider.StopReason
		kind provider.ErrorKind
	}{
		"cut":      {`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, provider.MaxTokens, ""},
		"filtered": {`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`, provider.Refusal, ""},
		"broken":   {`{"type":"response.in_progress"}`, "", provider.ErrBroken},
		"failed":   {`{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window"}}}`, "", provider.ErrContextTooLong},
		"error":    {`{"type":"error","code":"invalid_prompt","message":"no"}`, "", provider.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := openResponses(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				providertest.Stream(w, data(`{"type":"response.output_text.delta","delta":"Hal"}`), data("%s", tt.last))
			})
			resp, _, err := run(t, m, prompt("q"))
			pe, _ := errors.AsType[*provider.Error](err)
			if tt.kind == "" && (err != nil || resp.StopReason != tt.stop) || tt.kind != "" && (pe == nil || pe.Kind != tt.kind) {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}

// A call that comes whole, without a beginning and pieces, is made like any other.
func TestResponsesWholeCall(t *testing.T) {
	m, _ := openResponses(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		providertest.Stream(w, data(`{"type":"response.output_item.done","item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}}`),
			data(`{"type":"response.completed","response":{}}`))
	})
	resp, deltas, err := run(t, m, prompt("q"))
	if err != nil || resp.StopReason != provider.ToolUse || len(resp.Message.Parts) != 1 || resp.Message.Parts[0].ToolCall.Name != "bash" || !slices.Equal(deltas, []string{"tool_call:bash:"}) {
		t.Errorf("got %+v, %q, %v", resp, deltas, err)
	}
}

// A model that cannot encrypt its reasoning, or does not think, is asked without.
func TestResponsesQuirks(t *testing.T) {
	m, s := openResponses(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error"}}`)
		case 2:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","type":"invalid_request_error"}}`)
		default:
			providertest.Stream(w, data(`{"type":"response.output_text.delta","delta":"ok"}`), data(`{"type":"response.completed","response":{}}`))
		}
	})
	req := prompt("q")
	req.Thinking = "high"
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	if last := s.Requests[2]; last["include"] != nil || last["reasoning"] != nil {
		t.Errorf("got %v", last)
	}
}

// No model takes each of none and minimal, and some take neither. The newer ones refused the request of every summary, and every one
// with thinking off.
func TestResponsesWithoutThinking(t *testing.T) {
	refused := func(w http.ResponseWriter, value string) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"message":"Unsupported value: '`+value+`' is not supported with the 'gpt-5' model. Supported values are: 'minimal', 'none', and 'high'.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_value"}}`)
	}
	for _, supported := range []string{"none", "minimal", ""} {
		var m *Model
		var s *providertest.Server
		m, s = openResponses(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if asked, ok := s.Requests[n-1]["reasoning"].(map[string]any); ok && asked["effort"] != supported && asked["effort"] != "high" {
				refused(w, asked["effort"].(string))
				return
			}
			providertest.Stream(w, data(`{"type":"response.output_text.delta","delta":"ok"}`), data(`{"type":"response.completed","response":{}}`))
		})
		for _, thinking := range []string{"off", "high"} {
			req := prompt("q")
			req.Thinking = thinking
			if _, _, err := run(t, m, req); err != nil {
				t.Errorf("supports %q, thinking %s: %v", supported, thinking, err)
			}
		}
		if last := s.Requests[len(s.Requests)-1]; last["reasoning"] == nil {
			t.Errorf("supports %q: the level high is left out: %v", supported, last)
		}
	}
}

func noSleep(context.Context, time.Duration) error { return nil }
