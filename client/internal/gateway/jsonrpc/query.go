package jsonrpc

import (
	"cmp"
	"strings"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// query is one agent.query until its stream.complete. Only Deliver's goroutine uses the fields.
type query struct {
	gateway.Turn

	stream     bool    // the text is sent as it comes
	blocks     bool    // structured content is sent as blocks
	unsent     []token // of consecutive text events
	index      int     // of the next token
	blocksSent int
	split      gateway.Fences
	text       wire.StreamedText // without stream: the text since the last flushText
	began      time.Time
	progressAt map[wire.ExecutionID]time.Time // when a running tool's progress was last sent
}

type recentCommand struct {
	Command   string  `json:"command"`
	ExitCode  *int    `json:"exit_code"`
	Timestamp float64 `json:"timestamp"` // in seconds since 1970; see startedMS
	Output    string  `json:"output"`
}

// startedMS returns when the command began, in milliseconds since 1970; 0 for a time that nothing can have begun at.
func (r recentCommand) startedMS() int64 {
	const mostSeconds = 1e11 // the year 5138; a larger number is milliseconds
	ms := r.Timestamp
	if ms < mostSeconds {
		ms *= 1000
	}
	if ms < 0 || ms > mostSeconds*1000 {
		return 0
	}
	return int64(ms)
}

// recentCommands are the newest maxHistory of a client's commands, oldest first. Decoding does not keep the others.
type recentCommands []recentCommand

// UnmarshalJSON implements json.Unmarshaler.
func (l *recentCommands) UnmarshalJSON(raw []byte) error {
	var list recentCommands
	err := gateway.EachElement(raw, func(r recentCommand) error {
		if list = append(list, r); len(list) >= 2*maxHistory {
			list = append(list[:0], list[len(list)-maxHistory:]...)
		}
		return nil
	})
	*l = list[max(0, len(list)-maxHistory):]
	return err
}

type queryParams struct {
	Message string `json:"message"`
	Context struct {
		Cwd            string              `json:"cwd"`
		Shell          string              `json:"shell"` // ignored: agents have bash
		Env            map[string]string   `json:"env"`
		RecentCommands recentCommands      `json:"recent_commands"`
		RecentOutput   string              `json:"recent_output"`
		OpenFiles      gateway.Few[string] `json:"open_files"`
	} `json:"context"`
	Options struct {
		Stream          *bool    `json:"stream"`
		MaxTokens       *int     `json:"max_tokens"`
		Temperature     *float64 `json:"temperature"`
		ToolsEnabled    *bool    `json:"tools_enabled"`
		RequireApproval *bool    `json:"require_approval"`
	} `json:"options"`
}

// request converts a query to the native form.
func (p *queryParams) request() (*wire.AgentRequest, *failure) {
	if strings.TrimSpace(p.Message) == "" {
		return nil, failed(codeParams, "message: is empty")
	}
	req := &wire.AgentRequest{
		Prompt: p.Message,
		Context: wire.RequestContext{
			Cwd: wire.OSString(p.Context.Cwd), RecentOutput: []byte(p.Context.RecentOutput),
			RecentCommands: []wire.RecentCommand{}, OpenFiles: []wire.OSString{},
		},
		Attachments: []wire.Attachment{},
	}
	for _, r := range p.Context.RecentCommands {
		req.Context.RecentCommands = append(req.Context.RecentCommands, wire.RecentCommand{
			Command: wire.OSString(r.Command), ExitCode: r.ExitCode, StartedAtMS: r.startedMS(), OutputTail: []byte(r.Output),
		})
	}
	for _, f := range p.Context.OpenFiles {
		req.Context.OpenFiles = append(req.Context.OpenFiles, wire.OSString(f))
	}
	o := &p.Options
	switch {
	case o.MaxTokens != nil && *o.MaxTokens < 1:
		return nil, failed(codeParams, "options.max_tokens: %d is less than 1", *o.MaxTokens)
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > 2):
		return nil, failed(codeParams, "options.temperature: %v is outside 0 to 2", *o.Temperature)
	}
	req.Options.MaxTokens, req.Options.Temperature = o.MaxTokens, o.Temperature
	if o.ToolsEnabled != nil && !*o.ToolsEnabled {
		req.Options.Tools = []string{} // empty: no tool; nil would be all
	}
	if o.RequireApproval != nil && !*o.RequireApproval {
		req.Options.RequireApproval = o.RequireApproval // false: the daemon refuses what the policy would ask about
	}
	return req, nil
}

