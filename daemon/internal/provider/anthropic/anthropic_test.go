package anthropic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve speaks the Messages API: handle answers the n-th POST; info answers the question for the model ("" = 404).
func serve(t *testing.T, info string, handle func(n int, w http.ResponseWriter, r *http.Request)) *providertest.Server {
	t.Helper()
	headers := func(r *http.Request) {
		if r.Header.Get("X-Api-Key") != "sk-ant-0123456789" || r.Header.Get("Anthropic-Version") == "" {
			t.Errorf("headers: got %v", r.Header)
		}
	}
	return providertest.Serve(t, "/v1/messages", func(w http.ResponseWriter, r *http.Request) {
		headers(r)
		switch {
		case !strings.HasPrefix(r.URL.Path, "/v1/models/"):
			t.Errorf("path: got %s", r.URL.Path)
		case info == "":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, info)
		}
	}, func(n int, w http.ResponseWriter, r *http.Request) {
		headers(r)
		handle(n, w, r)
	})
}

func open(s *providertest.Server, model string) (*Model, *[]time.Duration) {
	m := Open(provider.Config{Name: "anthropic", Kind: config.KindAnthropic, BaseURL: s.URL, APIKey: "sk-ant-0123456789", APIKeyEnv: "ANTHROPIC_API_KEY", Model: model, HTTP: s.Client()})
	var slept []time.Duration
	m.retry.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	return m, &slept
}

// sse writes events; each is JSON whose type is also the event's name.
func sse(w http.ResponseWriter, events ...string) {
	for _, e := range events {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(e), &head)
		providertest.Stream(w, "event: "+head.Type+"\ndata: "+e)
	}
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
	_, _ = w.Write(b)
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}`
	ping  = `{"type":"ping"}`
	stop  = `{"type":"message_stop"}`
)

func block(i int, content string, deltas ...string) []string {
	list := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, content)}
	for _, d := range deltas {
		list = append(list, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
	}
	return append(list, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func text(i int, s string) []string {
	return block(i, `{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s))
}

