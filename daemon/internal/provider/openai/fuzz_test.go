package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
)

// Whatever a server sends: no panic, and either an error or a message whose deltas add up to it. Errors of the stream
// are *provider.Error or the reader's own.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		text("hello") + "\n\n" + finish("stop") + "\n\n" + done + "\n\n",
		data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"q\""}}]}}]}`) + "\n" + finish("tool_calls"),
		`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, ": c\nevent: error\ndata: {\"error\":\"x\"}\n", "data:\n\ndata: [DONE]", text("<think>a") + "\n" + text("</think>b") + "\n" + finish("length"), "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var said, thought string
		a := &assembly{kind: config.KindOpenAI, emit: func(d provider.Delta) {
			switch d.Type {
			case provider.DeltaText:
				said += d.Text
			case provider.DeltaReasoning:
				thought += d.Text
			}
		}}
		err := readChunks(bytes.NewReader(stream), func(b []byte) error { return a.add(provider.Fault{}, b) })
		if err != nil {
			if pe, ok := errors.AsType[*provider.Error](err); ok && pe.Kind == "" {
				t.Errorf("error without a kind: %v", pe)
			}
			return
		}
		resp, ok := a.response()
		if !ok {
			return
		}
		var text, reasoning string
		for _, p := range resp.Message.Parts {
			text += p.Text
			if p.Reasoning != nil {
				reasoning += p.Reasoning.Text
			}
			if c := p.ToolCall; c != nil && (c.ID == "" || !json.Valid(provider.ArgumentsObject(c.Arguments))) {
				t.Errorf("call %+v", c)
			}
		}
		if text != said || reasoning != thought {
			t.Errorf("got %q, %q in the message, %q, %q in the deltas", text, reasoning, said, thought)
		}
	})
}
