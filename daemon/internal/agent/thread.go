package agent

import (
	"maps"
	"slices"

	"sublet/wire"
)

// Thread follows a session: it takes its events as they are stored and has its conversation at any time, without going
// through all of them again. The zero value is that of a session without events. It is not safe for concurrent use.
type Thread struct {
	folder      folder
	compactions []*wire.CompactionComplete // those that count, oldest first
	last        int64
	size        int // bytes of text that the entries hold, about
}

// Last is the number of the newest event taken.
func (t *Thread) Last() int64 { return t.last }

// Size is about how many bytes the thread holds.
func (t *Thread) Size() int { return t.size }

// Add takes the event that follows those taken before.
func (t *Thread) Add(m wire.EventMessage) {
	t.last = max(t.last, m.Meta().Seq)
	t.size += eventSize(m)
	if c, ok := m.(*wire.CompactionComplete); ok {
		t.compactions = counted(t.compactions, c)
	}
	t.folder.add(m)
}

// Conversation is History of the events taken. It is the caller's: what is added to the thread later does not show in it.
func (t *Thread) Conversation() Conversation {
	h := t.folder.clone()
	h.endTurn("interrupted", "")
	return Conversation{foldRanges(h.entries, outermost(t.compactions)), h.pending, h.plan}
}

// clone is a folder that may go on without changing the one it was made of. Entries before the last two are never
// changed again: an answer and its results grow, what stands before them is complete.
func (h *folder) clone() folder {
	c := *h
	c.entries = slices.Clone(h.entries)
	for i := max(len(c.entries)-2, 0); i < len(c.entries); i++ {
		e := &c.entries[i]
		e.msg.Parts = slices.Clone(e.msg.Parts)
		e.facts = maps.Clone(e.facts)
	}
	c.pending, c.pieces = slices.Clone(h.pending), slices.Clone(h.pieces)
	c.calls, c.order = maps.Clone(h.calls), slices.Clone(h.order)
	c.asked, c.comments = maps.Clone(h.asked), maps.Clone(h.comments)
	return c
}

// eventSize is about what an event adds to a conversation, in bytes.
func eventSize(m wire.EventMessage) int {
	const each = 64
	switch m := m.(type) {
	case *wire.TurnSteered:
		return each + len(m.Prompt)
	case *wire.TurnStarted:
		return each + len(m.Prompt)
	case *wire.AgentStreamChunk:
		return len(m.Chunk.Text) + len(m.Chunk.Arguments)
	case *wire.CommandResult:
		return each + len(m.Command) + len(m.Output) + len(m.OutputTail)
	case *wire.CompactionComplete:
		return each + len(m.Summary)
	}
	return 0
}