func end(reason string) []string {
	return []string{fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}}`, reason), stop}
}

var (
	prompt = providertest.Prompt
	run    = providertest.Ask
)

func TestStream(t *testing.T) {
	s := serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		events := []string{begin, ping}
		events = append(events, block(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"hmm"}`, `{"type":"signature_delta","signature":"SIG"}`)...)
		events = append(events, block(1, `{"type":"redacted_thinking","data":"XYZ"}`)...)
		events = append(events, text(2, "I look")...)
		events = append(events, block(3, `{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"command\":"}`, `{"type":"input_json_delta","partial_json":"\"ls\"}"}`)...)
		sse(w, append(events, end("tool_use")...)...)
	})
	m, _ := open(s, "claude-sonnet-4-5")
	resp, deltas, err := run(t, m, prompt("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reasoning:hmm", "text:I look", "tool_call:bash:", `tool_call:bash:{"command":`, `tool_call:bash:"ls"}`}; !slices.Equal(deltas, want) {
		t.Errorf("got %q, want %q", deltas, want)
	}
	parts := resp.Message.Parts
	if len(parts) != 4 || parts[0].Reasoning.Text != "hmm" || parts[2].Text != "I look" || string(parts[3].ToolCall.Arguments) != `{"command":"ls"}` || parts[3].ToolCall.ID != "toolu_1" {
		t.Fatalf("got %+v", parts)
	}
	u := resp.Usage
	if resp.StopReason != provider.ToolUse || u.Input != 25 || u.CacheRead != 100 || u.CacheWrite != 10 || u.Output != 15 {
		t.Errorf("got %+v", resp)
	}
	if want := (25*3 + 15*15 + 100*0.30 + 10*3.75) / 1e6; u.CostUSD == nil || *u.CostUSD != want {
		t.Errorf("cost: got %v, want %v", u.CostUSD, want)
	}

	// The thinking goes back with its signatures, before the call; results come first; marks stand on tools, system, the end and where
	// the request before ended.
	req := prompt("hi")
	req.Tools = []provider.ToolSpec{{Name: "read", Description: "r", Schema: json.RawMessage(`{"properties":{},"type":"object"}`)}, {Name: "bash", Description: "runs", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"additionalProperties":false}`)}}
	req.Messages = append(req.Messages, resp.Message, provider.Message{Role: provider.User, Parts: []provider.Part{
		{Text: "and then?"}, {ToolResult: &provider.ToolResult{CallID: "toolu_1", Content: "a.txt", IsError: true}},
	}})
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(s.Requests[1]["messages"])
	want := `[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hi","type":"text"}],"role":"user"},` +
		`{"content":[{"signature":"SIG","thinking":"hmm","type":"thinking"},{"data":"XYZ","type":"redacted_thinking"},{"text":"I look","type":"text"},{"id":"toolu_1","input":{"command":"ls"},"name":"bash","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"content":[{"text":"a.txt","type":"text"}],"is_error":true,"tool_use_id":"toolu_1","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"and then?","type":"text"}],"role":"user"}]`
	if string(b) != want {
		t.Errorf("messages:\ngot  %s\nwant %s", b, want)
	}
	b, _ = json.Marshal([]any{s.Requests[1]["system"], s.Requests[1]["tools"], s.Requests[1]["stream"], s.Requests[1]["max_tokens"]})
	want = `[[{"cache_control":{"type":"ephemeral"},"text":"be brief","type":"text"}],` +
		`[{"description":"r","input_schema":{"properties":{},"type":"object"},"name":"read"},{"cache_control":{"type":"ephemeral"},"description":"runs","input_schema":{"additionalProperties":false,"properties":{"command":{"type":"string"}},"type":"object"},"name":"bash"}],true,32000]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestForeignHistory(t *testing.T) {
	s := serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	})
	m, _ := open(s, "claude-sonnet-4-5")
	req := prompt("hi")
	req.Messages = append(
		req.Messages,
		provider.Message{Role: provider.Assistant, Parts: []provider.Part{
			{Reasoning: &provider.Reasoning{Text: "x", Signature: "openai:reasoning_content"}},
			{Text: "  "},
			{ToolCall: &provider.ToolCall{ID: "call_1_2", Name: "bash", Arguments: json.RawMessage(`{"x":1}`)}},
		}},
		provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "call_1_2", Content: "r"}}}},
		provider.Message{Role: provider.Assistant, Parts: []provider.Part{{Text: ""}}},
		provider.Message{Role: provider.User, Parts: []provider.Part{{Text: "go on"}}},
	)
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(s.Requests[0]["messages"].([]any)[1:3])
	want := `[{"content":[{"id":"call_1_2","input":{"x":1},"name":"bash","type":"tool_use"}],"role":"assistant"},{"content":[{"content":[{"text":"r","type":"text"}],"is_error":false,"tool_use_id":"call_1_2","type":"tool_result"}],"role":"user"}]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]provider.StopReason{
		"end_turn": provider.EndTurn, "stop_sequence": provider.EndTurn, "max_tokens": provider.MaxTokens, "refusal": provider.Refusal,
		"model_context_window_exceeded": provider.MaxTokens, "pause_turn": provider.EndTurn,
	} {
		s := serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
			sse(w, slices.Concat([]string{begin}, text(0, "ok"), end(reason))...)
		})
		m, _ := open(s, "m")
		if resp, _, err := run(t, m, prompt("q")); err != nil || resp.StopReason != want {
			t.Errorf("%s: got %v, %v, want %v", reason, resp.StopReason, err, want)
		}
	}
}

