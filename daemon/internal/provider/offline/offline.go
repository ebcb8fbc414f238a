// Package offline is the model that is always there: rules, no network, no key. It does everyday jobs through the same
// loop as any model: it reads the prompt, answers with tool calls, looks at their results in the conversation and writes
// a short answer from them. It remembers nothing and is deterministic: the same conversation gets the same answer. What
// it does not understand it says so, and names the line that connects a real model.
//
// An intent is a row of a table: what people say, which calls come next, how the results read. The rows are in the files
// by subject: files, fileops, git, gitwrite, project, system, process, clock, why, chat, delegate.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sublet/daemon/internal/provider"
)

// Model answers by rules. The zero value is not usable; see Open.
type Model struct{ info provider.Info }

// Open never fails: it needs nothing.
func Open(c provider.Config) *Model {
	if c.Name == "" {
		c.Name = provider.KindOffline
	}
	m := &Model{info: provider.Info{
		Name: c.FullName(), Provider: c.Name, Kind: provider.KindOffline, Loaded: true, ContextWindow: provider.DefaultContextWindow,
	}}
	if c.ContextWindow > 0 {
		m.info.ContextWindow = c.ContextWindow
	}
	return m
}

func (m *Model) Info() provider.Info { return m.info }

// Stream answers at once. It fails only with the cause of ctx.
func (m *Model) Stream(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	text, calls := reply(req)
	if len(calls) == 0 {
		text += unseen(req.Messages)
	}
	msg := provider.Message{Role: provider.Assistant}
	written := len(text)
	for _, piece := range pieces(text) {
		if ctx.Err() != nil {
			return provider.Response{}, context.Cause(ctx)
		}
		onDelta(provider.Delta{Type: provider.DeltaText, Text: piece})
	}
	if text != "" {
		msg.Parts = append(msg.Parts, provider.Part{Text: text})
	}
	for i, c := range calls {
		if ctx.Err() != nil {
			return provider.Response{}, context.Cause(ctx)
		}
		// Unique in the conversation: one answer stands at each length of it.
		id := fmt.Sprintf("call_%d_%d", len(req.Messages), i)
		args := c.json()
		written += len(args)
		onDelta(provider.Delta{Type: provider.DeltaToolCall, CallID: id, Tool: c.tool, Text: string(args)})
		msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{ID: id, Name: c.tool, Arguments: args}})
	}
	resp := provider.Response{Message: msg, StopReason: provider.EndTurn, Usage: provider.Usage{
		Input: provider.EstimateTokens(req.Bytes()), Output: provider.EstimateTokens(written),
	}}
	if len(calls) > 0 {
		resp.StopReason = provider.ToolUse
	}
	return resp, nil
}

// unseen says that the images of this turn were not looked at, and by name which they were.
func unseen(messages []provider.Message) string {
	_, after := provider.LastPrompt(messages)
	images := provider.Images(messages[max(len(messages)-len(after)-1, 0):])
	if len(images) == 0 {
		return ""
	}
	names := make([]string, 0, len(images))
	for _, i := range images {
		names = append(names, code(i.String()))
	}
	return "\n\nI work by rules and cannot look at images: " + strings.Join(names, ", ") + ". A real model can."
}

// maxSteps bounds the calls of one prompt: rules that went in a circle would go on for ever.
const maxSteps = 24

// reply is the whole of it: a conversation in, text or calls out; never neither.
func reply(req provider.Request) (string, []call) {
	prompt, after := provider.LastPrompt(req.Messages)
	if text, ok := summarise(req.System, prompt); ok {
		return text, nil
	}
	j := newJob(req, prompt, after)
	clauses := match(j)
	if clauses == nil {
		return unknown(j), nil
	}
	if len(j.results) >= maxSteps {
		return "I stopped: this took more steps than such a job should.", nil
	}
	text, calls := play(j, clauses)
	if len(calls) > 0 {
		for _, c := range calls {
			if !j.tools[c.tool] {
				return noTool(c.tool), nil
			}
		}
		return text, calls
	}
	if strings.TrimSpace(text) == "" {
		text = "Done."
	}
	return text, nil
}

// play goes through the clauses of a prompt, each with the results that are its own: all but the last have to have
// finished. A clause that failed ends the chain, so that nothing is committed after tests that failed.
func play(j *job, clauses []clause) (string, []call) {
	results := j.results
	var answers []string
	for i, c := range clauses {
		k := *j
		k.args, k.said = c.args, c.said
		k.results = nil
		for {
			if len(k.results) > 0 {
				if last := k.results[len(k.results)-1]; last.refused() {
					return strings.Join(append(answers, c.intent.refusal(&k, last)), "\n\n"), nil
				}
			}
			calls := c.intent.next(&k)
			if len(calls) == 0 {
				break
			}
			if len(results) == 0 {
				intro := ""
				if i > 0 && len(k.results) == 0 {
					intro = answers[len(answers)-1] + "\n\n" // what came of the clause before, as soon as it is known
				}
				return intro, k.inShell(calls)
			}
			n := min(len(calls), len(results))
			k.results = append(k.results, results[:n]...)
			results = results[n:]
		}
		answers = append(answers, c.intent.answer(&k))
		if i+1 < len(clauses) && k.failed() {
			return fmt.Sprintf("%s\n\nThat failed, so I left out the rest: %s.", answers[len(answers)-1], code(clauses[i+1].said)), nil
		}
	}
	return answers[len(answers)-1], nil
}

// pieceBytes is how long a piece of streamed text is before it ends at the next blank: each is an event that is stored.
const pieceBytes = 32

// pieces cuts a text into a few words each; a line's end ends a piece.
func pieces(s string) (list []string) {
	start := 0
	for i := range len(s) {
		last := i+1 == len(s)
		if last || s[i] == '\n' && s[i+1] != '\n' || s[i] == ' ' && s[i+1] != ' ' && i-start >= pieceBytes {
			list = append(list, s[start:i+1])
			start = i + 1
		}
	}
	return list
}

func noTool(name string) string {
	return fmt.Sprintf("For this I would need the tool %s, which I was not given here. Nothing was done.", code(name))
}

// call is a tool call to be.
type call struct {
	tool string
	args map[string]any
}

func (c call) json() json.RawMessage {
	b, err := json.Marshal(c.args) // keys sorted; strings, numbers and lists of them always marshal
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
