package tui

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"sublet/client/internal/tui/keys"
	"sublet/wire"
)

// A daemon that died in mid-turn and was started anew is told in one line: the turn's own end, with what to do.
func TestCrashIsOneLine(t *testing.T) {
	w := open(t, 100, 24)
	event := func(seq int64) wire.Event { return wire.Event{SessionID: "s1", TurnID: "t1", Seq: seq} }
	w.ai()
	ready := &wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Models: []wire.ModelInfo{{Name: "m", Loaded: true}}}
	w.p.Send(ready)
	w.p.Send(LinkChanged{Connected: true})
	w.p.Send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	w.see("thinking")
	w.p.Send(LinkChanged{})
	w.see("the daemon is gone; the result is shown when it is back") // below, while it is so
	w.p.Send(ready)
	w.p.Send(LinkChanged{Connected: true})
	w.p.Send(&wire.Error{Event: event(2), Code: wire.CodeInternal, Message: "daemon restarted", Hint: "ask again"})
	w.p.Send(&wire.AgentComplete{Event: event(3), Status: wire.StatusError})
	w.see("daemon restarted; ask again")
	w.seeNot("esc stops")
	w.until("it to be told once", func() bool { return strings.Count(w.screen.All(), "daemon") == 1 })

	// As long as there is no daemon, a line reports it.
	w.p.Send(LinkChanged{Detail: "connection refused"})
	w.see("the daemon is gone; your shell goes on, agents come back with it: connection refused")
	w.p.Send(LinkChanged{Connected: true})
	w.seeNot("the daemon is gone")
}

// However much a model reasons, its line keeps the time and the key that stops it.
func TestLongReasoningKeepsTheStopKey(t *testing.T) {
	w := open(t, 60, 24)
	w.ai()
	w.p.Send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	w.p.Send(&wire.AgentThinking{Event: event(2), Agent: "orchestrator", Phase: wire.PhasePlanning})
	w.p.Send(&wire.AgentStreamChunk{
		Event: event(3), SeqFirst: 3, Agent: "orchestrator",
		Chunk: wire.Chunk{Type: wire.ChunkReasoning, Text: "first\n" + strings.Repeat("the \x1b[2Jlongest 世界 thought ", 40)},
	})
	line := regexp.MustCompile(`planning: the ␛\[2Jlongest.*… · \d+s · esc stops`)
	w.until("the cut line with its end", func() bool { return line.MatchString(w.screen.Text()) })
}

// A question that the daemon does not take comes back into the line: it was lost.
func TestRefusedQuestionComesBack(t *testing.T) {
	d := newDesk(t)
	d.key("g", "o", "enter")
	id := d.d.questions()[0].RequestID
	d.send(&wire.Error{Event: wire.Event{RequestID: id}, Code: wire.CodeTooManyQueries, Message: "3 requests run or wait already"})
	if text := d.printed(); d.ed.Text != "go" || len(d.waiting) > 0 || !strings.Contains(text, "✗ 3 requests run") {
		t.Errorf("line %q, %d wait, printed:\n%s", d.ed.Text, len(d.waiting), text)
	}
}

// A question starts a daemon that was stopped. If that does not start, the question comes back: it was lost, as one that may have
// arrived.
func TestQuestionForADaemonThatDoesNotStart(t *testing.T) {
	d := newDesk(t)
	d.ed.Set("go")
	d.update(&keyEvent{msg: keys.Key{Name: "enter"}, done: make(chan struct{})})
	d.d.down = true
	d.send(LinkChanged{Detail: "the daemon did not start"})
	if text := d.printed(); d.ed.Text != "go" || len(d.waiting) > 0 || strings.Contains(text, "may not have arrived") {
		t.Errorf("line %q, %d wait, printed:\n%s", d.ed.Text, len(d.waiting), text)
	}
	// One that was sent may have arrived.
	d.d.down = false
	d.send(LinkChanged{Connected: true})
	d.key("enter")
	d.send(LinkChanged{})
	if text := d.printed(); len(d.waiting) > 0 || !strings.Contains(text, "may not have arrived; ask again if no answer comes: go") {
		t.Errorf("%d wait, printed:\n%s", len(d.waiting), text)
	}
}

// Without a daemon the questions come back into the line together. The reason was printed for each of them.
func TestQuestionsWithoutADaemon(t *testing.T) {
	d := newDesk(t)
	d.d.down = true
	d.send(LinkChanged{Detail: "the settings are wrong"})
	for _, text := range []string{"one", "two"} {
		d.ed.Set(text)
		d.key("enter")
		d.wait(time.Second)
	}
	d.wait(askWait)
	if text := d.printed(); d.ed.Text != "one\ntwo" || len(d.waiting) > 0 || strings.Count(text, "the settings are wrong") != 1 {
		t.Errorf("line %q, %d wait, printed:\n%s", d.ed.Text, len(d.waiting), text)
	}
}
