package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/question"
	"sublet/wire"
)

// handed takes what was written to the terminal since the last call, without colours.
func (d *desk) handed() string {
	d.paint.Flush()
	text := ansi.Strip(d.out.Raw()[d.read:])
	d.read = len(d.out.Raw())
	return text
}

// A borrowed command that asks is answered by a person who sees what it asks about: the lines before the question went
// with the live part, and `Do you want to continue? [Y/n]` stood alone under the header.
func TestWhatAQuestionIsAboutIsShown(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedStart("x1", "apt remove python"))
	d.send(output("x1", "old\rThe following packages will be \x1b[1mREMOVED\x1b[m:\r\n  python apt\r\nContinue? [y/N] "))
	d.send(leasedKeyboard("x1", "input"))
	got := d.handed()
	at := -1
	for _, want := range []string{"apt remove python\r\n", "until it ends", "The following packages will be REMOVED:\r\n", "  python apt\r\nContinue? [y/N] "} {
		next := strings.Index(got, want)
		if next <= at {
			t.Errorf("%q is not there, or not in its place:\n%s", want, got)
		}
		at = next
	}
	// Asked again, after the keyboard was the editor's, it shows what is new.
	d.send(output("x1", "y\r\n"))
	d.send(leasedKeyboard("x1", ""))
	d.wait(handOverIdle)
	d.send(output("x1", "Removing apt\r\nReally? [y/N] "))
	d.handed()
	d.send(leasedKeyboard("x1", "input"))
	if got := d.handed(); !strings.Contains(got, "until it ends") || !strings.HasSuffix(got, "\r\nRemoving apt\r\nReally? [y/N] ") || strings.Contains(got, "REMOVED") {
		t.Errorf("asked again:\n%s", got)
	}
	// A program that takes the screen draws it itself.
	d.send(leasedStart("x2", "vim"))
	d.send(leasedEnd("x1", 0))
	d.send(output("x2", "loading\r\n\x1b[?1049hwhole screen"))
	d.handed()
	d.send(leasedKeyboard("x2", "screen"))
	if got := d.handed(); strings.Contains(got, "loading") {
		t.Errorf("before the whole screen:\n%s", got)
	}
}

// The keyboard goes to a command that has begun: what reads the terminal before (what an earlier one left behind took the
// line that begins it) had the user's keys under a header without a name.
func TestNoHandOverBeforeTheCommand(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedKeyboard("x1", "input"))
	if d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went to a command that has not begun")
	}
	d.send(leasedStart("x1", "make"))
	if d.keys.Routed() != keys.ToProgram || !strings.Contains(d.handed(), "bash  make") {
		t.Error("it has begun, and does not have the keyboard")
	}
	d.send(leasedEnd("x1", 0))
	d.handed()
	d.send(leasedKeyboard("x2", "input"))
	d.send(leasedKeyboard("x2", ""))
	d.send(leasedStart("x2", "true"))
	if d.keys.Routed() == keys.ToProgram {
		t.Error("the keyboard went to a command that does not ask any more")
	}
}

// However much a command printed before it asks, the sign that it has the keyboard stays on the screen, and a line tells
// what is missing.
func TestAQuestionLeavesItsSignOnTheScreen(t *testing.T) {
	for _, n := range []int{0, 1, 18, 19, 20, 21, 22, 30, 5000} {
		for _, long := range []int{0, 100, 1000} {
			d := newDesk(t)
			d.wait(time.Hour)
			d.send(leasedStart("x1", "install"))
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "line %d%s\r\n", i, strings.Repeat("x", long))
			}
			d.send(output("x1", text.String()+"sure? "))
			d.send(leasedKeyboard("x1", "input"))
			got := d.handed()
			rows, shown := 0, strings.Count(got, "line ")
			_, below, _ := strings.Cut(got, "install\r\n")
			for _, l := range strings.Split(below, "\r\n") {
				rows += max(1, (cells.Width(l)+79)/80)
			}
			if rows > 23 {
				t.Errorf("%d lines of %d: %d rows in a window of 24", n, long, rows)
			}
			if left := n - strings.Count(got, "line "); left > 0 != strings.Contains(got, fmt.Sprintf("… %s before", english.Plural(left, "more line", ""))) {
				t.Errorf("%d lines of %d: %d are not shown:\n%s", n, long, left, got)
			}
			if long < 1000 && n > 0 && (shown == 0 || rows < min(n, 18)) {
				t.Errorf("%d lines of %d: only %d shown", n, long, shown)
			}
		}
	}
}

