package archive

import (
	"errors"
	"fmt"
	"slices"

	"sublet/wire"
)

// atOnce is how many events Copy stores in one transaction, so that others can write in between.
const atOnce = 500

// Copy stores the events in a new session: store numbers each from 1. It gives turns ids of their own, and adapts the numbers by which
// events name others, in the events that it is given. It returns the numbers of the copies by those of the originals.
func Copy(events []wire.EventMessage, store func(...wire.EventMessage) error) (numbers map[int64]int64, err error) {
	turns := map[wire.TurnID]wire.TurnID{} // a turn's id is unique in the store
	numbers = map[int64]int64{}
	var had []int64                  // had[0] is the original number of event 1
	first := func(seq int64) int64 { // the copy of seq or, if that one is left out, of the next one
		i, _ := slices.BinarySearch(had, seq)
		return int64(i) + 1
	}
	for _, event := range events {
		e := event.Meta()
		if e.TurnID != "" {
			if turns[e.TurnID] == "" {
				turns[e.TurnID] = wire.TurnID(wire.NewID())
			}
			e.TurnID = turns[e.TurnID]
		}
		switch m := event.(type) {
		case *wire.AgentStreamChunk:
			if m.Chunk.Type == wire.ChunkVoid {
				m.Chunk.FromSeq = first(m.Chunk.FromSeq)
			}
		case *wire.CompactionComplete:
			if m.FirstSeq > 0 {
				m.FirstSeq, m.LastSeq = first(m.FirstSeq), first(m.LastSeq+1)-1
			}
		}
		had = append(had, e.Seq)
		numbers[e.Seq] = int64(len(had))
	}
	for list := range slices.Chunk(events, atOnce) {
		if err := store(list...); err != nil {
			return nil, fmt.Errorf("the copy was not stored: %w", err)
		}
	}
	return numbers, nil
}

// Envelopes wraps events.
func Envelopes(events []wire.EventMessage) []wire.Envelope {
	list := make([]wire.Envelope, 0, len(events))
	for _, m := range events {
		list = append(list, wire.Envelope{Message: m})
	}
	return list
}

// WithoutBlocks returns the events without the structured chunks (wire.ChunkBlock).
func WithoutBlocks(events []wire.EventMessage) []wire.EventMessage {
	return slices.DeleteFunc(slices.Clone(events), func(m wire.EventMessage) bool {
		c, ok := m.(*wire.AgentStreamChunk)
		return ok && c.Chunk.Type == wire.ChunkBlock
	})
}

// ErrRunning reports that the last turn that is wanted has not ended.
var ErrRunning = errors.New("that turn has not ended")

// UntilTurn returns the events up to the end of the turn with that number, from 1; 0 = all turns.
func UntilTurn(events []wire.EventMessage, turn int) ([]wire.EventMessage, error) {
	n, last := 0, wire.TurnID("")
	for i, m := range events {
		switch m.(type) {
		case *wire.TurnStarted:
			if turn > 0 && n == turn {
				events = events[:i]
			} else {
				n, last = n+1, m.Meta().TurnID
			}
		case *wire.AgentComplete:
			if m.Meta().TurnID == last {
				last = ""
			}
		}
		if i >= len(events) {
			break
		}
	}
	switch {
	case turn < 0 || turn > n || n == 0:
		return nil, fmt.Errorf("turn: %d is outside 1 to %d, the turns of this session", turn, n)
	case last != "":
		return nil, ErrRunning
	}
	return events, nil
}
