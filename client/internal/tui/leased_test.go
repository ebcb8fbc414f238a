package tui

import (
	"strings"
	"testing"

	"sublet/wire"
)

// A command over its time that cannot go on as a job of the user's shell shows why.
func TestLeasedCardShowsWhyItIsNoJob(t *testing.T) {
	d := newDesk(t)
	d.send(leasedStart("x1", "make"))
	end := leasedEnd("x1", 130)
	end.Status, end.Result.Status, end.Result.Stays = wire.StatusTimeout, wire.StatusTimeout, "the shell runs it itself"
	d.send(end)
	if got := d.printed(); !strings.Contains(got, "timed out") || !strings.Contains(got, "it could not go on as a job: the shell runs it itself") {
		t.Errorf("got\n%s", got)
	}
}

// A job of the user's shell that the daemon could not record, and ended, is reported below the card, which has it as a job.
func TestJobThatTheDaemonEnded(t *testing.T) {
	d := newDesk(t)
	d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	d.send(leasedStart("x1", "make"))
	end := leasedEnd("x1", 0)
	end.Result.JobPID, end.Result.ExitCode = 4711, nil
	d.send(end)
	d.send(&wire.CommandResult{Event: event(3), Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "make", Status: wire.StatusTimeout, Output: []byte("[timed out]\n[it could not go on as a job, and was ended: limits.jobs is 1]")})
	if got := d.printed(); !strings.Contains(got, "goes on in the background") || !strings.Contains(got, "    it could not go on as a job, and was ended: limits.jobs is 1") {
		t.Errorf("got\n%s", got)
	}
}

// The card of a command in the user's shell is printed once: with what it changed if the shell reports its end, and without if the
// daemon gave it up before.
func TestLeasedCardOnce(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		d := newDesk(t)
		d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
		d.send(&wire.AgentStreamChunk{Event: event(2), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x1", Tool: "bash", Arguments: `{"command":"cd /tmp"}`}})
		d.send(leasedStart("x1", "cd /tmp"))
		end := leasedEnd("x1", 0)
		end.Changed, end.Result.Lost = "cd /srv", "umask"
		result := &wire.CommandResult{Event: event(3), Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "cd /tmp", Status: wire.StatusSuccess, ExitCode: ptr(0), Output: []byte("[exit code 0]")}
		if !gaveUp {
			d.send(end)
		}
		d.send(result)
		d.send(&wire.AgentStreamChunk{Event: event(4), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "There.\n\n"}})
		d.send(&wire.AgentComplete{Event: event(5), Status: wire.StatusSuccess, DurationMS: 100})
		if gaveUp {
			d.send(end)
		}
		printed := d.printed()
		card, text, changed := strings.Index(printed, "cd /tmp"), strings.Index(printed, "There."), strings.Index(printed, "changed in your shell: cd /srv")
		if card < 0 || text < card || changed < 0 || changed > text != gaveUp || strings.Count(printed, "cd /tmp") != 1 || strings.Count(printed, "✓") != 1 || len(d.cards) > 0 ||
			!strings.Contains(printed, "umask had no effect on your shell") || strings.Contains(printed, "[exit code") {
			t.Errorf("gave up %v: got\n%s", gaveUp, printed)
		}
	}
}
