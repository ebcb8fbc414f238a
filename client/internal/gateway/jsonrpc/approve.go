package jsonrpc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// question is one that the client was asked.
type question struct {
	id wire.ExecutionID // as the client knows it
	*gateway.Question
}

// categories maps tools to the document's categories (G8).
var categories = map[string]string{
	"bash": "shell", "read": "file_system", "write": "file_system", "edit": "file_system", "glob": "file_system", "grep": "file_system",
	"fetch": "network", "task": "agent", "todo": "planning",
}

// ask sends a question to the client. Without an answer in time the call is refused (H3, H6 to H10).
func (c *conn) ask(q *query, m *gateway.Question) {
	if q.stream {
		c.flushText(q) // the agent's text before its question
	}
	id := m.ExecutionID
	c.mu.Lock()
	if c.asked(id) != nil { // asked again: an answer to the earlier question must not count for this one
		id = wire.ExecutionID(m.ConfirmationID)
	}
	c.questions = gateway.Remember(c.questions, question{id, m}) // before it is sent: the client may answer at once
	c.mu.Unlock()
	c.work.Go(func() { c.expire(m) }) // ends with the question or the connection; serve waits for it
	description := m.Tool
	if m.Command != "" {
		description = fmt.Sprintf("Run `%s` in %s", gateway.OneLine(string(m.Command)), m.Cwd)
	} else if s := summary(m.Tool, m.Arguments); s != "" {
		description += " " + s
	}
	preview := map[string]any{"type": m.Preview.Type, "content": m.Preview.Content}
	if m.Preview.Type == "none" {
		preview = map[string]any{"type": "text", "content": string(m.Command)}
	}
	if q.blocks {
		c.block(q, &block{
			Type: "interactive", Content: description, Metadata: blockMetadata{Execution: string(id)}, Annotations: []annotation{},
		})
	}
	c.notify("tool.request_approval", map[string]any{
		"execution_id": id, "query_id": q.ID,
		"tool":      map[string]any{"name": m.Tool, "description": description, "category": cmp.Or(categories[m.Tool], "other")},
		"arguments": gateway.Arguments(m.Arguments), "preview": preview,
		"risk_assessment": map[string]any{"level": m.Verdict.Level, "reasons": gateway.Reasons(&m.Verdict), "reversible": m.Verdict.Reversible},
		"timeout":         int(c.s.o.approvalTimeout.Round(time.Second) / time.Second),
	})
}

// asked returns the question that the client knows by this id; nil if it was not asked. The caller holds c.mu.
func (c *conn) asked(id wire.ExecutionID) *gateway.Question {
	for _, q := range slices.Backward(c.questions) {
		if q.id == id {
			return q.Question
		}
	}
	return nil
}

// refused logs that the daemon refused an answer; the question can be answered again.
func (c *conn) refused(e *wire.Error) { c.log.Warn("the daemon refused an answer", "err", e) }

// expire refuses a question that was not answered in time, and again after as long if the daemon could not be reached.
func (c *conn) expire(q *gateway.Question) {
	for bound := c.s.o.approvalTimeout; ; {
		select {
		case <-q.Context().Done():
			return
		case <-time.After(bound):
		}
		err := q.Answer(wire.ConfirmationResponse{Decision: wire.DecisionDeny, Comment: fmt.Sprintf("not answered within %v", bound)}, c.refused)
		if err != nil && !errors.Is(err, gateway.ErrAnswered) {
			c.log.Warn("the daemon was not informed that a question expired", "execution", q.ExecutionID, "err", err)
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
	c.mu.Lock()
	q := c.asked(wire.ExecutionID(p.Execution))
	c.mu.Unlock()
	if q == nil {
		return nil, failed(codeParams, "execution_id: nothing is asked about %q", gateway.Clip(p.Execution))
	}
	response := wire.ConfirmationResponse{Decision: wire.DecisionDeny}
	status := "rejected"
	if p.Approved {
		response.Decision, status = wire.DecisionAllow, "approved"
	}
	if g := grant(q.ConfirmationRequest, p.Options.Remember, p.Options.Similar); g != nil {
		response.Grant = g
		response.Decision += "_always"
	}
	switch err := q.Answer(response, c.refused); {
	case errors.Is(err, gateway.ErrAnswered):
		return nil, failed(codeTimeout, "the question about %s is over: it was answered, its time of %v ran out, or its query ended", gateway.Clip(p.Execution), c.s.o.approvalTimeout)
	case err != nil:
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
