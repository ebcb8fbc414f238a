package tui

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/screentest"
	"sublet/lease/shell"
	"sublet/wire"
)

// In command mode a borrowed command has the screen while it runs, and the prompt comes back below its card with what was half
// typed. What is typed meanwhile is seen, and is the shell's.
func TestBorrowedInCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls")
	w.keys("half")
	w.see("u@box:~$ half")
	w.lend("x1", "lease run", "make")
	w.p.Send(output("x1", "cc a.c\r\n"))
	w.see("│ cc a.c")
	w.see("▌ lease run has your shell, 0s: make · ctrl+c takes it back")
	w.keys(" typex\x7fd ahead")
	w.see("typed for your shell:  typed ahead")
	end := leasedEnd("x1", 0)
	end.Result.Output = []byte("cc a.c\n")
	w.endLease(end)
	w.shows("u@box:~$ ls\nran ls\n\n✓ lease run bash  make\n  │ cc a.c\n  └ exit 0\nu@box:~$ half typed ahead")
	if got := string(get(w.sh, &w.sh.typed)); got != "ls\rhalf typex\x7fd ahead" {
		t.Errorf("the shell got %q", got)
	}
	// Nothing was taken from the shell: the editor was the borrower's.
	if steps := get(w.sh, &w.sh.steps); len(steps) != 0 {
		t.Errorf("steps: %q", steps)
	}
}

// The lender lets the shell paint its prompt once AwaitDrawn returns: the card is on the screen then, and the screen
// is the shell's.
func TestEndIsDrawnBeforeThePrompt(t *testing.T) {
	w := open(t, 80, 24)
	for i := range 30 {
		id := wire.ExecutionID(strconv.Itoa(i))
		w.p.Send(lender.LeasedStarted{ExecutionID: id, Agent: "a", Command: "command " + strconv.Itoa(i)})
		w.p.Send(&wire.AgentStreamChunk{Event: event(int64(i)), SeqFirst: int64(i), Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "words\n\n"}})
		w.p.Send(leasedEnd(id, 0))
		w.p.AwaitDrawn()
		if !w.p.paint.ShellOutput(nil) {
			t.Fatal("the screen is not the shell's")
		}
		prompt := "prompt " + strconv.Itoa(i) + "$"
		w.p.ShellOutput([]byte(prompt + "\r\n"))
		w.see(prompt)
		if all := w.screen.All(); !strings.HasSuffix(all, "command "+strconv.Itoa(i)+" · exit 0\n"+prompt) {
			t.Fatalf("got\n%s", all)
		}
	}
}

// The user comes first: Enter says who has the shell and is kept for the line, Enter again takes the shell back, and so does
// Ctrl-C at once. The card says it as a person would, not as the model is told.
func TestTakeBack(t *testing.T) {
	for _, keys := range []string{"\r", "\x03"} {
		w := open(t, 80, 24)
		w.lend("x1", "orchestrator", "make")
		w.keys("ls\r")
		w.see("your line runs when it has ended · enter again takes your shell back")
		w.keys("x\x7f") // any other key than Enter
		w.seeNot("enter again")
		w.keys("\r")
		w.see("enter again takes your shell back")
		if got := get(w.sh, &w.sh.back); got != 0 {
			t.Fatalf("taken back %d times", got)
		}
		w.keys(keys)
		w.until("the shell to be taken back", func() bool { return get(w.sh, &w.sh.back) == 1 })
		end := cancelled("x1")
		end.Result.Output = []byte("cc\n")
		w.endLease(end)
		w.p.Send(&wire.CommandResult{Event: event(3), ExecutionID: "x1", Tool: "bash", Status: "cancelled", ExitCode: ptr(130), Output: []byte("cc\n[ended: taken back by the user]\n[exit code 130]")})
		w.see("└ you took your shell back")
		w.until("the command", func() bool { return slices.Equal(w.sh.commands(), []string{"ls"}) })
		w.see("ran ls") // the prompt stands before it, too
		w.prompt()
		if all := w.screen.All(); strings.Contains(all, "[ended") || strings.Count(all, "$ ls") != 1 {
			t.Errorf("got\n%s", all)
		}
	}
}

