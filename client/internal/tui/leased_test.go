package tui

import (
	"strings"
	"testing"

	"sublet/wire"
)

// A card whose result is there before the shell said what changed keeps its place: what follows is printed after it.
func TestCardWaitsForTheShell(t *testing.T) {
	for _, said := range []bool{true, false} {
		d := newDesk(t)
		d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
		d.send(&wire.AgentStreamChunk{Event: event(2), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x1", Tool: "bash", Arguments: `{"command":"cd /tmp"}`}})
		d.send(leasedStart("x1", "cd /tmp"))
		d.send(&wire.CommandResult{Event: event(3), Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "cd /tmp", Status: wire.StatusSuccess, ExitCode: ptr(0), Output: []byte("[exit code 0]")})
		d.send(&wire.AgentStreamChunk{Event: event(4), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "There.\n\n"}})
		d.send(&wire.AgentComplete{Event: event(5), Status: wire.StatusSuccess, DurationMS: 100})
		if printed := d.printed(); strings.Contains(printed, "There.") {
			t.Fatalf("printed before its card is:\n%s", printed)
		}
		if live := strings.Join(d.above(20), "\n"); !strings.Contains(live, "There.") || !strings.Contains(live, "cd /tmp") {
			t.Errorf("not to be seen meanwhile:\n%s", live)
		}
		if said {
			end := leasedEnd("x1", 0)
			end.Changed, end.Result.Lost = "cd /tmp", "umask"
			d.send(end)
		} else {
			d.wait(reportWait)
		}
		printed := d.printed()
		card, text := strings.Index(printed, "cd /tmp"), strings.Index(printed, "There.")
		if card < 0 || text < card || strings.Contains(printed, "changed in your shell") != said || strings.Contains(printed, "umask had no effect on your shell") != said || strings.Contains(printed, "[exit code") {
			t.Errorf("said %v: got\n%s", said, printed)
		}
	}
}
