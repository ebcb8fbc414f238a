package agent

import (
	"sublet/wire"
	"sublet/wire/visible"
)

// emit sends one event and returns its number, 0 if the hub assigned none.
func (r *runner) emit(m wire.EventMessage) int64 {
	r.t.Emit(m)
	seq := m.Meta().Seq
	r.mu.Lock()
	r.seq = max(r.seq, seq)
	r.mu.Unlock()
	return seq
}

// lastSeq returns the number of this agent's newest event.
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

// waiting reports that the provider is asked again after a pause; "" reports the end of the pause.
func (r *runner) waiting(text string) {
	if text == "" {
		r.thinking(wire.PhasePlanning, "asking the model again")
		return
	}
	r.thinking(wire.PhaseWaiting, text)
}

// clean is visible.Clean.
func clean(s string) string { return visible.Clean(s) }
