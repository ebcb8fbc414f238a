package operator

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"maps"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// This file translates for clients of the dialect S3, which get a typed event for each step of a turn.

// body is the fields of a JSON object.
type body map[string]any

// with returns b with a field more, unless its value is the empty string.
func (b body) with(name, value string) body {
	if value != "" {
		b[name] = value
	}
	return b
}

// s3Event is an event of S3 (F7 to F9, E18, G1, G2, G10). Beside the document's fields it has the ids of its request and its turn, since
// several turns may run on a connection (E21).
type s3Event struct {
	Type      string      `json:"type"`
	ID        string      `json:"id,omitempty"` // of the request
	TurnID    wire.TurnID `json:"turnID,omitempty"`
	Timestamp int64       `json:"timestamp"` // milliseconds since 1970 (F18)
	body      body        // the fields of its type
}

// MarshalJSON implements json.Marshaler: the fields that all events have come first.
func (e s3Event) MarshalJSON() ([]byte, error) {
	type head s3Event
	l := mustJSON(head(e))
	if len(e.body) == 0 {
		return l, nil
	}
	return append(append(l[:len(l)-1], ','), mustJSON(e.body)[1:]...), nil
}

// s3Turn translates a running turn. It is not safe for concurrent use.
type s3Turn struct {
	id          string // of the client's request
	agent       string // as the client named it
	options     s3Options
	turn        *turn   // nil = not begun
	history     history // of this one turn
	answerBegun bool    // the response-block was sent
	results     []body  // not yet sent: see flush
}

// s3Options are what a request's metadata asks for in addition to the plain events.
type s3Options struct {
	batch    bool // concurrent tool results in one message
	gzip     bool // long deltas compressed
	extended bool // additional events: thinking, reasoning-chunk, tool-output, notice
}

// compressFrom is the size in bytes from which a delta is compressed: base64 and the head of gzip make a shorter one longer.
const compressFrom = 512

// translate returns the lines for one native event in order; none for most kinds.
func (s *s3Turn) translate(m wire.EventMessage) [][]byte {
	if e, ok := m.(*wire.Error); ok && e.TurnID == "" { // it never began, or its session is gone
		return [][]byte{gateway.Line(s3Refusal(s.id, "", problemOf(e), e.AtMS))}
	}
	t := s.history.apply(m)
	if t == nil {
		return nil
	}
	s.turn = t
	var out [][]byte
	if !amongResults(m) {
		out = s.flush(out, m.Meta().AtMS)
	}
	switch m := m.(type) {
	case *wire.TurnStarted:
		out = append(out, s.event("turn-started", m.AtMS, body{"agentID": s.name(m.Agent), "sessionID": m.SessionID}))
	case *wire.AgentStreamChunk:
		out = s.chunk(out, m)
	case *wire.CommandResult:
		out = s.result(out, m)
	case *wire.AgentThinking:
		if s.options.extended {
			out = append(out, s.event("thinking", m.AtMS, body{"agentID": m.Agent, "phase": m.Phase, "message": m.Message}))
		}
	case *wire.ConfirmationRequest:
		out = append(out, s.question(m))
	case *wire.ConfirmationResolved:
		b := body{"confirmationID": m.ConfirmationID, "decision": m.Decision, "by": m.By}
		out = append(out, s.event("confirmation-resolved", m.AtMS, b.with("comment", m.Comment)))
	case *wire.Error:
		out = append(out, s.error(problemOf(m), m.AtMS))
	case *wire.AgentComplete:
		out = append(out, s.event("turn-completed", m.AtMS, s.end()))
	}
	return out
}

// event returns the line of one of the turn's events.
func (s *s3Turn) event(kind string, at int64, b body) []byte {
	return gateway.Line(s3Event{kind, s.id, s.turn.id, stamp(at), b})
}

// name returns an agent's name as the client knows it, which may have named it by an alias.
func (s *s3Turn) name(agent string) string {
	if s.agent != "" && daemonName(s.agent) == agent {
		return s.agent
	}
	return agent
}

// stamp is a time in milliseconds since 1970, 0 = now.
func stamp(at int64) int64 {
	if at == 0 {
		return time.Now().UnixMilli()
	}
	return at
}

// chunk appends the events of a chunk of the answer to out. Text counts if it is the turn's agent's, not a sub-agent's; other kinds than
// text and tool calls are sent if the client asked for the extended events.
func (s *s3Turn) chunk(out [][]byte, m *wire.AgentStreamChunk) [][]byte {
	switch m.Chunk.Type {
	case wire.ChunkText:
		if s.turn.ofTurnAgent(m) && m.Chunk.Text != "" {
			out = append(out, s.text(m.Chunk.Text, m.AtMS))
		}
	case wire.ChunkVoid: // turn-completed comes without the text that is void
		if s.turn.ofTurnAgent(m) && s.answerBegun {
			out = append(out, s.text(gateway.Void(m.Chunk.Text), m.AtMS))
		}
	case wire.ChunkToolCall:
		if run := s.turn.tool(m.Chunk.ExecutionID); run != nil {
			b := body{"toolID": run.id, "name": run.name, "input": run.input}
			if run.agent != s.turn.agent { // a sub-agent calls it
				b["agentID"] = run.agent
			}
			out = append(out, s.event("tool-call", m.AtMS, b))
		}
	case wire.ChunkReasoning, wire.ChunkNotice, wire.ChunkToolOutput:
		if s.options.extended {
			out = append(out, s.extension(m))
		}
	}
	return out
}

