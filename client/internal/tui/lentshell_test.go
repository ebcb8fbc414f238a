package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// The user comes first: Enter tells who has the shell, Enter again takes it back, Esc leaves line and agent alone.
func TestTakeBack(t *testing.T) {
	w := open(t, 80, 24)
	lend := lender.Lending{Holder: "orchestrator", Purpose: "make", Command: "make", Since: time.Now()}
	w.sh.mu.Lock()
	w.sh.lending = lend
	w.sh.mu.Unlock()
	w.p.Observe(lender.LeaseChanged{Lending: lend})
	w.p.Observe(leasedStart("x1", "make"))
	w.see("in your shell")
	w.keys("ls\r")
	w.see("orchestrator has your shell")
	w.see("enter again takes it back")
	if got := w.sh.commands(); len(got) != 0 {
		t.Fatalf("ran %q while the shell is lent", got)
	}
	w.keys("\x1b")
	w.see("your line stays")
	w.keys("\r")
	w.see("enter again takes it back")
	w.keys("\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
	if got := w.sh.commands(); got[0] != "ls" || w.sh.taken != 1 {
		t.Errorf("ran %q, taken back %d times; want ls, once", got, w.sh.taken)
	}
}

// Of a command from which the user takes the shell back, the end stands before the line that did it: the card was printed below
// what the user's own command printed. Until then the line is seen to wait.
func TestTakenBackIsToldFirst(t *testing.T) {
	for _, daemonFirst := range []bool{false, true} {
		w := open(t, 80, 24)
		w.sh.mu.Lock()
		w.sh.lending = lender.Lending{Holder: "lease run", Purpose: "make", Command: "make", Since: time.Now()}
		ended := make(chan struct{})
		w.sh.run = func(_ context.Context, _ string, out func([]byte)) (shell.Result, error) {
			<-ended
			w.p.Observe(lender.LeasedEnded{ExecutionID: "x1", Status: "cancelled", Result: shell.Result{Status: "cancelled", ExitCode: ptr(130)}})
			out(nil)
			out([]byte("mine\r\n"))
			return shell.Result{Status: "ok", ExitCode: ptr(0)}, nil
		}
		w.sh.mu.Unlock()
		w.p.Observe(leasedStart("x1", "make"))
		w.see("in your shell")
		w.keys("ls\r")
		w.see("enter again takes it back")
		w.keys("\r")
		w.see("your line runs when it has ended")
		w.see("u@box:~$ ls")
		if daemonFirst { // its word on the result
			w.p.Send(&wire.CommandResult{ExecutionID: "x1", Tool: "bash", Status: "cancelled", ExitCode: ptr(130)})
		}
		close(ended)
		w.see("mine")
		w.see("exit 130")
		all := w.screen.all()
		if card, line, own := strings.Index(all, "exit 130"), strings.Index(all, "$ ls"), strings.Index(all, "mine"); card > line || line > own || strings.Count(all, "$ ls") != 1 {
			t.Errorf("daemon first %v: got\n%s\nwant the end of make, the line, and what it printed", daemonFirst, all)
		}
	}
}

// What did not begin although the shell was taken back is told below its line.
func TestTakenBackInVain(t *testing.T) {
	w := open(t, 80, 24)
	w.sh.mu.Lock()
	w.sh.lending = lender.Lending{Holder: "lease run", Purpose: "make", Command: "make", Since: time.Now()}
	w.sh.run = func(context.Context, string, func([]byte)) (shell.Result, error) {
		return shell.Result{}, errors.New("it is on fire")
	}
	w.sh.mu.Unlock()
	w.keys("ls\r\r")
	w.see("it is on fire")
	if all := w.screen.all(); strings.Count(all, "$ ls") != 1 || strings.Index(all, "$ ls") > strings.Index(all, "on fire") {
		t.Errorf("got\n%s", all)
	}
}

// Ctrl-C ends what a script runs in the shell, as it ends what an agent does; it did nothing, because no turn was there to
// cancel. What is being typed goes first, then the turn, and without a leased command nothing is taken.
func TestInterruptTakesTheShellBack(t *testing.T) {
	w := open(t, 80, 24)
	taken := func() int {
		w.sh.mu.Lock()
		defer w.sh.mu.Unlock()
		return w.sh.taken
	}
	w.p.Observe(lender.LeaseChanged{Lending: lender.Lending{Holder: "lease run", Purpose: "make", Command: "make", Since: time.Now()}})
	w.p.Observe(leasedStart("x1", "make"))
	w.see("in your shell")
	w.keys("ls\x03")
	w.seeNot("$ ls")
	if got := taken(); got != 0 {
		t.Fatalf("taken back %d times by what empties the line", got)
	}
	w.keys("\x03")
	w.until("the shell to be taken back", func() bool { return taken() == 1 })
	w.p.Observe(lender.LeaseChanged{})
	w.p.Observe(lender.LeasedEnded{ExecutionID: "x1", Status: "cancelled", Result: shell.Result{Status: "cancelled", ExitCode: ptr(130)}})
	w.see("exit 130")
	w.keys("\x03\x03")
	w.see("to leave")
	if got := taken(); got != 1 {
		t.Errorf("taken back %d times, want once", got)
	}
}

// The screen was told late that the shell is lent: the line comes back, nothing is taken.
func TestLentWithoutNotice(t *testing.T) {
	w := open(t, 80, 24)
	w.sh.mu.Lock()
	w.sh.lending = lender.Lending{Holder: "engineer-1", Command: "make"}
	w.sh.mu.Unlock()
	w.keys("ls\r")
	w.see("engineer-1 has your shell")
	w.see("u@box:~$ ls")
	if w.sh.taken != 0 {
		t.Error("the shell was taken back unasked")
	}
	if n := strings.Count(w.screen.all(), "u@box:~$ ls"); n != 1 {
		t.Errorf("the line stands there %d times, want once: it was not run", n)
	}
}

// What is typed behind a line that Enter did not run is another command, unless it goes on with a space: typed without
// looking, `rm old` and `ls` became `rm oldls`.
func TestTypingOnBehindALineThatWaits(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"ls\r", "rm old\nls"},
		{"\x1b[200~ls\x1b[201~\r", "rm old\nls"},
		{" -r\r", "rm old -r"},
		{"\x7f\x7fut\r", "rm out"},
		{"\x02x\r", "rm olxd"},
		{"\x1b", "rm old"},
	} {
		w := open(t, 80, 24)
		lend := lender.Lending{Holder: "orchestrator", Purpose: "make", Command: "make", Since: time.Now()}
		tell := func(l lender.Lending) {
			w.sh.mu.Lock()
			w.sh.lending = l
			w.sh.mu.Unlock()
			w.p.Observe(lender.LeaseChanged{Lending: l})
		}
		tell(lend)
		w.keys("rm old\r")
		w.see("orchestrator has your shell")
		if c.keys == "\x1b" {
			w.keys(c.keys)
			w.see("your line stays")
		}
		tell(lender.Lending{})
		if c.keys == "\x1b" {
			w.seeNot("has your shell")
			w.keys("\r")
		} else {
			w.see("your shell is free again")
			w.keys(c.keys)
		}
		w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
		if got := w.sh.commands()[0]; got != c.want {
			t.Errorf("%q: ran %q, want %q", c.keys, got, c.want)
		}
		w.keys("\x04")
	}
}

