package tui

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// Whoever types, and an agent at work, keep the shell from the end of its idle time; a window that only stands there does not.
func TestInUse(t *testing.T) {
	var n atomic.Int64
	w := open(t, 80, 24, func(w *window) { w.p.opt.InUse = func() { n.Add(1) } })
	if n.Load() != 0 {
		t.Errorf("%d times before anybody did anything", n.Load())
	}
	w.keys("a")
	w.until("the key", func() bool { return n.Load() == 1 })
	w.p.Observe(lender.LeasedStarted{ExecutionID: "x9", Agent: "lease run", Command: "make all"})
	w.until("the agent", func() bool { return n.Load() > 3 })
}

func TestCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls -la")
	w.command("cd /tmp")
	want := "u@box:~$ ls -la\nran ls -la\nu@box:~$ cd /tmp\nran cd /tmp\nu@box:~$"
	if got := w.screen.all(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, mark := range []string{"\x1b]133;A\a", "\x1b]133;B\a", "\x1b]133;C\a", "\x1b]133;D;0\a"} {
		if !strings.Contains(w.screen.rawText(), mark) {
			t.Errorf("mark %q is missing for the terminal around us", mark)
		}
	}
	w.until("the commands to be reported", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.commands) == 2 })
	w.keys("?what did I do\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	r := w.d.questions()[0]
	if r.Prompt != "what did I do" || r.Context.Cwd != "/home/u" || len(r.Context.RecentCommands) != 2 ||
		r.Context.RecentCommands[1].Command != "cd /tmp" || *r.Context.RecentCommands[1].ExitCode != 0 || string(r.Context.RecentCommands[1].OutputTail) != "ran cd /tmp" {
		t.Errorf("question: got %+v", r)
	}
}

// T2g: what is typed after Enter goes to the program, byte for byte, until the command ends; then to the editor again.
func TestTypeAheadGoesToTheProgram(t *testing.T) {
	release := make(chan struct{})
	w := open(t, 80, 24, func(w *window) {
		w.sh.run = func(_ context.Context, _ string, out func([]byte)) (shell.Result, error) {
			out(nil)
			out([]byte("password: "))
			<-release
			return shell.Result{Status: "ok", ExitCode: ptr(1), Dir: "/home/u"}, nil
		}
	})
	w.keys("sudo x\rs3cret\x1b[A\x03\t\r")
	w.until("the keys", func() bool { return w.sh.typedText() == "s3cret\x1b[A\x03\t\r" })
	w.see("password:")
	if strings.Contains(w.screen.rawText(), "s3cret") {
		t.Error("keys for a program were shown by the screen")
	}
	close(release)
	w.until("the prompt", func() bool { return strings.Count(w.screen.text(), "u@box:~$") == 2 })
	w.keys("mine")
	w.see("u@box:~$ mine")
	if got := w.sh.typedText(); got != "s3cret\x1b[A\x03\t\r" {
		t.Errorf("the program got %q", got)
	}
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if len(w.d.commands) != 1 || strings.Contains(string(w.d.commands[0].OutputTail), "s3cret") {
		t.Errorf("reported: got %+v", w.d.commands)
	}
}

// Lines typed faster than commands run are run one after the other, as in bash; so is what is typed between a command's
// end and the moment at which the screen knows of it.
func TestLinesTypedAhead(t *testing.T) {
	w := open(t, 80, 24, func(w *window) {
		w.sh.run = func(_ context.Context, text string, out func([]byte)) (shell.Result, error) {
			before := w.sh.typedText()
			out(nil)
			w.sh.mu.Lock()
			w.sh.typed = append([]byte(nil), before...) // what came is taken out of the terminal's queue again
			unread := w.sh.typedNow
			w.sh.typedNow = nil
			w.sh.mu.Unlock()
			out([]byte("ran " + text + "\r\n"))
			return shell.Result{Status: "ok", ExitCode: ptr(0), Dir: "/home/u", Unread: bytes.ReplaceAll(unread, []byte("\r"), []byte("\n"))}, nil
		}
	})
	w.keys("echo a\recho b\recho c\rexit\r")
	w.end()
	if got, want := strings.Join(w.sh.commands(), ", "), "echo a, echo b, echo c, exit"; got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
	for range 20 {
		w := open(t, 80, 24)
		w.keys("one\r")
		w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
		w.keys("two\r")
		w.until("the second command, or its keys at the program", func() bool {
			return len(w.sh.commands()) == 2 || strings.Contains(w.sh.typedText(), "two\r")
		})
	}
}

