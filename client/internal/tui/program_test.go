package tui

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// In command mode the terminal shows what the shell prints and nothing else, and the shell gets what is typed and nothing else.
func TestCommandModeIsTransparent(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Models: []wire.ModelInfo{{Name: "m", ProviderKind: "offline", Loaded: true}}})
	w.p.Send(LinkChanged{Connected: true})
	w.command("ls -la")
	w.keys("ab\x7f\x1b[A\x1b\tx\t\x03")
	w.until("the line", func() bool { return strings.HasSuffix(w.screen.Raw(), "^C\r\n"+fakePrompt) })
	want := "u@box:~$ ls -la\r\nran ls -la\r\nu@box:~$ ab\b \b\x1b[A\x1b\tx\t^C\r\nu@box:~$ "
	if got := w.screen.Raw(); got != want {
		t.Errorf("the terminal got %q, want %q", got, want)
	}
	if got, want := string(get(w.sh, &w.sh.typed)), "ls -la\rab\x7f\x1b[A\x1b\tx\t\x03"; got != want {
		t.Errorf("the shell got %q, want %q", got, want)
	}
	// What the user ran goes along with the next question, and to the daemon.
	w.until("the report", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.commands) == 1 })
	w.switches("?")
	r := w.ask("what did I do\r")
	if got := r.Context.RecentCommands; r.Prompt != "what did I do" || r.Context.Cwd != "/home/u" || len(got) != 1 ||
		got[0].Command != "ls -la" || *got[0].ExitCode != 0 || string(got[0].OutputTail) != "ran ls -la" || got[0].StartedAtMS != 5 {
		t.Errorf("question: got %+v", r)
	}
}

