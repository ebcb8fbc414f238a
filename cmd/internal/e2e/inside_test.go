package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What runs in a shell that agents use changes no policy, borrows and revokes nothing, whether it is a child, an orphan of
// the same session, or outlives its window, or has left its parents and its session; a terminal of the user's own may, and the window shows it.
func TestNobodyApprovesItself(t *testing.T) {
	other := filepath.Join(t.TempDir(), "tool") // by its own name, sublet policy would be critical already
	if err := os.Symlink(binary, other); err != nil {
		t.Fatal(err)
	}
	flee := func(gate, name string) call {
		// The command ends once it has fled: a private shell that closes before that would end it.
		c := bash(fmt.Sprintf("(setsid sh -c 'touch %[3]sfled; while [ ! -e %[1]s ]; do sleep 0.02; done; %[2]s policy add \"bash: fled *\" >%[3]s 2>&1; touch %[3]sdone' >/dev/null 2>&1 &); "+
			"while [ ! -e %[3]sfled ]; do sleep 0.02; done", gate, other, name))
		c.Arguments.(map[string]any)["reach"] = "free"
		return c
	}
	w := newWorld(t, "", script{
		{Match: "^flee", Steps: []step{{ToolCalls: []call{flee("gate", "third")}}, {ToolCalls: []call{flee("closed", "fourth")}}, {Text: "Fled."}}},
		{Match: "^depart", Steps: []step{{ToolCalls: []call{flee("closed", "fifth")}}, {Text: "Departed."}}},
		{Match: "^private", Steps: []step{{ToolCalls: []call{bash(other + " policy add 'bash: private *' 2>&1; " + other + " ask --mode full tool 2>&1")}}, {Text: "Private done."}}},
		{Match: "^hello", Steps: []step{{Text: "Hello."}}},
		{Match: "^tool", Steps: []step{{ToolCalls: []call{bash("touch asked")}}, {Text: "Tool done."}}},
	})
	const refused = "inside a shell that agents use"
	rules := func() string {
		out, _, _ := w.sublet("policy", "ls")
		return out
	}
	has := func(name string) bool { _, err := os.Stat(filepath.Join(w.project, name)); return err == nil }
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.project, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if _, errs, code := w.sublet("ask", "hello"); code != 0 {
		t.Fatalf("ask: exit %d, %s", code, errs)
	}
	session := w.lastSession()
	term := w.openShell()
	w.awaitWindows(1)
	// What agents start in the shell itself and in a private one.
	term.ask("flee")
	term.allow("the answer", func() bool { return term.sees(`^Fled`) })
	term.mode(false)
	if _, errs, code := w.sublet("ask", "--mode", "full", "depart"); code != 0 {
		t.Fatalf("ask: exit %d, %s", code, errs)
	}
	for i, c := range []string{
		"policy add 'bash: child *'", "policy rm x", "policy mode --session SESSION auto", "policy secrets show --session SESSION",
		"lease revoke --client 7", "lease run --client 7 -- true", "ask --mode full tool",
	} {
		file := fmt.Sprint("refused", i)
		term.run(fmt.Sprintf(`%s %s >%s 2>&1; echo "status%d $?"`, binary, strings.ReplaceAll(c, "SESSION", session), file, i), fmt.Sprintf(`^status%d [1-9]`, i))
		if got := read(file); !strings.Contains(got, refused) {
			t.Errorf("%s: got %q, want it refused", c, got)
		}
	}
	// An orphan: its parents have ended, its session is the shell's.
	term.run(`( ( while [ ! -e gate ]; do sleep 0.02; done; `+binary+` policy add 'bash: orphan *' >first 2>&1; touch firstdone ) & ); echo left one`, `^left one`)
	// One that outlives the window.
	term.run(`( ( trap '' HUP; while [ ! -e closed ]; do sleep 0.02; done; `+binary+` policy add 'bash: late *' >second 2>&1; touch seconddone ) & ) >/dev/null; echo left two`, `^left two`)
	// A borrowed command has the daemon see the shell.
	if _, errs, code := w.sublet("lease", "run", "--", "touch gate"); code != 0 {
		t.Fatalf("lease run: exit %d, %s", code, errs)
	}
	w.await("the orphan", func() bool { return has("firstdone") })
	if got := read("first"); !strings.Contains(got, refused) {
		t.Errorf("an orphan: got %q, want it refused", got)
	}
	w.await("what fled", func() bool { return has("thirddone") })
	if got := read("third"); !strings.Contains(got, refused) {
		t.Errorf("what fled from the shell: got %q, want it refused", got)
	}
	// The user, in another terminal.
	if _, errs, code := w.sublet("policy", "add", "bash: mine *"); code != 0 {
		t.Errorf("the user's own: exit %d, %s", code, errs)
	}
	term.see(`rule added: allow bash: mine \* \(always\), by client sublet`)
	term.atPrompt()
	term.send("exit", enter)
	term.wait()
	w.write(w.project+"/closed", "")
	w.await("what outlives it", func() bool { return has("seconddone") })
	if got := read("second"); !strings.Contains(got, refused) {
		t.Errorf("one that outlives its window: got %q, want it refused", got)
	}
	for _, name := range []string{"fourth", "fifth"} {
		w.await("what fled and outlives the window", func() bool { return has(name + "done") })
		if got := read(name); !strings.Contains(got, refused) {
			t.Errorf("what fled and outlives the window: got %q in %s, want it refused", got, name)
		}
	}
	// An agent in a private shell.
	out, errs, _ := w.sublet("ask", "--mode", "full", "private")
	shown, _, _ := w.sublet("session", "show", "--json", w.lastSession())
	if n := strings.Count(shown, refused); n < 2 {
		t.Errorf("a private shell: got %s\n%s\n%s", out, errs, shown)
	}
	if got := rules(); strings.Count(got, "bash: ") != 1 || has("asked") {
		t.Errorf("got rules\n%s%s", got, fmt.Sprint(has("asked")))
	}
}
