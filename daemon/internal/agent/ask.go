package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"sublet/compaction"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// isEmpty reports whether a message has no text and no calls.
func isEmpty(m provider.Message) bool {
	return strings.TrimSpace(messageText(m)) == "" && !slices.ContainsFunc(m.Parts, func(p provider.Part) bool { return p.ToolCall != nil })
}

// void withdraws the text of the current answer.
func (r *runner) void(why string) {
	if r.stepFirst != 0 {
		r.chunk(wire.Chunk{Type: wire.ChunkVoid, Text: clean(why), FromSeq: r.voidFrom})
	}
	r.stepFirst, r.voidFrom = 0, r.lastSeq()+1
}

// answerChunk emits a piece of the current answer.
func (r *runner) answerChunk(c wire.Chunk) {
	if seq := r.chunk(c); r.stepFirst == 0 {
		r.stepFirst = seq
	}
}

// ask sends the conversation to the model and streams the answer. ids maps the provider's call ids to the execution ids
// that were announced for them.
func (r *runner) ask(ctx context.Context) (provider.Response, map[string]wire.ExecutionID, error) {
	req := r.request()
	ids := map[string]wire.ExecutionID{}
	generating := false
	var answered strings.Builder
	r.stepFirst, r.voidFrom = 0, r.lastSeq()+1
	// A secret may be split over pieces: text that may begin one is held back until the next piece.
	streams := map[string]*mask.Stream{wire.ChunkText: {}, wire.ChunkReasoning: {}}
	flush := func(except string) {
		for _, kind := range []string{wire.ChunkReasoning, wire.ChunkText} {
			if kind == except {
				continue
			}
			if text := streams[kind].Flush(); text != "" {
				r.answerChunk(wire.Chunk{Type: kind, Text: text})
			}
		}
	}
	pass := func(kind, text string) {
		flush(kind)
		if text = streams[kind].Add(clean(text)); text != "" {
			r.answerChunk(wire.Chunk{Type: kind, Text: text})
		}
	}
	resp, err := r.t.Model.Stream(ctx, req, func(d provider.Delta) {
		switch d.Type {
		case provider.DeltaWait:
			r.waiting(clean(d.Text))
			return
		case provider.DeltaNotice:
			r.notice(clean(d.Text))
			return
		case provider.DeltaVoid:
			flush("")
			r.void(d.Text)
			answered.Reset()
			clear(ids)
			generating = false
			return
		}
		if d.Text == "" {
			return
		}
		if !generating && d.Type != provider.DeltaReasoning {
			generating = true
			r.thinking(wire.PhaseGenerating, "")
		}
		switch d.Type {
		case provider.DeltaText:
			answered.WriteString(d.Text)
			pass(wire.ChunkText, d.Text)
		case provider.DeltaReasoning:
			pass(wire.ChunkReasoning, d.Text)
		case provider.DeltaToolCall:
			if d.CallID == "" {
				return // another call's piece may have no id either
			}
			if _, ok := ids[d.CallID]; !ok {
				ids[d.CallID] = wire.ExecutionID(wire.NewID())
			}
			flush("")
			r.answerChunk(wire.Chunk{Type: wire.ChunkToolCallDelta, ExecutionID: ids[d.CallID], Tool: d.Tool, Text: clean(d.Text)})
		}
	})
	flush("")
	if r.partial = r.cutText + answered.String(); err != nil {
		return resp, ids, err
	}
	r.count(resp)
	return resp, ids, nil
}

