package hub

import (
	"context"
	"fmt"

	"sublet/wire"
)

// restarted is what an unfinished turn of an earlier daemon is ended with.
const restarted = "daemon restarted"

// askAgain is the hint for a turn that ended with its daemon.
const askAgain = "ask again; what was done before is in the conversation"

// endUnfinished gives every turn that an earlier daemon left open its end: open questions are resolved, an Error and an
// AgentComplete are stored. What had been shown is there; a command that ran is not adopted.
func (h *Hub) endUnfinished(ctx context.Context) error {
	open, err := h.opts.Store.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("end the turns of the last daemon: %w", err)
	}
	for _, u := range open {
		s, err := h.session(ctx, u.SessionID)
		if err != nil {
			return fmt.Errorf("end the turns of the last daemon: %w", err)
		}
		err = s.endTurn(ctx, u.TurnID, u.RequestID, u.Agent)
		h.release(s)
		if err != nil {
			return fmt.Errorf("end the turns of the last daemon: %w", err)
		}
		h.log.Warn("turn of an earlier daemon ended", "turn", u.TurnID, "session", u.SessionID)
	}
	return nil
}

// endUnfinishedOf does the same for one session whose turns are not this daemon's.
func (h *Hub) endUnfinishedOf(ctx context.Context, s *session) error {
	open, err := h.opts.Store.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, u := range open {
		if u.SessionID == s.id {
			if err := s.endTurn(ctx, u.TurnID, u.RequestID, u.Agent); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) endTurn(ctx context.Context, id wire.TurnID, request wire.RequestID, agent string) error {
	events, err := s.events(ctx, 0)
	if err != nil {
		return err
	}
	of := wire.Event{TurnID: id, RequestID: request}
	for _, q := range openQuestions(events, id) {
		if err := s.emit(&wire.ConfirmationResolved{
			Event: of, ConfirmationID: q, Decision: wire.DecisionDeny, By: "cancel", Comment: restarted,
		}); err != nil {
			return err
		}
	}
	if err := s.emit(&wire.Error{
		Event: of, Code: wire.CodeInternal, Message: restarted, Hint: askAgain,
		Details: map[string]string{}, Recoverable: true,
	}); err != nil {
		return err
	}
	return s.emit(&wire.AgentComplete{
		Event: of, Agent: agent, Status: wire.StatusError, StopReason: wire.StatusError, Summary: restarted,
		ToolsExecuted: []string{}, Refused: []wire.RefusedTool{},
	})
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
