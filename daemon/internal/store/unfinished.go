package store

import (
	"sublet/wire"
)

// AskAgain is the hint for a turn that ended because its daemon did.
const AskAgain = "ask again; what was done before is in the conversation"

// Ends returns the missing end of a turn or compaction whose session has these events: it resolves the open questions and
// adds an Error and an AgentComplete, or a CompactionComplete. why is shown to the user.
func (u Unfinished) Ends(events []wire.EventMessage, why string) (ends []wire.EventMessage) {
	if m := openCompaction(events); m != nil {
		ends = append(ends, &wire.CompactionComplete{
			Event: wire.Event{TurnID: m.TurnID, RequestID: m.RequestID}, Status: wire.StatusError, Summary: why,
			Ledger: EmptyLedger(), Events: m.Events, TokensBefore: m.TokensBefore, TokensAfter: m.TokensBefore,
		})
	}
	if u.TurnID == "" {
		return ends
	}
	of := wire.Event{TurnID: u.TurnID, RequestID: u.RequestID}
	for _, q := range openQuestions(events, u.TurnID) {
		ends = append(ends, &wire.ConfirmationResolved{Event: of, ConfirmationID: q, Decision: wire.DecisionDeny, By: "cancel", Comment: why})
	}
	return append(ends, &wire.Error{
		Event: of, Code: wire.CodeInternal, Message: why, Hint: AskAgain, Details: map[string]string{}, Recoverable: true,
	}, &wire.AgentComplete{
		Event: of, Agent: u.Agent, Status: wire.StatusError, StopReason: wire.StatusError, Summary: why,
		ToolsExecuted: []string{}, Refused: []wire.RefusedTool{},
	})
}

// openCompaction returns the compaction without an end, nil if there is none.
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

// openQuestions returns the questions of a turn that were not resolved.
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

// EmptyLedger returns the ledger of a failed compaction.
func EmptyLedger() wire.Ledger {
	return wire.Ledger{
		Limits: []string{}, Decisions: []string{}, Files: []wire.OSString{}, Commands: []wire.LedgerCommand{}, OpenTasks: []string{},
		Prompts: []string{}, Reads: []string{}, Errors: []string{}, Answers: []string{}, Changes: []string{}, Jobs: []string{}, Questions: []string{},
	}
}
