package agent

import (
	"regexp"
	"strings"
	"unicode"

	"sublet/wire"
)

// emit sends one event and returns its number, 0 where the hub gave none.
func (r *runner) emit(m wire.EventMessage) int64 {
	r.t.Emit(m)
	seq := m.Meta().Seq
	r.mu.Lock()
	r.seq = max(r.seq, seq)
	r.mu.Unlock()
	return seq
}

// lastSeq is the number of the newest event of this agent.
func (r *runner) lastSeq() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

func (r *runner) chunk(c wire.Chunk) int64 {
	return r.emit(&wire.AgentStreamChunk{Agent: r.name, Chunk: c})
}

func (r *runner) notice(text string) { r.chunk(wire.Chunk{Type: wire.ChunkNotice, Text: text}) }

func (r *runner) thinking(phase, message string) {
	r.emit(&wire.AgentThinking{Agent: r.name, Phase: phase, Message: message})
}

var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// clean takes control sequences and control characters but line ends and tabs out of text that models and programs
// wrote, and makes it valid UTF-8.
func clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
	}) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = escapes.ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