// Tab alone on an empty line switches both ways, and so does the chosen key; what is typed behind it goes to whoever has the
// screen then. The scrollback has each line once.
func TestSwitch(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.p.opt.SwitchKey = []byte("\x1b[24~") })
	w.command("one")
	w.ai()
	w.keys("half a question")
	w.see("> half a question")
	w.keys("\t") // not on an empty line
	w.keys("\x1b[24~two\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 2 })
	w.prompt()
	w.shows("u@box:~$ one\nran one\nu@box:~$ two\nran two\nu@box:~$")
	w.switches("\x1b[24~")
	w.see("> half a question") // it waited
	w.keys("\x15\t")
	w.prompt()
	w.keys("three\t") // this Tab is the shell's
	w.see("u@box:~$ three")
	w.keys("\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 3 })
	if got := w.sh.commands()[2]; got != "three\t" {
		t.Errorf("ran %q", got)
	}
	w.prompt()
	w.ai()
	w.keys(escape + "x") // Esc does not switch
	w.see("> x")
}

// A Tab with something behind it begins a paste, not a change to command mode: the lines of a paste without brackets ran in the
// shell.
func TestPasteBeginsWithTab(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	if got := w.ask("\ttouch up the notes\r").Prompt; got != "touch up the notes" {
		t.Errorf("asked %q", got)
	}
	if ran := w.sh.commands(); len(ran) > 0 {
		t.Errorf("ran %q", ran)
	}
}

// A question mark on an empty line asks one question, and the shell has the screen again when it is answered.
func TestOneQuestion(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("a?")
	w.see("u@box:~$ a?")
	w.keys("\x7f\x7f")
	w.until("the empty line", func() bool { return strings.HasSuffix(w.screen.Text(), "u@box:~$") })
	w.switches("?")
	w.see("? ask an agent")
	playTurn(w, w.ask("why\r").RequestID)
	endTurn(w)
	w.prompt()
	w.see("Then I run it.")
}

// An empty question that a question mark opened is given up by deleting that mark, or by ^C.
func TestNoQuestion(t *testing.T) {
	w := open(t, 80, 24)
	for _, keys := range []string{"\x7f", "\x03", "x\x7f\x7f", "x\x03\x03"} {
		w.switches("?")
		w.see("? ask an agent")
		w.keys(keys)
		w.prompt()
	}
	w.switches("?") // a command is no question either, and AI mode does not stay on behind it
	w.keys("!ls\r")
	w.see("ran ls")
	w.prompt()
	w.ai() // whose line is not opened by a mark
	w.keys("\x7f\x03x")
	w.see("> x")
}

// How a shell is left is no question to a model.
func TestLeavingIsNoQuestion(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	for _, word := range []string{"exit", "quit", ":q"} {
		w.keys(word + "\r")
		w.see("> ask an agent · tab: shell · /help\ntab goes back to your shell; ctrl+d on an empty line leaves")
	}
	if got := w.ask("exit codes\r").Prompt; got != "exit codes" {
		t.Errorf("asked %q", got)
	}
}

// A line inserted from AI mode runs in the shell, in command mode; AI mode comes back when it has ended.
func TestBang(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.keys("!make all\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
	w.see("u@box:~$ make all\nran make all\n")
	w.see("ask an agent")
	if got := w.sh.commands()[0]; got != "make all" {
		t.Errorf("ran %q", got)
	}
	w.keys("\x1b[A")
	w.see("> !make all")
	w.keys("\x03!vim x\r")
	w.see("~ vim ~")
	w.keys("\t:q\r") // to the program
	w.until("the keys", func() bool { return string(get(w.sh, &w.sh.input)) == "\t:q\r" })
	w.sh.with(func() { w.sh.endLocked("vim x") })
	w.see("ask an agent")
}

// event is a stored event of turn t1.
func event(seq int64) wire.Event {
	return wire.Event{SessionID: "s1", TurnID: "t1", RequestID: "r", Seq: seq, AtMS: time.Now().UnixMilli()}
}

// turnOf plays a turn with words, a call and an end.
func playTurn(w *window, request wire.RequestID) {
	e := event(1)
	e.RequestID = request
	w.p.Send(&wire.TurnStarted{Event: e, Agent: "orchestrator", Prompt: "why?", Model: "m"})
	w.p.Send(&wire.AgentThinking{Event: event(2), Agent: "orchestrator", Phase: wire.PhaseGenerating})
	for i, piece := range []string{"Let me **lo", "ok**.\n\nThen", " I run it."} {
		w.p.Send(&wire.AgentStreamChunk{Event: event(int64(3 + i)), SeqFirst: int64(3 + i), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: piece}})
	}
	w.p.Send(&wire.AgentStreamChunk{Event: event(6), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x1", Tool: "bash", Arguments: `{"command":"make"}`}})
}

func endTurn(w *window) {
	w.p.Send(&wire.CommandResult{Event: event(7), Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "make", Status: wire.StatusSuccess, ExitCode: ptr(0), Output: []byte("built\n")})
	w.p.Send(&wire.AgentComplete{Event: event(8), Agent: "orchestrator", Status: wire.StatusSuccess, Usage: wire.Usage{Input: 1200, Output: 34, CostUSD: ptr(0.00004)}, Context: wire.ContextUse{Used: 2000, Window: 100000}, DurationMS: 1500})
}

func TestTurn(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	playTurn(w, w.ask("why?\r").RequestID)
	w.see("bash  make")
	w.see("Then I run it.")
	w.lend("x1", "orchestrator", "make")
	w.p.Send(output("x1", "cc a.c\r\n"))
	w.see("cc a.c")
	w.see("▌ orchestrator has your shell, 0s: make · esc stops it")
	done := leasedEnd("x1", 0)
	done.Result.Output, done.Changed = []byte("built\n"), "cd /tmp"
	w.endLease(done)
	endTurn(w)
	w.see("context 2%")
	w.see("  ask mode · m · context 2%")
	got := w.screen.All()
	want := `> why?

Let me look.

Then I run it.

✓ bash  make
  │ built
  └ exit 0
  ± changed in your shell: cd /tmp (/undo-shell puts it back)
· 1.5s · 1.2k in · 34 out · context 2% · below $0.0001

> ask an agent · tab: shell · /help
  ask mode · m · context 2%`
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What was run for the user without a question, as /undo is, is told by its card alone: no second telling of the error,
// no line about a turn that nobody asked for. Where there was nothing to do, a quiet line is all.
func TestToolTurn(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	for _, id := range []wire.TurnID{"u1", "u2"} {
		meta := func(seq int64) wire.Event { e := event(seq); e.TurnID = id; return e }
		w.p.Send(&wire.TurnStarted{Event: meta(1), Agent: "you"})
		if id == "u1" {
			w.p.Send(&wire.CommandResult{Event: meta(2), Agent: "you", ExecutionID: "x", Tool: "undo", Status: wire.StatusError, Output: []byte("changed since\n")})
		}
		w.p.Send(&wire.Error{Event: meta(3), Code: wire.CodeToolFailed, Message: "undo: nothing"})
		w.p.Send(&wire.AgentComplete{Event: meta(4), Agent: "you", Status: wire.StatusError, DurationMS: 3})
	}
	w.p.Send(&wire.Notice{Level: "info", Text: "the end"})
	w.see("the end")
	got := w.screen.All()
	want := `✗ undo
  │ changed since
  └ failed
· undo: nothing
· the end
> ask an agent`
	if !strings.Contains(got, want) || strings.Contains(got, "✗ failed") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A command that did not run was meant for the user's shell, where the main agent asked for it; the others have their own.
func TestCardOfARefusedCommandNamesItsShell(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.p.opt.Name = "zsh" })
	w.ai()
	for i, c := range []struct{ agent, status string }{
		{"orchestrator", wire.StatusDenied}, {"orchestrator", wire.StatusRefused}, {"orchestrator", wire.StatusSuccess}, {"engineer-1", wire.StatusDenied},
	} {
		w.p.Send(&wire.CommandResult{Event: event(int64(i)), Agent: c.agent, ExecutionID: wire.ExecutionID(strconv.Itoa(i)), Tool: "bash", Command: "make", Status: c.status})
	}
	w.see("⊘ zsh  make · not run\n✗ zsh  make · refused\n✓ bash  make\n⊘ engineer-1 bash  make · not run\n")
}

// Events of a session that is resumed render as what they were: finished cards and answers.
func TestResume(t *testing.T) {
	w := open(t, 80, 24, func(w *window) {
		w.d.sessions = []wire.SessionInfo{{ID: "s1", Title: "other"}, {ID: "0193-aaaa", Title: "the build", Turns: 1}}
		w.d.resumed = func(id wire.SessionID) {
			retag := func(e *wire.Event) { e.SessionID = id }
			start := &wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "mend it"}
			text := &wire.AgentStreamChunk{Event: event(2), SeqFirst: 2, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "It is mended."}}
			res := &wire.CommandResult{Event: event(3), Agent: "orchestrator", ExecutionID: "x", Tool: "read", Status: wire.StatusSuccess, Output: []byte("a\nb\n"), Command: "main.go"}
			user := &wire.CommandResult{Event: event(4), Command: "make test", ExitCode: ptr(2)}
			end := &wire.AgentComplete{Event: event(5), Agent: "orchestrator", Status: wire.StatusSuccess, DurationMS: 900}
			old := &wire.AgentStreamChunk{Event: event(9), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "of the session that was left"}}
			for _, e := range []wire.EventMessage{start, text, res, user, end} {
				retag(e.Meta())
			}
			for _, m := range []wire.Message{old, start, text, res, user, end} {
				w.p.Send(m)
			}
		}
	})
	w.ai()
	w.keys("/resume\r")
	w.see("type to search")
	w.keys("build")
	w.seeNot("other")
	w.keys("\r")
	w.see("0.9s")
	got := w.screen.All()
	for _, want := range []string{"resuming the build", "> mend it", "It is mended.", "✓ read  main.go · 2 lines", "$ make test  · exit 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "left") {
		t.Errorf("an event of the other session is shown:\n%s", got)
	}
}

