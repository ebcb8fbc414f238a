package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The whole path, in each shell: the question, the model, the lease, the command in the user's own shell, the answer. What
// the agent changed is there for the user, and the other way round, and is put back step by step (I1 to I9, D12, T3).
func TestAgentBorrowsTheShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t, "", script{
				{Match: "^look", Steps: []step{
					{Text: "I look first.\n\n", ToolCalls: []call{bash("hello; echo mine=$MINE; mkdir -p sub")}},
					{ToolCalls: []call{bash("cd sub && export THEIRS=yes")}}, // by itself: a held command keeps nothing
					{Text: "Found **it**.\n\n| a | b |\n|---|---|\n| one | two |\n"},
				}},
				{Match: "^second", Steps: []step{{ToolCalls: []call{bash("export SECOND=2")}}, {Text: "The second is set."}}},
				{Match: "^third", Steps: []step{{ToolCalls: []call{bash("export THIRD=3")}}, {Text: "The third is set."}}},
			}, "[policy]\nmode = \"auto\"")
			w.login(shell, "alias hello='echo hi from an alias'\n")
			w.borrowAndUndo(w.openShell())
		})
	}
}

func (w *world) borrowAndUndo(term *terminal) {
	t := w.t
	term.run("export MINE=of-the-user; echo set", `^set$`)
	term.ask("look around")
	term.allow("the agent's command to run", func() bool { return term.sees(`hi from an alias`) }) // what fish makes of some of it is not known
	term.see(`mine=of-the-user`)
	term.allow("the answer", func() bool { return term.sees(`Found it`) })
	term.see(`one.*two`)
	term.mode(false)
	w.await("the prompt of the folder that the agent entered", func() bool { return term.cursorLine() == "sub$" })
	term.run(`echo "[$THEIRS] in $(basename $PWD)"`, `^\[yes\] in sub$`)
	for _, name := range []string{"second", "third"} {
		term.ask(name)
		term.allow("the answer", func() bool { return term.sees(`The ` + name + ` is set`) })
	}
	term.ask("/undo-shell")
	term.see(`put back in your shell: unset THIRD$`)
	term.ask("/undo-shell all")
	term.see(`put back in your shell: .*SECOND`)
	term.mode(false)
	w.await("the prompt of the folder it was in before", func() bool { return term.cursorLine() == "project$" })
	term.run(`echo "[$THEIRS$SECOND$THIRD] in $(basename $PWD), $MINE"`, `^\[\] in project, of-the-user$`)
	// Every step of the lease went over the wire and was stored with its end.
	out, _, code := w.sublet("session", "show", "--json", w.lastSession())
	if code != 0 {
		t.Fatalf("session show: exit %d", code)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(out) {
		var e struct {
			Kind string `json:"kind"`
			Cwd  string `json:"cwd"`
			Tool string `json:"tool"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		kinds[e.Kind]++
		if e.Kind == "CommandResult" && e.Tool == "bash" && kinds[e.Kind] > 1 && e.Cwd != filepath.Join(w.project, "sub") {
			t.Errorf("the tool's result has cwd %q, want the new one", e.Cwd)
		}
	}
	for _, kind := range []string{"TurnStarted", "AgentStreamChunk", "AgentThinking", "CommandResult", "AgentComplete"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s in the session: %v", kind, kinds)
		}
	}
	if kinds["AgentComplete"] != 3 {
		t.Errorf("%d ends of three turns", kinds["AgentComplete"])
	}
}

// lastSession is the id of the session used last.
func (w *world) lastSession() string {
	w.t.Helper()
	out, errs, code := w.sublet("session", "ls", "--json")
	first, _, _ := strings.Cut(out, "\n")
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(first), &s); err != nil || s.ID == "" {
		w.t.Fatalf("session ls: exit %d, %v in %q %q", code, err, out, errs)
	}
	return s.ID
}

// H1, H2, H11: a risky command is shown with level and reasons; the default is no; what was typed before is no
// answer; denied does not run and the agent goes on; allow runs exactly what was shown.
func TestConfirmation(t *testing.T) {
	w := newWorld(t, "", script{{Match: "remove", Steps: []step{
		{ToolCalls: []call{bash("rm -r old && touch ran")}},
		{Text: "The tool said its piece."},
	}}})
	old := filepath.Join(w.project, "old", "file")
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	w.write(old, "x")
	term := w.openShell()

	term.ask("remove old") // Enter, with nothing chosen, is no
	term.see(`rm -r old && touch ran`)
	term.see(`(?i)(medium|high|critical)`)
	term.see(`\[n\] no`)
	term.answer(enter, func() bool { return term.sees("The tool said its piece") })
	if !exists(old) || exists(filepath.Join(w.project, "ran")) {
		t.Fatal("a denied command ran")
	}

	term.ask("remove old again") // y types yes, but only once it is armed
	term.answer("y", func() bool { return !exists(old) })
	w.await("what was approved to have run whole", func() bool { return exists(filepath.Join(w.project, "ran")) })
}

// E14, I8: Esc reaches the model call and the running command; both are proved ended, nothing keeps the shell.
func TestCancel(t *testing.T) {
	gate := filepath.Join("/tmp", fmt.Sprintf("never-%d", os.Getpid()))
	w := newWorld(t, "", script{
		{Match: "run", Steps: []step{{ToolCalls: []call{bash("sleep 5000")}}, {Text: "not reached"}}},
		{Match: "think", Steps: []step{{WaitFile: gate, Text: "not reached"}}},
	}, "[policy]\nmode = \"auto\"")
	term := w.openShell()
	for _, key := range []string{escape, ctrlC} {
		term.ask("run it")
		w.await("the agent's sleep to run", func() bool { return strings.Contains(w.processes(), "sleep 5000") })
		term.send(key)
		w.await("the command to be gone", func() bool { return !strings.Contains(w.processes(), "sleep 5000") })
		w.await("the lease and the turn to be over", func() bool { return idle(w.status()) })
	}
	term.ask("think hard")
	w.await("the turn to run", func() bool { return !idle(w.status()) })
	term.send(escape)
	w.await("the turn to be over", func() bool { return idle(w.status()) })
	if term.sees("not reached") {
		t.Error("a cancelled turn went on")
	}
	term.mode(false)
	term.run("echo shell is mine", `^shell is mine$`)
}

// idle reports whether no turn runs and nobody holds or awaits a shell.
func idle(status map[string]any) bool {
	if status["turns"] != 0.0 {
		return false
	}
	leases, _ := status["leases"].([]any)
	for _, l := range leases {
		l := l.(map[string]any)
		queue, _ := l["queue"].([]any)
		if l["lease_id"] != "" || len(queue) > 0 {
			return false
		}
	}
	return true
}

// Nothing that was shown is lost when the window is killed, and the turn goes on without it.
func TestKillTheClientInMidTurn(t *testing.T) {
	w := newWorld(t, "", nil, "[policy]\nmode = \"auto\"")
	gate := w.path("gate")
	w.script(script{{Match: "story", Steps: []step{
		{Text: "The first part.\n\n", ToolCalls: []call{{"glob", map[string]any{"pattern": "*"}}}},
		{WaitFile: gate, Text: "The second part."},
	}}})
	term := w.openShell()
	term.ask("tell a story")
	term.see(`The first part\.`)
	if err := term.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	term.wait()
	w.write(gate, "")
	w.await("the turn to end without its window", func() bool { return idle(w.status()) })
	again := w.openShell()
	again.ask("/resume")
	again.see(`tell a story`)
	again.send(enter)
	again.see(`The first part\.`)
	again.see(`The second part\.`)
}

// The shell outlives the daemon; a new one is started and nothing shown is lost.
func TestKillTheDaemon(t *testing.T) {
	w := newWorld(t, "", script{
		{Match: "one", Steps: []step{{Text: "Answer the first."}}},
		{Match: "two", Steps: []step{{Text: "Answer the second."}}},
	})
	term := w.openShell()
	term.ask("question one")
	term.see(`Answer the first\.`)
	old := w.daemonPID()
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	term.mode(false)
	term.run("echo still a shell", `^still a shell$`)
	w.await("a new daemon", func() bool { pid := w.daemonPID(); return pid != 0 && pid != old })
	term.ask("question two")
	w.await("the next question to be answered", func() bool {
		return term.sees(`Answer the second\.`)
	})
	out, _, _ := w.sublet("session", "show", "--json", w.lastSession())
	for _, want := range []string{"Answer the first.", "Answer the second."} {
		if !strings.Contains(joinText(t, out), want) {
			t.Errorf("%q is not in the session", want)
		}
	}
}

// joinText puts the pieces of all answers of `session show --json` together.
func joinText(t *testing.T, events string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(events) {
		var e struct {
			Chunk struct{ Type, Text string } `json:"chunk"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if e.Chunk.Type == "text" {
			b.WriteString(e.Chunk.Text)
		}
	}
	return b.String()
}

// I10: engineer and reviewer run in private shells, side by side, and the user's shell is not touched.
func TestTasksRunInPrivateShells(t *testing.T) {
	w := newWorld(t, "", nil, "[policy]\nmode = \"auto\"")
	gate := w.path("gate")
	w.script(script{
		{Match: "^both", Steps: []step{
			{ToolCalls: []call{{"task", map[string]any{"tasks": []map[string]string{
				{"role": "engineer", "title": "build", "prompt": "ENGINEER: build"},
				{"role": "reviewer", "title": "look", "prompt": "REVIEWER: look"},
			}}}}},
			{Text: "Both came back."},
		}},
		// The engineer waits for what is written only once the reviewer is done: one after the other would hang.
		{Match: "ENGINEER", Steps: []step{
			{WaitFile: gate, ToolCalls: []call{bash("export LEAK=1; cd /; echo engineer in a shell of its own")}},
			{Text: "engineer done"},
		}},
		{Match: "REVIEWER", Steps: []step{
			{ToolCalls: []call{bash("cat notes.txt")}},
			{Text: "reviewer done"},
		}},
	})
	w.write(filepath.Join(w.project, "notes.txt"), "read by the reviewer\n")
	term := w.openShell()
	term.ask("both please")
	term.see(`reviewer`)
	w.await("the reviewer to have read", func() bool {
		out, _, code := w.sublet("session", "show", "--json", w.lastSession())
		return code == 0 && strings.Contains(out, "read by the reviewer")
	})
	w.write(gate, "")
	term.see(`Both came back\.`)
	term.mode(false)
	term.run(`echo "leak=[$LEAK] in ${PWD##*/}"`, `^leak=\[\] in project$`)
}
