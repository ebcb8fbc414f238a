package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// notice is something to be shown.
func notice(text string) *wire.Notice { return &wire.Notice{Level: "warning", Text: text} }

// What must be shown while the user is in command mode waits until they are not busy, and leaves their half-typed line as it
// was.
func TestShownInCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls")
	w.sh.with(func() { w.sh.busy = true })
	w.keys("half")
	w.see("u@box:~$ half")
	w.p.Send(notice("look at this"))
	w.handled() // and not shown
	w.keys("-line")
	w.shows("u@box:~$ ls\nran ls\nu@box:~$ half-line")
	w.sh.with(func() { w.sh.busy = false })
	w.shows("u@box:~$ ls\nran ls\n! look at this\nu@box:~$ half-line")
	w.keys("\x03vim x\r")
	w.see("~ vim ~")
	w.p.Send(notice("not while vim runs"))
	w.keys("\t?:q\r")
	w.until("the keys", func() bool { return string(get(w.sh, &w.sh.input)) == "\t?:q\r" })
	if all := w.screen.All(); strings.Contains(all, "not while") {
		t.Errorf("got\n%s", all)
	}
	w.sh.with(func() { w.sh.endLocked("vim x") })
	w.see("! not while vim runs")
	w.prompt()
	if got, want := strings.Join(get(w.sh, &w.sh.steps), " "), "take give take give"; got != want {
		t.Errorf("steps: got %q, want %q", got, want)
	}
}

// A question of an agent's gets the keyboard in command mode, too: never by type-ahead, which is the shell's, and no is its
// answer until the user chooses.
func TestQuestionInCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("half")
	w.see("u@box:~$ half")
	w.p.Send(testQuestion())
	w.see("critical risk")
	w.keys(" y\r") // typed towards the shell
	w.until("what was typed", func() bool { return string(get(w.sh, &w.sh.typed)) == "half y" })
	w.see("typed for your shell: y")
	if got := w.d.answers(); len(got) != 0 {
		t.Fatalf("answered by type-ahead: %+v", got)
	}
	w.until("it to be armed", func() bool { return strings.Contains(w.screen.Raw(), "\x1b[7m") })
	w.keys("\r")
	w.until("the answer", func() bool { return len(w.d.answers()) == 1 })
	if got := w.d.answers()[0].Decision; got != wire.DecisionDeny {
		t.Errorf("got %q, want deny", got)
	}
	w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionDeny})
	w.see("not allowed")
	w.see("u@box:~$ half y")
	if got := w.sh.commands(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// The keys that answer a question never reach the shell, nor the rest of a typed yes.
func TestAnswersDoNotReachTheShell(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(testQuestion())
	w.see("critical risk")
	w.until("it to be armed", func() bool { return strings.Contains(w.screen.Raw(), "\x1b[7m") })
	w.keys("y")
	w.until("the answer", func() bool { return len(w.d.answers()) == 1 })
	w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionAllow})
	w.keys("es\r")
	w.see("allowed once")
	w.prompt()
	if got := string(get(w.sh, &w.sh.typed)); got != "" {
		t.Errorf("the shell got %q", got)
	}
}

// A question that comes while a borrowed command has the screen is asked there. It stays when that command ends: the screen is
// taken from the shell then.
func TestQuestionOutlivesABorrowedCommand(t *testing.T) {
	w := open(t, 80, 24)
	w.lend("x1", "lease run", "make")
	w.p.Send(testQuestion())
	w.see("critical risk")
	w.endLease(leasedEnd("x1", 0))
	w.see("make · exit 0")
	w.until("the question", func() bool { return strings.Contains(w.screen.Text(), "critical risk") && get(w.sh, &w.sh.taken) })
	w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionDeny})
	w.see("not allowed")
	w.prompt()
}