// A turn that died with its daemon is told in one line; it took three, the last of which said only that it failed.
func TestDaemonRestarted(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	playTurn(w, w.ask("why\r").RequestID)
	w.see("esc stops")
	w.p.Send(&wire.Error{Event: event(9), Code: wire.CodeInternal, Message: "daemon restarted", Hint: "ask again; what was done before is in the conversation"})
	w.p.Send(&wire.AgentComplete{Event: event(10), Status: wire.StatusError, StopReason: wire.StatusError, Summary: "daemon restarted"})
	w.see("daemon restarted; ask again; what was done before is in the conversation")
	w.seeNot("esc stops")
	w.seeNot("failed")
}

// One ^C never ends the program; in AI mode the second on an empty line says how to leave; while a turn runs it stops it. Esc
// that comes just after a turn ended does nothing: it left AI mode, and the next question went to the shell.
func TestInterrupts(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.keys("half a line\x03")
	w.seeNot("half a line")
	w.keys("\x03")
	w.keys("\x03")
	w.see("tab goes back to your shell")
	w.keys("\x19") // ^Y brings the line back
	w.see("half a line")
	w.keys("\x03")
	playTurn(w, w.ask("why?\r").RequestID)
	w.see("esc stops")
	w.keys("\x1b")
	w.see("stopping")
	w.until("the cancel", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.cancelled) == 1 })
	w.p.Send(&wire.Error{Event: event(9), Code: wire.CodeCancelled, Message: "cancelled by client sublet 1"})
	w.p.Send(&wire.AgentComplete{Event: event(10), Status: wire.StatusCancelled, DurationMS: 100})
	w.see("stopped")
	w.seeNot("cancelled by") // once is enough
	w.keys(escape + "next")
	w.see("> next")
	select {
	case <-w.done:
		t.Error("^C ended the program")
	default:
	}
}