// While a question is on the screen the keyboard does not go over to an agent's program, and it goes over only
// when nobody has typed for a moment.
func TestHandOverWaitsForQuestionAndTyping(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedStart("x1", "sudo make install"))
	d.askTwo()
	d.send(leasedKeyboard("x1", "password"))
	if d.handover == nil || d.handover.on || d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went over although a question is on the screen")
	}
	d.resolve("c1", wire.DecisionDeny)
	d.key("l")
	d.resolve("c2", wire.DecisionDeny)
	if d.handover.on || d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went over in the middle of typing")
	}
	d.key("s")
	d.wait(handOverAfter - time.Millisecond)
	if d.handover.on {
		t.Fatal("the keyboard went over too early")
	}
	d.wait(time.Millisecond)
	if !d.handover.on || d.keys.Routed() != keys.ToProgram {
		t.Fatal("the keyboard did not go over")
	}
	if d.ed.Text != "ls" {
		t.Errorf("line: got %q, want ls: keys typed before stay in the editor", d.ed.Text)
	}
	d.send(leasedEnd("x1", 0))
	if d.programHasTerminal() || d.keys.Routed() == keys.ToProgram {
		t.Error("the keyboard did not come back")
	}
}

// What reads without echo and is not a program of the system's that asks for passwords is asked about first: its prompt may say
// anything. No ends the command; the answer of one program is not that of another.
func TestHandOverOfSecretsIsAsked(t *testing.T) {
	for _, key := range []string{"y", "n"} {
		d := newDesk(t)
		d.wait(time.Hour)
		d.send(leasedStart("x1", "read -rsp '[sudo] password for root: ' p"))
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		d.wait(handOverAfter)
		if d.programHasTerminal() || d.keys.Routed() == keys.ToProgram || d.question() == nil {
			t.Fatal("the keyboard went over unasked")
		}
		if text := d.asked(); !strings.Contains(text, "bash reads without echo") {
			t.Errorf("got %q", text)
		}
		d.wait(question.ArmDelay)
		d.key(key)
		d.wait(handOverAfter)
		if got := d.keys.Routed() == keys.ToProgram; got != (key == "y") || d.question() != nil {
			t.Errorf("%s: the program has the keyboard: %v", key, got)
		}
		if key == "n" {
			d.send(cancelled("x1"))
			if get(d.sh, &d.sh.back) != 1 || !strings.Contains(d.printed(), "└ you did not let it read a secret") {
				t.Errorf("no: the command was not ended, or not for that reason:\n%s", d.printed())
			}
			continue
		}
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		if d.question() != nil || d.keys.Routed() != keys.ToProgram {
			t.Error("asked again about the same program")
		}
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "python3"})
		if d.question() == nil || d.keys.Routed() == keys.ToProgram {
			t.Error("another program was not asked about")
		}
		d.send(leasedEnd("x1", 0))
		if d.question() != nil {
			t.Error("the question outlives the command")
		}
	}
}

