// Package offline is the model that is always there: rules, no network, no key. It does everyday jobs through the same
// loop as any model: it reads the prompt, answers with tool calls, looks at their results in the conversation and writes
// a short answer from them. It remembers nothing and is deterministic: the same conversation gets the same answer. What
// it does not understand it says so, and names the line that connects a real model.
//
// What it can do is a table, intents.txt: what people say, which calls come next, how the answer reads. errors.txt has
// what common errors mean, tools.txt what projects are built and tested with. What takes more than a line of those is in
// the Go files: values.go has what goes into commands, the others the longer answers.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/wire"
	"sublet/wire/visible"
)

// Model answers by rules. The zero value is not usable; see Open.
type Model struct{ info provider.Info }

// Open never fails: it needs nothing.
func Open(c provider.Config) *Model {
	if c.Name == "" {
		c.Name = config.KindOffline
	}
	return &Model{info: provider.Info{
		Name: c.FullName(), Provider: c.Name, Kind: config.KindOffline, Loaded: true, Limit: c.InForce(provider.Limit{}),
	}}
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
	for piece := range strings.Lines(text) {
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
		written += len(c.args)
		onDelta(provider.Delta{Type: provider.DeltaToolCall, CallID: id, Tool: c.tool, Text: string(c.args)})
		msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{ID: id, Name: c.tool, Arguments: c.args}})
	}
	resp := provider.Response{Message: msg, StopReason: provider.EndTurn, Usage: provider.Usage{
		Input: provider.EstimateTokens(req.Bytes()), Output: provider.EstimateTokens(written),
	}}
	if len(calls) > 0 {
		resp.StopReason = provider.ToolUse
	}
	return resp, nil
}

// unseen returns a note with the names of this turn's images, which the model did not look at; "" if there are none.
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

// reply is the whole of it: a conversation in, text or calls out; never neither.
func reply(req provider.Request) (string, []call) {
	prompt, after := provider.LastPrompt(req.Messages)
	j := newJob(req, prompt, after)
	clauses := match(j)
	if clauses == nil {
		return unknown(j), nil
	}
	switch last := j.last(); {
	case last.tool == "plan" && strings.Contains(last.text, "nobody is attached"): // a script's `sublet ask --mode plan`
		return "I would " + strings.Join(last.steps, ", then ") + ". Nobody was here to accept that plan, so nothing was changed.", nil
	case last.tool == "plan":
		return "You did not accept the plan, so nothing was changed. I work by fixed rules and have no other; ask in other words.", nil
	case last.denied && j.tools["plan"]:
		return "", []call{plan("run " + code(last.command))}
	}
	text, calls := play(j, clauses)
	for _, c := range calls {
		switch {
		case j.tools[c.tool]:
		case j.tools["plan"]:
			return "", []call{plan(c.tool + " " + wire.CallSubject(c.tool, string(c.args)))}
		default:
			return "For this I would need the tool " + code(c.tool) + ", which I was not given here. Nothing was done.", nil
		}
	}
	if len(calls) > 0 {
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
	results, answer := j.results, ""
	for i, c := range clauses {
		k := *j
		k.args, k.said, k.results = c.args, c.said, nil
		for {
			if last := k.last(); last.refused() {
				return c.intent.refusal(last), nil
			}
			next := c.intent.next(&k)
			if next == nil {
				break
			}
			if len(results) == 0 {
				if i == 0 || len(k.results) > 0 {
					answer = "" // it was said before the first call of this clause
				}
				return answer, []call{k.inShell(*next)}
			}
			k.results, results = append(k.results, results[0]), results[1:]
		}
		if len(k.results) > 0 {
			answer = ""
		}
		answer += c.intent.write(&k)
		if i+1 < len(clauses) {
			if k.failed() {
				return fmt.Sprintf("%s\n\nThat failed, so I left out the rest: %s.", answer, code(clauses[i+1].said)), nil
			}
			answer += "\n\n"
		}
	}
	return answer, nil
}

// refusal is the answer to a no.
func (in *intent) refusal(r result) string {
	switch {
	case r.stopped == "cancelled":
		return "It was cancelled, so I stopped there: " + code(firstLine(r.command)) + " was ended. What had been done by then is done."
	case r.stopped == "interrupted":
		return "That was interrupted before it gave a result, so I cannot say what came of it. Ask again to try once more."
	case r.comment != "":
		return "You said no, so " + in.no + ". You wrote: " + quoteText(r.comment) + " I work by fixed rules and cannot take that into account; ask in other words, or run the command yourself."
	case r.why == "denied by the user": // and not by a rule or a mode, nor because nobody could be asked
		return "You said no, so " + in.no + "."
	}
	return "It was refused (" + visible.Line(strings.TrimSpace(r.why)) + "), so " + in.no + "."
}

// call is a tool call to be.
type call struct {
	tool string
	args json.RawMessage // an object
}

// plan returns the call that ends plan mode: it shows the user the next step, which plan mode refuses.
func plan(step string) call {
	args, _ := json.Marshal(map[string][]string{"items": {step}}) // strings always marshal
	return call{tool: "plan", args: args}
}

// bash returns a call of the bash tool. purpose is shown to the user while the shell is lent.
func bash(purpose, command string) *call {
	args, _ := json.Marshal(map[string]string{"command": command, "description": purpose}) // strings always marshal
	return &call{tool: "bash", args: args}
}
