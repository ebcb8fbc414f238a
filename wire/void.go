package wire

import "cmp"

// First returns the number of the first event of which m consists.
func (m *AgentStreamChunk) First() int64 { return cmp.Or(m.SeqFirst, m.Seq) }

// Voids reports whether m, which follows old, is a void chunk that withdraws old: text or reasoning of an answer by the
// same agent that the provider broke off.
func (m *AgentStreamChunk) Voids(old *AgentStreamChunk) bool {
	return m.Chunk.Type == ChunkVoid && old.Agent == m.Agent && old.TurnID == m.TurnID && old.First() >= m.Chunk.FromSeq &&
		(old.Chunk.Type == ChunkText || old.Chunk.Type == ChunkReasoning)
}

// WithoutVoid returns a copy of events, which are sorted by Seq, without the void chunks and without the chunks that those
// withdraw.
func WithoutVoid(events []EventMessage) []EventMessage {
	out := make([]EventMessage, 0, len(events))
	for _, ev := range events {
		m, ok := ev.(*AgentStreamChunk)
		if !ok || m.Chunk.Type != ChunkVoid {
			out = append(out, ev)
			continue
		}
		kept := len(out)
		for kept > 0 && out[kept-1].Meta().Seq >= m.Chunk.FromSeq {
			kept--
		}
		tail := out[kept:]
		out = out[:kept]
		for _, ev := range tail {
			if old, ok := ev.(*AgentStreamChunk); !ok || !m.Voids(old) {
				out = append(out, ev)
			}
		}
	}
	return out
}

// StreamedText is an agent's text that arrives in pieces, of which a void chunk withdraws the last. The zero value is empty.
type StreamedText struct {
	text   []byte
	pieces []piece
}

type piece struct {
	seq int64
	at  int
}

// Add appends the text of the chunk whose first event is seq.
func (s *StreamedText) Add(seq int64, text string) {
	s.pieces = append(s.pieces, piece{seq, len(s.text)})
	s.text = append(s.text, text...)
}

// Void removes the pieces whose event number is from or greater.
func (s *StreamedText) Void(from int64) {
	for n := len(s.pieces); n > 0 && s.pieces[n-1].seq >= from; n-- {
		s.text, s.pieces = s.text[:s.pieces[n-1].at], s.pieces[:n-1]
	}
}

func (s *StreamedText) String() string { return string(s.text) }

// Len is the length of the text in bytes.
func (s *StreamedText) Len() int { return len(s.text) }

// Reset empties s.
func (s *StreamedText) Reset() { s.text, s.pieces = nil, nil }
