package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers chat completions with what handle writes, and everything else with what it has in paths.
func serve(t *testing.T, paths map[string]string, handle func(n int, w http.ResponseWriter, r *http.Request)) *providertest.Server {
	t.Helper()
	return providertest.Serve(t, "/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, ok := paths[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	}, handle)
}

func open(t *testing.T, s *providertest.Server) (*Model, *[]time.Duration) {
	t.Helper()
	m := Open(provider.Config{Name: "local", Kind: config.KindOpenAI, BaseURL: s.URL + "/v1", APIKey: "sk-test-0123456789", Model: "m", HTTP: s.Client()})
	var slept []time.Duration
	m.retry.Sleep = func(ctx context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	return m, &slept
}

func data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) }

func text(s string) string {
	b, _ := json.Marshal(s)
	return data(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, b)
}

func finish(reason string) string {
	return data(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

const done = "data: [DONE]"

var (
	prompt = providertest.Prompt
	run    = providertest.Ask
	sse    = providertest.Stream
)

func TestStreamsTextReasoningUsage(t *testing.T) {
	s := serve(t, nil, func(_ int, w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer sk-test-0123456789" {
			t.Errorf("authorization: got %q", got)
		}
		sse(w, ": OPENROUTER PROCESSING", data(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"let me see"}}]}`),
			text("Hello"), text(" world"), finish("stop"),
			data(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}}`), done)
	})
	m, _ := open(t, s)
	resp, deltas, err := run(t, m, prompt("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reasoning:let me see", "text:Hello", "text: world"}; !slices.Equal(deltas, want) {
		t.Errorf("got %q, want %q", deltas, want)
	}
	if resp.StopReason != provider.EndTurn || resp.Usage.Input != 40 || resp.Usage.CacheRead != 60 || resp.Usage.Output != 7 {
		t.Errorf("got %+v", resp)
	}
	req := s.Requests[0]
	if req["stream"] != true || req["stream_options"].(map[string]any)["include_usage"] != true || req["model"] != "m" {
		t.Errorf("request: %v", req)
	}
	// Reasoning goes back within the turn in hand, and not in the next one.
	again := prompt("hi")
	again.Messages = append(again.Messages, resp.Message, provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "x", Content: "r"}}}})
	if got := m.request(again).Messages[2].ReasoningContent; got != "let me see" {
		t.Errorf("same turn: got %q", got)
	}
	again.Messages = append(again.Messages, provider.Message{Role: provider.User, Parts: []provider.Part{{Text: "next"}}})
	if got := m.request(again).Messages[2].ReasoningContent; got != "" {
		t.Errorf("next turn: got %q", got)
	}
}

