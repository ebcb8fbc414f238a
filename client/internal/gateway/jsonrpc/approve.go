package jsonrpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// question is a tool that waits for the client's answer.
type question struct {
	ask       *wire.ConfirmationRequest
	timer     *time.Timer
	answering bool // an answer was sent; ConfirmationResolved removes the question
}

// categories maps tools to the document's categories (G8).
var categories = map[string]string{
	"bash": "shell", "read": "file_system", "write": "file_system", "edit": "file_system", "glob": "file_system", "grep": "file_system",
	"fetch": "network", "task": "agent", "todo": "planning",
}

// ask sends a question to the client. Without an answer in time the call is refused (H3, H6 to H10).
func (c *conn) ask(q *query, m *wire.ConfirmationRequest) {
	bound := c.s.o.approvalTimeout
	qu, id := &question{ask: m}, m.ExecutionID
	c.mu.Lock()
	if c.questions[id] != nil || slices.Contains(c.endedQuestions, id) { // asked again: an answer to the earlier question must not count for this one
		id = wire.ExecutionID(m.ConfirmationID)
	}
	qu.timer = time.AfterFunc(bound, func() { c.expire(id) })
	c.questions[id] = qu // before the question is sent: the client may answer at once
	c.mu.Unlock()
	description := m.Tool
	if m.Command != "" {
		description = fmt.Sprintf("Run `%s` in %s", gateway.OneLine(string(m.Command)), m.Cwd)
	} else if s := summary(m.Arguments); s != "" {
		description += " " + s
	}
	preview := map[string]any{"type": m.Preview.Type, "content": m.Preview.Content}
	if m.Preview.Type == "none" {
		preview = map[string]any{"type": "text", "content": string(m.Command)}
	}
	var arguments any = json.RawMessage(m.Arguments)
	if !json.Valid([]byte(m.Arguments)) {
		arguments = map[string]any{}
	}
	if q.blocks {
		c.block(q, &block{
			Type: "interactive", Content: description, Metadata: blockMetadata{Execution: string(id)}, Annotations: []annotation{},
		})
	}
	c.notify("tool.request_approval", map[string]any{
		"execution_id": id, "query_id": q.ID,
		"tool":      map[string]any{"name": m.Tool, "description": description, "category": cmp.Or(categories[m.Tool], "other")},
		"arguments": arguments, "preview": preview,
		"risk_assessment": map[string]any{"level": m.Verdict.Level, "reasons": gateway.Reasons(&m.Verdict), "reversible": m.Verdict.Reversible},
		"timeout":         int(bound.Round(time.Second) / time.Second),
	})
}

// takeQuestion returns a question to its only answerer, who calls decide; nil if there is none or somebody answers it.
func (c *conn) takeQuestion(id wire.ExecutionID) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.questions[id]
	if q == nil || q.answering {
		return nil
	}
	q.answering = true
	return q
}

// decide sends the answer to a question of takeQuestion. If that fails it can be answered again, and its time begins anew.
func (c *conn) decide(id wire.ExecutionID, q *question, r *wire.ConfirmationResponse) error {
	r.ConfirmationID = q.ask.ConfirmationID
	err := c.session.Confirm(c.ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.questions[id] == q && c.ctx.Err() == nil {
		q.answering = false
		q.timer.Reset(c.s.o.approvalTimeout)
	}
	return err
}

func (c *conn) expire(id wire.ExecutionID) {
	q := c.takeQuestion(id)
	if q == nil {
		return
	}
	r := &wire.ConfirmationResponse{Decision: wire.DecisionDeny, Comment: fmt.Sprintf("not answered within %v", c.s.o.approvalTimeout)}
	if err := c.decide(id, q, r); err != nil {
		c.log.Warn("the daemon was not informed that a question expired", "execution", id, "err", err)
	}
}

// resolved removes a question that has ended.
func (c *conn) resolved(m *wire.ConfirmationResolved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, q := range c.questions {
		if q.ask.ConfirmationID == m.ConfirmationID {
			q.timer.Stop()
			delete(c.questions, id)
			c.endedQuestions = gateway.Remember(c.endedQuestions, id)
		}
	}
}

// approve answers a question (H4, H5, H13).
func (c *conn) approve(r *request) (any, *failure) {
	var p struct {
		Execution string `json:"execution_id"`
		Approved  bool   `json:"approved"`
		Options   struct {
			Remember bool `json:"remember_choice"`
			Similar  bool `json:"apply_to_similar"`
		} `json:"options"`
	}
	if f := r.decode(&p, "execution_id", "approved"); f != nil {
		return nil, f
	}
	id := wire.ExecutionID(p.Execution)
	q := c.takeQuestion(id)
	if q == nil {
		c.mu.Lock()
		known := c.questions[id] != nil || slices.Contains(c.endedQuestions, id)
		c.mu.Unlock()
		if known {
			return nil, failed(codeTimeout, "the question about %s is over: it was answered, its time of %v ran out, or its query ended", clip(p.Execution), c.s.o.approvalTimeout)
		}
		return nil, failed(codeParams, "execution_id: nothing is asked about %q", clip(p.Execution))
	}
	q.timer.Stop()
	response := &wire.ConfirmationResponse{Decision: wire.DecisionDeny}
	status := "rejected"
	if p.Approved {
		response.Decision, status = wire.DecisionAllow, "approved"
	}
	if g := grant(q.ask, p.Options.Remember, p.Options.Similar); g != nil {
		response.Grant = g
		response.Decision += "_always"
	}
	if err := c.decide(id, q, response); err != nil {
		return nil, failureOf(err)
	}
	result := map[string]any{"status": status, "execution_id": p.Execution}
	if p.Options.Remember || p.Options.Similar {
		result["remembered"] = response.Grant != nil
		if response.Grant != nil {
			result["covers"] = response.Grant.Covers
		}
	}
	return result, nil
}

// grant returns the standing permission that the client's options ask for, of those that the daemon offers; nil for none, and always if
// the risk is critical. remember_choice selects those for the project, and without it apply_to_similar those for the session.
// apply_to_similar takes the widest, which is the last of its scope. remember_choice alone takes the narrowest, which is the first;
// only "reach: project" comes before it, which allows all edits and builds in the project.
func grant(ask *wire.ConfirmationRequest, remember, similar bool) *wire.Grant {
	scope := "session"
	if remember {
		scope = "project"
	}
	if !remember && !similar || ask.Verdict.Level == "critical" {
		return nil
	}
	var picked *wire.Grant
	for i := range ask.Grants {
		if g := &ask.Grants[i]; g.Scope == scope && (similar || picked == nil && !strings.HasPrefix(g.Rule, "reach: ")) {
			picked = g
		}
	}
	return picked
}
