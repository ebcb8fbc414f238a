package archive

import (
	"errors"
	"slices"
	"testing"

	"sublet/wire"
)

// A copy is stored in pieces, and numbers that events name count over all of them. What cannot be stored ends it.
func TestCopyInPieces(t *testing.T) {
	var events []wire.EventMessage
	for n := range int64(1201) {
		events = append(events, &wire.AgentStreamChunk{Event: wire.Event{TurnID: "t", Seq: 10 + 2*n}, Chunk: wire.Chunk{Type: wire.ChunkText}})
	}
	last := events[1200].(*wire.AgentStreamChunk)
	last.Chunk = wire.Chunk{Type: wire.ChunkVoid, FromSeq: 12} // the second event
	var sizes []int
	numbers, err := Copy(events, func(list ...wire.EventMessage) error {
		sizes = append(sizes, len(list))
		return nil
	})
	if err != nil || !slices.Equal(sizes, []int{500, 500, 201}) {
		t.Errorf("stored in %v, %v", sizes, err)
	}
	if len(numbers) != 1201 || numbers[10] != 1 || numbers[2410] != 1201 || last.Chunk.FromSeq != 2 {
		t.Errorf("got %d numbers: %d, %d; void from %d", len(numbers), numbers[10], numbers[2410], last.Chunk.FromSeq)
	}
	full := errors.New("full")
	if _, err := Copy(events[:1], func(...wire.EventMessage) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
