package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sublet/wire"
)

// F12: content, then the tool, then the completion, each in a result of its own however much of it waited already: what
// is taken together is only more of the same text.
func TestResultsThatWaitKeepTheirOrder(t *testing.T) {
	of := func(seq int64) wire.Event {
		return wire.Event{SessionID: "s", TurnID: "t", RequestID: "r", Seq: seq, AtMS: seq}
	}
	code := 0
	waiting := []wire.EventMessage{
		&wire.TurnStarted{Event: of(1), Agent: "orchestrator", Prompt: "test it"},
		&wire.AgentStreamChunk{Event: of(2), Chunk: wire.Chunk{Type: wire.ChunkText, Text: "I run "}},
		&wire.AgentStreamChunk{Event: of(3), Chunk: wire.Chunk{Type: wire.ChunkText, Text: "them."}},
		&wire.AgentStreamChunk{Event: of(4), Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x", Tool: "bash", Arguments: `{"command":"make"}`}},
		&wire.CommandResult{Event: of(5), ExecutionID: "x", Tool: "bash", Status: "success", Output: []byte("ran"), ExitCode: &code},
		&wire.AgentStreamChunk{Event: of(6), Chunk: wire.Chunk{Type: wire.ChunkText, Text: "Done"}},
		&wire.AgentStreamChunk{Event: of(7), Chunk: wire.Chunk{Type: wire.ChunkText, Text: "."}},
		&wire.AgentComplete{Event: of(8), Status: wire.StatusSuccess, StopReason: "end_turn"},
	}
	var got []string
	f := &follower{r: &request{message: message{ID: "q", Session: "s"}}, write: func(line []byte) {
		var r struct {
			StopReason *string          `json:"stopReason"`
			Content    []map[string]any `json:"content"`
			Turns      []struct {
				ToolCalls []struct {
					Result *string `json:"result"`
				} `json:"toolCalls"`
			} `json:"turns"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var what []string
		for _, b := range r.Content {
			switch b["type"] {
			case "text":
				what = append(what, fmt.Sprint(b["text"]))
			default:
				what = append(what, fmt.Sprint(b["type"]))
			}
		}
		for _, turn := range r.Turns {
			for _, call := range turn.ToolCalls {
				if call.Result != nil && *call.Result != "" {
					what = append(what, "= "+*call.Result)
				}
			}
		}
		if r.StopReason != nil {
			what = append(what, "end")
		}
		got = append(got, strings.Join(what, " | "))
	}}
	for _, m := range waiting[:2] { // begin has read them from the history, and they came live as well
		f.seq = m.Meta().Seq
		f.h.apply(m)
	}
	f.results(t.Context(), f.h.turns[0], func(context.Context) ([]wire.EventMessage, error) { return waiting, nil })
	want := []string{"I run them.", "I run them. | tool", "I run them. | tool | Done. | = ran", "I run them. | tool | Done. | = ran | end"}
	if !slices.Equal(got, want) {
		t.Errorf("got results\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