// ^D twice leaves while a borrowed command runs: the second one was told that the shell is lent, and an Enter then took it
// back for nothing.
func TestLeavingWhileTheShellIsLent(t *testing.T) {
	w := open(t, 80, 24)
	w.prompt()
	lend := lender.Lending{Holder: "lease run", Purpose: "make", Command: "make", Since: time.Now()}
	w.sh.mu.Lock()
	w.sh.lending = lend
	w.sh.mu.Unlock()
	w.p.Observe(lender.LeaseChanged{Lending: lend})
	w.keys("\x04")
	w.see("lease run has your shell")
	w.see("ctrl+d again ends that command and leaves")
	w.keys("x\x7f\x04") // any other key is no second one
	w.see("ctrl+d again ends that command and leaves")
	if got := w.sh.commands(); len(got) != 0 {
		t.Fatalf("ran %q", got)
	}
	w.keys("\x04")
	w.end()
	if got := w.sh.commands(); !slices.Equal(got, []string{"exit"}) || w.sh.taken != 1 {
		t.Errorf("ran %q, taken back %d times; want exit, once", got, w.sh.taken)
	}
}

// A borrower begins between Enter and the user's command: the line comes back at once. The prompt was asked for first,
// which a shell that is lent tells after half a second, and what was typed meanwhile was lost.
func TestLentInTheMomentOfEnter(t *testing.T) {
	w := open(t, 80, 24)
	w.prompt()
	asked := func() int {
		w.sh.mu.Lock()
		defer w.sh.mu.Unlock()
		return w.sh.prompts
	}
	before := asked()
	w.sh.mu.Lock()
	w.sh.run = func(context.Context, string, func([]byte)) (shell.Result, error) {
		return shell.Result{}, &lender.LentError{Lending: lender.Lending{Holder: "lease run", Command: "make"}}
	}
	w.sh.mu.Unlock()
	w.keys("ls\r")
	w.see("lease run has your shell")
	if n := asked() - before; n != 0 {
		t.Errorf("the prompt was asked for %d times of a shell that is lent", n)
	}
	w.keys(" -l")
	w.see("u@box:~$ ls -l")
}
