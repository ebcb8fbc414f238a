package hub

import (
	"sublet/daemon/internal/risk"
	"sublet/wire"
)

// maskEvent replaces known secrets in whatever an event holds that comes from models, programs and files, before it is
// stored, sent or given to a model again. Live output is not masked here: the user sees it in their own terminal anyway,
// and pieces of a stream cannot be told from a whole.
func maskEvent(m wire.EventMessage) {
	switch m := m.(type) {
	case *wire.TurnStarted:
		m.Prompt = risk.Mask(m.Prompt)
	case *wire.AgentStreamChunk:
		c := &m.Chunk
		if c.Type == wire.ChunkToolOutput {
			return
		}
		c.Text, c.Arguments = risk.Mask(c.Text), risk.Mask(c.Arguments)
		if c.Block != nil {
			c.Block.Content = risk.Mask(c.Block.Content)
		}
	case *wire.AgentThinking:
		m.Message = risk.Mask(m.Message)
	case *wire.AgentComplete:
		m.Summary = risk.Mask(m.Summary)
		for i := range m.Refused {
			m.Refused[i].Reason = risk.Mask(m.Refused[i].Reason)
		}
	case *wire.CommandResult:
		m.Command = wire.OSString(risk.Mask(string(m.Command)))
		m.Output, m.OutputTail = risk.MaskBytes(m.Output), risk.MaskBytes(m.OutputTail)
	case *wire.ConfirmationRequest:
		// The command stays as it is: what is approved is byte for byte what runs. See forStore.
		m.Arguments = risk.Mask(m.Arguments)
		m.Preview.Content = risk.Mask(m.Preview.Content)
	case *wire.ConfirmationResolved:
		m.Comment = risk.Mask(m.Comment)
	case *wire.CompactionComplete:
		m.Summary = risk.Mask(m.Summary)
	case *wire.Error:
		m.Message = risk.Mask(m.Message)
	}
}

// forStore is an event as it is stored: a question's command is shown as it would run, but kept masked.
func forStore(m wire.EventMessage) wire.EventMessage {
	q, ok := m.(*wire.ConfirmationRequest)
	if !ok {
		return m
	}
	masked := *q
	masked.Command = wire.OSString(risk.Mask(string(q.Command)))
	return &masked
}
