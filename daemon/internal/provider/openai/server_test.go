package openai

import (
	"io"
	"net/http"
	"testing"

	"sublet/daemon/internal/provider"
)

func TestQuirksAreLearned(t *testing.T) {
	s := serve(t, nil, func(n int, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`)
		case 2:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2"}}`)
		default:
			sse(w, text("ok"), finish("stop"), done)
		}
	})
	m, slept := open(t, s)
	req := prompt("q")
	n, temp := 10, 0.2
	req.MaxTokens, req.Temperature = &n, &temp
	if _, _, err := run(t, m, req); err != nil {
		t.Fatal(err)
	}
	last := s.Requests[2]
	if last["max_completion_tokens"] != 10.0 || last["max_tokens"] != nil || last["temperature"] != nil || len(*slept) != 0 {
		t.Errorf("got %v", last)
	}
}

func TestContextWindow(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths map[string]string
		want  int
	}{
		{"vLLM", map[string]string{"/v1/models": `{"data":[{"id":"other","max_model_len":1},{"id":"m","max_model_len":32768}]}`}, 32768},
		{"OpenRouter", map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":200000,"pricing":{"prompt":"0.000003","completion":"0.000015"}}]}`}, 200000},
		{"llama.cpp", map[string]string{"/v1/models": `{"data":[{"id":"file.gguf","meta":{"n_ctx_train":131072}}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, 8192},
		{"llama.cpp without props", map[string]string{"/v1/models": `{"data":[{"id":"file.gguf","meta":{"n_ctx_train":131072}}]}`}, 131072},
		{"LM Studio", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":4096}]}`}, 4096},
		{"Ollama", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/ps": `{"models":[{"name":"m:latest","model":"m:latest","context_length":16384}]}`}, 16384},
		{"says nothing", nil, provider.DefaultContextWindow},
	} {
		s := serve(t, c.paths, func(_ int, w http.ResponseWriter, _ *http.Request) {
			sse(w, text("ok"), finish("stop"), data(`{"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":0}}`), done)
		})
		m, _ := open(t, s)
		resp, _, err := run(t, m, prompt("q"))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Info().ContextWindow; got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
		if c.name == "OpenRouter" && (resp.Usage.CostUSD == nil || *resp.Usage.CostUSD != 3) {
			t.Errorf("cost: got %v, want 3", resp.Usage.CostUSD)
		}
	}
}

func TestNotStreamed(t *testing.T) {
	s := serve(t, nil, func(_ int, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"whole","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
	})
	m, _ := open(t, s)
	resp, deltas, err := run(t, m, prompt("q"))
	if err != nil || len(resp.Message.Parts) != 2 || resp.Usage.Output != 4 || len(deltas) != 2 {
		t.Errorf("got %+v, %q, %v", resp, deltas, err)
	}
}

func TestThinkTags(t *testing.T) {
	for _, c := range []struct{ in, text, thought string }{
		{"<think>a < b</think>\n\nanswer", "answer", "a < b"},
		{"no tags <think>x</think>", "no tags <think>x</think>", ""},
		{"<thin", "<thin", ""},
		{"\n<think>never closed", "", "never closed"},
		{"<b>bold</b>", "<b>bold</b>", ""},
		{"", "", ""},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			var tags thinkTags
			var text, thought string
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				x, y := tags.split(rest[:n])
				text, thought, rest = text+x, thought+y, rest[n:]
			}
			x, y := tags.flush()
			text, thought = text+x, thought+y
			if text != c.text || thought != c.thought {
				t.Errorf("%q in pieces of %d: got %q, %q, want %q, %q", c.in, size, text, thought, c.text, c.thought)
			}
		}
	}
}