// What was typed while the program was starting, in the terminal's own line mode, is typed as it was meant.
func TestTypedBeforeTheStart(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.early = "ls\rpart" })
	w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
	w.until("the rest", func() bool { return strings.Contains(w.screen.text(), "u@box:~$ part") || w.sh.typedText() == "part" })
	if got := w.sh.commands()[0]; got != "ls" {
		t.Errorf("ran %q, want ls", got)
	}
}

// T2g: the keys that answer a question, and those that were typed before it, never reach a program.
func TestAnswersDoNotReachPrograms(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(testQuestion())
	w.see("critical risk")
	w.until("it to be armed", func() bool { return strings.Contains(w.screen.rawText(), "\x1b[7m") })
	w.keys("y")
	w.until("the answer", func() bool { return len(w.d.answers()) == 1 })
	w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionAllow})
	w.keys("es\r") // the rest of a typed yes
	w.see("allowed once")
	w.prompt()
	if got := w.sh.typedText(); got != "" {
		t.Errorf("a program got %q", got)
	}
	if got := w.sh.commands(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// event is a stored event of turn t1.
func event(seq int64) wire.Event {
	return wire.Event{SessionID: "s1", TurnID: "t1", RequestID: "r", Seq: seq}
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
	w.p.Send(&wire.AgentComplete{Event: event(8), Agent: "orchestrator", Status: wire.StatusSuccess, Usage: wire.Usage{Input: 1200, Output: 34}, Context: wire.ContextUse{Used: 2000, Window: 100000}, DurationMS: 1500})
}

func TestTurn(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("\t")
	w.see("ask an agent")
	w.keys("why?\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	playTurn(w, w.d.questions()[0].RequestID)
	w.see("bash  make")
	w.see("Then I run it.")
	w.p.Send(leasedStart("x1", "make"))
	w.p.Send(lender.LeasedOutput{ExecutionID: "x1", Data: []byte("cc a.c\r\n")})
	w.see("cc a.c")
	w.see("in your shell")
	done := leasedEnd("x1", 0)
	done.Result.Output, done.Changed = []byte("built\n"), "cd /tmp"
	w.p.Send(done)
	endTurn(w)
	w.see("context 2%")
	got := w.screen.all()
	want := `> why?

Let me look.

Then I run it.

✓ bash  make
  │ built
  └ exit 0
  ± changed in your shell: cd /tmp (/undo-shell puts it back)
· 1.5s · 1.2k in · 34 out · context 2%

> ask an agent · tab: shell · /help
  m · context 2%`
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What was run for the user without a question, as /undo is, is told by its card alone: no second telling of the error,
// no line about a turn that nobody asked for.
func TestToolTurn(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("\t")
	w.see("ask an agent")
	meta := func(seq int64) wire.Event { e := event(seq); e.TurnID = "u1"; return e }
	w.p.Send(&wire.TurnStarted{Event: meta(1), Agent: "orchestrator"})
	w.p.Send(&wire.CommandResult{Event: meta(2), Agent: "orchestrator", ExecutionID: "x", Tool: "undo", Status: wire.StatusError, Output: []byte("no file change to undo\n")})
	w.p.Send(&wire.Error{Event: meta(3), Code: wire.CodeToolFailed, Message: "undo: no file change to undo"})
	w.p.Send(&wire.AgentComplete{Event: meta(4), Agent: "orchestrator", Status: wire.StatusError, DurationMS: 3})
	w.p.Send(&wire.Notice{Level: "info", Text: "the end"})
	w.see("the end")
	got := w.screen.all()
	want := `✗ undo
  │ no file change to undo
  └ failed
· the end
> ask an agent`
	if !strings.Contains(got, want) || strings.Contains(got, "✗ failed") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
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
	w.keys("\t/resume\r")
	w.see("type to search")
	w.keys("build")
	w.seeNot("other")
	w.keys("\r")
	w.see("0.9s")
	got := w.screen.all()
	for _, want := range []string{"resuming the build", "> mend it", "It is mended.", "✓ read  main.go · 2 lines", "$ make test  · exit 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "left") {
		t.Errorf("an event of the other session is shown:\n%s", got)
	}
}

// A leased program that asks for a secret gets keyboard and screen, with a sign; nothing of it stays with us (T2g, T6a).
func TestPasswordHandOver(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Observe(leasedStart("x1", "sudo make install"))
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x1", Data: []byte("building\r\n[sudo] password for u: ")})
	w.p.Observe(leasedKeyboard("x1", "password"))
	w.see("type the secret that it asks for")
	w.see("[sudo] password for u:")
	w.keys("hunter2\r")
	w.until("the keys", func() bool { return w.sh.typedText() == "hunter2\r" })
	w.p.Observe(leasedKeyboard("x1", ""))
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x1", Data: []byte("\r\ninstalled\r\n")})
	w.see("installed")
	w.p.Observe(leasedEnd("x1", 0))
	w.see("exit 0")
	w.keys("x")
	w.see("u@box:~$ x")
	if strings.Contains(w.screen.rawText(), "hunter2") {
		t.Error("the secret was shown")
	}
}

// A leased program that takes the whole screen is passed through from the sequence that takes it.
func TestScreenHandOver(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Observe(leasedStart("x1", "vim"))
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x1", Data: []byte("before\r\n\x1b[?1049h\x1b[H~ vim ~")})
	w.p.Observe(leasedKeyboard("x1", "screen"))
	w.see("~ vim ~")
	w.until("the alternate screen", func() bool { return w.screen.on("1049") })
	w.keys(":q\r")
	w.until("the keys", func() bool { return w.sh.typedText() == ":q\r" })
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x1", Data: []byte("\x1b[?1049l")})
	w.p.Observe(leasedEnd("x1", 0))
	w.see("exit 0")
	w.prompt()
	if w.screen.on("1049") {
		t.Error("still in the alternate screen")
	}
}

// A turn that died with its daemon is told in one line; it took three, the last of which said only that it failed.
func TestDaemonRestarted(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("?why\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	playTurn(w, w.d.questions()[0].RequestID)
	w.see("ctrl+c stops")
	w.p.Send(&wire.Error{Event: event(9), Code: wire.CodeInternal, Message: "daemon restarted", Hint: "ask again; what was done before is in the conversation"})
	w.p.Send(&wire.AgentComplete{Event: event(10), Status: wire.StatusError, StopReason: wire.StatusError, Summary: "daemon restarted"})
	w.see("daemon restarted; ask again; what was done before is in the conversation")
	w.seeNot("ctrl+c stops")
	w.seeNot("failed")
}

// T6d: one ^C never ends the program; on an idle empty line the second tells how to leave; while a turn runs it stops it.
func TestInterrupts(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("half a line\x03")
	w.seeNot("half a line")
	w.keys("\x03")
	w.keys("\x03")
	w.see("to leave: exit, or ctrl+d")
	w.keys("\x1f") // undo brings the line back
	w.see("half a line")
	w.keys("\x03?why\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	playTurn(w, w.d.questions()[0].RequestID)
	w.see("ctrl+c stops")
	w.keys("\x03")
	w.see("stopping")
	w.until("the cancel", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.cancelled) == 1 })
	w.p.Send(&wire.Error{Event: event(9), Code: wire.CodeCancelled, Message: "cancelled by client sublet 1"})
	w.p.Send(&wire.AgentComplete{Event: event(10), Status: wire.StatusCancelled, DurationMS: 100})
	w.see("stopped")
	w.seeNot("cancelled by") // once is enough
	select {
	case <-w.done:
		t.Error("^C ended the program")
	default:
	}
}

func TestEndOfInput(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.sh.status = 3 })
	w.keys("\x04")
	if code := w.end(); code != 3 || w.err != nil {
		t.Errorf("got %d %v, want the shell's 3", code, w.err)
	}
	w.whole()
}

// Without a daemon it is a good shell, and AI mode says why it cannot.
func TestWithoutDaemon(t *testing.T) {
	w := open(t, 80, 24)
	w.d.mu.Lock()
	w.d.down = true
	w.d.mu.Unlock()
	w.p.Send(LinkChanged{Connected: true})
	w.p.Send(LinkChanged{Detail: "connection refused"})
	w.see("the daemon is gone")
	w.keys("?why\r")
	w.see("waiting for the daemon: connection refused")
	w.keys("\x1b")
	w.see("u@box:~$ ?why") // given back
	w.keys("\x03")
	w.command("ls")
	// What is asked meanwhile is asked when the daemon is there.
	w.keys("?and now\r")
	w.see("waiting for the daemon")
	w.d.mu.Lock()
	w.d.down = false
	w.d.mu.Unlock()
	w.p.Send(LinkChanged{Connected: true})
	w.see("the daemon is back")
	w.see("> and now")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
}

// T6b: nothing is asked of the terminal, so nothing waits for its answer and no answer can end up in a program.
func TestAsksTheTerminalNothing(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls")
	w.keys("\t")
	w.see("ask an agent")
	queries := regexp.MustCompile(`\x1b\[[?>=]?[0-9;]*c|\x1b\[[?]?[56]n|\x1b\[\?u|\x1b\[\?[0-9;]*\$p|\x1b\]1[0-9];\?|\x1bP\+q|\x1b\[>[0-9]*q|\x1b\[1[48]t`)
	if q := queries.FindString(w.screen.rawText()); q != "" {
		t.Errorf("the terminal was asked %q", q)
	}
	if strings.Contains(w.screen.rawText(), "\x1b[?1049h") || strings.Contains(w.screen.rawText(), "\x1b[3J") {
		t.Error("the terminal's own screen or scrollback was taken")
	}
}

// T6b: a long answer leaves each of its lines in the scrollback once, below what was there, and the live part never
// erases more than itself.
func TestScrollbackIsWhole(t *testing.T) {
	w := open(t, 60, 12)
	w.command("ls")
	w.keys("?go\r")
	w.until("the question", func() bool { return len(w.d.questions()) == 1 })
	w.p.Send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	var want []string
	for i := range 120 {
		line := "paragraph number " + itoa(i)
		want = append(want, line)
		for j, piece := range []string{line[:9], line[9:] + "\n\n"} {
			seq := int64(2 + 2*i + j)
			w.p.Send(&wire.AgentStreamChunk{Event: event(seq), SeqFirst: seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: piece}})
		}
	}
	w.p.Send(&wire.AgentComplete{Event: event(500), Status: wire.StatusSuccess, DurationMS: 100})
	w.until("every paragraph, once", func() bool { return strings.Count(w.screen.all(), "paragraph number") == len(want) })
	w.prompt()
	all := w.screen.all()
	at := strings.Index(all, "ran ls")
	for _, l := range want {
		next := strings.Index(all, l)
		if next < at {
			t.Fatalf("%q is out of order", l)
		}
		at = next
	}
}
