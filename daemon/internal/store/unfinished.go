package store

import (
	"slices"

	"sublet/wire"
)

// AskAgain is the hint for a turn that ended because its daemon did.
const AskAgain = "ask again; what was done before is in the conversation"

// Ends returns the missing end of a turn or compaction whose session has these events: it resolves the open questions and
// adds an Error and an AgentComplete, or a CompactionComplete. why is shown to the user.
func (u Unfinished) Ends(events []wire.EventMessage, why string) (ends []wire.EventMessage) {
	var folding *wire.CompactionStarted
	var questions []wire.ConfirmationID // open, of the turn
	for _, m := range events {
		switch m := m.(type) {
		case *wire.CompactionStarted:
			folding = m
		case *wire.CompactionComplete:
			folding = nil
		case *wire.ConfirmationRequest:
			if m.TurnID == u.TurnID {
				questions = append(questions, m.ConfirmationID)
			}
		case *wire.ConfirmationResolved:
			questions = slices.DeleteFunc(questions, func(q wire.ConfirmationID) bool { return q == m.ConfirmationID })
		}
	}
	if m := folding; m != nil {
		ends = append(ends, &wire.CompactionComplete{
			Event: wire.Event{TurnID: m.TurnID, RequestID: m.RequestID}, Status: wire.StatusError, Summary: why,
			Ledger: wire.Ledger{}.WithLists(), Events: m.Events, TokensBefore: m.TokensBefore, TokensAfter: m.TokensBefore,
		})
	}
	if u.TurnID == "" {
		return ends
	}
	of := wire.Event{TurnID: u.TurnID, RequestID: u.RequestID}
	for _, q := range questions {
		ends = append(ends, &wire.ConfirmationResolved{Event: of, ConfirmationID: q, Decision: wire.DecisionDeny, By: "cancel", Comment: why})
	}
	return append(ends, &wire.Error{
		Event: of, Code: wire.CodeInternal, Message: why, Hint: AskAgain, Details: map[string]string{}, Recoverable: true,
	}, &wire.AgentComplete{
		Event: of, Agent: u.Agent, Status: wire.StatusError, StopReason: wire.StatusError, Summary: why,
		ToolsExecuted: []string{}, Refused: []wire.RefusedTool{},
	})
}
