package hub

import (
	"context"
	"fmt"

	"sublet/daemon/internal/store"
	"sublet/wire"
)

// restarted is what an unfinished turn of an earlier daemon is ended with.
const restarted = "daemon restarted"

// askAgain is the hint for a turn that ended with its daemon.
const askAgain = "ask again; what was done before is in the conversation"

// endUnfinished gives every turn and compaction that an earlier daemon left open its end, in one session or, with "", in all:
// open questions are resolved, an Error and an AgentComplete, or a CompactionComplete, are stored. What had been shown is
// there; a command that ran is not adopted.
func (h *Hub) endUnfinished(ctx context.Context, of wire.SessionID) error {
	open, err := h.opts.Store.Unfinished(ctx)
	for _, u := range open {
		if of != "" && of != u.SessionID {
			continue
		}
		var s *session
		if s, err = h.session(ctx, u.SessionID); err != nil {
			break
		}
		s.mu.Lock()
		err = s.endUnfinishedLocked(ctx, u, restarted)
		s.mu.Unlock()
		h.release(s)
		if err != nil {
			break
		}
		h.log.Warn("work of an earlier daemon ended", "turn", u.TurnID, "session", u.SessionID)
	}
	if err != nil {
		return fmt.Errorf("end the turns of the last daemon: %w", err)
	}
	return nil
}

// endUnfinishedLocked stores and sends the end of one such turn or compaction of the session; why is for people.
func (s *session) endUnfinishedLocked(ctx context.Context, u store.Unfinished, why string) error {
	events, err := s.events(ctx, 0)
	if err != nil {
		return err
	}
	if m := openCompaction(events); m != nil {
		if err := s.emitLocked(&wire.CompactionComplete{
			Event: wire.Event{TurnID: m.TurnID, RequestID: m.RequestID}, Status: wire.StatusError, Summary: why,
			Ledger: emptyLedger(), Events: m.Events, TokensBefore: m.TokensBefore, TokensAfter: m.TokensBefore,
		}); err != nil {
			return err
		}
	}
	if u.TurnID == "" {
		return nil
	}
	of := wire.Event{TurnID: u.TurnID, RequestID: u.RequestID}
	for _, q := range openQuestions(events, u.TurnID) {
		if err := s.emitLocked(&wire.ConfirmationResolved{
			Event: of, ConfirmationID: q, Decision: wire.DecisionDeny, By: "cancel", Comment: why,
		}); err != nil {
			return err
		}
	}
	if err := s.emitLocked(&wire.Error{
		Event: of, Code: wire.CodeInternal, Message: why, Hint: askAgain,
		Details: map[string]string{}, Recoverable: true,
	}); err != nil {
		return err
	}
	return s.emitLocked(&wire.AgentComplete{
		Event: of, Agent: u.Agent, Status: wire.StatusError, StopReason: wire.StatusError, Summary: why,
		ToolsExecuted: []string{}, Refused: []wire.RefusedTool{},
	})
}

// openCompaction returns the compaction that has no end, nil where there is none.
func openCompaction(events []wire.EventMessage) (open *wire.CompactionStarted) {
	for _, m := range events {
		switch m := m.(type) {
		case *wire.CompactionStarted:
			open = m
		case *wire.CompactionComplete:
			open = nil
		}
	}
	return open
}

// openQuestions are those of a turn that have no end.
func openQuestions(events []wire.EventMessage, id wire.TurnID) []wire.ConfirmationID {
	var open []wire.ConfirmationID
	ended := map[wire.ConfirmationID]bool{}
	for _, m := range events {
		if r, ok := m.(*wire.ConfirmationResolved); ok {
			ended[r.ConfirmationID] = true
		}
	}
	for _, m := range events {
		if q, ok := m.(*wire.ConfirmationRequest); ok && q.TurnID == id && !ended[q.ConfirmationID] {
			open = append(open, q.ConfirmationID)
		}
	}
	return open
}
