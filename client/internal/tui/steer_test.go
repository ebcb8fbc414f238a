package tui

import (
	"slices"
	"testing"

	"sublet/wire"
)

// What is typed while an agent works is for the turn that runs, and is shown above when that takes it in; with ctrl+q it waits
// for the end.
func TestSteering(t *testing.T) {
	w := open(t, 80, 30)
	w.ai()
	playTurn(w, w.ask("why?\r").RequestID)
	word := w.ask("faster\r")
	w.see("sent with its next results: faster")
	later := w.ask("and then?\x11")
	w.see("next: and then?")
	if !word.Options.Steer || later.Options.Steer {
		t.Errorf("sent %+v, then %+v", word.Options, later.Options)
	}
	w.keys("/undo\r")
	w.see("/undo is done after this turn")
	e := event(7)
	e.RequestID = word.RequestID
	w.p.Send(&wire.TurnSteered{Event: e, Prompt: "faster"})
	w.see("> faster\n")
	w.see("next: and then?")
	w.seeNot("sent with its next results")
}

// What another window of the conversation asked is shown while it waits, and taken back here, the newest first.
func TestWithdrawsWhatAnotherWindowAsked(t *testing.T) {
	w := open(t, 80, 30)
	w.ai()
	playTurn(w, w.ask("why?\r").RequestID)
	own := w.ask("and then?\x11")
	w.see("next: and then?")
	w.seeNot("ctrl+q takes it back") // an older daemon does not list it
	waiting := []wire.QueuedTurn{{TurnID: "t2", RequestID: own.RequestID, Prompt: "and then?"}, {TurnID: "t3", RequestID: "other", Prompt: "go faster"}}
	w.p.Send(&wire.TurnQueueChanged{SessionID: "elsewhere", Waiting: waiting[1:]})
	w.p.Send(&wire.TurnQueueChanged{SessionID: "s1", Waiting: waiting})
	w.see("next: and then?\n  next, asked in another window: go faster · ctrl+q takes it back")
	now := w.ask("use tabs\r")
	waiting = append([]wire.QueuedTurn{{TurnID: "t4", RequestID: now.RequestID, Prompt: "use tabs", Steer: true}}, waiting...)
	w.p.Send(&wire.TurnQueueChanged{SessionID: "s1", Waiting: waiting}) // in the order of their turns, not of their asking
	w.see("sent with its next results: use tabs\n  next: and then?\n  next, asked in another window: go faster · ctrl+q takes it back")
	waiting = waiting[1:]
	for i := range waiting {
		w.keys("\x11")
		w.until("a cancel", func() bool {
			w.d.mu.Lock()
			defer w.d.mu.Unlock()
			return len(w.d.cancelled) == i+1 && *w.d.cancelled[i].TurnID == waiting[1-i].TurnID
		})
		w.p.Send(&wire.TurnQueueChanged{SessionID: "s1", Waiting: waiting[:1-i]})
		if i == 0 {
			w.seeNot("go faster")
		}
	}
	w.p.Send(&wire.Error{Event: wire.Event{RequestID: own.RequestID}, Code: wire.CodeCancelled, Message: "cancelled"})
	w.see("not asked any more: and then?")
	w.seeNot("next: and then?")
}

// In a narrow window the line of a prompt that waits had the help, and not the prompt.
func TestWaitingPromptInANarrowWindow(t *testing.T) {
	for width, want := range map[int]string{
		62: "  sent with its next results: use tabs… · ctrl+q takes it back",
		40: "  sent with its next results: use tabs …",
	} {
		m := &model{w: width, conversation: conversation{queued: []wire.QueuedTurn{{Prompt: "use tabs everywhere", Steer: true}}}}
		m.waiting = []*asked{{AgentRequest: &wire.AgentRequest{}}}
		if got := m.next(); !slices.Equal(got, []string{want}) {
			t.Errorf("in %d columns: got %q, want %q", width, got, want)
		}
	}
}