// What the user entered while a borrowed command ran runs as soon as the shell is free, whatever else waits for it: nothing
// has to be pressed again.
func TestLineRunsWhenTheShellIsFree(t *testing.T) {
	w := open(t, 80, 24)
	w.lend("x1", "lease run", "make")
	w.keys("ls\r")
	w.see("your line runs when it has ended")
	w.keys("\x1b")
	w.see("no agent is at work for you")
	w.endLease(leasedEnd("x1", 0))
	w.until("the command", func() bool { return slices.Equal(w.sh.commands(), []string{"ls"}) })
	w.prompt()
}

// Esc stops the agent's turn, and leaves line and shell alone.
func TestEscapeStopsTheAgentInCommandMode(t *testing.T) {
	w := open(t, 80, 24)
	w.switches("?")
	playTurn(w, w.ask("why\r").RequestID)
	w.see("bash  make")
	w.keys("\t")
	w.prompt()
	w.lend("x1", "orchestrator", "make")
	w.keys("ls\x1b")
	w.until("the cancel", func() bool { w.d.mu.Lock(); defer w.d.mu.Unlock(); return len(w.d.cancelled) == 1 })
	w.endLease(cancelled("x1"))
	w.see("u@box:~$ ls")
	if got := get(w.sh, &w.sh.back); got != 0 {
		t.Errorf("taken back %d times", got)
	}
}

// AI mode is left while a borrowed command runs: the screen stays until that has ended, and then the prompt comes.
func TestTabWhileTheShellIsLent(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.lend("x1", "lease run", "make")
	w.see("> ask an agent")
	w.keys("\t")
	w.seeNot("ask an agent")
	w.keys("ls\r")
	w.see("typed for your shell: ls")
	w.endLease(leasedEnd("x1", 0))
	w.until("the command", func() bool { return slices.Equal(w.sh.commands(), []string{"ls"}) })
	w.prompt()
}

// A line for the shell is offered the shell in AI mode: Enter again ends the borrowed command and runs the line.
func TestBangWhileTheShellIsLent(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.lend("x1", "lease run", "make")
	w.keys("!ls\r")
	w.see("enter again takes your shell back")
	w.keys("\r")
	w.see("your line runs when it has ended")
	w.until("the shell to be taken back", func() bool { return get(w.sh, &w.sh.back) == 1 })
	w.endLease(cancelled("x1"))
	w.until("the command", func() bool { return slices.Equal(w.sh.commands(), []string{"ls"}) })
	w.see("ask an agent")
	all := w.screen.All()
	if card, line := strings.Index(all, "you took your shell back"), strings.Index(all, "$ ls"); card < 0 || line < card {
		t.Errorf("got\n%s\nwant the end of make, and then the line", all)
	}
}

// ^D twice leaves while a borrowed command runs. Any other key is no second one.
func TestLeavingWhileTheShellIsLent(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.lend("x1", "lease run", "make")
	w.keys("\x04")
	w.see("ctrl+d again ends that command and leaves")
	w.keys("x\x7f\x04")
	w.see("ctrl+d again ends that command and leaves")
	w.keys("\x04")
	w.until("the shell to be taken back", func() bool { return get(w.sh, &w.sh.back) == 1 })
	w.endLease(cancelled("x1"))
	w.end()
}

// A leased program that asks for a secret gets keyboard and screen, with a sign; nothing of it stays with us.
func TestPasswordHandOver(t *testing.T) {
	for _, ai := range []bool{false, true} {
		w := open(t, 80, 24)
		if ai {
			w.ai()
		}
		w.lend("x1", "orchestrator", "sudo make install")
		w.p.Send(output("x1", "building\r\n[sudo] password for u: "))
		w.p.Send(leasedKeyboard("x1", "password"))
		w.see("type the secret that it asks for")
		w.see("[sudo] password for u:")
		w.keys("hunter2\r")
		w.until("the keys", func() bool { return string(get(w.sh, &w.sh.answer)) == "hunter2\r" })
		w.p.Send(leasedKeyboard("x1", ""))
		w.p.Send(output("x1", "\r\ninstalled\r\n"))
		w.see("installed")
		w.endLease(leasedEnd("x1", 0))
		w.see("exit 0")
		if strings.Contains(w.screen.Raw(), "hunter2") || strings.Contains(string(get(w.sh, &w.sh.typed)), "hunter2") {
			t.Error("the secret was shown, or went to the shell")
		}
	}
}

