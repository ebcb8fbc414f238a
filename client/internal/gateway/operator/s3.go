package operator

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// The events of S3 (F7 to F9, E18, G1, G2, G10). In addition to the document each has the id of its request, and each of a turn
// the turn's, since several may run on a connection (E21).

type s3Head struct {
	Type      string `json:"type"`
	ID        string `json:"id,omitempty"` // of the request
	TurnID    string `json:"turnID,omitempty"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970 (F18)
}

type s3Started struct {
	s3Head
	AgentID   string `json:"agentID"`
	SessionID string `json:"sessionID"`
}

type s3Block struct {
	s3Head
	Content string `json:"content"`
}

type s3Chunk struct {
	s3Head
	Delta   string `json:"delta"`
	Encoded bool   `json:"deltaEncoded,omitempty"` // delta is base64 of gzip (A19)
}

type s3ToolCall struct {
	s3Head
	ToolID  string          `json:"toolID"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	AgentID string          `json:"agentID,omitempty"` // where another agent than the turn's calls it
}

type s3Result struct {
	ToolID   string `json:"toolID"`
	Output   string `json:"output"`
	Error    string `json:"error,omitempty"`
	Duration int64  `json:"duration"` // milliseconds
}

type s3ToolResult struct {
	s3Head
	s3Result
}

type s3Batch struct {
	s3Head
	Results []s3Result `json:"results"`
}

type s3Usage struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Total  int64 `json:"totalTokens"`
}

