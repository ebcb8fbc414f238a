package operator

import (
	"cmp"
	"encoding/json"
	"time"

	"sublet/wire"
)

// This file translates for clients of the dialect S4, which get the state of a turn, or the result at its end.

// s4RequestBlock is a part of a message of a request; its size is not read.
type s4RequestBlock struct {
	Type     string  `json:"type"` // text, image, file
	Text     *string `json:"text"`
	URL      string  `json:"url"`
	MIMEType string  `json:"mimeType"`
	Path     string  `json:"path"`
}

// s4TurnOf returns a turn as S4 has it; lastTurnID in a request is such a turn's id.
func s4TurnOf(t *turn) body {
	calls := []body{}
	for _, run := range t.tools {
		c := body{"id": run.id, "name": run.name, "input": run.input, "result": run.output, "executedAt": isoTime(run.startMS, t.startMS)}
		if run.failed() {
			_, c["error"] = toolProblem(run)
		}
		calls = append(calls, c)
	}
	return body{
		"id": t.id, "request": body{"role": "user", "content": []body{textBlock(t.prompt)}},
		"response": body{"role": "assistant", "content": t.blocks()}, "toolCalls": calls, "timestamp": t.startMS,
	}
}

// isoTime returns a time in ISO 8601 (G7): at, or otherwise if that is 0, in milliseconds since 1970.
func isoTime(at, otherwise int64) string {
	if at == 0 {
		at = otherwise
	}
	return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
}

// s4Result is every answer of S4 (F11, K4).
type s4Result struct {
	ID         string            `json:"id,omitempty"` // of the request, where it had one (E21)
	SessionID  string            `json:"sessionID"`
	AgentID    string            `json:"agentID"`
	Content    []body            `json:"content"`
	Turns      []json.RawMessage `json:"turns"`
	Truncated  bool              `json:"truncated,omitempty"` // there are older turns than these
	Usage      body              `json:"usage"`
	StopReason string            `json:"stopReason,omitempty"` // absent while the turn runs
}

func s4UsageOf(u usage) body { return body{"inputTokens": u.input, "outputTokens": u.output} }

// snapshot returns the state of a session, described by the last of the given turns (F11, F12). A running turn is listed from
// its first tool on; before that only its content is shown, as in the document's example.
func snapshot(id, session, agent string, turns []*turn) s4Result {
	r := s4Result{ID: id, SessionID: session, AgentID: agent, Content: []body{}, Usage: s4UsageOf(usage{})}
	if n := len(turns); n > 0 {
		t := turns[n-1]
		r.Content, r.StopReason, r.Usage, r.AgentID = t.blocks(), t.stopReason(), s4UsageOf(t.usage), cmp.Or(agent, t.agent)
		if !t.ended() && len(t.tools) == 0 {
			turns = turns[:n-1]
		}
	}
	r.Turns, r.Truncated = newest(turns, s4TurnOf, turnsMost)
	return r
}

// s4Refusal returns an error in S4's form: a result whose content is the error (L30).
func s4Refusal(id, session, agent string, p *problem) s4Result {
	message := p.message
	if p.hint != "" {
		message += " (" + p.hint + ")"
	}
	r := snapshot(id, session, agent, nil)
	r.Content, r.StopReason = []body{errorBlock(p.s4, message)}, stopError
	return r
}

// after returns the turns that follow the one with this id, all for ""; false if there is no such turn.
func (h *history) after(id wire.TurnID) ([]*turn, bool) {
	if id == "" {
		return h.turns, true
	}
	for i, t := range h.turns {
		if t.id == id {
			return h.turns[i+1:], true
		}
	}
	return nil, false
}
