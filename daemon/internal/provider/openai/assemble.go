package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sublet/daemon/internal/provider"
)

// reasoningField is the signature of reasoning that came as text in a separate field.
const reasoningField = "reasoning_content"

// assembly builds the message from the stream's events and passes them on as deltas.
type assembly struct {
	kind      string
	emit      func(provider.Delta)
	text      strings.Builder
	reasoning strings.Builder
	calls     []*call
	finish    string
	refusal   bool
	usage     provider.Usage
	tags      thinkTags
	items     []json.RawMessage // of the Responses API: reasoning that goes back
}

type call struct {
	index int // -1: the server does not number them
	id    string
	given string // the server's id, which others may have too
	item  string // of the Responses API: the id of its item
	name  string
	args  bytes.Buffer
	extra json.RawMessage // Google's extra_content: the signature of the thought, sent back with the call
}

// add processes one event.
func (a *assembly) add(f provider.Fault, data []byte) error {
	var c wireChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return f.Broken(fmt.Errorf("event: %w", err))
	}
	if c.Error != nil {
		return c.Error.inStream(f)
	}
	if c.Usage != nil {
		a.usage = c.Usage.usage()
	}
	for _, choice := range c.Choices[:min(1, len(c.Choices))] {
		if choice.Error != nil {
			return choice.Error.inStream(f)
		}
		d := choice.Delta
		if d == nil {
			d = choice.Message
		}
		if d != nil {
			a.delta(d)
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	if a.finish == "error" { // OpenRouter, when the provider behind it breaks off
		return f.Broken(nil)
	}
	return nil
}

func (a *assembly) delta(d *wireDelta) {
	reasoning := d.ReasoningContent
	if reasoning == "" {
		_ = json.Unmarshal(d.Reasoning, &reasoning) // some send an object here, which is ignored
	}
	a.reason(reasoning)
	text, thought := a.tags.split(d.Content)
	a.reason(thought)
	a.say(text)
	if d.Refusal != "" {
		a.refusal = true
		a.say(d.Refusal)
	}
	for _, p := range d.ToolCalls {
		a.piece(p)
	}
}

func (a *assembly) reason(s string) {
	if s != "" {
		a.reasoning.WriteString(s)
		a.emit(provider.Delta{Type: provider.DeltaReasoning, Text: s})
	}
}

func (a *assembly) say(s string) {
	if s != "" {
		a.text.WriteString(s)
		a.emit(provider.Delta{Type: provider.DeltaText, Text: s})
	}
}

func (a *assembly) piece(p wirePiece) {
	args := p.Function.Arguments
	var text string
	if json.Unmarshal(args, &text) != nil {
		text = string(args) // a server that sends an object instead of text
	}
	c := a.find(p, text)
	if c == nil {
		c = &call{index: -1, id: p.ID, given: p.ID}
		if p.Index != nil {
			c.index = *p.Index
		}
		if c.id == "" || slices.ContainsFunc(a.calls, func(other *call) bool { return other.id == c.id }) {
			c.id = "call_" + rand.Text()
		}
		a.calls = append(a.calls, c)
	}
	if c.name == "" {
		c.name = p.Function.Name
	}
	if len(p.ExtraContent) > 0 {
		c.extra = p.ExtraContent
	}
	c.args.WriteString(text)
	if text != "" || p.Function.Name != "" {
		a.emit(provider.Delta{Type: provider.DeltaToolCall, CallID: c.id, Tool: c.name, Text: text})
	}
}

// find returns the call that a piece with these arguments continues; nil begins a new one. Google numbers all its calls 0, and
// others give all of them one id, so both must fit as far as they are known. A name after complete arguments begins the next call.
func (a *assembly) find(p wirePiece, args string) *call {
	for _, c := range slices.Backward(a.calls) {
		sameIndex := p.Index == nil || c.index == *p.Index || p.ID != "" && c.index < 0
		if !sameIndex || p.ID != "" && c.given != p.ID {
			continue
		}
		if p.Function.Name != "" && json.Valid(c.args.Bytes()) && (p.ID == "" || args != "") {
			return nil
		}
		return c
	}
	return nil
}

// response returns the whole message; false if the server sent no finish reason.
func (a *assembly) response() (provider.Response, bool) {
	if a.finish == "" {
		return provider.Response{}, false
	}
	text, thought := a.tags.flush()
	a.reason(thought)
	a.say(text)
	msg := provider.Message{Role: provider.Assistant}
	for i, item := range a.items {
		r := &provider.Reasoning{Signature: provider.Seal(a.kind, itemPrefix+string(item))}
		if i == 0 {
			r.Text = strings.TrimSpace(a.reasoning.String())
		}
		msg.Parts = append(msg.Parts, provider.Part{Reasoning: r})
	}
	if a.reasoning.Len() > 0 && len(a.items) == 0 {
		msg.Parts = append(msg.Parts, provider.Part{Reasoning: &provider.Reasoning{
			Text: a.reasoning.String(), Signature: provider.Seal(a.kind, reasoningField),
		}})
	}
	if a.text.Len() > 0 {
		msg.Parts = append(msg.Parts, provider.Part{Text: a.text.String()})
	}
	for _, c := range a.calls {
		if len(c.extra) > 0 {
			msg.Parts = append(msg.Parts, provider.Part{Reasoning: &provider.Reasoning{Signature: provider.Seal(a.kind, string(c.extra))}})
		}
		args := json.RawMessage(bytes.TrimSpace(c.args.Bytes()))
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{ID: c.id, Name: c.name, Arguments: args}})
	}
	return provider.Response{Message: msg, StopReason: a.stopReason(), Usage: a.usage}, true
}