// query begins a turn. It is answered at once; notifications follow (E2 to E4).
func (c *conn) query(r *request) (any, *failure) {
	var p queryParams
	if f := r.decode(&p, "message"); f != nil {
		return nil, f
	}
	req, f := p.request()
	if f != nil {
		return nil, f
	}
	was := c.session.Place()
	place, err := was.With(c.s.o.Daemon.Env, p.Context.Cwd, p.Context.Env)
	if err != nil {
		return nil, failed(codeParams, "context.%s", err)
	}
	limit := c.s.limits.RunningTurns
	q := &query{
		Turn: gateway.Turn{ID: "q-" + wire.NewID()}, began: time.Now(), progressAt: map[wire.ExecutionID]time.Time{},
		stream: c.can["streaming"] && (p.Options.Stream == nil || *p.Options.Stream), blocks: c.can["blocks"],
	}
	q.Handle, q.Flush = func(e wire.EventMessage) { c.translate(q, e) }, func() { c.flush(q) }
	q.Ended = func(status string, why *wire.Error) { c.end(q, status, why) }
	q.Asked = func(m *gateway.Question) { c.ask(q, m) }
	if err := c.turns.Begin(&q.Turn, limit); err != nil {
		return nil, failed(codeAgent, "concurrent queries: %v", err).with("limit", limit).with("retry_after_ms", 1000)
	}
	c.afterAnswer = append(c.afterAnswer, func() {
		if p.Context.Cwd != "" && place.Cwd != was.Cwd || len(p.Context.Env) > 0 {
			if err = c.session.Move(c.ctx, place); err != nil {
				q.Abandon()
			}
		}
		if err == nil {
			err = q.Ask(c.ctx, c.session, req)
		}
		if err != nil {
			c.end(q, wire.StatusError, err)
			return
		}
		c.suggest(p.Context.RecentCommands)
	})
	return map[string]any{"query_id": q.ID, "status": "processing"}, nil
}

// end sends stream.complete, and before it stream.error with why, if the query failed. It is called once for each query (E17, E20).
func (c *conn) end(q *query, status string, why error) {
	c.flushText(q)
	if status == wire.StatusError || status == wire.StatusTimeout {
		f := failureOf(why)
		message, details, _ := strings.Cut(f.Message, ": ")
		c.notify("stream.error", map[string]any{
			"query_id": q.ID,
			"error":    map[string]any{"code": f.Code, "message": longTitles[f.Code], "details": cmp.Or(details, message)},
		})
	}
	metadata := map[string]any{
		"total_tokens": 0, "tokens_per_second": 0.0, "tools_executed": []string{}, "model_used": "",
		"duration_ms": time.Since(q.began).Milliseconds(),
	}
	if m := q.End; m != nil {
		metadata["total_tokens"], metadata["tools_executed"] = m.Usage.Total, m.ToolsExecuted
		metadata["model_used"], metadata["duration_ms"] = m.Model, m.DurationMS
		if m.DurationMS > 0 {
			metadata["tokens_per_second"] = float64(m.Usage.Output*1000*100/m.DurationMS) / 100
		}
		if len(m.Refused) > 0 {
			refused := make([]map[string]string, 0, len(m.Refused))
			for _, r := range m.Refused {
				refused = append(refused, map[string]string{"tool": r.Tool, "reason": r.Reason})
			}
			metadata["tools_refused"] = refused
		}
	}
	c.notify("stream.complete", map[string]any{"query_id": q.ID, "status": status, "metadata": metadata})
}

// longTitles are the messages of stream.error, which the document words otherwise than those of answers.
var longTitles = map[int]string{
	codeParams: "Invalid params", codeInternal: "Internal server error", codeAgent: "Agent processing failed",
	codeModel: "LLM inference failed", codeTool: "Tool execution failed", codeTimeout: "Operation timed out",
	codeCancelled: "Operation was cancelled", codePermission: "Operation not permitted",
}