// The rest of a secret, typed when the command that asked for it is ended, is nobody's: not AI mode's line, and with Enter the
// model's, nor the shell's.
func TestRestOfASecretIsDropped(t *testing.T) {
	for _, ai := range []bool{false, true} {
		for _, end := range []lender.LeasedEnded{cancelled("x1"), leasedEnd("x1", 1)} {
			d := newDesk(t)
			typed := ""
			d.keys.Shell = func(b []byte) { typed += string(b) }
			d.keys.Deliver = func(msg any) (bool, bool) {
				if to, enters := msg.(keys.Enter); enters {
					typed += "to AI mode by " + string(to)
					return true, true
				}
				d.send(&keyEvent{msg: msg, done: make(chan struct{})})
				return false, true
			}
			if !ai {
				d.own = owner{}
			}
			d.wait(time.Hour)
			d.send(leasedStart("x1", "sudo make install"))
			d.send(leasedKeyboard("x1", "password"))
			d.keys.Feed([]byte("hun"))
			d.send(end)
			d.send(then(func() { d.onEndShown(make(chan struct{})) }))
			for _, key := range []string{"t", "er", "2\r", "\t", "?"} { // typed one by one, within half a second
				d.wait(10 * time.Millisecond)
				d.keys.Feed([]byte(key))
			}
			d.wait(muteAfterSecret)
			d.keys.Feed([]byte("x"))
			got := string(d.sh.answer) + " " + typed + " " + d.ed.Text
			if want := map[bool]string{true: "hun  x", false: "hun x "}[ai]; got != want || len(d.d.questions()) != 0 {
				t.Errorf("%s, AI mode %v: the program, the shell and the line got %q, want %q; the agent %d questions", end.Status, ai, got, want, len(d.d.questions()))
			}
		}
	}
}

// So it is after any end by force of a command that asked for the keyboard once. What is typed at the end of another one is kept.
func TestMuteAfterAForcedEnd(t *testing.T) {
	for _, c := range []struct {
		asked bool
		end   shell.Result
		want  string
	}{
		{true, shell.Result{Status: "timeout"}, ""},
		{true, shell.Result{Status: "cancelled"}, ""},
		{true, shell.Result{Status: "ok", Signal: "SIGKILL"}, ""},
		{true, shell.Result{Status: "ok"}, "key"},
		{false, shell.Result{Status: "cancelled", Signal: "SIGINT"}, "key"},
	} {
		d := newDesk(t)
		d.keys.Deliver = func(msg any) (bool, bool) {
			d.send(&keyEvent{msg: msg, done: make(chan struct{})})
			return false, true
		}
		d.wait(time.Hour)
		d.send(leasedStart("x1", "ssh host"))
		if c.asked {
			d.send(leasedKeyboard("x1", "password"))
			d.send(leasedKeyboard("x1", ""))
			d.wait(handOverIdle)
			if d.handover != nil {
				t.Fatal("the command has the keyboard")
			}
		}
		d.send(lender.LeasedEnded{ExecutionID: "x1", Status: c.end.Status, Result: c.end})
		d.keys.Feed([]byte("k"))
		d.wait(muteAfterSecret - time.Millisecond)
		d.keys.Feed([]byte("ey"))
		if d.ed.Text != c.want {
			t.Errorf("%+v: got %q, want %q", c, d.ed.Text, c.want)
		}
		d.wait(time.Millisecond)
		d.keys.Feed([]byte("!"))
		if d.ed.Text != c.want+"!" {
			t.Errorf("%+v: got %q afterwards", c, d.ed.Text)
		}
	}
}

// The next command that asks has the keyboard once nothing was typed for a moment, dropped or not, and then all that is typed.
func TestMuteEndsWithTheNextQuestion(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedStart("x1", "ssh host"))
	d.send(leasedKeyboard("x1", "password"))
	d.send(cancelled("x1"))
	d.send(leasedStart("x2", "read x"))
	d.keys.Feed([]byte("ret"))
	d.send(leasedKeyboard("x2", "input"))
	if d.wait(handOverAfter - time.Millisecond); d.programHasTerminal() {
		t.Fatal("the keyboard went over in the middle of a secret")
	}
	d.wait(time.Millisecond)
	d.keys.Feed([]byte("y"))
	if got := string(d.sh.answer); !d.programHasTerminal() || got != "y" {
		t.Errorf("held %v, the program got %q, want y", d.programHasTerminal(), got)
	}
}

