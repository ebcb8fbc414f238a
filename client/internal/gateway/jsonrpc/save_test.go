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
	// A file of a model that sends blocks: those that are built in do not.
	file := []byte("sublet session 1\n")
	for _, m := range []wire.Message{
		&wire.SessionReply{Session: wire.SessionInfo{ID: "s", Cwd: "/"}},
		&wire.TurnStarted{Event: of(1), Agent: "orchestrator", Prompt: "draw it"},
		chunk(2, wire.Chunk{Type: wire.ChunkText, Text: "Here it is."}),
		chunk(3, wire.Chunk{Type: wire.ChunkBlock, Block: &wire.Block{Type: "code", Language: "go", Content: "package x"}}),
		&wire.AgentComplete{Event: of(4), Status: wire.StatusSuccess, StopReason: "end_turn"},
	} {
		var err error
		if file, err = wire.AppendFrame(file, m); err != nil {
			t.Fatal(err)
		}
	}
	given, path := filepath.Join(w.Root, "given"), filepath.Join(w.Root, "saved")
	if err := os.WriteFile(given, file, 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(c *client, path string) string {
		s := result(t, c.call("session.load", `{"path":"`+path+`"}`))["session"].(map[string]any)
		return fmt.Sprint(s["messages_count"], " messages, ", s["blocks_count"], " blocks")
	}
	c := w.ready()
	const with, without = "2 messages, 1 blocks", "2 messages, 0 blocks"
	if got := load(c, given); got != with {
		t.Fatalf("got %s, want %s", got, with)
	}
	for params, want := range map[string]string{``: with, `,"include_blocks":true`: with, `,"include_blocks":false`: without, `,"include_blocks":null`: with} {
		result(t, c.call("session.save", `{"path":"`+path+`"`+params+`}`))
		if got := load(w.ready(), path); got != want {
			t.Errorf("%q: got %s, want %s", params, got, want)
		}
	}
}
