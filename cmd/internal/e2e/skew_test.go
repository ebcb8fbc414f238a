package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program one protocol newer, beside this one, both ways round: each client works with each daemon. An older daemon is
// replaced by a newer client when it is idle, and left alone, with its turns, while it is busy (B2, B3, B15, R2, T5b).
func TestOneVersionApart(t *testing.T) {
	newer := buildNewer(t)
	w := newWorld(t, "", nil)
	gate := w.path("gate")
	w.script(script{
		{Match: "hello", Steps: []step{{Text: "hello to you"}}},
		{Match: "wait", Steps: []step{{WaitFile: gate, Text: "waited"}}},
	})
	ask := func(program, prompt string) {
		t.Helper()
		cmd := w.command("ask", prompt)
		cmd.Path = program
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "hello to you") {
			t.Errorf("%s ask: %v, %s", filepath.Base(program), err, out)
		}
	}
	start := func(program string) int {
		t.Helper()
		cmd := w.command("daemon", "start")
		cmd.Path = program
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s daemon start: %v, %s", filepath.Base(program), err, out)
		}
		return w.daemonPID()
	}

	older := start(binary)
	ask(binary, "hello")
	replaced := start(newer)
	if replaced == older {
		t.Error("the idle older daemon was not replaced")
	}
	ask(newer, "hello")
	ask(binary, "hello")
	if pid := start(binary); pid != replaced {
		t.Error("an older client replaced a newer daemon")
	}
	w.sublet("daemon", "stop")

	busy := start(binary)
	turn := w.command("ask", "wait for me")
	done := make(chan string, 1)
	go func() {
		out, _ := turn.CombinedOutput() // what it printed tells
		done <- string(out)
	}()
	w.await("the turn", func() bool { return w.status()["turns"] == float64(1) })
	ask(newer, "hello")
	if pid := start(newer); pid != busy {
		t.Error("a busy older daemon was replaced")
	}
	w.write(gate, "")
	if out := <-done; !strings.Contains(out, "waited") {
		t.Errorf("the older daemon's turn: %q", out)
	}
}

// buildNewer builds the program with the next protocol version, which still speaks this one.
func buildNewer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	doc, err := filepath.Abs("../../../wire/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	const this, next = "Version    = 1\n", "Version    = 2\n"
	if strings.Count(string(text), this) != 1 {
		t.Fatalf("%s has no line %q", doc, this)
	}
	changed := filepath.Join(dir, "doc.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), this, next, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{doc: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "newer")
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program}
	if raceEnabled { // as the other one: what both need is compiled already
		args = append(args, "-race")
	}
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "sublet/cmd/sublet")...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