// A leased program that takes the whole screen is passed through from the sequence that takes it.
func TestScreenHandOver(t *testing.T) {
	w := open(t, 80, 24)
	w.lend("x1", "orchestrator", "vim")
	w.p.Send(output("x1", "before\r\n\x1b[?1049h\x1b[H~ vim ~"))
	w.p.Send(leasedKeyboard("x1", "screen"))
	w.see("~ vim ~")
	w.until("the alternate screen", func() bool { return w.screen.On("1049") })
	w.keys(":q\r")
	w.until("the keys", func() bool { return string(get(w.sh, &w.sh.answer)) == ":q\r" })
	w.p.Send(output("x1", "\x1b[?1049l"))
	w.endLease(leasedEnd("x1", 0))
	w.see("exit 0")
	w.prompt()
	if w.screen.On("1049") {
		t.Error("still in the alternate screen")
	}
}

// Who has the shell, since when and for what, and who waits for it.
func TestLeaseBar(t *testing.T) {
	m := &model{w: 80, th: *screentest.Theme(), Options: Options{now: time.Now}, own: owner{mode: aiMode}}
	for _, c := range []struct {
		lending lender.Lending
		waiting []wire.LeaseWaiter
		width   int
		want    string
	}{
		{lender.Lending{}, nil, 80, ""},
		{lender.Lending{Holder: "user"}, nil, 80, ""},
		{lender.Lending{Holder: "user"}, []wire.LeaseWaiter{{Agent: "lease run", Purpose: "npm test\nrm x"}}, 80, "▌ your shell · waiting: lease run"},
		{lender.Lending{Holder: "orchestrator", Since: time.Now().Add(-75 * time.Second)}, nil, 80, "▌ orchestrator has your shell, 1m15s"},
		{
			lender.Lending{Holder: "orchestrator", Purpose: "make", Command: "make", Since: time.Now().Add(-75 * time.Second)},
			[]wire.LeaseWaiter{{Agent: "lease run", Purpose: "npm test"}, {Agent: "engineer-2", Purpose: "go vet ./..."}},
			108,
			"▌ orchestrator has your shell, 1m15s: make · waiting: lease run, engineer-2 · ctrl+c takes it back",
		},
		{lender.Lending{Holder: "orchestrator", Purpose: "build it all", Command: "make -j2 all && make check && make install"}, nil, 80, "▌ orchestrator has your shell: build it all · ctrl+c takes it back"},
		{lender.Lending{Holder: "orchestrator", Command: "make -j2 all && make check && make install"}, nil, 60, "▌ orchestrator has your shell · ctrl+c takes it back"},
		{lender.Lending{Holder: "orchestrator", Command: "make"}, nil, 40, "▌ orchestrator has your shell: make"},
	} {
		m.Lending, m.queue.Waiting, m.w = c.lending, c.waiting, c.width
		if got := ansi.Strip(m.leaseBar()); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.lending, got, c.want)
		}
	}
	m.turn = &turn{}
	m.Lending = lender.Lending{Holder: "orchestrator", Since: time.Now(), Command: "make"}
	for range wire.ShellQueueNamed {
		m.queue.Waiting = append(m.queue.Waiting, wire.LeaseWaiter{Agent: "engineer", Purpose: strings.Repeat("go test ./... && ", 20)})
	}
	m.queue.More = 984
	for _, m.w = range []int{120, 80, 60, 40, 20} {
		if bar := m.leaseBar(); cells.Width(bar) > m.w || strings.Contains(bar, "\n") {
			t.Errorf("%q does not fit into %d cells", bar, m.w)
		}
	}
}

// The end of a turn ends its own cards. What a script borrowed the shell for goes on, and is told when it ends.
func TestTurnEndsLeaveOthersAlone(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.p.Send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	w.see("> go")
	w.lend("x9", "lease run", "make all")
	w.p.Send(&wire.AgentComplete{Event: event(2), Status: wire.StatusCancelled, DurationMS: 1000})
	w.see("stopped")
	w.p.Send(output("x9", "building\r\n"))
	w.see("│ building")
	w.see("in your shell")
	w.keys("/new\r") // nor does another conversation end it
	w.see("a new conversation")
	w.p.Send(output("x9", "linking\r\n"))
	w.see("│ linking")
	end := leasedEnd("x9", 3)
	end.Result.Output = []byte("building\nfailed\n")
	w.endLease(end)
	w.see("│ failed")
	w.see("exit 3")
	w.until("one card", func() bool { return strings.Count(w.screen.All(), "bash  make all") == 1 })
}
