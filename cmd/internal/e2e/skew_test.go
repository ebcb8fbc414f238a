package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program one protocol newer, beside this one, both ways round: each client works with each daemon. An older daemon is
// replaced by a newer client when it is idle, and left alone, with its turns, while it is busy (B2, B3, B15, R2).
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

// A newer build of the same protocol leaves a busy daemon of an older one alone, which a window says, and replaces it once
// it is idle, also while a window is open, which comes back to the new one.
func TestOlderBuild(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	w := newWorld(t, "", script{
		{Match: "hello", Steps: []step{{Text: "hello to you"}}},
		{Match: "wait", Steps: []step{{WaitFile: gate, Text: "waited"}}},
	})
	older := filepath.Join(t.TempDir(), "sublet")
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(older, text, 0o700); err != nil {
		t.Fatal(err)
	}
	made := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(older, made, made); err != nil {
		t.Fatal(err)
	}
	turn := w.command("ask", "wait for me")
	turn.Path = older
	if err := turn.Start(); err != nil {
		t.Fatal(err)
	}
	w.await("the turn", func() bool { return w.daemonPID() != 0 && w.status()["turns"] == float64(1) })
	busy := w.daemonPID()
	term := w.open()
	term.see(`an older daemon keeps running: version dev, and this is dev`)
	w.write(gate, "")
	if err := turn.Wait(); err != nil {
		t.Errorf("the older daemon's turn: %v", err)
	}
	if pid := w.daemonPID(); pid != busy {
		t.Errorf("got daemon %d, want the busy one, %d", pid, busy)
	}
	if out, errs, status := w.sublet("ask", "hello"); status != 0 {
		t.Errorf("ask: exit %d, %s%s", status, out, errs)
	}
	if pid := w.daemonPID(); pid == busy {
		t.Error("the idle older daemon was not replaced")
	}
	w.await("the window back", func() bool { return w.status()["clients"] == float64(1) })
	term.ask("hello")
	term.see(`hello to you`)
}

// buildNewer builds the program with the next protocol version beside this one.
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
	const this = "\tVersion    = 1\n"
	if strings.Count(string(text), this) != 1 {
		t.Fatalf("%s has no line %q", doc, this)
	}
	changed := filepath.Join(dir, "doc.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), this, "\tVersion    = 2\n", 1)), 0o600); err != nil {
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
