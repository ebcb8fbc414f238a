package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Two that want the shell at once get it one after the other, in the user's own shell, with its state (I3, I9).
func TestLeaseRunQueues(t *testing.T) {
	w := newWorld(t, "", nil)
	gate := w.path("gate")
	term := w.openShell()
	w.awaitWindows(1)
	term.run("export MINE=yes; echo set", `^set$`)
	first := w.command("lease", "run", "--json", "--", "echo first $MINE; until [ -e "+gate+" ]; do sleep 0.05; done; echo first done")
	second := w.command("lease", "run", "--json", "--", "echo second $MINE; exit 3")
	results := make(chan string, 2)
	run := func(name string, cmd *exec.Cmd) {
		out, _ := cmd.CombinedOutput() // the exit status is checked below
		results <- name + " " + string(out)
	}
	done := make(chan struct{})
	go func() { defer close(done); run("first", first) }()
	term.see(`first yes`)
	done2 := make(chan struct{})
	go func() { defer close(done2); run("second", second) }()
	w.await("the second to wait in the queue", func() bool {
		out, _, _ := w.sublet("lease", "ls", "--json")
		return strings.Contains(out, `"queue":[{`)
	})
	if term.sees(`^second yes`) {
		t.Error("the second ran while the first held the shell")
	}
	w.write(gate, "")
	<-done
	<-done2
	for range 2 {
		name, out, _ := strings.Cut(<-results, " ")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var end struct {
			ExitCode *int   `json:"exit_code"`
			Status   string `json:"status"`
			Output   string `json:"output"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
			t.Fatalf("%s: %v in %q", name, err, out)
		}
		want := map[string]int{"first": 0, "second": 3}[name]
		if end.ExitCode == nil || *end.ExitCode != want || !strings.Contains(end.Output, name+" yes") {
			t.Errorf("%s: got %+v, want exit code %d and the user's variable", name, end, want)
		}
	}
	if got := second.ProcessState.ExitCode(); got != 3 {
		t.Errorf("lease run: exit status %d, want the command's own 3", got)
	}
	w.await("the shell to be free", func() bool { return idle(w.status()) })
	// An agent's `exit` does not end the user's shell.
	term.run("echo alive $MINE", `^alive yes$`)
}

// The user comes first: while their command runs the shell is not lent, and who waits too long learns what runs in it.
func TestUserComesFirst(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.openShell()
	w.awaitWindows(1)
	userSleep(term)
	out, errs, code := w.sublet("lease", "run", "--wait", "1s", "--", "echo never")
	if code != 125 || !strings.Contains(errs, "sleep is running") {
		t.Errorf("got exit %d, %q %q; want 125 and what the shell does", code, out, errs)
	}
	term.send(ctrlC)
	if out, errs, code := w.sublet("lease", "run", "--", "echo now"); code != 0 || !strings.Contains(out, "now") {
		t.Errorf("got exit %d, %q %q; want 0 and its output", code, out, errs)
	}
	if term.sees("never") {
		t.Error("a lease that was given up ran all the same")
	}
}

// What the user types while an agent's command runs is kept for their shell. Enter offers to take the shell back, and Enter
// again does.
func TestTakeTheShellBack(t *testing.T) {
	w := newWorld(t, "", script{{Match: "long", Steps: []step{
		{ToolCalls: []call{bash("sleep 3000")}}, {Text: "The agent was told."},
	}}}, "[policy]\nmode = \"auto\"")
	term := w.openShell()
	agentSleep(term)
	term.send(tab)
	w.await("command mode", func() bool { return !atAI(term.cursorLine()) })
	term.send("echo mine again", enter)
	term.see(`orchestrator has your shell`)
	term.see(`your line runs when it has ended · enter again takes your shell back`)
	if term.sees(`^mine again$`) {
		t.Fatal("the user's command ran inside the agent's")
	}
	term.send(enter)
	term.see(`^mine again$`)
	w.await("the agent's command to be gone", func() bool { return !strings.Contains(w.processes(), "sleep 3000") })
	term.see(`The agent was told\.`)
}

// A command that the user types between the grant and the borrowed command goes first, and the borrower has its turn after it,
// where the shell is then. The daemon stands still meanwhile, which makes that moment long.
func TestUserComesBetweenGrantAndCommand(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.openShell()
	w.awaitWindows(1)
	term.atPrompt()
	term.send("echo reading; read -r go_on", enter)
	term.see(`^reading$`) // the script must not come before the user's keys
	script := w.command("lease", "run", "--", "echo borrowed in $PWD")
	out := make(chan string, 1)
	go func() {
		text, err := script.Output()
		out <- fmt.Sprintf("%s%v", text, err)
	}()
	waits := func() bool {
		list, _, _ := w.sublet("lease", "ls", "--json")
		return strings.Contains(list, `"holder":"user"`) && strings.Contains(list, "echo borrowed in")
	}
	w.await("the script to wait for the user", waits)
	daemon := w.daemonPID()
	if err := syscall.Kill(daemon, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(daemon, syscall.SIGCONT) // where the test ends early
	term.send("now", enter)
	w.await("the grant", func() bool { return strings.Contains(w.clientLog(), "shell lent") })
	term.send("cd / && sleep 4000", enter)
	w.await("the user's sleep", func() bool { return strings.Contains(w.processes(), "sleep 4000") })
	if err := syscall.Kill(daemon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.await("the script to wait for the user again", waits)
	term.send(ctrlC)
	if got, want := <-out, "borrowed in /\n<nil>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
