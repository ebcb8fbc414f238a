package agent

import (
	"strings"
	"testing"

	"sublet/wire"
)

// What was folded away is found by its words, the place with most of them first; what recall itself printed is not.
func TestRecall(t *testing.T) {
	told := said("t1", Orchestrator, "")
	told.Chunk = wire.Chunk{Type: wire.ChunkContext, Text: "Attached file notes: the LOCK is a lease"}
	found := result("t3", Orchestrator, "r", "── you said: lock timeout")
	found.Tool = "recall"
	events := numbered(
		started("t1", "Why does the migration time out?"), told,
		called("t1", Orchestrator, "a"), result("t1", Orchestrator, "a", strings.Repeat("noise\n", 500)+"ERROR: lock timeout after 30s\n"+strings.Repeat("noise\n", 500)),
		said("t1", Orchestrator, "The migration holds a lock."), ended("t1", wire.StatusSuccess),
		started("t2", "something else"), said("t2", Orchestrator, "Done."), ended("t2", wire.StatusSuccess),
		&wire.CompactionComplete{Status: wire.StatusSuccess, FirstSeq: 1, LastSeq: 6, Summary: "s"},
		started("t3", "recall it"), called("t3", Orchestrator, "r"), found,
	)
	got := Recall(events, "lock TIMEOUT")
	if !strings.HasPrefix(got, "── result of x\n… ") || !strings.Contains(got, "ERROR: lock timeout after 30s") {
		t.Errorf("the place with both words is not first:\n%s", got)
	}
	for _, want := range []string{"── you said\nThe migration holds a lock.", "── you were told\nAttached file notes: the LOCK"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	if strings.Contains(got, "you said: lock") || len(got) > 3*maxExcerpt {
		t.Errorf("got %d bytes:\n%s", len(got), got)
	}
	// What a command printed is found by the words of the command, and by those of the question that it ran for.
	count := result("t4", Orchestrator, "c", "40")
	count.Command = "grep -c key conf.md"
	events = numbered(append(events, ended("t3", wire.StatusSuccess), started("t4", "How many settings are documented?"), called("t4", Orchestrator, "c"), count)...)
	if got := Recall(events, "settings documented conf.md"); !strings.HasPrefix(got, "── result of grep -c key conf.md\n40") {
		t.Errorf("got %q", got)
	}
	if got := Recall(events, "zebra"); !strings.Contains(got, "Nothing in this conversation") {
		t.Errorf("got %q", got)
	}
}
