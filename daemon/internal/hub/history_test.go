package hub

import (
	"fmt"
	"reflect"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/wire"
)

// played stores a turn of so many events, and returns its id and events.
func played(t testing.TB, s *session, n int) {
	t.Helper()
	id := wire.TurnID(wire.NewID())
	emit := func(m wire.EventMessage) {
		t.Helper()
		m.Meta().TurnID = id
		if err := s.events.Emit(m); err != nil {
			t.Fatal(err)
		}
	}
	emit(&wire.TurnStarted{Agent: "orchestrator", Prompt: "what of " + string(id), Model: "m"})
	for i := range n - 2 {
		emit(&wire.AgentStreamChunk{Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: fmt.Sprintf("the %dth piece ", i)}})
	}
	emit(&wire.AgentComplete{Agent: "orchestrator", Status: wire.StatusSuccess})
}

// readsFrom returns the number of the event after which a turn would read.
func readsFrom(t *testing.T, s *session) (from int64) {
	t.Helper()
	_, _, err := s.memory.Thread.History("", func(after int64) ([]wire.EventMessage, bool, error) {
		from = after
		return nil, false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return from
}

// What a turn finds is what all stored events give, whether the conversation was in memory, was dropped, is undone or
// cleared; nothing of the turn itself is in it.
func TestHistoryOfATurn(t *testing.T) {
	h := newHub(t)
	s := h.newSession("/w", "")
	defer h.release(s)
	check := func(when string, reads int64) {
		t.Helper()
		if from := readsFrom(t, s); from != reads {
			t.Errorf("%s: would read from %d, want %d", when, from, reads)
		}
		events, err := h.opts.Store.AllEvents(t.Context(), s.id)
		if err != nil {
			t.Fatal(err)
		}
		begun := &wire.TurnStarted{Event: wire.Event{TurnID: wire.TurnID(wire.NewID())}, Agent: "orchestrator", Prompt: "now", Model: "m"}
		if err := s.events.Emit(begun); err != nil {
			t.Fatal(err)
		}
		got, seq, err := s.history(t.Context(), begun.TurnID)
		if err != nil || seq != begun.Seq || !reflect.DeepEqual(got, agent.History(events)) {
			t.Errorf("%s: got %d, %v and\n%v\nwant\n%v", when, seq, err, got.Messages(), agent.History(events).Messages())
		}
		if err := s.events.Emit(&wire.AgentComplete{Event: wire.Event{TurnID: begun.TurnID}, Agent: "orchestrator", Status: wire.StatusSuccess}); err != nil {
			t.Fatal(err)
		}
	}
	emit := func(m wire.EventMessage) {
		t.Helper()
		if err := s.events.Emit(m); err != nil {
			t.Fatal(err)
		}
	}
	check("before anything", 0)
	played(t, s, 600) // more than one page
	check("after a turn", 0)
	read := s.snapshot().LastSeq - 2 // all but the turn that read
	played(t, s, 5)
	emit(&wire.CommandResult{Command: "make", OutputTail: []byte("ok")})
	check("after another and a command of the user's", read)
	read = s.snapshot().LastSeq - 2
	emit(&wire.CompactionComplete{Status: wire.StatusSuccess, Summary: "folded", FirstSeq: 3, LastSeq: 602, Ledger: wire.Ledger{}.WithLists()})
	check("folded", read)
	read = s.snapshot().LastSeq - 2
	emit(&wire.CompactionComplete{Status: agent.CompactionUndone, FirstSeq: 3, LastSeq: 602, Ledger: wire.Ledger{}.WithLists()})
	check("undone", read)
	if err := s.clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("cleared", 0)
	played(t, s, 3)
	h.hold(s.id, s)
	h.release(s)
	h.release(s) // nobody holds it
	if readsFrom(t, s) != 0 {
		t.Error("an idle session's conversation is still in memory")
	}
	h.hold(s.id, s)
}

// The beginning of a turn in a session of so many events: what it reads of the turns before.
func BenchmarkHistory(b *testing.B) {
	for _, events := range []int{100, 10_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			if testing.Short() && events > 100 {
				b.Skip()
			}
			h := newHub(b)
			s := h.newSession("/w", "")
			defer h.release(s)
			for range events / 100 {
				played(b, s, 100)
			}
			if _, _, err := s.history(b.Context(), "t"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				played(b, s, 100)
				b.StartTimer()
				if _, _, err := s.history(b.Context(), "t"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