type s3Call struct {
	Name   string          `json:"name"`
	ID     string          `json:"id,omitempty"`
	Input  json.RawMessage `json:"input"`
	Output *string         `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

type s3Completed struct {
	s3Head
	Content    string   `json:"content"`
	ToolCalls  []s3Call `json:"toolCalls"`
	Usage      s3Usage  `json:"usage"`
	StopReason string   `json:"stopReason"`
}

type s3Error struct {
	s3Head
	Code        string         `json:"code"`
	Message     string         `json:"message"`
	Details     map[string]any `json:"details,omitempty"`
	Recoverable bool           `json:"recoverable"`
}

// s3Turn translates a running turn. It is not safe for concurrent use.
type s3Turn struct {
	id      string // of the client's request
	agent   string // as the client named it
	options s3Options
	turn    *turn
	h       history
	spoken  bool       // the response-block was sent
	results []s3Result // held back for a batch
	ended   bool
}

// s3Options are what a request's metadata asks for in addition to the plain events.
type s3Options struct {
	batch    bool // concurrent tool results in one message
	gzip     bool // long deltas compressed
	extended bool // additional events: thinking, reasoning-chunk, tool-output, notice
}

// compressFrom is the size in bytes from which a delta is compressed.
const compressFrom = 512

// translate returns the lines for one native event, whole and in order; none for most kinds.
func (s *s3Turn) translate(m wire.EventMessage) [][]byte {
	if s.ended {
		return nil
	}
	var out [][]byte
	begun := s.turn == nil
	t := s.h.apply(m)
	if t == nil {
		if e, ok := m.(*wire.Error); ok && begun { // refused before it began
			s.ended = true
			return [][]byte{line(s3Refusal(s.id, problemOf(e), e.AtMS))}
		}
		return nil
	}
	if begun {
		s.turn = t
	}
	if _, again := m.(*wire.TurnStarted); t != s.turn || again && !begun { // a request has one turn, which begins once
		return nil
	}
	if !amongResults(m) {
		out = s.flush(out, m.Meta().AtMS)
	}
	switch m := m.(type) {
	case *wire.TurnStarted:
		out = append(out, line(s3Started{s.head("turn-started", m.AtMS), s.name(m.Agent), string(m.SessionID)}))
	case *wire.AgentStreamChunk:
		out = s.chunk(out, m)
	case *wire.CommandResult:
		out = s.result(out, m)
	case *wire.AgentThinking:
		if s.options.extended {
			out = append(out, line(struct {
				s3Head
				AgentID string `json:"agentID"`
				Phase   string `json:"phase"`
				Message string `json:"message"`
			}{s.head("thinking", m.AtMS), m.Agent, m.Phase, m.Message}))
		}
	case *wire.ConfirmationRequest:
		out = append(out, line(s.question(m)))
	case *wire.ConfirmationResolved:
		out = append(out, line(struct {
			s3Head
			ConfirmationID string `json:"confirmationID"`
			Decision       string `json:"decision"`
			By             string `json:"by"`
			Comment        string `json:"comment,omitempty"`
		}{s.head("confirmation-resolved", m.AtMS), string(m.ConfirmationID), m.Decision, m.By, m.Comment}))
	case *wire.Error:
		out = append(out, line(s.error(problemOf(m), m.AtMS)))
	case *wire.AgentComplete:
		s.ended = true
		out = append(out, line(s.completed(m.AtMS)))
	}
	return out
}

func (s *s3Turn) head(kind string, at int64) s3Head {
	h := s3Head{Type: kind, ID: s.id, Timestamp: stamp(at)}
	if s.turn != nil {
		h.TurnID = string(s.turn.id)
	}
	return h
}

// name returns an agent's name for the client, which may have used an alias.
func (s *s3Turn) name(agent string) string {
	if s.agent != "" && native(s.agent) == agent {
		return s.agent
	}
	return agent
}

func stamp(at int64) int64 {
	if at == 0 {
		return time.Now().UnixMilli()
	}
	return at
}

func (s *s3Turn) chunk(out [][]byte, m *wire.AgentStreamChunk) [][]byte {
	switch m.Chunk.Type {
	case wire.ChunkText:
		if s.turn.own(m) && m.Chunk.Text != "" {
			out = append(out, s.text(m.Chunk.Text, m.AtMS))
		}
	case wire.ChunkBlock:
		if s.turn.own(m) && m.Chunk.Block != nil {
			out = append(out, s.text(blockText(m.Chunk.Block), m.AtMS))
		}
	case wire.ChunkVoid: // the content of turn-completed is without it
		if s.turn.own(m) && s.spoken {
			out = append(out, s.text(gateway.Void(m.Chunk.Text), m.AtMS))
		}
	case wire.ChunkToolCall:
		if run := s.turn.tool(m.Chunk.ExecutionID); run != nil {
			out = append(out, line(s.call(run, m.AtMS)))
		}
	case wire.ChunkReasoning, wire.ChunkNotice, wire.ChunkToolOutput:
		if s.options.extended {
			out = append(out, line(s.extra(m)))
		}
	}
	return out
}

// text returns the answer's first piece as response-block and later ones as response-chunk (F8, F9), which a client appends.
func (s *s3Turn) text(text string, at int64) []byte {
	if !s.spoken {
		s.spoken = true
		return line(s3Block{s.head("response-block", at), text})
	}
	c := s3Chunk{s3Head: s.head("response-chunk", at), Delta: text}
	if s.options.gzip && len(text) >= compressFrom {
		c.Delta, c.Encoded = compress(text), true
	}
	return line(c)
}

func compress(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("operator: gzip: " + err.Error()) // a buffer takes everything
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func (s *s3Turn) call(run *toolRun, at int64) s3ToolCall {
	c := s3ToolCall{s3Head: s.head("tool-call", at), ToolID: string(run.id), Name: run.name, Input: run.input}
	if run.agent != s.turn.agent {
		c.AgentID = run.agent
	}
	return c
}

func (s *s3Turn) result(out [][]byte, m *wire.CommandResult) [][]byte {
	run := s.turn.tool(m.ExecutionID)
	if m.ExecutionID == "" || run == nil {
		return out
	}
	r := s3Result{ToolID: string(run.id), Output: run.output, Duration: run.duration}
	if run.failed() {
		_, r.Error = toolProblem(run)
	}
	if s.options.batch {
		s.results = append(s.results, r)
		return out
	}
	out = append(out, line(s3ToolResult{s.head("tool-result", m.AtMS), r}))
	return s.toolError(out, r, m.AtMS)
}

// toolError returns the error event for a failed tool in a turn that continues (L16, G9).
func (s *s3Turn) toolError(out [][]byte, r s3Result, at int64) [][]byte {
	if r.Error == "" {
		return out
	}
	run := s.turn.tool(wire.ExecutionID(r.ToolID))
	return append(out, line(s.error(&problem{
		s3: codeTool, message: r.Error, recoverable: true,
		details: map[string]any{"tool": run.name, "toolID": r.ToolID, "error": head(run.output), "status": run.status},
	}, at)))
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

// flush sends the results that were held back, because another event came (G10).
func (s *s3Turn) flush(out [][]byte, at int64) [][]byte {
	switch len(s.results) {
	case 0:
		return out
	case 1:
		out = append(out, line(s3ToolResult{s.head("tool-result", at), s.results[0]}))
	default:
		out = append(out, line(s3Batch{s.head("tool-results-batch", at), s.results}))
	}
	for _, r := range s.results {
		out = s.toolError(out, r, at)
	}
	s.results = nil
	return out
}

func (s *s3Turn) error(p *problem, at int64) s3Error {
	e := s3Refusal(s.id, p, at)
	if s.turn != nil {
		e.TurnID = string(s.turn.id)
	}
	return e
}

// s3Refusal is an error that belongs to no turn: the one answer to its request.
func s3Refusal(id string, p *problem, at int64) s3Error {
	e := s3Error{
		s3Head: s3Head{Type: "error", ID: id, Timestamp: stamp(at)},
		Code:   p.s3, Message: p.message, Details: p.details, Recoverable: p.recoverable,
	}
	if p.hint != "" {
		details := map[string]any{"hint": p.hint}
		for k, v := range p.details {
			details[k] = v
		}
		e.Details = details
	}
	return e
}

// completed returns the end of the turn (E18, E20).
func (s *s3Turn) completed(at int64) s3Completed {
	return s3Completed{
		s3Head: s.head("turn-completed", at), Content: s.turn.text(), ToolCalls: s3Calls(s.turn),
		Usage: s3UsageOf(s.turn.usage), StopReason: s.turn.stopReason(),
	}
}

func s3UsageOf(u usage) s3Usage { return s3Usage{u.input, u.output, u.input + u.output} }

func s3Calls(t *turn) []s3Call {
	calls := []s3Call{}
	for _, run := range t.tools {
		c := s3Call{Name: run.name, ID: string(run.id), Input: run.input}
		if run.status != "" {
			c.Output = &run.output
		}
		if run.failed() {
			_, c.Error = toolProblem(run)
		}
		calls = append(calls, c)
	}
	return calls
}

// extra returns events that the document does not define, for clients that asked for them (F21, R4).
func (s *s3Turn) extra(m *wire.AgentStreamChunk) any {
	switch m.Chunk.Type {
	case wire.ChunkReasoning:
		return s3Chunk{s3Head: s.head("reasoning-chunk", m.AtMS), Delta: m.Chunk.Text}
	case wire.ChunkNotice:
		return struct {
			s3Head
			Message string `json:"message"`
		}{s.head("notice", m.AtMS), m.Chunk.Text}
	}
	return struct {
		s3Head
		ToolID string `json:"toolID"`
		Delta  string `json:"delta"`
	}{s.head("tool-output", m.AtMS), string(m.Chunk.ExecutionID), string(m.Chunk.Data)}
}

type s3Question struct {
	s3Head
	ConfirmationID string          `json:"confirmationID"`
	ToolID         string          `json:"toolID"`
	AgentID        string          `json:"agentID"`
	Tool           string          `json:"tool"`
	Command        string          `json:"command,omitempty"`
	Input          json.RawMessage `json:"input"`
	Cwd            string          `json:"cwd"`
	Level          string          `json:"level"`
	Reasons        []string        `json:"reasons"`
	Reversible     bool            `json:"reversible"`
	UndoHint       string          `json:"undoHint,omitempty"`
	Preview        s3Preview       `json:"preview"`
	Grants         []s3Grant       `json:"grants"`
}

type s3Preview struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

type s3Grant struct {
	Scope  string `json:"scope"`
	Rule   string `json:"rule"`
	Covers string `json:"covers"`
}

// question returns a question, only for clients that can answer it: the page.
func (s *s3Turn) question(m *wire.ConfirmationRequest) s3Question {
	q := s3Question{
		s3Head: s.head("confirmation-request", m.AtMS), ConfirmationID: string(m.ConfirmationID), ToolID: string(m.ExecutionID),
		AgentID: m.Agent, Tool: m.Tool, Command: string(m.Command), Input: object(m.Arguments), Cwd: string(m.Cwd),
		Level: m.Verdict.Level, Reasons: []string{}, Reversible: m.Verdict.Reversible, UndoHint: m.Verdict.UndoHint,
		Preview: s3Preview{m.Preview.Type, m.Preview.Content}, Grants: []s3Grant{},
	}
	for _, r := range m.Verdict.Reasons {
		q.Reasons = append(q.Reasons, r.Text)
	}
	for _, g := range m.Grants {
		q.Grants = append(q.Grants, s3Grant{g.Scope, g.Rule, g.Covers})
	}
	return q
}
