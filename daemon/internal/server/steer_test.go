package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// A turn that is cancelled while its command runs does not take in what was said to it, which it would never answer.
func TestCancelledTurnIsNotSteered(t *testing.T) {
	running := filepath.Join(t.TempDir(), "running")
	r := newRig(t, scripted.Script{Match: "^long", Steps: []scripted.Step{step("bash", map[string]any{"command": "touch " + running + "; sleep 60"})}}, say("^word", "heard"))
	p := r.dial(withoutShell, r.there)
	turn := p.ask("long")
	started := p.began(turn)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(running); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	word := p.ask("word", steer)
	p.send(&wire.CancelRequest{TurnID: &started.TurnID})
	if end := p.ended(turn); end.Status != wire.StatusCancelled {
		t.Errorf("cancelled: got %+v", end)
	}
	if end := p.ended(word); end.Status != wire.StatusSuccess || end.Summary != "heard" {
		t.Errorf("said to it before: got %+v", end)
	}
}

// Every client of a session that wants it gets the prompts that wait there, also one that comes later, and each can withdraw
// them; a client that does not know the message works without.
func TestEachClientWithdrawsWhatWaits(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	r := newRig(t, scripted.Script{Match: "^slow", Steps: []scripted.Step{{WaitFile: gate, Text: "slow done"}}}, say("^word", "heard"))
	turns := func(env *wire.EnvSnapshot) { env.Capabilities = append(env.Capabilities, wire.CapTurns) }
	asker := r.dial()
	turn := asker.ask("slow")
	asker.began(turn)
	said := asker.ask("word said", steer)
	next := asker.ask("word next")
	last := asker.ask("word last")
	asker.reached()

	other := r.dial(inSession(asker.session, -1), turns)
	shows := func(want ...wire.RequestID) (waiting []wire.QueuedTurn) {
		t.Helper()
		await(other, func(m *wire.TurnQueueChanged) bool {
			var ids []wire.RequestID
			for _, q := range m.Waiting {
				ids = append(ids, q.RequestID)
			}
			waiting = m.Waiting
			return m.SessionID == asker.session && m.Waiting != nil && slices.Equal(ids, want)
		})
		return waiting
	}
	waiting := shows(said, next, last)
	if q := waiting[0]; q.Prompt != "word said" || !q.Steer {
		t.Errorf("what the running turn is to take in: got %+v", q)
	}
	if q := waiting[1]; q.Prompt != "word next" || q.Steer {
		t.Errorf("what waits behind it: got %+v", q)
	}
	for i, left := range [][]wire.RequestID{{next, last}, {last}} {
		other.send(&wire.CancelRequest{TurnID: &waiting[i].TurnID})
		if e := asker.refused(waiting[i].RequestID); e.Code != wire.CodeCancelled || e.TurnID != "" {
			t.Errorf("withdrawn elsewhere: got %+v", e)
		}
		shows(left...)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := other.ended(last); end.Status != wire.StatusSuccess {
		t.Errorf("what was left waiting: got %+v", end)
	}
	shows()
	for _, id := range []wire.RequestID{said, next} {
		if has(asker, func(m *wire.TurnStarted) bool { return m.RequestID == id }) || has(asker, func(m *wire.TurnSteered) bool { return m.RequestID == id }) {
			t.Errorf("%s was withdrawn, and asked", id)
		}
	}
	if has(asker, func(*wire.TurnQueueChanged) bool { return true }) {
		t.Error("a client got what it does not know")
	}
	checkNumbers(t, asker, 0)
}
