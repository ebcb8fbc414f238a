package jsonrpc

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/gateway"
	"sublet/wire"
	"sublet/wire/visible"
)

// progressEvery is the minimum interval between two progress messages of a tool; output between them is sent only with its result.
const progressEvery = 100 * time.Millisecond

type tokenMetadata struct {
	Type       string  `json:"type"`
	Confidence float64 `json:"confidence"` // models report none: always 1
}

type token struct {
	Token    string        `json:"token"`
	Index    int           `json:"index"`
	Metadata tokenMetadata `json:"metadata"`
}

type oneToken struct {
	Query string `json:"query_id"`
	token
}

type manyTokens struct {
	Query  string  `json:"query_id"`
	Tokens []token `json:"tokens"`
}

// flush sends the unsent tokens in one notification.
func (c *conn) flush(q *query) {
	switch len(q.unsent) {
	case 0:
	case 1:
		c.notify("stream.token", oneToken{q.ID, q.unsent[0]})
	default:
		c.notify("stream.tokens", manyTokens{q.ID, q.unsent})
	}
	q.unsent = nil
}

// emit sends a piece of the answer: a block at once, text with the next flush.
func (c *conn) emit(q *query, p gateway.Piece) {
	if p.Code {
		c.flush(q)
		c.block(q, fenced(p))
		return
	}
	q.unsent = append(q.unsent, token{p.Text, q.index, tokenMetadata{"text", 1}})
	q.index++
}

// answerText reports whether m is text of the agent itself or a void chunk, rather than text of a sub-agent.
func answerText(m wire.Message) (*wire.AgentStreamChunk, bool) {
	chunk, ok := m.(*wire.AgentStreamChunk)
	if !ok || chunk.Chunk.Type != wire.ChunkText && chunk.Chunk.Type != wire.ChunkVoid || wire.IsDelegate(chunk.Agent) {
		return nil, false
	}
	return chunk, true
}

// addText adds a piece of the answer and returns what to send now.
func (q *query) addText(m *wire.AgentStreamChunk) []gateway.Piece {
	text := m.Chunk.Text
	void := m.Chunk.Type == wire.ChunkVoid
	switch {
	case void && !q.stream:
		q.text.Void(m.Chunk.FromSeq)
		return nil
	case !q.stream:
		q.text.Add(m.First(), text)
		return nil
	case void:
		q.split = gateway.Fences{} // drops the text that was not sent yet
		if q.index == 0 && q.blocksSent == 0 {
			return nil
		}
		text = gateway.Void(text)
	}
	if !q.blocks {
		return []gateway.Piece{{Text: text}}
	}
	return q.split.Add(text)
}

// heldBack returns the text that was not sent yet, at the end of an answer or before a tool's call.
func (q *query) heldBack() []gateway.Piece {
	switch {
	case q.stream:
		return q.split.End()
	case q.text.Len() == 0:
		return nil
	}
	text := q.text.String()
	q.text.Reset()
	if !q.blocks {
		return []gateway.Piece{{Text: text}}
	}
	return append(q.split.Add(text), q.split.End()...)
}

func (c *conn) flushText(q *query) {
	for _, p := range q.heldBack() {
		if q.stream || !q.blocks || p.Code {
			c.emit(q, p)
		} else if text := strings.Trim(p.Text, "\n"); text != "" { // not streamed: each text between two blocks is a block
			c.block(q, &block{Type: "text", Content: text, Annotations: []annotation{}})
		}
	}
	c.flush(q)
}

func (c *conn) block(q *query, b *block) {
	q.blocksSent++
	c.notify("stream.block", map[string]any{
		"query_id": q.ID, "block_id": "block-" + strconv.Itoa(q.blocksSent) + "-" + strings.TrimPrefix(q.ID, "q-"), "block": b,
	})
}