func TestToolCalls(t *testing.T) {
	piece := func(s string) string { return data(`{"choices":[{"delta":{"tool_calls":[%s]}}]}`, s) }
	for _, c := range []struct {
		name   string
		lines  []string
		finish string
		want   []string // "name args"
	}{
		{"pieces", []string{
			piece(`{"index":0,"id":"a","type":"function","function":{"name":"bash","arguments":""}}`),
			piece(`{"index":0,"function":{"arguments":"{\"command\":"}}`), piece(`{"index":0,"function":{"arguments":"\"ls\"}"}}`),
			piece(`{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}`),
		}, "tool_calls", []string{`bash {"command":"ls"}`, `read {}`}},
		{"interleaved", []string{
			piece(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"a\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"b\""}}`),
			piece(`{"index":1,"function":{"arguments":":2}"}}`), piece(`{"index":0,"function":{"arguments":":1}"}}`),
		}, "tool_calls", []string{`x {"a":1}`, `y {"b":2}`}},
		{"whole, all numbered 0 (Google)", []string{
			piece(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`), piece(`{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}`),
		}, "stop", []string{`x {}`, `y {}`}},
		{"no ids, no index", []string{
			piece(`{"function":{"name":"x","arguments":"{\"q\":1}"}}`), piece(`{"function":{"name":"x","arguments":"{\"q\":2}"}}`),
		}, "stop", []string{`x {"q":1}`, `x {"q":2}`}},
		{"arguments as an object", []string{piece(`{"index":0,"function":{"name":"x","arguments":{"q":1}}}`)}, "tool_calls", []string{`x {"q":1}`}},
		{"no arguments", []string{piece(`{"index":0,"id":"a","function":{"name":"x"}}`)}, "tool_calls", []string{`x {}`}},
		{"id and name in each piece", []string{
			piece(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"q\""}}`), piece(`{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}`),
			piece(`{"index":0,"id":"a","function":{"name":"x","arguments":""}}`),
		}, "tool_calls", []string{`x {"q":1}`}},
		{"one id for two, numbered", []string{
			piece(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"q\""}},{"index":1,"id":"a","function":{"name":"x","arguments":"{\"q\""}}`),
			piece(`{"index":1,"id":"a","function":{"arguments":":2}"}}`), piece(`{"index":0,"id":"a","function":{"arguments":":1}"}}`),
		}, "tool_calls", []string{`x {"q":1}`, `x {"q":2}`}},
		{"one id for two, whole", []string{
			piece(`{"id":"a","function":{"name":"x","arguments":"{\"q\":1}"}}`), piece(`{"id":"a","function":{"name":"x","arguments":"{\"q\":2}"}}`),
		}, "tool_calls", []string{`x {"q":1}`, `x {"q":2}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
				sse(w, append(c.lines, finish(c.finish), done)...)
			})
			m, _ := open(t, s)
			resp, _, err := run(t, m, prompt("go"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			ids := map[string]bool{}
			for _, p := range resp.Message.Parts {
				if p.ToolCall == nil {
					t.Fatalf("part %+v", p)
				}
				ids[p.ToolCall.ID] = true
				got = append(got, p.ToolCall.Name+" "+string(p.ToolCall.Arguments))
			}
			if !slices.Equal(got, c.want) || len(ids) != len(c.want) || ids[""] || resp.StopReason != provider.ToolUse {
				t.Errorf("got %q ids %v %s, want %q", got, ids, resp.StopReason, c.want)
			}
		})
	}
}

// Google refuses its own calls without the signature that came with them; another back end must not see it.
func TestThoughtSignatureGoesBack(t *testing.T) {
	s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}]}}]}`), finish("tool_calls"), done)
	})
	m, _ := open(t, s)
	resp, _, err := run(t, m, prompt("go"))
	if err != nil {
		t.Fatal(err)
	}
	req := prompt("go")
	req.Messages = append(req.Messages, resp.Message)
	if got := string(m.request(req).Messages[2].ToolCalls[0].ExtraContent); got != `{"google":{"thought_signature":"S"}}` {
		t.Errorf("got %q", got)
	}
	other := Open(provider.Config{Kind: config.KindGoogle, APIKey: "k"})
	if got := other.request(req).Messages[2].ToolCalls[0].ExtraContent; got != nil {
		t.Errorf("foreign signature: got %q", got)
	}
}

func TestConversationOnTheWire(t *testing.T) {
	m := Open(provider.Config{Name: "x", Kind: config.KindOpenAI, APIKey: "k", Model: "gpt-5"})
	n := 5
	b, err := json.Marshal(m.request(provider.Request{
		System: "sys", MaxTokens: &n, Thinking: "high", Tools: []provider.ToolSpec{{Name: "bash", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []provider.Message{
			{Role: provider.User, Parts: []provider.Part{{Text: "a"}, {Text: "b"}}},
			{Role: provider.Assistant, Parts: []provider.Part{
				{Reasoning: &provider.Reasoning{Text: "foreign", Signature: "anthropic:zzz"}},
				{ToolCall: &provider.ToolCall{ID: "1", Name: "bash", Arguments: json.RawMessage(`{"x":1}`)}},
			}},
			{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "1", Content: "out"}}, {Text: "and"}}},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"gpt-5","messages":[{"role":"system","content":"sys"},{"role":"user","content":"a\n\nb"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"bash","arguments":"{\"x\":1}"}}]},` +
		`{"role":"tool","content":"out","tool_call_id":"1"},{"role":"user","content":"and"}],` +
		`"tools":[{"type":"function","function":{"name":"bash","description":"d","parameters":{"type":"object"}}}],` +
		`"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":5,"reasoning_effort":"high"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]provider.StopReason{"stop": provider.EndTurn, "length": provider.MaxTokens, "content_filter": provider.Refusal, "eos": provider.EndTurn} {
		s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) { sse(w, text("x"), finish(reason)) }) // no [DONE]: some leave it out
		m, _ := open(t, s)
		if resp, _, err := run(t, m, prompt("q")); err != nil || resp.StopReason != want {
			t.Errorf("%s: got %v, %v, want %v", reason, resp.StopReason, err, want)
		}
	}
}

