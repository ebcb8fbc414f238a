package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sublet/compaction"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Conversation is what a model gets of a session, with the events it came from. It is a value: the zero value is empty, and
// appending to a copy does not change the original.
type Conversation struct {
	entries []entry
	pending []string            // what the user did since the last prompt, for the next one
	plan    []tool.TodoItem     // after the newest call of the tools todo and plan
	end     *wire.AgentComplete // of the newest turn of a model; nil = none
}

// Messages returns the conversation in the order that providers require: it begins with the user, user and assistant
// alternate, and every call has its result right after it. The first Text part of a user message is the prompt; further
// ones are context.
func (c Conversation) Messages() []provider.Message { return render(c.entries) }

// Len returns the number of entries: prompts, answers, sets of tool results, summaries.
func (c Conversation) Len() int { return len(c.entries) }

// entry is one message and the events it came from.
type entry struct {
	kind        compaction.Kind
	msg         provider.Message   // of all but summaries
	first, last int64              // numbers of its events; 0 = unknown
	facts       map[string]fact    // results: by call id
	summary     string             // summaries: rendered, with ledger
	ledger      *compaction.Ledger // summaries: with the current request, word for word
}

// fact is what a compaction needs to know about a call beyond its result in the message.
type fact struct {
	compaction.Result       // without CallID, Content, IsError and Extra
	seq               int64 // of the result's event
}

// factOf returns the fact about the call with that result. comment and answer are the user's to the question about the call; "" = none.
func factOf(m *wire.CommandResult, comment, answer string) fact {
	return fact{seq: m.Seq, Result: compaction.Result{
		Tool: m.Tool, Command: string(m.Command), ExitCode: m.ExitCode, Cwd: string(m.Cwd), Files: m.FilesModified,
		Decision: decisionText(string(m.Command), comment), Answer: answer,
	}}
}

// decisionText returns a user's comment on a call for the ledger; "" without one.
func decisionText(command, comment string) string {
	if comment = strings.TrimSpace(comment); comment == "" {
		return ""
	}
	if command == "" {
		return mask.String("the user: " + comment)
	}
	return mask.String("the user on `" + clip(command, 100) + "`: " + comment)
}

// answerText returns the answer to a question, as compaction.Result has it; "" if it was not the user's.
func answerText(by string, allowed bool) string {
	switch {
	case !strings.HasPrefix(by, "client "):
		return ""
	case allowed:
		return "allowed"
	}
	return "refused"
}

func promptEntry(text string, extra []provider.Part, seq int64) entry {
	if strings.TrimSpace(text) == "" {
		text = "(empty prompt)" // providers refuse empty text
	}
	parts := append([]provider.Part{{Text: text}}, extra...)
	return entry{kind: compaction.Request, msg: provider.Message{Role: provider.User, Parts: parts}, first: seq, last: seq}
}

// firstText returns the prompt of a user message.
func firstText(m provider.Message) string {
	for _, p := range m.Parts {
		if p.Text != "" {
			return p.Text
		}
	}
	return ""
}

const (
	summaryAck = "I have read the summary and go on from there."
	noAnswer   = "(no answer)"
)

// render converts entries to messages; see Conversation.Messages.
func render(entries []entry) []provider.Message {
	var out []provider.Message
	add := func(role provider.Role, parts ...provider.Part) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Parts = append(slices.Clip(out[n-1].Parts), parts...)
			return
		}
		out = append(out, provider.Message{Role: role, Parts: parts})
	}
	say := func(text string) { add(provider.Assistant, provider.Part{Text: text}) }
	last := func() provider.Role {
		if len(out) == 0 {
			return ""
		}
		return out[len(out)-1].Role
	}
	for _, e := range entries {
		switch e.kind {
		case compaction.Summary:
			if quote := e.ledger.Current; quote != "" {
				if last() == provider.User {
					say("(What follows is a summary of the work so far.)")
				}
				add(provider.User, provider.Part{Text: quote})
			}
			add(provider.User, provider.Part{Text: e.summary})
		case compaction.Answer:
			if last() == "" {
				add(provider.User, provider.Part{Text: "(go on)"})
			}
			if len(e.msg.Parts) > 0 {
				add(provider.Assistant, e.msg.Parts...)
			} else {
				say(noAnswer)
			}
		case compaction.Request:
			if last() == provider.User {
				say(summaryAck)
			}
			add(provider.User, e.msg.Parts...)
		case compaction.Results:
			add(provider.User, e.msg.Parts...)
		}
	}
	return out
}