func TestCutOffCallKeepsWhatWasWritten(t *testing.T) {
	s := serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, slices.Concat([]string{begin}, block(0, `{"type":"tool_use","id":"t","name":"write","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"path\": \"a"}`), end("max_tokens"))...)
	})
	m, _ := open(s, "m")
	resp, _, err := run(t, m, prompt("q"))
	if err != nil || string(resp.Message.Parts[0].ToolCall.Arguments) != `{"path": "a` || resp.StopReason != provider.MaxTokens {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// A stream without its end is no answer: it is asked for again, what was shown is void, and one that breaks each time is an error.
func TestBrokenStreams(t *testing.T) {
	hijack := func(w http.ResponseWriter) { providertest.Reset(t, w) }
	half := append([]string{begin}, text(0, "half")[:2]...)
	for _, c := range []struct {
		name  string
		shows bool
		f     func(w http.ResponseWriter)
	}{
		{"ends in a block", true, func(w http.ResponseWriter) { sse(w, half...) }},
		{"ends without message_stop", true, func(w http.ResponseWriter) {
			sse(w, slices.Concat([]string{begin}, text(0, "half"), end("end_turn")[:1])...)
		}},
		{"no stop reason", true, func(w http.ResponseWriter) {
			sse(w, slices.Concat([]string{begin}, text(0, "half"), []string{stop})...)
		}},
		{"reset", true, func(w http.ResponseWriter) { sse(w, half...); hijack(w) }},
		{"not JSON", true, func(w http.ResponseWriter) {
			sse(w, half...)
			_, _ = io.WriteString(w, "event: content_block_delta\ndata: {oops\n\n")
		}},
		{"half an event", true, func(w http.ResponseWriter) {
			sse(w, half...)
			_, _ = io.WriteString(w, "event: content_block_delta\ndata: {\"type\":\"content_bl")
		}},
		{"error event", true, func(w http.ResponseWriter) {
			sse(w, append(slices.Clip(half), `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`)...)
		}},
		{"unknown error event", true, func(w http.ResponseWriter) {
			sse(w, append(slices.Clip(half), `{"type":"error","error":{"type":"new_error","message":"worker died"}}`)...)
		}},
		{"within a call", true, func(w http.ResponseWriter) {
			sse(w, slices.Concat([]string{begin}, block(0, `{"type":"tool_use","id":"t","name":"half","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"path\": \"a"}`)[:1])...)
			hijack(w)
		}},
		{"nothing at all", false, func(w http.ResponseWriter) { sse(w) }},
		{"reset before the first word", false, hijack},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
				if n < 3 {
					c.f(w)
					return
				}
				sse(w, slices.Concat([]string{begin}, text(0, "whole"), end("end_turn"))...)
			})
			m, slept := open(s, "m")
			resp, deltas, err := run(t, m, prompt("q"))
			if err != nil || len(resp.Message.Parts) != 1 || resp.Message.Parts[0].Text != "whole" || s.Count() != 3 || len(*slept) != 2 {
				t.Fatalf("got %+v, %v after %d calls", resp, err, s.Count())
			}
			if !reflect.DeepEqual(s.Requests[0], s.Requests[2]) {
				t.Errorf("the request was changed: %v", s.Requests[2])
			}
			if got := len(deltas); c.shows && (got != 5 || !strings.Contains(deltas[0], "half") || !strings.HasPrefix(deltas[1], "void:") || deltas[4] != "text:whole") || !c.shows && got != 1 {
				t.Errorf("got %q", deltas)
			}

			s = serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) { c.f(w) })
			m, _ = open(s, "m")
			_, deltas, err = run(t, m, prompt("q"))
			pe, ok := errors.AsType[*provider.Error](err)
			if !ok || pe.Kind != provider.ErrBroken && c.name != "error event" || s.Count() != 4 || pe.Hint() == "" {
				t.Errorf("got %v (%T) after %d calls and %q, want broken after 4", err, err, s.Count(), deltas)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status        int
		kind, message string
		header        string
		want          provider.ErrorKind
		calls         int
	}{
		{401, "authentication_error", "invalid x-api-key sk-ant-0123456789", "", provider.ErrAuth, 1},
		{403, "permission_error", "no", "", provider.ErrAuth, 1},
		{404, "not_found_error", "model: m", "", provider.ErrNotFound, 1},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "", provider.ErrContextTooLong, 1},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "", provider.ErrContextTooLong, 1},
		{413, "request_too_large", "Request exceeds the maximum size", "", provider.ErrContextTooLong, 1},
		{400, "invalid_request_error", "messages: at least one message is required", "", provider.ErrInvalid, 1},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "", provider.ErrAuth, 1},
		{429, "rate_limit_error", "slow down", "", provider.ErrOverloaded, 4},
		{429, "rate_limit_error", "slow down", "601", provider.ErrOverloaded, 1},
		{529, "overloaded_error", "Overloaded", "", provider.ErrOverloaded, 4},
		{500, "api_error", "oops", "", provider.ErrOverloaded, 4},
	} {
		t.Run(fmt.Sprint(c.status, c.want), func(t *testing.T) {
			s := serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				fail(w, c.status, c.kind, c.message)
			})
			m, _ := open(s, "m")
			_, _, err := run(t, m, prompt("q"))
			pe, ok := errors.AsType[*provider.Error](err)
			if !ok || pe.Kind != c.want || s.Count() != c.calls {
				t.Fatalf("got %v (%+v) after %d calls, want %s after %d", err, pe, s.Count(), c.want, c.calls)
			}
			if strings.Contains(err.Error(), "0123456789") || strings.Contains(err.Error(), "http://") {
				t.Errorf("not clean: %q", err)
			}
		})
	}
}