// request returns the next request to the model: the conversation, the instruction that is not part of it, and the tools.
func (r *runner) request() provider.Request {
	entries := r.current()
	if r.instruction != "" {
		entries = append(slices.Clip(entries), entry{kind: compaction.Results, msg: provider.Message{Parts: []provider.Part{{Text: r.instruction}}}})
	}
	req := provider.Request{
		System: r.system, Messages: r.shownImages(render(entries)),
		MaxTokens: r.t.Options.MaxTokens, Temperature: r.t.Options.Temperature, Thinking: r.t.Options.Thinking,
		Facts: provider.Facts{Cwd: r.environment().Cwd},
	}
	for _, name := range r.order {
		s := r.allowed[name].Spec()
		req.Tools = append(req.Tools, provider.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	for _, c := range r.t.Context.RecentCommands {
		req.Facts.RecentCommands = append(req.Facts.RecentCommands, provider.RecentCommand{
			Command: mask.String(string(c.Command)), ExitCode: c.ExitCode, OutputTail: mask.String(clean(string(c.OutputTail))),
		})
	}
	return req
}

// count adds up usage and updates the ratio of the provider's token count to our estimate.
func (r *runner) count(resp provider.Response) {
	u := resp.Usage
	r.spend(u)
	estimated := r.estimate
	in := u.Input + u.CacheRead + u.CacheWrite
	if in > 0 && estimated > 0 {
		r.scale = min(max(float64(in)/float64(estimated), 0.5), 3)
		r.used = in + u.Output
		return
	}
	r.used = int64(float64(estimated)*r.scale) + int64(compaction.EstimateTokens(messageText(resp.Message)))
}

// call is one tool call of an answer with the id of its execution.
type call struct {
	id   wire.ExecutionID
	name string
	args json.RawMessage // as the model wrote it; the text of an object is repaired
}

// answer adds the model's message to the conversation and announces its calls. Calls get ids of ours, because some servers
// repeat theirs or send none.
func (r *runner) answer(resp provider.Response, ids map[string]wire.ExecutionID) []call {
	var calls []call
	msg := provider.Message{Role: provider.Assistant}
	for _, p := range resp.Message.Parts {
		switch {
		case p.ToolCall != nil:
			id, ok := ids[p.ToolCall.ID]
			if !ok {
				id = wire.ExecutionID(wire.NewID())
			}
			delete(ids, p.ToolCall.ID)
			name, args := r.meantTool(p.ToolCall.Name), p.ToolCall.Arguments
			if object, err := tool.Object(args); err == nil {
				args = object
			}
			calls = append(calls, call{id: id, name: name, args: args})
			msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{
				ID: string(id), Name: name, Arguments: provider.ArgumentsObject(args),
			}})
			r.answerChunk(wire.Chunk{
				Type: wire.ChunkToolCall, ExecutionID: id, Tool: strings.ToValidUTF8(name, "\uFFFD"),
				Arguments: strings.ToValidUTF8(string(args), "\uFFFD"),
			})
		case p.Reasoning != nil:
			msg.Parts = append(msg.Parts, p)
			if p.Reasoning.Signature != "" {
				r.answerChunk(wire.Chunk{Type: wire.ChunkReasoning, Signature: p.Reasoning.Signature})
			}
		case p.Text != "":
			msg.Parts = append(msg.Parts, p)
		}
	}
	r.partial = r.cutText + messageText(resp.Message)
	r.addAnswer(msg)
	return calls
}

// addAnswer adds a message to the conversation. The continuation of an answer that was cut off is appended to that answer.
func (r *runner) addAnswer(msg provider.Message) {
	n := len(r.entries)
	if r.entries[n-1].kind != compaction.Answer {
		r.entries = append(r.entries, entry{kind: compaction.Answer, msg: msg, first: r.stepFirst, last: r.lastSeq()})
		return
	}
	e := &r.entries[n-1]
	parts, more := slices.Clone(e.msg.Parts), msg.Parts
	if k := len(parts); k > 0 && len(more) > 0 && parts[k-1].Text != "" && more[0].Text != "" {
		parts[k-1].Text += more[0].Text
		more = more[1:]
	}
	e.msg.Parts, e.last = append(parts, more...), r.lastSeq()
}

// messageText returns the text of a message.
func messageText(m provider.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