// A truncated stream is no answer: it is asked for again, what was shown is void, and a stream that breaks each time is an error.
func TestBrokenStreams(t *testing.T) {
	hijack := func(w http.ResponseWriter) { providertest.Reset(t, w) }
	for _, c := range []struct {
		name  string
		shows bool
		f     func(w http.ResponseWriter)
	}{
		{"ends without a reason", true, func(w http.ResponseWriter) { sse(w, text("half")) }},
		{"done without a reason", true, func(w http.ResponseWriter) { sse(w, text("half"), done) }},
		{"connection reset", true, func(w http.ResponseWriter) { sse(w, text("half")); hijack(w) }},
		{"not JSON", true, func(w http.ResponseWriter) { sse(w, text("half"), "data: {oops") }},
		{"half an event", true, func(w http.ResponseWriter) {
			sse(w, text("half"))
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"con`)
		}},
		{"finish reason error", true, func(w http.ResponseWriter) { sse(w, text("half"), finish("error")) }},
		{"error event", true, func(w http.ResponseWriter) { sse(w, text("half"), data(`{"error":{"message":"worker died"}}`)) }},
		{"within a call", true, func(w http.ResponseWriter) {
			sse(w, data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"half","arguments":"{\"pa"}}]}}]}`))
			hijack(w)
		}},
		{"empty body", false, func(w http.ResponseWriter) { sse(w) }},
		{"reset before the first word", false, hijack},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, nil, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n < 3 {
					c.f(w)
					return
				}
				sse(w, text("whole"), finish("stop"), done)
			})
			m, slept := open(t, s)
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

			s = serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) { c.f(w) })
			m, _ = open(t, s)
			_, deltas, err = run(t, m, prompt("q"))
			pe, ok := errors.AsType[*provider.Error](err)
			if !ok || pe.Kind != provider.ErrBroken || s.Count() != 4 || pe.Hint() == "" {
				t.Errorf("got %v after %d calls and %q, want broken after 4", err, s.Count(), deltas)
			}
			// What is said of it must be true: without a word there is no middle.
			if !c.shows && strings.Contains(err.Error(), "in the middle") {
				t.Errorf("got %q of an answer without a word", err)
			}
		})
	}
}

// A base_url without its path, or a proxy's log-in page: said at once, and not tried again.
func TestWebPage(t *testing.T) {
	s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>log in</html>")
	})
	m, _ := open(t, s)
	_, _, err := run(t, m, prompt("q"))
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok || pe.Kind != provider.ErrNotFound || s.Count() != 1 || !strings.Contains(pe.Message, "a web page answers at 127.0.0.1:") || !strings.Contains(pe.Hint(), "base_url") {
		t.Errorf("got %v after %d calls, want a web page after 1", err, s.Count())
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		body   string
		kind   provider.ErrorKind
		calls  int
		says   string
	}{
		{401, "", `{"error":{"message":"Incorrect API key provided: sk-test-0123456789.","type":"invalid_request_error","code":"invalid_api_key"}}`, provider.ErrAuth, 1, "provided: …."},
		{404, "", `{"error":{"message":"model 'm' not found","type":"api_error"}}`, provider.ErrNotFound, 1, "not found"},
		{400, "", `{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}`, provider.ErrContextTooLong, 1, "4096"},
		{400, "", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}`, provider.ErrContextTooLong, 1, ""},
		{400, "", `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, provider.ErrContextTooLong, 1, ""},
		{400, "", `{"error":"bad tools"}`, provider.ErrInvalid, 1, "bad tools (HTTP 400)"},
		{413, "", "<html>Request Entity Too Large</html>", provider.ErrContextTooLong, 1, "Too Large"},
		{422, "", `{"detail":[{"msg":"field required"}]}`, provider.ErrInvalid, 1, "field required"},
		{429, "", `{"error":{"message":"slow down"}}`, provider.ErrOverloaded, 4, "slow down"},
		{429, "Retry-After: 600", `{"error":{"message":"slow down"}}`, provider.ErrOverloaded, 1, "asks to wait 10m0s"},
		{429, "", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}`, provider.ErrAuth, 1, ""},
		{503, "", "<html>\x1b[31mbusy</html>", provider.ErrOverloaded, 4, "<html>busy</html>"},
		{500, "", "", provider.ErrOverloaded, 4, "internal server error"},
	} {
		t.Run(fmt.Sprint(c.status, c.kind), func(t *testing.T) {
			s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
				if name, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			m, _ := open(t, s)
			_, _, err := run(t, m, prompt("q"))
			pe, ok := errors.AsType[*provider.Error](err)
			if !ok || pe.Kind != c.kind || s.Count() != c.calls || !strings.Contains(pe.Message, c.says) {
				t.Fatalf("got %v (%+v) after %d calls, want %s after %d", err, pe, s.Count(), c.kind, c.calls)
			}
			if strings.Contains(err.Error(), "sk-test") || strings.ContainsRune(err.Error(), 0x1b) {
				t.Errorf("not clean: %q", err)
			}
		})
	}
}