// A secret that is typed or pasted while the question about its reader is open is neither shown nor kept: not for the shell, and not in
// the line for the model.
func TestSecretTypedIntoItsQuestion(t *testing.T) {
	for _, ai := range []bool{false, true} {
		d := newDesk(t)
		if !ai {
			d.leaveAI()
		}
		d.wait(time.Hour)
		d.send(leasedStart("x1", "read -rsp 'password: ' p"))
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		for _, k := range []any{keys.Key{Name: "h", Text: "h"}, keys.Key{Name: "2", Text: "2"}, keys.Key{Name: "enter"}} {
			e := &keyEvent{msg: k, done: make(chan struct{})}
			d.send(e)
			if e.pass {
				t.Errorf("AI mode %v: the shell got %v", ai, k)
			}
		}
		if d.onPaste("hunter2") {
			t.Errorf("AI mode %v: the shell got the paste", ai)
		}
		if d.question() == nil {
			t.Fatal("the question is gone")
		}
		if d.ahead.Text != "" || d.ed.Text != "" {
			t.Errorf("AI mode %v: typed ahead %q, the line %q", ai, d.ahead.Text, d.ed.Text)
		}
	}
}

// The question whether a program may read unseen is this window's own: it stays when the daemon is lost or the user goes to another
// session, since the command goes on and waits for it. It was dropped with the daemon's questions, and the command hung.
func TestTheQuestionAboutASecretStays(t *testing.T) {
	for name, msg := range map[string]any{"the daemon is lost": LinkChanged{}, "another session": &wire.Ready{Session: wire.SessionInfo{ID: "s2"}}} {
		d := newDesk(t)
		d.wait(time.Hour)
		d.send(leasedStart("x1", "read -rsp 'password: ' p"))
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		d.send(testQuestion())
		d.send(msg)
		if q := d.question(); q == nil || q.Local == nil || len(d.questions) != 1 {
			t.Errorf("%s: got %d questions, want the one about the secret", name, len(d.questions))
		}
	}
}

// A password that sudo refused was typed once more before sudo asked again: it went to the editor, with the Enter to the
// model. The keyboard stays the command's until it ends, or has asked for nothing and was typed nothing for long.
func TestHandOverLingers(t *testing.T) {
	for _, why := range []string{"password", "input", "screen"} {
		d := newDesk(t)
		var typed []byte
		d.keys.Answer = func(p []byte) { typed = append(typed, p...) }
		d.wait(time.Hour)
		d.send(leasedStart("x1", "sudo make install"))
		d.send(leasedKeyboard("x1", why))
		d.keys.Feed([]byte("one"))
		d.send(leasedKeyboard("x1", ""))
		d.wait(2 * time.Second)
		d.keys.Feed([]byte("two"))
		want := "onetwo"
		if why == "password" {
			want = "one" // it would be shown
		}
		if string(typed) != want {
			t.Errorf("%s: not asked, the program got %q", why, typed)
		}
		d.wait(handOverIdle - time.Second) // less than that behind the last key
		d.send(leasedKeyboard("x1", why))
		d.keys.Feed([]byte("three"))
		if string(typed) != "onetwothree" {
			t.Errorf("%s: asked again, the program got %q", why, typed)
		}
		d.wait(2 * handOverIdle)
		if d.handover == nil || d.keys.Routed() != keys.ToProgram {
			t.Fatalf("%s: the keyboard was taken from a program that asks", why)
		}
		d.send(leasedKeyboard("x1", ""))
		d.wait(handOverIdle - time.Millisecond)
		d.wait(time.Millisecond)
		if d.handover != nil || d.programHasTerminal() || d.keys.Routed() != keys.ToUs || d.ed.Text != "" {
			t.Errorf("%s: the keyboard did not come back: line %q", why, d.ed.Text)
		}
		d.send(leasedKeyboard("x1", "input"))
		d.wait(handOverIdle)
		d.send(leasedKeyboard("x1", ""))
		d.send(leasedEnd("x1", 0))
		if d.programHasTerminal() || d.keys.Routed() == keys.ToProgram {
			t.Errorf("%s: the command has ended, and has the keyboard", why)
		}
	}
}