// The shell's own end is the program's, from command mode and from AI mode.
func TestEndOfInput(t *testing.T) {
	for _, keys := range []string{"exit\r", "\x04"} {
		w := open(t, 80, 24, func(w *window) { w.sh.status = 3 })
		if keys == "\x04" {
			w.ai()
		}
		w.keys(keys)
		if code := w.end(); code != 3 || w.err != nil {
			t.Errorf("%q: got %d %v, want the shell's 3", keys, code, w.err)
		}
		w.whole()
	}
}

// A shell that does not end because of its stopped jobs keeps the screen: it ends where ^D follows at once.
func TestEndOfInputRefused(t *testing.T) {
	w := open(t, 80, 24, func(w *window) {
		w.sh.run = func(string) (string, int) { return "There are stopped jobs.\r\n", 1 }
	})
	w.ai()
	w.keys("\x04")
	w.until("the report of it", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.commands) == 1 })
	w.prompt()
	w.keys("x")
	w.see("u@box:~$ exit\nThere are stopped jobs.\nu@box:~$ x")
}

// Without a daemon it is the user's shell, whose prompt no word of that moves. AI mode says why it cannot ask.
func TestWithoutDaemon(t *testing.T) {
	w := open(t, 80, 24)
	down := func(yes bool) { w.d.mu.Lock(); defer w.d.mu.Unlock(); w.d.down = yes }
	down(true)
	w.p.Send(LinkChanged{Connected: true})
	w.p.Send(LinkChanged{Detail: "connection refused"})
	w.command("ls")
	w.shows("u@box:~$ ls\nran ls\nu@box:~$")
	w.switches("?")
	w.see("the daemon is gone; your shell goes on, agents come back with it: connection\n  refused")
	w.keys("why\r")
	w.see("waiting for the daemon · esc gives back: why")
	w.keys("\x1b")
	w.see("? why") // given back
	// What is asked meanwhile is asked when the daemon is there.
	w.keys(" now\r")
	w.see("waiting for the daemon")
	down(false)
	w.p.Send(LinkChanged{Connected: true})
	w.see("> why now")
	w.seeNot("the daemon is gone")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
}

// Nothing is asked of the terminal, so nothing waits for its answer and no answer can end up in a program.
func TestAsksTheTerminalNothing(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls")
	w.ai()
	queries := regexp.MustCompile(`\x1b\[[?>=]?[0-9;]*c|\x1b\[[?]?[56]n|\x1b\[\?u|\x1b\[\?[0-9;]*\$p|\x1b\]1[0-9];\?|\x1bP\+q|\x1b\[>[0-9]*q|\x1b\[1[48]t`)
	if q := queries.FindString(w.screen.Raw()); q != "" {
		t.Errorf("the terminal was asked %q", q)
	}
	if strings.Contains(w.screen.Raw(), "\x1b[?1049h") || strings.Contains(w.screen.Raw(), "\x1b[3J") {
		t.Error("the terminal's own screen or scrollback was taken")
	}
}