// stopReason converts a finish reason; "stop" after calls means the calls.
func (a *assembly) stopReason() provider.StopReason {
	switch {
	case a.finish == "length":
		return provider.MaxTokens
	case a.finish == "content_filter" || a.refusal && len(a.calls) == 0:
		return provider.Refusal
	case len(a.calls) > 0:
		return provider.ToolUse
	}
	return provider.EndTurn
}

// thinkTags separates reasoning that a server leaves in the text as <think>…</think> at its very beginning.
type thinkTags struct {
	state tagState
	held  string // what was received and may be part of a tag
}

type tagState int

const (
	undecided tagState = iota // what was received may become the opening tag
	thinking
	blankLines // those after the closing tag are left out
	inText
)

const (
	openTag  = "<think>"
	closeTag = "</think>"
)

// split returns what of s, and of what was held back, is the answer's text and what is reasoning.
func (t *thinkTags) split(s string) (text, thought string) {
	if t.state == blankLines {
		if s = strings.TrimLeft(s, "\n"); s != "" {
			t.state = inText
		}
	}
	if t.state >= blankLines || s == "" {
		return s, ""
	}
	t.held += s
	if t.state == undecided {
		begin := strings.TrimLeft(t.held, " \n\r\t")
		if strings.HasPrefix(openTag, begin) {
			return "", "" // may still become the tag
		}
		rest, ok := strings.CutPrefix(begin, openTag)
		if !ok {
			t.state = inText
			text, t.held = t.held, ""
			return text, ""
		}
		t.state, t.held = thinking, rest
	}
	if thought, text, ok := strings.Cut(t.held, closeTag); ok {
		t.state, t.held = blankLines, ""
		text, _ = t.split(text)
		return text, thought
	}
	// Hold back what may be the beginning of the closing tag.
	keep := 0
	for n := min(len(closeTag)-1, len(t.held)); n > 0; n-- {
		if strings.HasSuffix(t.held, closeTag[:n]) {
			keep = n
			break
		}
	}
	thought, t.held = t.held[:len(t.held)-keep], t.held[len(t.held)-keep:]
	return "", thought
}

// flush returns what is held back, at the end of the answer.
func (t *thinkTags) flush() (text, thought string) {
	held := t.held
	t.held = ""
	if t.state == thinking {
		return "", held
	}
	return held, ""
}
