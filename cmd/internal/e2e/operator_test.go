package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/wire/citest"
)

// operator starts `sublet serve operator` and returns its address and token; it ends with the test, in order.
func (w *world) operator(args ...string) (addr, token string) {
	w.t.Helper()
	// Not w.command: its context ends before the clean-up below, which is what this tests.
	cmd := exec.Command(binary, append([]string{"serve", "operator", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Dir = w.env, w.project
	stderr, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			w.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("serve operator after SIGTERM: %v", err)
		}
		if _, err := os.Stat(w.path("run/operator.token")); err == nil {
			w.t.Error("the token's file stayed behind")
		}
	})
	lines := bufio.NewScanner(stderr)
	for token == "" && lines.Scan() {
		l := strings.TrimPrefix(lines.Text(), "sublet: ")
		if rest, ok := strings.CutPrefix(l, "operator on "); ok {
			addr, _, _ = strings.Cut(rest, ",")
		}
		if rest, ok := strings.CutPrefix(l, "token "); ok {
			token, _, _ = strings.Cut(rest, " ")
		}
	}
	if addr == "" || token == "" {
		w.t.Fatalf("serve operator did not say where it is: %v", lines.Err())
	}
	go func() { // ends with the process
		for lines.Scan() {
		}
	}()
	info, err := os.Stat(w.path("run/operator.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		w.t.Errorf("the token's file: %v, %v", info, err)
	}
	return addr, token
}

// webScript is what the model says to the front end's tests.
func webScript(w *world) script {
	read := func(name string) call { return call{"read", map[string]any{"path": name}} }
	w.write(filepath.Join(w.project, "a.txt"), "a")
	w.write(filepath.Join(w.project, "b.txt"), "b")
	w.write(filepath.Join(w.project, "old", "file"), "x")
	return script{
		{Match: "^look", Steps: []step{
			{Text: "I look first.\n\n", ToolCalls: []call{bash("echo found")}},
			{Text: "Found **it**: <img src=x onerror=alert(1)>"},
		}},
		{Match: "^wait for ever", Steps: []step{{Text: "so", ToolCalls: []call{bash("true")}}, {WaitFile: "/nonexistent/ever"}}},
		{Match: "^wait at the gate", Steps: []step{{Text: "before ", ToolCalls: []call{bash("true")}}, {WaitFile: w.path("gate"), Text: "through"}}},
		{Match: "^long", Steps: []step{{Text: strings.Repeat("0123456789", 200*200), ChunkBytes: 1000}}},
		{Match: "^read both", Steps: []step{{ToolCalls: []call{read("a.txt"), read("b.txt")}}, {Text: "both read"}}},
		{Match: "^markup", Steps: []step{
			{ToolCalls: []call{{"<img src=x onerror=alert(3)>", map[string]any{"path": "x"}}, read("<img src=x onerror=alert(4)>"), bash("echo '<script>alert(5)</script>'")}},
			{Text: "```<img src=x onerror=alert(6)>\n<b>code</b>\n```\n[link](javascript:alert(7)) <svg onload=alert(8)>"},
		}},
		{Match: "^fail", Steps: []step{{Error: "auth"}}},
		{Match: "^remove", Steps: []step{{ToolCalls: []call{bash("rm -r old")}}, {Text: "It said its piece."}}},
		{Match: "", Steps: []step{{Text: "hello"}}},
	}
}

// runNode runs a program of the front end's tests with the server's address.
func (w *world) runNode(args []string, env ...string) {
	w.t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		citest.Skip(w.t, "node is needed for the front end's tests: apt-get install nodejs")
	}
	cmd := exec.CommandContext(w.t.Context(), node, args...)
	cmd.Dir = filepath.Join("..", "..", "..", "client", "web")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("node %v: %v\n%s", args, err, out)
	}
}

// Q1 to Q4, C5, C6, E15: the front end's module in node, against the real program.
func TestOperatorModule(t *testing.T) {
	w := newWorld(t, "", nil)
	w.script(webScript(w))
	addr, token := w.operator("--ui")
	w.runNode([]string{"--test", "--test-timeout=120000", "operator.test.js"}, "OPERATOR_ADDR="+addr, "OPERATOR_TOKEN="+token, "OPERATOR_GATE="+w.path("gate"))
}

// The page in a real Chromium; `make test-browser` installs what it needs and says so by SUBLET_BROWSER, a folder with
// playwright-core, where screenshots are left too.
func TestOperatorPage(t *testing.T) {
	folder := os.Getenv("SUBLET_BROWSER")
	if folder == "" {
		t.Skip("make test-browser runs this")
	}
	w := newWorld(t, "", nil)
	w.script(webScript(w))
	addr, token := w.operator("--ui")
	w.runNode([]string{"page.browser.mjs"}, "OPERATOR_ADDR="+addr, "OPERATOR_TOKEN="+token, "OPERATOR_GATE="+w.path("gate"),
		"OPERATOR_PROJECT="+w.project, "SUBLET_BROWSER="+folder)
}
