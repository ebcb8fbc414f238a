package wire_test

import (
	"slices"
	"testing"

	"sublet/wire"
)

// A void chunk takes back the text of its agent, from its number on, and nothing else.
func TestWithoutVoid(t *testing.T) {
	seq := int64(0)
	chunk := func(agent, typ, text string, from int64) wire.EventMessage {
		seq++
		return &wire.AgentStreamChunk{Event: wire.Event{TurnID: "t", Seq: seq}, SeqFirst: seq, Agent: agent, Chunk: wire.Chunk{Type: typ, Text: text, FromSeq: from}}
	}
	events := []wire.EventMessage{
		chunk("a", wire.ChunkText, "kept, ", 0),
		chunk("b", wire.ChunkText, "another's, ", 0),
		chunk("a", wire.ChunkReasoning, "void", 0), // 3
		chunk("b", wire.ChunkText, "another's too, ", 0),
		chunk("a", wire.ChunkText, "void", 0),
		chunk("a", wire.ChunkNotice, "told, ", 0),
		chunk("a", wire.ChunkVoid, "it broke off", 3),
		chunk("a", wire.ChunkText, "again void", 0), // 8
		chunk("a", wire.ChunkVoid, "it broke off", 8),
		chunk("a", wire.ChunkText, "and the answer", 0),
	}
	var got []string
	for _, m := range wire.WithoutVoid(events) {
		got = append(got, m.(*wire.AgentStreamChunk).Chunk.Text)
	}
	if want := []string{"kept, ", "another's, ", "another's too, ", "told, ", "and the answer"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	var said wire.StreamedText
	for _, m := range events {
		if c := m.(*wire.AgentStreamChunk); c.Agent == "a" && c.Chunk.Type == wire.ChunkText {
			said.Add(c.First(), c.Chunk.Text)
		} else if c.Agent == "a" && c.Chunk.Type == wire.ChunkVoid {
			said.Void(c.Chunk.FromSeq)
		}
	}
	if said.String() != "kept, and the answer" || said.Len() != len(said.String()) {
		t.Errorf("got %q", said.String())
	}
}