// An answer that streams while the user is in command mode keeps the screen to the end of its block, unless they type.
func TestStreamInCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	say := func(seq int64, text string) {
		w.p.Send(&wire.AgentStreamChunk{Event: event(seq), SeqFirst: seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text}})
	}
	say(1, "half a paragraph")
	w.handled()
	if got := w.screen.All(); got != "u@box:~$" {
		t.Fatalf("the screen was taken for half a block:\n%s", got)
	}
	say(2, " is whole.\n\nThe next")
	w.see("The next")
	w.see("thinking")
	say(3, " one.\n\n")
	w.prompt()
	say(4, "A third one.\n\nAnd")
	w.see("And")
	w.keys("ls\r")
	w.until("the command", func() bool { return slices.Equal(w.sh.commands(), []string{"ls"}) })
	w.prompt()
}

// What background jobs print in AI mode stands above what is drawn, as lines, and nothing in it acts on the terminal.
func TestJobOutputInAIMode(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.keys("question")
	w.p.ShellOutput([]byte("[1]+  Done  \x1b[31mmake\x1b[m\r\n\x1b[2Jbell\a\r\n"))
	w.see("[1]+  Done  make\nbell\n> question")
}

// The first-start hint and the like wait for AI mode: they never move the prompt.
func TestGreetingWaitsForAIMode(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Models: []wire.ModelInfo{{Name: "offline/rules", ProviderKind: "offline", Loaded: true}}})
	w.command("ls")
	w.shows("u@box:~$ ls\nran ls\nu@box:~$")
	w.ai()
	w.see("agents use the built-in offline model")
	w.keys("\t")
	w.prompt()
	w.ai()
	if got := strings.Count(w.screen.All(), "built-in"); got != 1 {
		t.Errorf("said %d times:\n%s", got, w.screen.All())
	}
}

// A message that this program does not know, or the daemon does not, is for the log.
func TestUnknownKindIsNotShown(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.p.Send(&wire.Error{Code: wire.CodeUnknownKind, Message: "unknown kind FutureThing"})
	w.p.Send(&wire.ShellLeaseQueued{})
	w.p.Send(notice("the end"))
	w.see("the end")
	if all := w.screen.All(); strings.Contains(all, "Future") {
		t.Errorf("got\n%s", all)
	}
}

// Whatever order the steps end in, one is under way at most, and the screen is whose it ought to be.
func TestOwnerSteps(t *testing.T) {
	w := open(t, 80, 24)
	for range 40 {
		w.p.Send(notice("look"))
		w.switches("\t")
		w.keys("\t")
		w.prompt()
	}
	w.until("every notice", func() bool { return strings.Count(w.screen.All(), "! look") == 40 })
	w.prompt()
	taken := false
	for _, step := range get(w.sh, &w.sh.steps) {
		if taken == (step != "give") {
			t.Fatalf("%q out of order: %q", step, get(w.sh, &w.sh.steps))
		}
		taken = !taken
	}
}

// A shell that was started anew is said, and has the screen.
func TestRestarted(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(shell.Restarted{Why: "it was ended by SIGKILL"})
	w.see("● the shell was started again: it was ended by SIGKILL")
	w.prompt()

	// AI mode, from which the user's own command ended the shell, comes back: it came after the next command only.
	w.ai()
	w.keys("!vim x\r")
	w.see("~ vim ~")
	w.sh.with(func() {
		w.sh.running = false
		w.sh.put([]byte("\x1b[?1049l"), shell.Restarted{Why: "again"})
		w.sh.freeLocked()
	})
	w.see("● the shell was started again: again")
	w.see("ask an agent")
}

// Output that comes before the program has the terminal waits; after its end it goes nowhere.
func TestShellOutputBeforeAndAfter(t *testing.T) {
	p := New(Options{})
	got := make(chan struct{})
	go func() { p.ShellOutput([]byte("early")); close(got) }()
	select {
	case <-got:
		t.Fatal("it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := p.Run(context.Background()); err == nil {
		t.Fatal("it runs without a terminal")
	}
	<-got
	p.ShellOutput([]byte("late"))
	p.AwaitDrawn()
}
