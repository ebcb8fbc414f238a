package tui

import (
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