// maxContextCommands bounds how many of the user's own commands are added to a prompt.
const maxContextCommands = 10

// sinceHead begins the part of a message about the user's own commands.
const sinceHead = "Since the last prompt, in their shell:\n"

// History derives the conversation from a session's stored events, in order: the prompts, the answers and calls of the agent
// that was asked, and the results; events of sub-agents are left out. Ranges of a CompactionComplete in force are replaced by
// its summary and ledger. A call without a result, of a turn that was cancelled or whose daemon died, gets the result
// "interrupted", since providers require one. Context chunks are added to their prompt or results. Commands of the user, and
// tools run without a model (TurnStarted with no Model), are added to the next prompt.
func History(events []wire.EventMessage) Conversation {
	return threadOf(events).Snapshot()
}

// Thread builds the conversation of a session incrementally from events as they are stored. The zero value is that of a session
// without events. It is not safe for concurrent use.
type Thread struct {
	Conversation                            // with what compactions replace in it
	compactions  []*wire.CompactionComplete // those in force, oldest first
	last         int64                      // number of the newest event

	turn      wire.TurnID
	agent     string // the agent that the user asked
	open      bool
	modelless bool
	refreshed bool  // the turn has context chunks of its own
	seq       int64 // of the newest event of the turn
	failure   string
	calls     map[string]provider.ToolCall // without a result yet, by id
	order     []string
	text      wire.StreamedText // the newest answer's since its newest call
	asked     map[wire.ConfirmationID]wire.ExecutionID
	answers   map[wire.ExecutionID]*wire.ConfirmationResolved
}

func threadOf(events []wire.EventMessage) *Thread {
	h := &Thread{}
	for _, ev := range events {
		h.Add(ev)
	}
	return h
}

// Add adds the event that follows those added before.
func (h *Thread) Add(ev wire.EventMessage) {
	meta := ev.Meta()
	h.last = max(h.last, meta.Seq)
	if m, ok := ev.(*wire.CompactionComplete); ok {
		h.compactions = updateInForce(h.compactions, m)
	}
	if m, ok := ev.(*wire.TurnStarted); ok {
		h.endTurn("interrupted")
		h.turn, h.agent, h.open, h.seq = meta.TurnID, m.Agent, true, meta.Seq
		h.modelless, h.refreshed = m.Model == "", false
		h.asked, h.answers = map[wire.ConfirmationID]wire.ExecutionID{}, map[wire.ExecutionID]*wire.ConfirmationResolved{}
		h.calls, h.order, h.failure = map[string]provider.ToolCall{}, nil, ""
		if !h.modelless {
			h.entries = append(h.entries, promptEntry(m.Prompt, h.takePending(), meta.Seq))
		}
		return
	}
	if m, ok := ev.(*wire.CommandResult); ok && m.Tool == "" {
		h.addPending(describeCommand(string(m.Command), m.ExitCode, string(m.OutputTail)))
		return
	}
	if !h.open || meta.TurnID != h.turn {
		return
	}
	switch m := ev.(type) {
	case *wire.AgentStreamChunk:
		if m.Agent == h.agent && !h.modelless {
			h.seq = meta.Seq
			if m.Chunk.Type == wire.ChunkVoid {
				h.dropAnswerFrom(m.Chunk.FromSeq)
			} else {
				h.chunk(m.Chunk, meta.Seq)
			}
		}
	case *wire.TurnSteered:
		if !h.modelless {
			h.seq = meta.Seq
			h.completeResults()
			h.entries = addSteering(h.entries, m.Prompt, meta.Seq)
		}
	case *wire.CommandResult:
		if m.Agent == h.agent {
			h.result(m)
		}
	case *wire.ConfirmationRequest:
		h.asked[m.ConfirmationID] = m.ExecutionID
	case *wire.ConfirmationResolved:
		h.answers[h.asked[m.ConfirmationID]] = m
	case *wire.Error:
		h.failure = m.Message
	case *wire.AgentComplete:
		h.seq = meta.Seq
		if !h.modelless {
			h.end = m
		}
		h.endTurn(m.Status)
	}
}

