package agent

import (
	"context"

	"sublet/compaction"
	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// Preview returns the parts of a turn's first request in order. It asks no model, emits no event and runs no tool.
func Preview(ctx context.Context, t Turn) []wire.RequestPart {
	t.Emit, t.Images = func(wire.EventMessage) {}, nil
	r := newRunner(t)
	defer r.close()
	r.system = r.systemPrompt()
	r.begin(ctx)
	req := r.request()
	var parts []wire.RequestPart
	add := func(name, text string, more int) {
		parts = append(parts, wire.RequestPart{Name: name, Text: text, Tokens: int64(compaction.EstimateTokens(text) + more)})
	}
	add("system", req.System, 0)
	for _, s := range req.Tools {
		add("tool "+s.Name, s.Description+"\n"+string(s.Schema), 0)
	}
	newest := len(req.Messages) - 1
	for i, m := range req.Messages {
		for j, p := range m.Parts {
			name := "conversation"
			switch {
			case i == newest && j == 0:
				name = "prompt"
			case i == newest:
				name = "context"
			}
			text, more := partText(p)
			add(name, text, more)
		}
	}
	return parts
}

// partText returns a part as text, and its tokens beyond the text.
func partText(p provider.Part) (text string, more int) {
	switch {
	case p.Image != nil:
		return p.Image.String(), p.Image.Tokens()
	case p.ToolCall != nil:
		return p.ToolCall.Name + " " + string(p.ToolCall.Arguments), 0
	case p.ToolResult != nil:
		for _, i := range p.ToolResult.Images {
			more += i.Tokens()
		}
		return p.ToolResult.Content, more
	case p.Reasoning != nil:
		return p.Reasoning.Text, len(p.Reasoning.Signature) / 4
	}
	return p.Text, 0
}
