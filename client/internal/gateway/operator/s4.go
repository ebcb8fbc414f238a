package operator

import (
	"encoding/json"
	"time"

	"sublet/wire"
)

// s4Result is every answer of S4 (F11, K4); see fit for long ones.
type s4Result struct {
	ID         string          `json:"id,omitempty"` // of the request, where it had one (E21)
	SessionID  string          `json:"sessionID"`
	AgentID    string          `json:"agentID"`
	Content    []responseBlock `json:"content"`
	Turns      []s4Turn        `json:"turns"`
	Usage      s4Usage         `json:"usage"`
	StopReason string          `json:"stopReason,omitempty"` // absent while the turn runs
}

type s4Usage struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
}

type s4Turn struct {
	ID        string      `json:"id"` // what lastTurnID names
	Request   s4Message   `json:"request"`
	Response  s4Response  `json:"response"`
	ToolCalls []s4ToolRun `json:"toolCalls"`
	Timestamp int64       `json:"timestamp"`
}

type s4Message struct {
	Role    string           `json:"role"`
	Content []s4RequestBlock `json:"content"`
}

type s4Response struct {
	Role    string          `json:"role"`
	Content []responseBlock `json:"content"`
}

type s4RequestBlock struct {
	Type     string  `json:"type"` // text, image, file
	Text     *string `json:"text,omitempty"`
	URL      string  `json:"url,omitempty"`
	MIMEType string  `json:"mimeType,omitempty"`
	Path     string  `json:"path,omitempty"`
	Size     *int64  `json:"size,omitempty"`
}

type s4ToolRun struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input"`
	Result     string          `json:"result"`
	Error      string          `json:"error,omitempty"`
	ExecutedAt string          `json:"executedAt"` // ISO 8601 (G7)
}

func s4TurnOf(t *turn) s4Turn {
	prompt := t.prompt
	v := s4Turn{
		ID: string(t.id), Request: s4Message{"user", []s4RequestBlock{{Type: "text", Text: &prompt}}},
		Response: s4Response{"assistant", t.blocks()}, ToolCalls: []s4ToolRun{}, Timestamp: t.startMS,
	}
	for _, run := range t.tools {
		r := s4ToolRun{ID: string(run.id), Name: run.name, Input: run.input, Result: run.output, ExecutedAt: isoTime(run.startMS, t.startMS)}
		if run.failed() {
			_, r.Error = toolProblem(run)
		}
		v.ToolCalls = append(v.ToolCalls, r)
	}
	return v
}

func isoTime(at, otherwise int64) string {
	if at == 0 {
		at = otherwise
	}
	return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
}

// snapshot returns the state of a session, described by the last of the given turns (F11, F12). A running turn is listed from
// its first tool on; before that only its content is shown, as in the document's example.
func snapshot(id, session, agent string, turns []*turn) s4Result {
	r := s4Result{ID: id, SessionID: session, AgentID: agent, Content: []responseBlock{}, Turns: []s4Turn{}}
	for i, t := range turns {
		if last := i == len(turns)-1; last {
			r.Content = t.blocks()
			r.StopReason = t.stopReason()
			r.Usage = s4Usage{t.usage.input, t.usage.output}
			if agent == "" {
				r.AgentID = t.agent
			}
			if !t.over() && len(t.tools) == 0 {
				continue
			}
		}
		r.Turns = append(r.Turns, s4TurnOf(t))
	}
	return r
}

// s4Refusal returns an error in S4's form: a result whose content is the error (L30).
func s4Refusal(id, session, agent string, p *problem) s4Result {
	message := p.message
	if p.hint != "" {
		message += " (" + p.hint + ")"
	}
	return s4Result{
		ID: id, SessionID: session, AgentID: agent, Content: []responseBlock{errorBlock(p.s4, message)},
		Turns: []s4Turn{}, StopReason: stopError,
	}
}

// after returns the turns that follow the one named; false if it is not among them.
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
