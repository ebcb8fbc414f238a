package e2e

import (
	"strings"
	"syscall"
	"testing"

	"sublet/wire"
	"sublet/wire/jsonview"
)

// J1, J2, J3: /compact folds the middle of a conversation, and the conversation goes on with what mattered.
func TestCompact(t *testing.T) {
	long := strings.Repeat("A long answer of many words that fills the context. ", 60)
	w := newWorld(t, "", script{
		{Match: "^number", Steps: []step{{Text: long + "\n\nEnd of answer."}}},
		{Match: "^after", Steps: []step{{Text: "Still here after the fold."}}},
		{Match: "(?s).*", Steps: []step{{Text: "SUMMARY: five long answers were given."}}},
	})
	term := w.openShell()
	for i, n := range []string{"one", "two", "three", "four", "five", "six"} {
		term.ask("number " + n + ": never touch the file secrets.txt")
		w.await("answer "+n, func() bool { return strings.Count(term.text(), "End of answer.") > i })
		w.await("the turn to be over", func() bool { return idle(w.status()) })
	}
	term.ask("/compact")
	w.await("the conversation to be folded", func() bool {
		out, _, code := w.sublet("session", "show", "--json", w.lastSession())
		return code == 0 && strings.Contains(out, `"kind":"CompactionStarted"`) && strings.Contains(out, `"kind":"CompactionComplete"`)
	})
	out, _, _ := w.sublet("session", "show", "--json", w.lastSession())
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"kind":"CompactionComplete"`) {
			if !strings.Contains(line, `"status":"success"`) || !strings.Contains(line, "never touch the file secrets.txt") {
				t.Errorf("got %s, want success and the user's limit kept word for word", line)
			}
		}
	}
	term.ask("after it")
	term.see(`Still here after the fold\.`)
}

// A daemon that is killed with -9 while it folds a conversation: the next one ends the compaction as an error, so that no client
// waits for its end, and the conversation goes on.
func TestKillTheDaemonInACompaction(t *testing.T) {
	long := strings.Repeat("A long answer of many words that fills the context. ", 60)
	w := newWorld(t, "", script{
		{Match: "^number", Steps: []step{{Text: long}}},
		{Match: "(?s).*", Steps: []step{{WaitFile: "/nonexistent/gate"}}}, // the summary does not come
	})
	w.start()
	c := dial(t, w, nil, 0)
	id := c.ready.Session.ID
	for _, n := range []wire.RequestID{"1", "2", "3", "4", "5", "6"} {
		if err := c.Send(&wire.AgentRequest{RequestID: n, Prompt: "number " + string(n)}); err != nil {
			t.Fatal(err)
		}
		c.events(isEnd)
	}
	if err := c.Send(&wire.CompactRequest{RequestID: "c", Op: "run"}); err != nil {
		t.Fatal(err)
	}
	shown := c.events(func(m wire.EventMessage) bool { return wire.KindOf(m) == "CompactionStarted" })
	begun := shown[len(shown)-1].(*wire.CompactionStarted)
	if err := syscall.Kill(c.ready.Daemon.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.Close()

	w.start()
	late := dial(t, w, &id, begun.Seq)
	missed := late.events(func(wire.EventMessage) bool { return true })
	end, ok := missed[0].(*wire.CompactionComplete)
	if !ok || end.Seq != begun.Seq+1 || end.RequestID != "c" || end.Status != wire.StatusError || end.Summary != "daemon restarted" || end.Events != begun.Events {
		t.Errorf("got %s, want the end of %s", jsonview.Of(missed[0]), jsonview.Of(begun))
	}
	if err := late.Send(&wire.AgentRequest{RequestID: "7", Prompt: "number 7"}); err != nil {
		t.Fatal(err)
	}
	late.events(isEnd)
	if err := syscall.Kill(late.ready.Daemon.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	late.Close()
	w.start()
	again := dial(t, w, &id, begun.Seq+1)
	if err := again.Send(&wire.AgentRequest{RequestID: "8", Prompt: "number 8"}); err != nil {
		t.Fatal(err)
	}
	for _, m := range again.events(func(m wire.EventMessage) bool { return isEnd(m) && m.Meta().RequestID == "8" }) {
		if wire.KindOf(m) == "CompactionComplete" {
			t.Errorf("ended a second time: %s", jsonview.Of(m))
		}
	}
}
