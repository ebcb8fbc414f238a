package store

import (
	"slices"

	"sublet/daemon/internal/mask"
	"sublet/wire"
)

// Mask masks known secrets in the fields of an event that come from models, programs and files, before it is stored, sent or
// given to a model. Live output is not masked: it is on the user's own terminal anyway, and a secret may be split over pieces.
func Mask(m wire.EventMessage) {
	switch m := m.(type) {
	case *wire.TurnSteered:
		m.Prompt = mask.String(m.Prompt)
	case *wire.TurnStarted:
		m.Prompt = mask.String(m.Prompt)
	case *wire.AgentStreamChunk:
		c := &m.Chunk
		if c.Type == wire.ChunkToolOutput {
			return
		}
		c.Text, c.Arguments = mask.String(c.Text), mask.String(c.Arguments)
		if c.Block != nil {
			c.Block.Content = mask.String(c.Block.Content)
		}
	case *wire.AgentThinking:
		m.Message = mask.String(m.Message)
	case *wire.AgentComplete:
		m.Summary = mask.String(m.Summary)
		for i := range m.Refused {
			m.Refused[i].Reason = mask.String(m.Refused[i].Reason)
		}
	case *wire.CommandResult:
		m.Command = wire.OSString(mask.String(string(m.Command)))
		m.Output, m.OutputTail = []byte(mask.String(string(m.Output))), []byte(mask.String(string(m.OutputTail)))
	case *wire.ConfirmationRequest:
		// The command is not masked: the user must approve exactly what runs. See forStore.
		m.Arguments, m.ReachWhy = mask.String(m.Arguments), mask.String(m.ReachWhy)
		m.Preview.Content = mask.String(m.Preview.Content)
	case *wire.ConfirmationResolved:
		m.Comment = mask.String(m.Comment)
	case *wire.CompactionComplete:
		m.Summary = mask.String(m.Summary)
		maskLedger(&m.Ledger)
	case *wire.Error:
		m.Message = mask.String(m.Message)
	}
}

func maskLedger(l *wire.Ledger) {
	l.Goal, l.ShellState, l.Branch = mask.String(l.Goal), mask.String(l.ShellState), mask.String(l.Branch)
	for _, list := range [][]string{l.Limits, l.Decisions, l.OpenTasks, l.Prompts, l.Reads, l.Errors, l.Answers, l.Changes, l.Jobs, l.Questions} {
		for i := range list {
			list[i] = mask.String(list[i])
		}
	}
	for i := range l.Files {
		l.Files[i] = wire.OSString(mask.String(string(l.Files[i])))
	}
	for i := range l.Commands {
		l.Commands[i].Command = wire.OSString(mask.String(string(l.Commands[i].Command)))
	}
}

// forStore returns the event as it is stored: the command of a question, which is shown unmasked, is stored masked, and so is
// what quotes it.
func forStore(m wire.EventMessage) wire.EventMessage {
	q, ok := m.(*wire.ConfirmationRequest)
	if !ok {
		return m
	}
	masked := *q
	masked.Command = wire.OSString(mask.String(string(q.Command)))
	masked.Grants, masked.Verdict.Reasons = slices.Clone(q.Grants), slices.Clone(q.Verdict.Reasons)
	for i := range masked.Grants {
		g := &masked.Grants[i]
		g.Rule, g.Covers = mask.String(g.Rule), mask.String(g.Covers)
	}
	for i := range masked.Verdict.Reasons {
		r := &masked.Verdict.Reasons[i]
		r.Text = mask.String(r.Text)
	}
	masked.Verdict.UndoHint = mask.String(q.Verdict.UndoHint)
	return &masked
}
