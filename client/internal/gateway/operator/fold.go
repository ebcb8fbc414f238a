package operator

import (
	"slices"
	"strings"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// A turn is one request and its outcome, computed from its native events. Both dialects are views of it.
type turn struct {
	id      wire.TurnID
	agent   string
	prompt  string
	startMS int64
	items   []item // the agent's texts and tool runs, in order
	tools   []*toolRun
	failure *wire.Error
	usage   usage
	status  string // this and the next two are of AgentComplete; "" = it runs
	stop    string
	summary string
}

// item is a piece of an answer: exactly one of its fields is set.
type item struct {
	text *wire.StreamedText
	tool *toolRun
}

// toolRun is one run of a tool.
type toolRun struct {
	id       wire.ExecutionID
	name     string
	agent    string
	input    map[string]any
	output   string
	status   string // "" = it runs
	startMS  int64
	duration int64 // milliseconds
}

// failed reports whether the tool failed or was refused.
func (t *toolRun) failed() bool {
	return t.status != "" && t.status != wire.StatusSuccess && t.status != wire.StatusOK
}

type usage struct{ input, output int64 }

func (u usage) plus(o usage) usage { return usage{u.input + o.input, u.output + o.output} }

// history is the turns of a session, oldest first.
type history struct {
	turns []*turn
	byID  map[wire.TurnID]*turn
}

// apply applies one event and returns the turn it belongs to; nil for an event of no turn, such as a user's own command. Events
// must come in the order of their numbers.
func (h *history) apply(m wire.EventMessage) *turn {
	id := m.Meta().TurnID
	if id == "" {
		return nil
	}
	if begun, ok := m.(*wire.TurnStarted); ok && h.byID[id] == nil { // a repeated TurnStarted has no effect
		t := &turn{id: id, agent: begun.Agent, prompt: begun.Prompt, startMS: begun.AtMS}
		if h.byID == nil {
			h.byID = map[wire.TurnID]*turn{}
		}
		h.byID[id] = t
		h.turns = append(h.turns, t)
		return t
	}
	t := h.byID[id]
	if t != nil {
		t.apply(m)
	}
	return t
}

// apply takes one of the turn's events after its TurnStarted.
func (t *turn) apply(m wire.EventMessage) {
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		t.chunk(m)
	case *wire.CommandResult:
		run := t.tool(m.ExecutionID)
		if run == nil { // without a tool_call: a tool that a person ran
			run = t.addTool(m.ExecutionID, m.Tool, m.Agent, map[string]any{"command": string(m.Command)})
		}
		run.output = strings.ToValidUTF8(string(m.Output), "\uFFFD")
		run.status, run.startMS, run.duration = m.Status, m.StartedAtMS, m.DurationMS
	case *wire.Error:
		t.failure = m
	case *wire.AgentComplete:
		t.status, t.stop, t.summary = m.Status, m.StopReason, m.Summary
		t.usage = usage{m.Usage.Input + m.Usage.CacheRead + m.Usage.CacheWrite, m.Usage.Output}
	}
}

func (t *turn) chunk(m *wire.AgentStreamChunk) {
	switch m.Chunk.Type {
	case wire.ChunkText:
		if t.ofTurnAgent(m) {
			t.addText(m)
		}
	case wire.ChunkVoid:
		if t.ofTurnAgent(m) {
			for _, it := range t.items {
				if it.text != nil {
					it.text.Void(m.Chunk.FromSeq)
				}
			}
			t.items = slices.DeleteFunc(t.items, func(it item) bool { return it.text != nil && it.text.Len() == 0 })
		}
	case wire.ChunkToolCall:
		if t.tool(m.Chunk.ExecutionID) == nil {
			t.addTool(m.Chunk.ExecutionID, m.Chunk.Tool, m.Agent, gateway.Arguments(m.Chunk.Arguments))
		}
	}
}

// ofTurnAgent reports whether an event is of the turn's agent itself rather than of a sub-agent, whose text is in
// the result of the tool that ran it.
func (t *turn) ofTurnAgent(m *wire.AgentStreamChunk) bool { return m.Agent == "" || m.Agent == t.agent }

func (t *turn) addText(m *wire.AgentStreamChunk) {
	n := len(t.items)
	if n == 0 || t.items[n-1].text == nil {
		t.items = append(t.items, item{text: &wire.StreamedText{}})
		n++
	}
	t.items[n-1].text.Add(m.First(), m.Chunk.Text)
}

func (t *turn) addTool(id wire.ExecutionID, name, agent string, input map[string]any) *toolRun {
	run := &toolRun{id: id, name: name, agent: agent, input: input}
	t.tools = append(t.tools, run)
	t.items = append(t.items, item{tool: run})
	return run
}

func (t *turn) tool(id wire.ExecutionID) *toolRun {
	for _, run := range slices.Backward(t.tools) { // usually the last one
		if run.id == id {
			return run
		}
	}
	return nil
}

func (t *turn) ended() bool { return t.status != "" }

// text returns the whole text of the agent; the turn's summary if there is none.
func (t *turn) text() string {
	var b strings.Builder
	for _, it := range t.items {
		if it.text != nil {
			b.WriteString(it.text.String())
		}
	}
	if b.Len() == 0 {
		return t.summary
	}
	return b.String()
}

// stopReason returns one of the documents' four stop reasons (M2, M3); "" while the turn runs.
func (t *turn) stopReason() string {
	switch {
	case !t.ended():
		return ""
	case t.status != wire.StatusSuccess:
		return stopError
	case t.stop == stopMaxTokens, t.stop == stopToolUse, t.stop == stopEndTurn:
		return t.stop
	case t.stop == "":
		return stopEndTurn
	}
	return stopError
}

const (
	stopEndTurn   = "end_turn"
	stopMaxTokens = "max_tokens"
	stopToolUse   = "tool_use"
	stopError     = "error"
	stopStart     = "stream_start" // S4: of a stream's first result only (M4)
)
