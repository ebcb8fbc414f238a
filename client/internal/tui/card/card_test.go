package card

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/screentest"
	"sublet/wire"
)

func testCards() []*Card {
	long := make([]string, 40)
	for i := range long {
		long[i] = "line " + strconv.Itoa(i+1) + " of the output"
	}
	return []*Card{
		{Tool: "bash", Agent: "orchestrator", Command: "go test ./...", Status: "success", Exit: new(0), Took: 3200 * time.Millisecond, Output: []byte(strings.Join(long, "\n") + "\n")},
		{Tool: "bash", Agent: "engineer-1", Command: "set -e\nmake\nmake install", Status: "error", Exit: new(2), Took: 800 * time.Millisecond, Output: []byte("make: *** [Makefile:3: all] Error 1\n")},
		{Tool: "bash", Agent: "orchestrator", Command: "rm -rf /", Status: "denied", Why: "not on my machine"},
		{Tool: "bash", Agent: "orchestrator", Command: "sleep 100", Status: "cancelled", Signal: "SIGINT", Took: 4 * time.Second, Notes: []string{"changed in your shell: cd /tmp (/undo-shell puts it back)"}},
		{Tool: "read", Agent: "orchestrator", Args: `{"path":"client/run.go"}`, Status: "success", Output: []byte("     1\ta\n     2\tb\n     3\tc\n[3 lines, 6 bytes]")},
		{Tool: "grep", Agent: "reviewer-1", Args: `{"pattern":"TODO","path":"."}`, Status: "success", Output: []byte("x.go:1: TODO\n")},
		{Tool: "edit", Agent: "orchestrator", Args: `{"path":"main.go"}`, Status: "success", Output: []byte("--- a/main.go\n+++ b/main.go\n@@ -1 +1,2 @@\n package main\n+// 漢字 \u200b\n")},
		{Tool: "task", Agent: "orchestrator", Args: `{"tasks":[{"role":"engineer","title":"mend the build"},{"role":"reviewer","prompt":"look at the change\nclosely"}]}`, Status: "success", Took: 61 * time.Second, Output: []byte("done")},
		{Tool: "todo", Agent: "orchestrator", Args: `{"todos":[{"text":"look","status":"done"},{"text":"mend","status":"in_progress"},{"text":"test","status":"pending"}]}`, Status: "success", Output: []byte("ok")},
		{Tool: "todo", Agent: "orchestrator", Args: `{"todos":[{"step 1":"look"}]}`, Status: "error", Output: []byte("todos[0].step 1: no such argument")},
		{Tool: "bash", Agent: "orchestrator", Command: "printf '\x1b]0;evil\a\x1b[31mred'", Status: "success", Exit: new(0), Output: []byte("\x1b[2Jgone\x9b"), Cut: 70000, Spool: "/run/u/spool/7"},
	}
}

func TestCardGolden(t *testing.T) {
	th := screentest.Theme()
	for _, s := range screentest.Sizes {
		var lines []string
		for _, c := range testCards() {
			lines = append(lines, strings.Split(c.Finished(th, s.W), "\n")...)
		}
		screentest.Golden(t, "cards-"+s.Name, lines, s.W, 0)

		running := &Card{Tool: "bash", Agent: "orchestrator", Command: "make -j2 all check install", Leased: true, Started: time.Unix(100, 0)}
		running.Out.Write([]byte("cc -c a.c\ncc -c b.c\n 10%\r 55%\r100%\nlinking"))
		lines = running.Running(th, s.W, s.H/2, time.Unix(172, 0))
		screentest.Golden(t, "running-"+s.Name, lines, s.W, s.H/2)
		if running.Shell = "zsh"; !strings.Contains(running.Running(th, s.W, s.H/2, time.Unix(172, 0))[0], "zsh") {
			t.Errorf("%s: the card does not name the shell that the command runs in", s.Name)
		}
	}
	screentest.Golden(t, "whole-80", strings.Split(testCards()[0].Whole(th), "\n"), 80, 0)
}

// line and three notes of it above.
func TestCardTellsTheEndOnce(t *testing.T) {
	for _, c := range []struct {
		status, signal, output, want string
		exit                         *int
	}{
		{wire.StatusCancelled, "SIGINT", "\n[ended: it was cut off]\n[exit code 130]\n[cancelled]", "■ bash  x · cancelled", new(130)},
		{wire.StatusTimeout, "SIGINT", "[ended: it ran longer than 2m0s]\n[exit code 130]", "✗ bash  x · timed out · project · 2m01s", new(130)},
		{wire.StatusError, "SIGKILL", "[ended by SIGKILL]", "✗ bash  x · failed · SIGKILL", nil},
		{wire.StatusSuccess, "", "[ended: well]\n[cancelled]", "✓ bash  x\n  │ [ended: well]\n  │ [cancelled]\n  └ exit 0", new(0)}, // its own words
	} {
		card := &Card{Tool: "bash", Command: "x", Status: c.status, Signal: c.signal, Exit: c.exit, Output: []byte(c.output)}
		if c.status == wire.StatusTimeout {
			card.Took, card.Reach = 121*time.Second, "project"
		}
		if got := ansi.Strip(card.Finished(screentest.Theme(), 80)); got != c.want {
			t.Errorf("%q: got\n%s\nwant\n%s", c.output, got, c.want)
		}
	}
}

// The card of a background job says that it goes on, by the shell's report and by the daemon's; one that was not started, and
// ran to its end, does not.
func TestCardOfAJob(t *testing.T) {
	for _, status := range []string{wire.StatusOK, wire.StatusSuccess} {
		for _, exit := range []*int{nil, new(int)} {
			c := &Card{Tool: "bash", Command: "make", Args: `{"command":"make","background":true}`, Status: status, Exit: exit}
			if got := strings.Contains(c.Finished(screentest.Theme(), 100), "goes on in the background"); got != (exit == nil) {
				t.Errorf("%s, exit %v: it says that it goes on: %v", status, exit, got)
			}
		}
	}
}

// A diff that is shown whole leaves nothing out, and a longer one says once how much.
func TestLongDiff(t *testing.T) {
	for lines, want := range map[int]string{diffShown: "", diffShown + 2: "2 more lines (ctrl+o)"} {
		c := &Card{Tool: "edit", Status: wire.StatusSuccess, Output: []byte("@@ -0,0 +1 @@" + strings.Repeat("\n+a", lines-1))}
		body, more := c.body(screentest.Theme(), 80)
		if len(body) != diffShown || more != want || strings.Contains(ansi.Strip(strings.Join(body, "")), "more") {
			t.Errorf("%d lines: got %d and %q, want %d and %q", lines, len(body), more, diffShown, want)
		}
	}
}

// What is gone and what is new have a colour.
func TestDiffColours(t *testing.T) {
	diff := strings.Join(Diff(screentest.Theme(), "@@ -1 +1 @@\n-a\n+b\n", 80), "|")
	if want := "\x1b[36m@@ -1 +1 @@\x1b[m|\x1b[31m-a\x1b[m|\x1b[32m+b\x1b[m"; diff != want {
		t.Errorf("got %q, want %q", diff, want)
	}
}
