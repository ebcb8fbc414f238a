package archive

import (
	"errors"
	"fmt"

	"sublet/wire"
)

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