// L32: what may pass by itself is tried again here, and only what does not reaches a client.
func TestRetriesThenAnswers(t *testing.T) {
	s := serve(t, nil, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		sse(w, text("ok"), finish("stop"), done)
	})
	m, slept := open(t, s)
	resp, _, err := run(t, m, prompt("q"))
	if err != nil || resp.Message.Parts[0].Text != "ok" || len(*slept) != 2 || (*slept)[0] < 2*time.Second {
		t.Errorf("got %+v, %v after waits %v", resp, err, *slept)
	}
}

func TestErrorsInsideTheStream(t *testing.T) {
	for _, c := range []struct {
		lines []string
		kind  provider.ErrorKind
		calls int
	}{
		{[]string{text("x"), data(`{"error":{"message":"Overloaded","type":"overloaded_error"}}`)}, provider.ErrOverloaded, 4},
		{[]string{"event: error\n" + data(`{"error":{"message":"the model crashed","type":"server_error"}}`)}, provider.ErrOverloaded, 4},
		{[]string{data(`{"error":"context length exceeded"}`)}, provider.ErrContextTooLong, 1},
		{[]string{data(`{"id":"1","choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"Provider disconnected"}}]}`)}, provider.ErrBroken, 4},
		{[]string{data(`{"error":{"message":"bad image","type":"invalid_request_error"}}`)}, provider.ErrInvalid, 1},
	} {
		s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) { sse(w, c.lines...) })
		m, _ := open(t, s)
		_, _, err := run(t, m, prompt("q"))
		pe, ok := errors.AsType[*provider.Error](err)
		if !ok || pe.Kind != c.kind || s.Count() != c.calls {
			t.Errorf("%q: got %v (%T) after %d calls, want %s after %d", c.lines, err, err, s.Count(), c.kind, c.calls)
		}
	}
}

