package hub

import (
	"path/filepath"
	"reflect"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/wire"
)

// A copy of a session whose numbers do not begin at 1 folds and withdraws the same events, though they have other numbers
// and some are left out.
func TestCopyOfAClearedSession(t *testing.T) {
	w := &window{t: t}
	c := &Client{hub: newHub(t), Peer: w}
	s := c.hub.newSession("/w", "")
	defer c.hub.release(s)
	played(t, s, 40)
	if err := s.clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := wire.Event{TurnID: wire.TurnID(wire.NewID())}
	emit := func(m wire.EventMessage) int64 {
		t.Helper()
		if err := s.events.Emit(m); err != nil {
			t.Fatal(err)
		}
		return m.Meta().Seq
	}
	chunk := func(c wire.Chunk) int64 {
		return emit(&wire.AgentStreamChunk{Event: of, Agent: agent.Orchestrator, Chunk: c})
	}
	block := func() int64 { return chunk(wire.Chunk{Type: wire.ChunkBlock, Block: &wire.Block{Type: "text"}}) }
	played(t, s, 5)
	folded := s.snapshot().LastSeq
	emit(&wire.TurnStarted{Event: of, Agent: agent.Orchestrator, Prompt: "what", Model: "m"})
	chunk(wire.Chunk{Type: wire.ChunkText, Text: "said, "})
	from := block()
	chunk(wire.Chunk{Type: wire.ChunkText, Text: "withdrawn, "})
	chunk(wire.Chunk{Type: wire.ChunkVoid, FromSeq: from})
	chunk(wire.Chunk{Type: wire.ChunkVoid, FromSeq: s.snapshot().LastSeq + 1}) // of nothing
	chunk(wire.Chunk{Type: wire.ChunkText, Text: "the answer"})
	emit(&wire.AgentComplete{Event: of, Agent: agent.Orchestrator, Status: wire.StatusSuccess})
	emit(&wire.CompactionComplete{Status: wire.StatusSuccess, Summary: "folded", FirstSeq: folded - 4, LastSeq: folded, Ledger: wire.Ledger{}.WithLists()})
	emit(&wire.CompactionComplete{Status: wire.StatusError, Summary: "failed", Ledger: wire.Ledger{}.WithLists()})
	emit(&wire.CompactionStarted{Events: 3})
	read := func(id wire.SessionID) []wire.EventMessage {
		t.Helper()
		events, err := c.hub.opts.Store.AllEvents(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	want := agent.History(read(s.id)).Messages()
	check := func(how string, r *wire.SessionRequest) {
		t.Helper()
		r.SessionID, w.sent = &s.id, nil
		if err := c.Sessions(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		out := awaitSent[*wire.SessionReply](w)
		if r.Op == "save" {
			return
		}
		events := read(out.Session.ID)
		if got := agent.History(events).Messages(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", how, got, want)
		}
		said := ""
		for _, m := range wire.WithoutVoid(events) {
			if c, ok := m.(*wire.AgentStreamChunk); ok && c.TurnID == events[len(events)-5].Meta().TurnID {
				said += c.Chunk.Text
			}
		}
		if said != "said, the answer" {
			t.Errorf("%s: the text is %q", how, said)
		}
		n := len(events)
		if end, ok := events[n-1].(*wire.CompactionComplete); !ok || end.Status != wire.StatusError || out.Session.LastSeq != end.Seq {
			t.Errorf("%s: the compaction that ran has no end: %+v of %+v", how, events[n-1], out.Session)
		}
		if failed := events[n-3].(*wire.CompactionComplete); failed.FirstSeq != 0 || failed.LastSeq != 0 {
			t.Errorf("%s: one that failed has a range: %+v", how, failed)
		}
	}
	check("a fork", &wire.SessionRequest{Op: "fork"})
	for how, blocks := range map[string]bool{"a file": true, "a file without blocks": false} {
		file := wire.OSString(filepath.Join(t.TempDir(), "saved"))
		check(how, &wire.SessionRequest{Op: "save", Path: file, IncludeHistory: true, IncludeBlocks: blocks})
		check(how, &wire.SessionRequest{Op: "load", Path: file})
	}
	if list, err := c.hub.opts.Store.Unfinished(t.Context()); err != nil || len(list) != 1 || list[0].SessionID != s.id {
		t.Errorf("unfinished: %+v, %v", list, err)
	}
}