// text returns the answer's first piece as response-block and later ones as response-chunk (F8, F9), which a client appends.
func (s *s3Turn) text(text string, at int64) []byte {
	if !s.answerBegun {
		s.answerBegun = true
		return s.event("response-block", at, body{"content": text})
	}
	b := body{"delta": text}
	if s.options.gzip && len(text) >= compressFrom { // base64 of gzip (A19)
		b["delta"], b["deltaEncoded"] = compress(text), true
	}
	return s.event("response-chunk", at, b)
}

func compress(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer accepts everything
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// result adds the result of m, which the turn has applied, to those held back, and sends them unless the client asked for batches.
func (s *s3Turn) result(out [][]byte, m *wire.CommandResult) [][]byte {
	run := s.turn.tool(m.ExecutionID)
	r := body{"toolID": run.id, "output": run.output, "duration": run.duration} // milliseconds
	if run.failed() {
		_, r["error"] = toolProblem(run)
	}
	s.results = append(s.results, r)
	if s.options.batch {
		return out
	}
	return s.flush(out, m.AtMS)
}

// amongResults reports whether an event may come between the results of concurrent calls.
func amongResults(m wire.EventMessage) bool {
	switch m := m.(type) {
	case *wire.CommandResult:
		return true
	case *wire.AgentThinking:
		return m.Phase == wire.PhaseExecuting
	case *wire.AgentStreamChunk:
		return m.Chunk.Type == wire.ChunkToolResult || m.Chunk.Type == wire.ChunkToolOutput
	}
	return false
}

// flush sends the results that were held back (G10), and an error event for each failed tool of a turn that continues (L16, G9).
func (s *s3Turn) flush(out [][]byte, at int64) [][]byte {
	list := s.results
	s.results = nil
	if len(list) > 1 {
		out = append(out, s.event("tool-results-batch", at, body{"results": list}))
	}
	for _, r := range list {
		if len(list) == 1 {
			out = append(out, s.event("tool-result", at, r))
		}
		if r["error"] != nil {
			run := s.turn.tool(r["toolID"].(wire.ExecutionID))
			out = append(out, s.error(&problem{
				s3: codeTool, message: r["error"].(string), recoverable: true,
				details: map[string]any{"tool": run.name, "toolID": run.id, "error": clip(run.output), "status": run.status},
			}, at))
		}
	}
	return out
}

func (s *s3Turn) error(p *problem, at int64) []byte {
	return gateway.Line(s3Refusal(s.id, s.turn.id, p, at))
}

// s3Refusal returns the error event of a request. Without a turn, which then never began, it is the only answer to the request.
func s3Refusal(id string, turn wire.TurnID, p *problem, at int64) s3Event {
	b, details := body{"code": p.s3, "message": p.message, "recoverable": p.recoverable}, body{}
	maps.Copy(details, p.details)
	if len(details.with("hint", p.hint)) > 0 {
		b["details"] = details
	}
	return s3Event{"error", id, turn, stamp(at), b}
}

// end is the turn's turn-completed (E18, E20).
func (s *s3Turn) end() body {
	return body{"content": s.turn.text(), "toolCalls": s3Calls(s.turn), "usage": s3UsageOf(s.turn.usage), "stopReason": s.turn.stopReason()}
}

func s3UsageOf(u usage) body {
	return body{"inputTokens": u.input, "outputTokens": u.output, "totalTokens": u.input + u.output}
}

func s3Calls(t *turn) []body {
	calls := []body{}
	for _, run := range t.tools {
		c := body{"name": run.name, "id": run.id, "input": run.input}
		if run.status != "" {
			c["output"] = run.output
		}
		if run.failed() {
			_, c["error"] = toolProblem(run)
		}
		calls = append(calls, c)
	}
	return calls
}

// extension returns an event that the document does not define, for clients that asked for these (F21, R4).
func (s *s3Turn) extension(m *wire.AgentStreamChunk) []byte {
	switch m.Chunk.Type {
	case wire.ChunkReasoning:
		return s.event("reasoning-chunk", m.AtMS, body{"delta": m.Chunk.Text})
	case wire.ChunkNotice:
		return s.event("notice", m.AtMS, body{"message": m.Chunk.Text})
	}
	return s.event("tool-output", m.AtMS, body{"toolID": m.Chunk.ExecutionID, "delta": string(m.Chunk.Data)})
}

// s3Grant is a standing permission that a question offers.
type s3Grant struct {
	Scope  string `json:"scope"`
	Rule   string `json:"rule"`
	Covers string `json:"covers"`
}

// question returns the event of a question of the turn. There are questions only if the dispatch had metadata.approvals, which the web
// page of --ui sets.
func (s *s3Turn) question(m *wire.ConfirmationRequest) []byte {
	grants := []s3Grant{}
	for _, g := range m.Grants {
		grants = append(grants, s3Grant(g))
	}
	b := body{
		"confirmationID": m.ConfirmationID, "toolID": m.ExecutionID, "agentID": m.Agent, "tool": m.Tool, "input": gateway.Arguments(m.Arguments),
		"cwd": string(m.Cwd), "level": m.Verdict.Level, "reasons": gateway.Reasons(&m.Verdict), "reversible": m.Verdict.Reversible,
		"preview": body{"type": m.Preview.Type, "content": m.Preview.Content}, "grants": grants,
	}
	return s.event("confirmation-request", m.AtMS, b.with("command", string(m.Command)).with("undoHint", m.Verdict.UndoHint))
}
