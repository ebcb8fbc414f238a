package jsonrpc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sublet/wire"
)

// K1: include_blocks decides whether blocks are in the file, and they are where nothing is said.
func TestSaveWithAndWithoutBlocks(t *testing.T) {
	w := newWorld(t, nil)
	of := func(seq int64) wire.Event {
		return wire.Event{SessionID: "s", TurnID: "t", RequestID: "r", Seq: seq, AtMS: seq}
	}
	chunk := func(seq int64, c wire.Chunk) wire.Message {
		return &wire.AgentStreamChunk{Event: of(seq), SeqFirst: seq, Agent: "orchestrator", Chunk: c}
	}
	file := func(name string, events ...wire.Message) string {
		b := []byte("sublet session 1\n")
		for _, m := range append([]wire.Message{&wire.SessionReply{Session: wire.SessionInfo{ID: "s", Cwd: "/"}}}, events...) {
			var err error
			if b, err = wire.AppendFrame(b, m); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(w.Root, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// A file of a model that sends blocks: those that are built in do not.
	given, path := file("given",
		&wire.TurnStarted{Event: of(1), Agent: "orchestrator", Prompt: "draw it"},
		chunk(2, wire.Chunk{Type: wire.ChunkText, Text: "Here it is."}),
		chunk(3, wire.Chunk{Type: wire.ChunkBlock, Block: &wire.Block{Type: "code", Language: "go", Content: "package x"}}),
		&wire.AgentComplete{Event: of(4), Status: wire.StatusSuccess, StopReason: "end_turn"},
	), filepath.Join(w.Root, "saved")
	load := func(c *client, path string) string {
		s := result(t, c.call("session.load", `{"path":"`+path+`"}`))["session"].(map[string]any)
		return fmt.Sprint(s["messages_count"], " messages, ", s["blocks_count"], " blocks")
	}
	c := w.ready()
	const with, without = "2 messages, 1 blocks", "2 messages, 0 blocks"
	if got := load(c, given); got != with {
		t.Fatalf("got %s, want %s", got, with)
	}
	// Text that was withdrawn was counted, and so was the output of tools that comes as no block.
	withdrawn := file("withdrawn",
		&wire.TurnStarted{Event: of(1), Agent: "orchestrator", Prompt: "look"},
		chunk(2, wire.Chunk{Type: wire.ChunkText, Text: "```go\nx\n"}),
		chunk(3, wire.Chunk{Type: wire.ChunkVoid, FromSeq: 2, Text: "broken off"}),
		&wire.CommandResult{Event: of(4), ExecutionID: "e1", Tool: "read", Status: wire.StatusSuccess, Output: []byte("x")},
		&wire.CommandResult{Event: of(5), ExecutionID: "e2", Tool: "bash", Status: wire.StatusSuccess, Output: []byte("x")},
		chunk(6, wire.Chunk{Type: wire.ChunkText, Text: "Done."}),
		&wire.AgentComplete{Event: of(7), Status: wire.StatusSuccess, StopReason: "end_turn"},
	)
	if got := load(w.ready(), withdrawn); got != with {
		t.Errorf("withdrawn: got %s, want %s", got, with)
	}
	for params, want := range map[string]string{``: with, `,"include_blocks":true`: with, `,"include_blocks":false`: without, `,"include_blocks":null`: with} {
		result(t, c.call("session.save", `{"path":"`+path+`"`+params+`}`))
		if got := load(w.ready(), path); got != want {
			t.Errorf("%q: got %s, want %s", params, got, want)
		}
	}
}