// translate converts one event of a query.
func (c *conn) translate(q *query, e wire.EventMessage) {
	if chunk, ok := answerText(e); ok {
		for _, p := range q.addText(chunk) {
			c.emit(q, p)
		}
		return
	}
	c.flush(q)
	switch m := e.(type) {
	case *wire.AgentThinking:
		phase := m.Phase
		if phase == wire.PhaseWaiting { // the document does not have it
			phase = wire.PhasePlanning
		}
		c.thinking(q, phase, m.Message)
	case *wire.AgentStreamChunk:
		c.chunk(q, m)
	case *wire.CommandResult:
		c.toolEnd(q, m)
	}
}

func (c *conn) thinking(q *query, phase, message string) {
	c.notify("agent.thinking", map[string]any{"query_id": q.ID, "phase": phase, "message": message})
}

func (c *conn) chunk(q *query, m *wire.AgentStreamChunk) {
	chunk := &m.Chunk
	switch chunk.Type {
	case wire.ChunkReasoning:
		if chunk.Text != "" {
			c.thinking(q, wire.PhasePlanning, chunk.Text)
		}
	case wire.ChunkText: // of an agent that works for another one
		c.thinking(q, wire.PhaseExecuting, m.Agent+": "+chunk.Text)
	case wire.ChunkNotice:
		c.thinking(q, wire.PhaseExecuting, chunk.Text)
	case wire.ChunkToolCall:
		if q.stream {
			c.flushText(q)
		}
		c.progress(chunk.ExecutionID, 0, chunk.Tool+" "+summary(chunk.Tool, chunk.Arguments))
	case wire.ChunkToolOutput:
		now := time.Now()
		if now.Sub(q.progressAt[chunk.ExecutionID]) < progressEvery {
			return
		}
		q.progressAt[chunk.ExecutionID] = now
		if line := lastLine(chunk.Data); line != "" {
			c.progress(chunk.ExecutionID, percentage(line), line)
		}
	}
}

func (c *conn) progress(id wire.ExecutionID, percentage int, message string) {
	c.notify("tool.progress", map[string]any{
		"execution_id": id,
		"progress":     map[string]any{"percentage": percentage, "status": "processing", "message": message},
	})
}

// toolEnd reports a tool's end (G2, G6).
func (c *conn) toolEnd(q *query, m *wire.CommandResult) {
	delete(q.progressAt, m.ExecutionID)
	result := map[string]any{"output": string(m.Output), "files_modified": append([]wire.OSString{}, m.FilesModified...), "duration_ms": m.DurationMS}
	if m.ExitCode != nil {
		result["exit_code"] = *m.ExitCode
	}
	c.notify("tool.complete", map[string]any{"execution_id": m.ExecutionID, "status": m.Status, "result": result})
	if q.blocks && isBlock(m) {
		c.block(q, &block{
			Type: "tool_output", Content: string(m.Output), Metadata: blockMetadata{Execution: string(m.ExecutionID)}, Annotations: []annotation{},
		})
	}
}

// isBlock reports whether a tool's output is a block of the answer.
func isBlock(m *wire.CommandResult) bool { return m.Tool == "bash" && len(m.Output) > 0 }

// summary returns a call's arguments in one line.
func summary(tool, arguments string) string {
	return gateway.OneLine(cmp.Or(wire.CallSubject(tool, arguments), arguments))
}

// lastLine returns the last non-blank line of output, without control sequences (P8). A \r ends a line, as in a progress bar.
func lastLine(data []byte) string {
	text := strings.ReplaceAll(ansi.Strip(string(data)), "\r", "\n")
	lines := strings.Split(visible.Strip(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := gateway.OneLine(lines[i]); line != "" {
			return line
		}
	}
	return ""
}

var percent = gateway.Pattern(`(\d{1,3})(?:\.\d+)?\s?%`)

// percentage returns the progress that a program prints; 0 if it prints none.
func percentage(line string) int {
	found := percent().FindAllStringSubmatch(line, -1)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[len(found)-1][1]) // at most three digits
	return min(n, 100)
}
