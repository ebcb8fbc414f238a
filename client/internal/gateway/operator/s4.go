package operator

import (
	"encoding/json"
	"slices"
	"time"

	"sublet/wire"
)

// s4Result is every answer of S4 (F11, K4).
type s4Result struct {
	ID         string          `json:"id,omitempty"` // of the request, where it had one (E21)
	SessionID  string          `json:"sessionID"`
	AgentID    string          `json:"agentID"`
	Content    []responseBlock `json:"content"`
	Turns      []s4Turn        `json:"turns"`
	Usage      s4Usage         `json:"usage"`
	StopReason string          `json:"stopReason,omitempty"` // absent while the turn runs
	Truncated  bool            `json:"truncated,omitempty"`  // turns or texts were left out to fit one message (N1)
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

// encode returns the result as a line that fits into a message: it drops the oldest turns, then cuts long texts.
func (r s4Result) encode(limit int) []byte {
	l := line(r)
	for len(l) > limit && len(r.Turns) > 1 {
		r.Turns, r.Truncated = r.Turns[(len(r.Turns)+1)/2:], true
		l = line(r)
	}
	if len(l) <= limit {
		return l
	}
	r.Truncated = true
	whole := r
	return fit(limit, func(most int) []byte {
		if most == 0 {
			return l
		}
		r = whole
		r.Content, r.Turns = cutBlocks(r.Content, most), slices.Clone(r.Turns)
		for i := range r.Turns {
			t := &r.Turns[i]
			t.Response.Content = cutBlocks(t.Response.Content, most)
			t.Request.Content = slices.Clone(t.Request.Content)
			for j, b := range t.Request.Content {
				if b.Text != nil {
					short := cut(*b.Text, most)
					t.Request.Content[j].Text = &short
				}
			}
			t.ToolCalls = slices.Clone(t.ToolCalls)
			for j := range t.ToolCalls {
				c := &t.ToolCalls[j]
				c.Result = cut(c.Result, most)
				if len(c.Input) > most {
					c.Input = mustJSON(map[string]string{"arguments": cut(string(c.Input), most)})
				}
			}
		}
		return line(r)
	})
}

func cutBlocks(blocks []responseBlock, most int) []responseBlock {
	out := slices.Clone(blocks)
	for i := range out {
		for _, s := range []**string{&out[i].Text, &out[i].Source, &out[i].Content, &out[i].Message} {
			if *s != nil && len(**s) > most {
				short := cut(**s, most)
				*s = &short
			}
		}
		if len(out[i].Input) > most {
			out[i].Input = mustJSON(map[string]string{"arguments": cut(string(out[i].Input), most)})
		}
	}
	return out
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