func TestOverloadedInTheStream(t *testing.T) {
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	// Before anything was shown it is tried again.
	s := serve(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			sse(w, begin, overloaded)
			return
		}
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	})
	m, slept := open(s, "m")
	if resp, _, err := run(t, m, prompt("q")); err != nil || resp.Message.Parts[0].Text != "ok" || len(*slept) != 1 {
		t.Errorf("got %+v, %v, waits %v", resp, err, *slept)
	}
	// Afterwards too.
	s = serve(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, slices.Concat([]string{begin}, text(0, "half"), []string{overloaded})...)
	})
	m, _ = open(s, "m")
	_, _, err := run(t, m, prompt("q"))
	if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrOverloaded || s.Count() != 4 || pe.Message != "Overloaded" {
		t.Errorf("got %v after %d calls", err, s.Count())
	}
}

func TestCancelAtOnce(t *testing.T) {
	cause := errors.New("stopped by user")
	for _, events := range [][]string{nil, append([]string{begin}, text(0, "one")[:2]...)} {
		began := make(chan struct{})
		s := serve(t, "", func(_ int, w http.ResponseWriter, r *http.Request) {
			if events != nil {
				sse(w, events...)
			}
			close(began)
			<-r.Context().Done()
		})
		m, _ := open(s, "m")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-began; cancel(cause) }()
		start := time.Now()
		_, err := m.Stream(ctx, prompt("q"), func(provider.Delta) {})
		if !errors.Is(err, cause) || time.Since(start) > 20*time.Second {
			t.Errorf("got %v after %v, want the cause at once", err, time.Since(start))
		}
	}
}

func TestSilenceIsBroken(t *testing.T) {
	s := serve(t, "", func(_ int, w http.ResponseWriter, r *http.Request) {
		sse(w, append([]string{begin}, text(0, "one")[:2]...)...)
		<-r.Context().Done()
	})
	m, _ := open(s, "m")
	m.retry.Silence, m.retry.Tries = 30*time.Millisecond, 1
	_, _, err := run(t, m, prompt("q"))
	if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrBroken || !errors.Is(err, provider.ErrStalled) {
		t.Errorf("got %v", err)
	}
}

func TestLimitsAndThinkingOfTheModel(t *testing.T) {
	ok := func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	}
	info := func(adaptive bool) string {
		return fmt.Sprintf(`{"type":"model","id":"m","max_input_tokens":1000000,"max_tokens":128000,"capabilities":{"thinking":{"supported":true,"types":{"adaptive":{"supported":%v},"enabled":{"supported":%v}}}}}`, adaptive, !adaptive)
	}
	for _, c := range []struct {
		model, info, thinking string
		window                int
		want                  string
	}{
		{"claude-new-9", info(true), "high", 1_000_000, `{"display":"summarized","type":"adaptive"}`},
		{"claude-new-9", info(false), "low", 1_000_000, `{"budget_tokens":2048,"type":"enabled"}`},
		{"claude-opus-5", "", "medium", 1_000_000, `{"display":"summarized","type":"adaptive"}`},
		{"claude-opus-5", "", "", 1_000_000, `null`},
		{"claude-opus-5", "", "off", 1_000_000, `{"type":"disabled"}`},
		{"other", "", "", provider.DefaultContextWindow, `null`},
	} {
		s := serve(t, c.info, ok)
		m, _ := open(s, c.model)
		req, temp := prompt("q"), 0.5
		req.Thinking, req.Temperature = c.thinking, &temp
		if _, _, err := run(t, m, req); err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(s.Requests[0]["thinking"])
		if string(b) != c.want || m.Info().ContextWindow != c.window {
			t.Errorf("%s %q: got %s, %d, want %s, %d", c.model, c.thinking, b, m.Info().ContextWindow, c.want, c.window)
		}
		if thinking := c.thinking != "" && c.thinking != "off"; (s.Requests[0]["temperature"] == nil) != thinking {
			t.Errorf("%s %q: temperature %v", c.model, c.thinking, s.Requests[0]["temperature"])
		}
	}
}