func (h *Thread) chunk(c wire.Chunk, seq int64) {
	switch c.Type {
	case wire.ChunkText:
		if c.Text == "" {
			return
		}
		e := h.answer(seq)
		if n := len(e.msg.Parts); n == 0 || e.msg.Parts[n-1].ToolCall != nil {
			e.msg.Parts = append(e.msg.Parts, provider.Part{})
			h.text.Reset()
		}
		h.text.Add(seq, c.Text)
		e.msg.Parts[len(e.msg.Parts)-1].Text = h.text.String()
	case wire.ChunkContext:
		h.context(c.Text, seq)
	case wire.ChunkToolCall:
		call := provider.ToolCall{ID: string(c.ExecutionID), Name: c.Tool, Arguments: provider.ArgumentsObject(json.RawMessage(c.Arguments))}
		e := h.answer(seq)
		e.msg.Parts = append(e.msg.Parts, provider.Part{ToolCall: &call})
		h.calls[call.ID] = call
		h.order = append(h.order, call.ID)
	}
	// Reasoning is left out: providers need it within a turn only, and masking would invalidate its signature.
}

// WakeHead begins the prompt of a turn that a background job began. Such a prompt is not from the user.
const WakeHead = "[sent by sublet, not by the user] "

// steerHead begins the part of a message with results that contains a prompt added to the running turn.
const steerHead = "The user says, while you work:\n"

// addSteering adds a prompt that a running turn took in: to the results or the prompt that the model has not answered yet, in place,
// or as a prompt of its own after an answer. There is an entry: the turn's prompt.
func addSteering(entries []entry, prompt string, seq int64) []entry {
	e := &entries[len(entries)-1]
	if e.kind == compaction.Answer {
		return append(entries, promptEntry(prompt, nil, seq))
	}
	e.msg.Parts = append(slices.Clip(e.msg.Parts), provider.Part{Text: steerHead + prompt})
	e.last = seq
	return entries
}

// context adds a context chunk to the newest entry if that is a prompt or a set of results. The first chunk of a turn replaces what Add took
// from the user's commands before the turn. seq is the number of the chunk's event.
func (h *Thread) context(text string, seq int64) {
	e := &h.entries[len(h.entries)-1]
	if e.kind != compaction.Request && e.kind != compaction.Results {
		return
	}
	if e.kind == compaction.Request && !h.refreshed {
		e.msg.Parts = e.msg.Parts[:1:1] // the prompt's text
	}
	h.refreshed = true
	e.msg.Parts = append(e.msg.Parts, provider.Part{Text: text})
	e.last = seq
}

// dropAnswerFrom removes the text that the events from seq from on added to the newest answer.
func (h *Thread) dropAnswerFrom(from int64) {
	n := len(h.entries)
	parts := h.entries[n-1].msg.Parts
	last := len(parts) - 1
	if h.entries[n-1].kind != compaction.Answer || parts[last].ToolCall != nil {
		return
	}
	h.text.Void(from)
	if parts[last].Text = h.text.String(); h.text.Len() > 0 {
		return
	}
	if h.entries[n-1].msg.Parts = parts[:last]; last == 0 {
		h.entries = h.entries[:n-1]
	}
}

// answer returns the newest answer of the turn, or a new one if that has results already.
func (h *Thread) answer(seq int64) *entry {
	n := len(h.entries)
	if n > 0 && h.entries[n-1].kind == compaction.Results {
		h.completeResults()
		n = len(h.entries)
	}
	if n == 0 || h.entries[n-1].kind != compaction.Answer {
		h.entries = append(h.entries, entry{kind: compaction.Answer, msg: provider.Message{Role: provider.Assistant}, first: seq})
		n = len(h.entries)
	}
	h.entries[n-1].last = seq
	return &h.entries[n-1]
}

// result adds the result of a call of the agent that was asked, or of the tool that the user ran.
func (h *Thread) result(m *wire.CommandResult) {
	if (m.Tool == "todo" || m.Tool == "plan") && m.Status == wire.StatusSuccess {
		h.plan = tool.ParseTodo(string(m.Output))
	}
	if h.modelless {
		h.addPending(fmt.Sprintf("The user ran the tool %s: %s", m.Tool, clip(string(m.Output), 2000)))
		return
	}
	h.seq = m.Seq
	id := string(m.ExecutionID)
	call, ok := h.calls[id]
	if !ok {
		return // a second result, or one without a call, which providers refuse
	}
	delete(h.calls, id)
	h.addResult(call, string(m.Output), m.Status != wire.StatusSuccess, m.Seq)
	comment, answer := "", ""
	if a := h.answers[m.ExecutionID]; a != nil {
		comment, answer = a.Comment, answerText(a.By, a.Decision == wire.DecisionAllow || a.Decision == wire.DecisionAllowAlways)
	}
	h.entries[len(h.entries)-1].facts[id] = factOf(m, comment, answer)
}

