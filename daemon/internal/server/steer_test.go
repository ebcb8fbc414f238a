package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

func steer(r *wire.AgentRequest) { r.Options.Steer = true }

// What is said to a turn that runs is taken in by it; what it does not take in, because it was cancelled before, is a turn of
// its own, and so is what is said where none runs.
func TestSteering(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	slow := scripted.Script{Match: "^slow", Steps: []scripted.Step{{WaitFile: gate, ToolCalls: []scripted.Call{{Name: "bash", Arguments: []byte(`{"command":"ls"}`)}}}, {Text: "slow done"}}}
	stuck := scripted.Script{Match: "^stuck", Steps: []scripted.Step{{WaitFile: gate + "-never"}}}
	r := newRig(t, slow, stuck, say("^word", "heard"))
	p := r.dial()

	turn := p.ask("slow")
	p.began(turn)
	word := p.ask("word one", steer)
	late := p.ask("word two") // waits for the turn's end, as ever
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	took := await(p, func(m *wire.TurnSteered) bool { return m.RequestID == word })
	end := p.ended(turn)
	if took.Prompt != "word one" || took.TurnID != end.TurnID || took.Seq == 0 || end.Status != wire.StatusSuccess {
		t.Errorf("got %+v in the turn %+v", took, end)
	}
	if p.ended(late).TurnID == end.TurnID || has(p, func(m *wire.TurnStarted) bool { return m.RequestID == word }) {
		t.Error("what was said to the turn began one of its own, or what was to wait did not")
	}

	turn = p.ask("stuck")
	started := p.began(turn)
	word = p.ask("word three", steer)
	unsaid := p.ask("word unsaid", steer)
	p.send(&wire.CancelRequest{RequestID: &unsaid})
	if e := p.refused(unsaid); e.Code != wire.CodeCancelled {
		t.Errorf("cancelled before the turn took it in: got %+v", e)
	}
	p.send(&wire.CancelRequest{TurnID: &started.TurnID})
	if end := p.ended(turn); end.Status != wire.StatusCancelled {
		t.Errorf("cancelled: got %+v", end)
	}
	if end := p.ended(word); end.Status != wire.StatusSuccess || end.Summary != "heard" {
		t.Errorf("said to a turn that was cancelled: got %+v", end)
	}
	if end := p.ended(p.ask("word four", steer)); end.Status != wire.StatusSuccess || end.Summary != "heard" {
		t.Errorf("said where no turn runs: got %+v", end)
	}
	if has(p, func(m *wire.TurnStarted) bool { return m.RequestID == unsaid }) {
		t.Error("what was cancelled began a turn")
	}
	checkNumbers(t, p, 0)
}
