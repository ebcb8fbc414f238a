package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A standIn is the model of an agent of another program: a server of this machine that speaks what such agents speak, and leaves
// each answer to the test.
type standIn struct {
	*httptest.Server
	t     *testing.T
	asked chan *question // those that offer our tool, or the agent's own one; others are answered with a word
	own   string         // the name of that
	calls atomic.Int64
}

// question is a request to the model.
type question struct {
	protocol
	body    string
	stream  bool
	tools   []toolName
	results []string // what the calls so far gave, in the order of the calls
	answer  chan answer
	over    <-chan struct{} // the agent no longer waits
}

// toolName is how an agent names a tool; Codex has names in two parts.
type toolName struct{ namespace, name string }

// answer is text, or a call of a tool.
type answer struct {
	text      string
	tool      toolName
	id        string
	arguments map[string]any
}

// protocol is one way to ask a model.
type protocol struct {
	path  string // a part of the request's path
	read  func(q *question, body object)
	write func(a answer) []object // the events of a stream; the last one is the whole answer where no stream was asked for
}

type object = map[string]any

func newStandIn(t *testing.T) *standIn {
	s := &standIn{t: t, asked: make(chan *question, 16)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// ServeHTTP implements http.Handler.
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var body object
	if err != nil || json.Unmarshal(text, &body) != nil {
		http.NotFound(w, r)
		return
	}
	for _, p := range protocols {
		if !strings.Contains(r.URL.Path, p.path) {
			continue
		}
		q := &question{protocol: p, body: string(text), answer: make(chan answer, 1), over: r.Context().Done()}
		q.stream = body["stream"] == true || strings.Contains(r.URL.Path, ":stream")
		p.read(q, body)
		a := answer{text: "ready"} // as TestOutsideDoctor's agents are to say
		if _, ours := q.tool("shell"); ours || s.own != "" && slices.Contains(q.tools, toolName{name: s.own}) {
			s.asked <- q
			select {
			case a = <-q.answer:
			case <-q.over:
				return
			}
		}
		a.id = fmt.Sprintf("call_%d", s.calls.Add(1))
		q.send(w, a)
		return
	}
	http.NotFound(w, r)
}

// tool finds a tool of ours, by the name that the agent gave it.
func (q *question) tool(name string) (toolName, bool) {
	for _, t := range q.tools {
		if full := t.namespace + "_" + t.name; strings.Contains(full, "sublet") && strings.HasSuffix(full, "_"+name) {
			return t, true
		}
	}
	return toolName{}, false
}

func (q *question) send(w http.ResponseWriter, a answer) {
	events := q.write(a)
	if !q.stream {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(events[len(events)-1]) //nolint:errcheck // the agent may be gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		text, _ := json.Marshal(e) // made of strings and numbers
		if kind, ok := e["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	if q.path == "/chat/completions" {
		io.WriteString(w, "data: [DONE]\n\n") //nolint:errcheck // the agent may be gone
	}
}

// next waits for the agent's next request.
func (s *standIn) next() *question {
	s.t.Helper()
	select {
	case q := <-s.asked:
		return q
	case <-time.After(3 * patience): // opencode starts in 4 s on an idle machine
		s.t.Fatal("the agent asked its model nothing")
		return nil
	}
}

// objects is a list of objects, empty for anything else.
func objects(v any) (list []object) {
	raw, _ := v.([]any)
	for _, e := range raw {
		if o, ok := e.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

// textOf is all text in a value, in its order.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(textOf(e))
		}
		return b.String()
	case object:
		for _, key := range []string{"text", "output", "content", "error"} {
			if t := textOf(v[key]); t != "" {
				return t
			}
		}
	}
	return ""
}

func str(v any) string { s, _ := v.(string); return s }

func text(v any) string { b, _ := json.Marshal(v); return string(b) }

// protocols are those of OpenAI (two), Anthropic and Google.
var protocols = []protocol{
	{
		path: "/responses",
		read: func(q *question, body object) {
			for _, t := range objects(body["tools"]) {
				q.tools = append(q.tools, toolName{"", str(t["name"])})
				for _, inner := range objects(t["tools"]) {
					q.tools = append(q.tools, toolName{str(t["name"]), str(inner["name"])})
				}
			}
			for _, item := range objects(body["input"]) {
				if item["type"] == "function_call_output" {
					q.results = append(q.results, textOf(item["output"]))
				}
			}
		},
		write: func(a answer) []object {
			item := object{"type": "message", "id": "m", "role": "assistant", "content": []object{{"type": "output_text", "text": a.text}}}
			if a.text == "" {
				item = object{"type": "function_call", "id": "f", "call_id": a.id, "name": a.tool.name, "arguments": text(a.arguments)}
				if a.tool.namespace != "" {
					item["namespace"] = a.tool.namespace
				}
			}
			usage := object{"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
			return []object{
				{"type": "response.created", "response": object{"id": "r"}},
				{"type": "response.output_item.done", "output_index": 0, "item": item},
				{"type": "response.completed", "response": object{"id": "r", "usage": usage, "output": []object{item}}},
			}
		},
	},
	{
		path: "/chat/completions",
		read: func(q *question, body object) {
			for _, t := range objects(body["tools"]) {
				f, _ := t["function"].(object)
				q.tools = append(q.tools, toolName{"", str(f["name"])})
			}
			for _, m := range objects(body["messages"]) {
				if m["role"] == "tool" {
					q.results = append(q.results, textOf(m["content"]))
				}
			}
		},
		write: func(a answer) []object {
			delta, reason := object{"role": "assistant", "content": a.text}, "stop"
			if a.text == "" {
				f := object{"name": a.tool.name, "arguments": text(a.arguments)}
				delta, reason = object{"role": "assistant", "tool_calls": []object{{"index": 0, "id": a.id, "type": "function", "function": f}}}, "tool_calls"
			}
			chunk := func(delta object, reason any) object {
				return object{
					"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
					"choices": []object{{"index": 0, "delta": delta, "message": delta, "finish_reason": reason}},
					"usage":   object{"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
				}
			}
			return []object{chunk(delta, nil), chunk(object{}, reason)}
		},
	},
	{
		path: "/v1/messages",
		read: func(q *question, body object) {
			for _, t := range objects(body["tools"]) {
				q.tools = append(q.tools, toolName{"", str(t["name"])})
			}
			for _, m := range objects(body["messages"]) {
				for _, part := range objects(m["content"]) {
					if part["type"] == "tool_result" {
						q.results = append(q.results, textOf(part["content"]))
					}
				}
			}
		},
		write: func(a answer) []object {
			block, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.text}, "end_turn"
			if a.text == "" {
				block, reason = object{"type": "tool_use", "id": a.id, "name": a.tool.name, "input": object{}}, "tool_use"
				delta = object{"type": "input_json_delta", "partial_json": text(a.arguments)}
			}
			usage := object{"input_tokens": 10, "output_tokens": 1}
			whole := object{"type": "message", "id": "m", "role": "assistant", "model": "m", "content": []object{{"type": "text", "text": a.text}}, "stop_reason": reason, "usage": usage}
			return []object{
				{"type": "message_start", "message": object{"type": "message", "id": "m", "role": "assistant", "model": "m", "content": []object{}, "usage": usage}},
				{"type": "content_block_start", "index": 0, "content_block": block},
				{"type": "content_block_delta", "index": 0, "delta": delta},
				{"type": "content_block_stop", "index": 0},
				{"type": "message_delta", "delta": object{"stop_reason": reason}, "usage": usage},
				{"type": "message_stop", "message": whole},
			}
		},
	},
	{
		path: "enerateContent",
		read: func(q *question, body object) {
			for _, t := range objects(body["tools"]) {
				for _, f := range objects(t["functionDeclarations"]) {
					q.tools = append(q.tools, toolName{"", str(f["name"])})
				}
			}
			for _, c := range objects(body["contents"]) {
				for _, part := range objects(c["parts"]) {
					if r, ok := part["functionResponse"].(object); ok {
						q.results = append(q.results, textOf(r["response"]))
					}
				}
			}
		},
		write: func(a answer) []object {
			part := object{"text": a.text}
			if a.text == "" {
				part = object{"functionCall": object{"id": a.id, "name": a.tool.name, "args": a.arguments}}
			}
			return []object{{
				"candidates":    []object{{"index": 0, "content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP"}},
				"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
			}}
		},
	},
}