// A resize while the shell has the screen is the shell's alone. What is typed after it reaches the shell after the size, also
// where SIGWINCH comes later.
func TestResizeOfTheShell(t *testing.T) {
	w := open(t, 80, 24)
	n := len(w.screen.Raw())
	resize := func(cols, rows uint16) {
		if err := pty.Setsize(w.master, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
			t.Fatal(err)
		}
	}
	last := func() shell.Size { s := get(w.sh, &w.sh.sizes); return s[len(s)-1] }
	resize(50, 12)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGWINCH)
	w.until("the shell to know", func() bool { return last() == shell.Size{Cols: 50, Rows: 12} })
	if got := len(w.screen.Raw()) - n; got != 0 {
		t.Errorf("%d bytes were written", got)
	}
	resize(0, 0) // no size is reported: 80 by 24 was taken
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGWINCH)
	w.keys("y")
	w.until("the first key", func() bool { return string(get(w.sh, &w.sh.typed)) == "y" })
	if got, want := last(), (shell.Size{Cols: 50, Rows: 12}); got != want {
		t.Errorf("without a size the shell has %+v, want %+v", got, want)
	}
	resize(60, 20)
	w.keys("x")
	w.until("the key", func() bool { return string(get(w.sh, &w.sh.typed)) == "yx" })
	if got, want := last(), (shell.Size{Cols: 60, Rows: 20}); got != want {
		t.Errorf("with the key the shell has %+v, want %+v", got, want)
	}
}

// Notices stand before the shell's first output.
func TestNoticesComeFirst(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.p.opt.Notice = []string{"sublet: one thing", "another"} })
	w.shows("sublet: one thing\nanother\nu@box:~$")
}

// A shell whose editor does not answer is said once, below what it shows, and stays a shell. What was to be shown is printed
// there as well.
func TestBrokenEditor(t *testing.T) {
	w := open(t, 80, 24)
	w.sh.with(func() { w.sh.broken = &shell.BrokenError{Why: "its key is not bound", Fix: "run `exec $SHELL`"} })
	w.p.Send(lender.CannotLend{Why: w.sh.broken.Error(), Hint: w.sh.broken.Hint()})
	w.see("the shell cannot be lent: its key is not bound\n  run `exec $SHELL`")
	w.keys("\t")
	w.until("the Tab", func() bool { return string(get(w.sh, &w.sh.typed)) == "\t" })
	w.keys("x\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
	w.p.Send(&wire.Notice{Level: "warning", Text: "look at this"})
	w.see("! look at this")
	if got := strings.Count(w.screen.All(), "cannot be lent"); got != 1 {
		t.Errorf("said %d times:\n%s", got, w.screen.All())
	}
}

// A long answer leaves each of its lines in the scrollback once, below what was there, and the live part never
// erases more than itself.
func TestScrollbackIsWhole(t *testing.T) {
	w := open(t, 60, 12)
	w.command("ls")
	w.switches("?")
	start := event(1)
	start.RequestID = w.ask("go\r").RequestID
	w.p.Send(&wire.TurnStarted{Event: start, Agent: "orchestrator", Prompt: "go"})
	var want []string
	for i := range 120 {
		line := "paragraph number " + strconv.Itoa(i)
		want = append(want, line)
		for j, piece := range []string{line[:9], line[9:] + "\n\n"} {
			seq := int64(2 + 2*i + j)
			w.p.Send(&wire.AgentStreamChunk{Event: event(seq), SeqFirst: seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: piece}})
		}
	}
	w.p.Send(&wire.AgentComplete{Event: event(500), Status: wire.StatusSuccess, DurationMS: 100})
	w.until("every paragraph, once", func() bool { return strings.Count(w.screen.All(), "paragraph number") == len(want) })
	w.prompt()
	all := w.screen.All()
	at := strings.Index(all, "ran ls")
	for _, l := range want {
		next := strings.Index(all, l)
		if next < at {
			t.Fatalf("%q is out of order", l)
		}
		at = next
	}
}