// addResult adds a call's result to the newest entry, if that has results, or else to a new one. seq is the number of its event.
func (h *Thread) addResult(call provider.ToolCall, content string, isError bool, seq int64) {
	n := len(h.entries)
	if n == 0 || h.entries[n-1].kind != compaction.Results {
		h.entries = append(h.entries, entry{
			kind: compaction.Results, msg: provider.Message{Role: provider.User}, first: seq, facts: map[string]fact{},
		})
		n = len(h.entries)
	}
	e := &h.entries[n-1]
	e.msg.Parts = append(e.msg.Parts, resultPart(call.ID, content, isError))
	e.last = seq
}

func resultPart(id, content string, isError bool) provider.Part {
	if strings.TrimSpace(content) == "" {
		content = "[no output]" // providers refuse blank results
	}
	return provider.Part{ToolResult: &provider.ToolResult{CallID: id, Content: content, IsError: isError}}
}

// completeResults gives every open call a result, and sorts the results of concurrent calls in the order of the calls.
func (h *Thread) completeResults() {
	for _, id := range h.order {
		if call, ok := h.calls[id]; ok {
			h.addResult(call, "interrupted: no result was recorded", true, h.seq)
			delete(h.calls, id)
		}
	}
	if n := len(h.entries); n > 0 && h.entries[n-1].kind == compaction.Results {
		slices.SortStableFunc(h.entries[n-1].msg.Parts, func(a, b provider.Part) int {
			return h.resultOrder(a) - h.resultOrder(b)
		})
	}
	h.order = nil
}

// resultOrder returns the index of a part in a Results entry: results in the order of their calls, then texts.
func (h *Thread) resultOrder(p provider.Part) int {
	if p.ToolResult == nil {
		return len(h.order)
	}
	return slices.Index(h.order, p.ToolResult.CallID)
}

// endTurn ends the open turn with an answer, so that a prompt may follow, and notes in it how the turn ended, unless it succeeded.
func (h *Thread) endTurn(status string) {
	if !h.open {
		return
	}
	h.open = false
	if h.modelless {
		return
	}
	h.completeResults()
	note := ""
	switch status {
	case wire.StatusSuccess:
	case wire.StatusError:
		note = "[this turn failed: " + clip(h.failure, 500) + "]"
	default:
		note = "[this turn ended early: " + status + "]"
	}
	e := &h.entries[len(h.entries)-1]
	if e.kind == compaction.Answer {
		if note != "" {
			e.msg.Parts = append(e.msg.Parts, provider.Part{Text: note})
		}
		return
	}
	if note == "" {
		note = noAnswer
	}
	h.entries = append(h.entries, entry{
		kind: compaction.Answer, first: h.seq, last: h.seq,
		msg: provider.Message{Role: provider.Assistant, Parts: []provider.Part{{Text: note}}},
	})
}

// addPending adds a text for the next prompt; of many the newest are kept.
func (h *Thread) addPending(text string) {
	h.pending = append(h.pending, text)
	if n := len(h.pending) - maxContextCommands; n > 0 {
		h.pending = slices.Clone(h.pending[n:])
	}
}

// takePending returns and clears what the user did since the last prompt.
func (h *Thread) takePending() []provider.Part {
	if len(h.pending) == 0 {
		return nil
	}
	list := h.pending
	h.pending = nil
	return []provider.Part{{Text: sinceHead + strings.Join(list, "\n")}}
}

func describeCommand(command string, exitCode *int, tail string) string {
	s := "The user ran `" + clip(command, 500) + "`"
	if exitCode != nil {
		s += fmt.Sprintf(" (exit code %d)", *exitCode)
	}
	if tail = strings.TrimSpace(clean(tail)); tail != "" {
		s += ":\n" + visible.CutTail(tail, 2000)
	}
	return s
}

// clip cuts s to about n bytes, between characters.
func clip(s string, n int) string {
	return visible.Clip(strings.ToValidUTF8(s, "\uFFFD"), n)
}