func TestRefusedFormsAreLearned(t *testing.T) {
	s := serve(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			fail(w, 400, "invalid_request_error", "adaptive thinking is not supported on this model")
			return
		}
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	})
	m, slept := open(s, "proxy-model")
	req := prompt("q")
	req.Thinking = "low"
	if _, _, err := run(t, m, req); err != nil || len(*slept) != 0 {
		t.Fatal(err, *slept)
	}
	if b, _ := json.Marshal(s.Requests[1]["thinking"]); string(b) != `{"budget_tokens":2048,"type":"enabled"}` {
		t.Errorf("got %s", b)
	}
}

// Claude Fable always thinks and refuses to be asked not to, so that each summary and each request with thinking off failed; what it
// said of adaptive thinking was even taken for a refusal of that.
func TestThinkingThatCannotBeOff(t *testing.T) {
	s := serve(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			fail(w, 400, "invalid_request_error", `"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.`)
			return
		}
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	})
	m, _ := open(s, "claude-fable-5")
	for _, thinking := range []string{"off", "high"} {
		req := prompt("q")
		req.Thinking = thinking
		if _, _, err := run(t, m, req); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{1: "null", 2: `{"display":"summarized","type":"adaptive"}`} {
		if b, _ := json.Marshal(s.Requests[i]["thinking"]); want != "" && string(b) != want {
			t.Errorf("request %d: got %s, want %s", i, b, want)
		}
	}
}

func TestNoKeyReadsNoEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-from-environment")
	m := Open(provider.Config{Name: "anthropic", Kind: config.KindAnthropic, Model: "m", APIKeyEnv: "ANTHROPIC_API_KEY"})
	_, _, err := run(t, m, prompt("q"))
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok || pe.Kind != provider.ErrAuth || !strings.Contains(pe.Hint(), "ANTHROPIC_API_KEY") || m.Info().Loaded {
		t.Errorf("got %v, %+v", err, m.Info())
	}
}

// Images are blocks beside the text, in the prompt and in a tool's result; a model that takes none is known after its
// refusal.
func TestImages(t *testing.T) {
	s := serve(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			fail(w, 400, "invalid_request_error", "this model does not support image input (ref: 1)") // Ollama's Messages API
			return
		}
		sse(w, slices.Concat([]string{begin}, text(0, "ok"), end("end_turn"))...)
	})
	m, slept := open(s, "m")
	if _, _, err := run(t, m, providertest.Pictured()); err != nil || m.Info().NoImages {
		t.Fatal(err, m.Info())
	}
	messages := s.Requests[0]["messages"].([]any)
	content := func(i int) []any { return messages[i].(map[string]any)["content"].([]any) }
	pic := func(name string) map[string]any {
		return map[string]any{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString([]byte("\x89PNG" + name))}
	}
	if got := content(0); len(got) != 3 || !reflect.DeepEqual(got[2].(map[string]any)["source"], pic("a.png")) || got[2].(map[string]any)["type"] != "image" {
		t.Errorf("prompt: got %v", got)
	}
	result := content(2)[0].(map[string]any)
	parts := result["content"].([]any)
	if len(parts) != 2 || parts[0].(map[string]any)["text"] != "[the image b.png]" || !reflect.DeepEqual(parts[1].(map[string]any)["source"], pic("b.png")) ||
		result["cache_control"] == nil {
		t.Errorf("result: got %v", result)
	}
	_, _, err := run(t, m, providertest.Pictured())
	if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrImages || !m.Info().NoImages || len(*slept) != 0 {
		t.Errorf("got %v, %+v", err, m.Info())
	}
}
