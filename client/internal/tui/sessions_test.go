package tui

import (
	"strings"
	"testing"

	"sublet/lease/shell"
	"sublet/wire"
)

// The footer has the mode of the session in the window, whichever window changed it last, also after the window went to another
// session: it kept the mode of the session that was left.
func TestFooterHasTheModeOfItsSession(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		mode string
		msg  any
	}{
		{"auto", &wire.Notice{Level: "info", Text: "mode of this conversation: auto, by client sublet 7", SessionID: "s1"}},
		{"plan", then(func() { d.onPicked(wire.SessionInfo{ID: "s2"}) })},
		{"ask", then(func() { d.slashNew("") })},
		{"auto", &wire.SessionReply{Op: "resume", Session: wire.SessionInfo{ID: "s3"}}}, // as of sublet -c
	} {
		d.d.mode = c.mode
		if d.send(c.msg); !strings.Contains(d.footer(), c.mode+" mode") {
			t.Errorf("after %#v: the footer is %q, want %s mode", c.msg, d.footer(), c.mode)
		}
	}
}

// A turn goes on in the session that the window leaves: nothing says that it has ended.
func TestNewWhileAnAgentWorks(t *testing.T) {
	d := newDesk(t)
	d.send(shell.UserEnded{Text: "ls"}) // its event comes back from the session that is left, so nobody takes note of it
	d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	d.send(&wire.AgentStreamChunk{Event: event(2), Agent: "engineer", Chunk: wire.Chunk{Type: wire.ChunkToolCall, Tool: "bash", ExecutionID: "e1"}})
	d.send(then(func() { d.slashNew("") }))
	if text := d.printed(); !strings.Contains(text, "in the old one the agent works on") || strings.Contains(text, "no result") {
		t.Errorf("printed:\n%s", text)
	}
	if len(d.running) != 0 || d.turn != nil || len(d.reported) != 0 {
		t.Errorf("%d calls are still shown, of the turn %v; %d commands are awaited", len(d.running), d.turn, len(d.reported))
	}
}

// A command that the user ran once the daemon was connected, before its first Ready was handled, is on the screen already when its
// event comes.
func TestCommandBeforeTheFirstReady(t *testing.T) {
	d := newDesk(t)
	d.SessionInfo = wire.SessionInfo{}
	d.send(shell.UserEnded{Text: "ls"})
	d.send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Mode: "ask"})
	report := *d.d.commands[0]
	report.Event = event(1)
	d.send(&report)
	if text := d.printed(); strings.Contains(text, "ls") {
		t.Errorf("printed:\n%s", text)
	}
}

// A line of a list that is too long for the window goes on below, between words.
func TestListIsWrapped(t *testing.T) {
	d := newDesk(t)
	d.w = 30
	d.send(then(func() { d.list([]string{"daemon 1 · pid 7 · up 3s · 12 turns", "  short"}) }))
	if text := d.printed(); text != "daemon 1 · pid 7 · up 3s ·\n    12 turns\n  short" {
		t.Errorf("got:\n%s", text)
	}
}

// A command of the user's is reported; the environment is sent only if the directory is another. Agents change it, too: when the user
// undid an agent's cd, the next question named the agent's directory.
func TestEnvironmentIsSentForAnotherDirectory(t *testing.T) {
	d := newDesk(t)
	for _, dir := range []string{"/a", "/a", "/b", "/a"} {
		d.send(shell.UserEnded{Text: "ls", Dir: dir})
	}
	end := leasedEnd("x1", 0)
	end.Result.Dir = "/c"
	d.send(end)
	d.send(shell.UserEnded{Text: "cd -", Dir: "/a"})
	d.send(then(func() { d.slashUndoShell("") }))
	d.send(shell.UserEnded{Text: "cd -", Dir: "/a"})
	if d.d.environments != 5 || len(d.recent) != 6 {
		t.Errorf("got %d environments and %d commands, want 5 and 6", d.d.environments, len(d.recent))
	}
}
