package archive

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"sublet/wire"
)

// atOnce is how many events Copy stores in one transaction, so that others can write in between.
const atOnce = 500

// Copy stores the events that next returns until io.EOF in a new session: store numbers each from 1. It gives turns ids of their
// own, and adapts the numbers by which events name others. It returns the numbers of the copies by those of the originals.
func Copy(next func() (wire.EventMessage, error), store func(...wire.EventMessage) error) (numbers map[int64]int64, err error) {
	turns := map[wire.TurnID]wire.TurnID{} // a turn's id is unique in the store
	numbers = map[int64]int64{}
	var list []wire.EventMessage // to be stored next
	flush := func() error {
		if err := store(list...); err != nil {
			return fmt.Errorf("the copy was not stored: %w", err)
		}
		list = list[:0]
		return nil
	}
	var had []int64                  // had[0] is the original number of event 1
	first := func(seq int64) int64 { // the copy of seq or, if that one is left out, of the next one
		i, _ := slices.BinarySearch(had, seq)
		return int64(i) + 1
	}
	for {
		event, err := next()
		if errors.Is(err, io.EOF) {
			return numbers, flush()
		}
		if err != nil {
			return nil, err
		}
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
		if list = append(list, event); len(list) == atOnce {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
}

// Each returns these events one after another, then io.EOF.
func Each(events []wire.EventMessage) (next func() (wire.EventMessage, error)) {
	return func() (wire.EventMessage, error) {
		if len(events) == 0 {
			return nil, io.EOF
		}
		m := events[0]
		events = events[1:]
		return m, nil
	}
}

// Envelopes wraps events. Without blocks it leaves out the structured chunks (wire.ChunkBlock).
func Envelopes(events []wire.EventMessage, blocks bool) []wire.Envelope {
	list := make([]wire.Envelope, 0, len(events))
	for _, m := range events {
		if chunk, ok := m.(*wire.AgentStreamChunk); ok && !blocks && chunk.Chunk.Type == wire.ChunkBlock {
			continue
		}
		list = append(list, wire.Envelope{Message: m})
	}
	return list
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