func TestCancelAtOnce(t *testing.T) {
	cause := errors.New("stopped by user")
	for _, first := range []bool{true, false} {
		began := make(chan struct{})
		s := serve(t, nil, func(_ int, w http.ResponseWriter, r *http.Request) {
			if !first {
				sse(w, text("one"))
			}
			close(began)
			<-r.Context().Done() // a stream that says nothing more
		})
		m, _ := open(t, s)
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
	s := serve(t, nil, func(_ int, w http.ResponseWriter, r *http.Request) {
		sse(w, text("one"))
		<-r.Context().Done()
	})
	m, _ := open(t, s)
	m.retry.Silence, m.retry.Tries = 30*time.Millisecond, 1
	_, _, err := run(t, m, prompt("q"))
	if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrBroken || !errors.Is(err, provider.ErrStalled) || !strings.Contains(pe.Hint(), "silence") {
		t.Errorf("got %v", err)
	}
}

// roundTrip is a connection to a server that answers from the same process, so that its time is synctest's.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// What a server sends to keep the connection open is a sign of life, though nothing to show.
func TestCommentsAreNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
			if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}
			}
			body, answer := io.Pipe()
			go func() {
				for range 10 {
					time.Sleep(provider.SilenceLimit - time.Second)
					io.WriteString(answer, ": OPENROUTER PROCESSING\n\n") //nolint:errcheck // the test sees an answer that is not read
				}
				io.WriteString(answer, text("ok")+"\n\n"+finish("stop")+"\n\n"+done+"\n\n") //nolint:errcheck // as above
				answer.Close()
			}()
			return &http.Response{StatusCode: http.StatusOK, Body: body}
		})}
		m := Open(provider.Config{Name: "remote", Kind: config.KindOpenAI, BaseURL: "https://model.example/v1", Model: "m", HTTP: client})
		m.retry.Tries = 1
		if _, deltas, err := run(t, m, prompt("q")); err != nil || !slices.Equal(deltas, []string{"text:ok"}) {
			t.Errorf("got %q, %v", deltas, err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	m := Open(provider.Config{Name: "ollama", Kind: config.KindOpenAI, BaseURL: "http://" + l.Addr().String() + "/v1", Model: "m", HTTP: &http.Client{Transport: &http.Transport{}}})
	m.retry.Sleep = noSleep
	_, _, err = run(t, m, prompt("q"))
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok || pe.Kind != provider.ErrUnreachable || !strings.Contains(pe.Message, l.Addr().String()) || pe.Hint() == "" {
		t.Errorf("got %v", err)
	}
}

func TestNoKey(t *testing.T) {
	m := Open(provider.Config{Name: "openai", Kind: config.KindOpenAI, Model: "gpt-5", APIKeyEnv: "OPENAI_API_KEY"})
	_, _, err := run(t, m, prompt("q"))
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok || pe.Kind != provider.ErrAuth || !strings.Contains(pe.Hint(), "OPENAI_API_KEY") || m.Info().Loaded {
		t.Errorf("got %v, %+v", err, m.Info())
	}
}

// Images are parts with a data URL; those of a tool's result follow it as the user's, for a result is text. What a server
// says that takes none is known for what it is, and not tried again.
func TestImages(t *testing.T) {
	refusal, status := "", 0
	s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if refusal != "" {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": refusal, "code": status}})
			return
		}
		sse(w, text("ok"), finish("stop"), done)
	})
	m, _ := open(t, s)
	if _, _, err := run(t, m, providertest.Pictured()); err != nil || m.Info().NoImages {
		t.Fatal(err, m.Info())
	}
	url := func(name string) any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG"+name))}}
	}
	words := func(s string) any { return map[string]any{"type": "text", "text": s} }
	messages := s.Requests[0]["messages"].([]any)[1:]
	want := []any{
		map[string]any{"role": "user", "content": []any{words("what is it?"), words("a.png:"), url("a.png")}},
		messages[1],
		map[string]any{"role": "tool", "tool_call_id": "c1", "content": "[the image b.png]"},
		map[string]any{"role": "user", "content": []any{words("The image that the tool gave, b.png (PNG, 3×2):"), url("b.png")}},
	}
	if !reflect.DeepEqual(messages, want) {
		t.Errorf("got %v\nwant %v", messages, want)
	}
	for _, c := range []struct {
		status  int
		refusal string
	}{
		{400, "Invalid content type. image_url is only supported by certain models."},
		{404, "No endpoints found that support image input"},
		{500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"},
		{500, `Failed to parse messages: Unsupported content part type: "image_url"; messages = […]`},
		{400, "/config/models/instruct is not a multimodal model"},
		{400, "this model does not support image input (ref: b8bd630e)"},
		{400, "Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line 1 column 114708"},
		{422, "Failed to deserialize the JSON body into the target type: messages[1]: data did not match any variant of untagged enum ChatCompletionRequestContent at line 1 column 18231"},
		{400, "Model does not support images. Please use a model that does."},
	} {
		m, slept := open(t, s)
		refusal, status = c.refusal, c.status
		_, _, err := run(t, m, providertest.Pictured())
		if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrImages || !m.Info().NoImages || len(*slept) != 0 || !strings.Contains(pe.Hint(), "images = false") {
			t.Errorf("%d %s: got %v, %+v", c.status, c.refusal, err, m.Info())
		}
	}
	// A refusal of one image is not one of all.
	m, _ = open(t, s)
	refusal, status = "Invalid image data: could not decode", 400
	_, _, err := run(t, m, providertest.Pictured())
	if pe, ok := errors.AsType[*provider.Error](err); !ok || !pe.AboutImage() || m.Info().NoImages {
		t.Errorf("got %v, %+v", err, m.Info())
	}
	if m := Open(provider.Config{Name: "local", Kind: config.KindOpenAI, Model: "m", NoImages: true}); !m.Info().NoImages {
		t.Error("the settings are not heeded")
	}
}
