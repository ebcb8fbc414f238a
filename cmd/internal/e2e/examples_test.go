package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// example builds an example program of a module that sublet uses.
func (w *world) example(pkg string) string {
	w.t.Helper()
	path := filepath.Join(w.root, filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The example agent of the Agent Client Protocol's SDK, hosted: its text, its tool calls and its request for permission, of which the
// answer reaches it; a cancel ends it.
func TestExampleAgent(t *testing.T) {
	w := newWorld(t, "", nil)
	old, err := os.ReadFile(w.path("config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.path("config.toml"), string(old)+"[agents.example]\ncommand = [\""+w.example("github.com/coder/acp-go-sdk/example/agent")+"\"]\n")
	term := w.openShell()
	w.awaitWindows(1)
	term.mode(true)
	term.useAgent("example")
	term.ask("improve it")
	term.see(`\[n\] no`)
	if text := term.text(); !strings.Contains(text, "read  /project/README.md") {
		t.Errorf("its first call is not shown:\n%s", text)
	}
	term.answer("y", func() bool { return !term.sees(`\[n\] no`) })
	term.see(`successfully updated the configuration`)
	w.await("the end of the turn", func() bool { return idle(w.status()) })
	term.ask("improve it again")
	w.await("the next answer", func() bool { return strings.Count(term.text(), "Let me start") == 2 })
	term.send(ctrlC)
	w.await("the cancelled turn to end", func() bool { return idle(w.status()) })
	pid := w.hostedPID("agent")
	if _, errs, status := w.sublet("daemon", "stop"); status != 0 {
		t.Errorf("daemon stop: %s", errs)
	}
	w.await("the agent to be gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// The example client of the Model Context Protocol's SDK lists what `sublet serve mcp` has.
func TestExampleClient(t *testing.T) {
	w := newWorld(t, "", nil)
	serve := w.command("serve", "mcp")
	cmd := exec.Command(w.example("github.com/modelcontextprotocol/go-sdk/examples/client/listfeatures"), serve.Args...)
	cmd.Env, cmd.Dir = serve.Env, serve.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"shell", "shell_state", "job", "ask_user"} {
		if !strings.Contains(string(out), "\t"+name+"\n") {
			t.Errorf("it lists no tool %s:\n%s", name, out)
		}
	}
}
