package tui

import (
	"strings"
	"testing"

	"sublet/client/internal/tui/keys"
	"sublet/wire"
)

// A program that has the terminal draws on it with every byte: the older half of what came between two frames was left out when
// that was much.
func TestOutputIsWhole(t *testing.T) {
	w := open(t, 80, 24)
	w.lend("x1", "orchestrator", "less")
	w.p.Send(leasedKeyboard("x1", "screen"))
	w.until("the program", func() bool { return w.p.keys.Routed() == keys.ToProgram })
	const pieces = 700
	piece := strings.Repeat("\x00", 1023) + "%"
	for range pieces {
		w.p.Send(output("x1", piece))
	}
	w.until("all of it", func() bool { return strings.Count(w.screen.Raw(), "%") == pieces })
}

// Pieces of what a background job prints that come together are one text.
func TestPiecesOfAJobsOutput(t *testing.T) {
	b := newInbox()
	for _, msg := range []any{jobOutput{[]byte("a")}, jobOutput{[]byte("b")}, output("x", "c"), jobOutput{[]byte("d")}} {
		b.push(msg)
	}
	if len(b.queue) != 3 || string(b.queue[0].(jobOutput).data) != "ab" {
		t.Errorf("got %v", b.queue)
	}
}

// Models send the parts of one emoji in two pieces: it was shown as "⚠⟨U+FE0F⟩".
func TestEmojiInTwoPieces(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	for i, piece := range []string{"⚠", "\ufe0f 👩\u200d", "👩 \x1b", "[2J\r", "\n\nthe next"} {
		seq := int64(1 + i)
		w.p.Send(&wire.AgentStreamChunk{Event: event(seq), SeqFirst: seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: piece}})
	}
	w.see("the next")
	if want := "⚠\ufe0f 👩\u200d👩 ␛[2J\r\n"; !strings.Contains(w.screen.Raw(), want) {
		t.Errorf("got %q, want %q in it", w.screen.Raw(), want)
	}
}
