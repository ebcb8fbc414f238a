package tui

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/lease/shell"
	"sublet/wire"
)

// T6c: whatever ends the program, the terminal is as it was.
func TestTerminalIsWholeAfter(t *testing.T) {
	modes := "\x1b[?1049h\x1b[?1000;1002;1003;1006h\x1b[?1004h\x1b[?25l\x1b[?2026h\x1b[>1u\x1b[?1h\x1b="
	setup := func(w *window) {
		w.p.opt.stderr = io.Discard
		w.sh.run = func(ctx context.Context, _ string, out func([]byte)) (shell.Result, error) {
			out(nil)
			out([]byte(modes))
			<-ctx.Done()
			return shell.Result{Status: "cancelled"}, ctx.Err()
		}
		w.sh.complete = func(string, int) (int, []shell.Completion, error) { panic("boom in a task") }
	}
	running := func(w *window) {
		w.keys("vim\r")
		w.until("the program", func() bool { return w.screen.on("1049") })
	}
	for _, tc := range []struct {
		name string
		do   func(*window)
		code int
		err  string
	}{
		{"exit", func(w *window) { w.keys("exit\r") }, 0, ""},
		{"SIGTERM", func(*window) { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }, 143, ""},
		{"SIGHUP", func(*window) { _ = syscall.Kill(os.Getpid(), syscall.SIGHUP) }, 129, ""},
		{"SIGTERM while a program has the screen", func(w *window) { running(w); _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }, 143, ""},
		{"the shell ends while a program has the screen", func(w *window) { running(w); close(w.sh.exited) }, 0, ""},
		{"a panic in Update", func(w *window) { w.sh.boom.Store(true); w.keys("?x\r") }, 1, "boom in Update"},
		{"a panic in a task", func(w *window) { w.keys("x\t") }, 1, "boom in a task"},
		{"a panic while a program has the screen", func(w *window) {
			running(w)
			w.p.Send(leasedStart("x1", "make"))
			w.p.Send(panicking{})
		}, 1, "boom in an event"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := open(t, 80, 24, setup)
			tc.do(w)
			if code := w.end(); code != tc.code {
				t.Errorf("exit status: got %d, want %d", code, tc.code)
			}
			if tc.err == "" && w.err != nil || tc.err != "" && (w.err == nil || !strings.Contains(w.err.Error(), tc.err)) {
				t.Errorf("error: got %v, want %q", w.err, tc.err)
			}
			w.whole()
		})
	}
}

// panicking is an event that Update trips over.
type panicking struct{ wire.EventMessage }

func (panicking) Meta() *wire.Event { panic("boom in an event") }

// T4: while nothing changes nothing is written, and nothing ticks but bubbletea's own ticker, once a second.
func TestIdleIsQuiet(t *testing.T) {
	w := open(t, 80, 24)
	w.command("ls")
	var before syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	n := w.screen.bytesWritten()
	time.Sleep(400 * time.Millisecond) // the test is that nothing happens
	if got := w.screen.bytesWritten() - n; got != 0 {
		t.Errorf("%d bytes were written while idle", got)
	}
	var after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	if used > 100*time.Millisecond {
		t.Errorf("idle cost %v of CPU in 400 ms", used)
	}
}

func TestResizeAndSmallWindows(t *testing.T) {
	w := open(t, 80, 24)
	w.keys("\t")
	w.see("ask an agent")
	for _, size := range [][2]int{{30, 8}, {12, 4}, {5, 2}, {1, 1}, {100, 40}} {
		w.screen.mu.Lock()
		w.screen.w, w.screen.h = size[0], size[1]
		w.screen.rows = w.screen.blank()
		w.screen.row, w.screen.col, w.screen.wrapNext = 0, 0, false
		w.screen.mu.Unlock()
		if err := pty.Setsize(w.master, &pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])}); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
		w.p.Send(testQuestion())
		w.p.Send(&wire.ConfirmationResolved{ConfirmationID: "c1", Decision: wire.DecisionDeny, By: "expiry"})
		w.keys("x")
	}
	w.see("xxxxx")
}

func TestCompletionPopup(t *testing.T) {
	w := open(t, 80, 24, func(w *window) {
		w.sh.complete = func(line string, cursor int) (int, []shell.Completion, error) {
			if line[:cursor] == "git ch" {
				return 4, []shell.Completion{{Text: "checkout", Description: "command"}, {Text: "cherry-pick", Description: "command"}}, nil
			}
			return cursor - 1, []shell.Completion{{Text: "main.go", Description: "file"}}, nil
		}
	})
	w.keys("git ch\t")
	w.see("cherry-pick")
	w.see("git che") // what all have in common
	w.keys("\t\t\r")
	w.see("git cherry-pick")
	w.seeNot("checkout")
	w.keys("m\t")
	w.see("git cherry-pick main.go")
}

func TestSlashCommands(t *testing.T) {
	w := open(t, 80, 40, func(w *window) { w.sh.undone = "cd /home/u" })
	w.keys("\t/")
	w.see("go on with an earlier conversation")
	w.keys("help\r")
	w.see("Two modes")
	w.keys("/nothing\r")
	w.see("there is no /nothing")
	w.keys("\x03/mode plan\r")
	w.see("plan mode: agents only look")
	w.keys("/accept\r")
	w.see("accepted: PATH ls")
	w.keys("/accept\r")
	w.see("agents changed nothing in your shell")
	w.keys("/secrets show\r")
	w.see("models see secrets as they are")
	w.keys("/secrets mask\r")
	w.see("masked before a model sees it")
	w.keys("/secrets perhaps\r")
	w.see("/secrets takes mask or show")
	w.keys("\x03/status\r")
	w.see("daemon 1 · pid 7")
	w.see("2 windows · 3 sublet lease run · sublet serve acp\n") // each for what it is: all were called windows
	w.keys("/undo shell\r")
	w.see("put back in your shell: cd /home/u")
	w.keys("/undo-shell\r")
	w.see("put back in your shell: cd /home/u")
	w.keys("/rules rm\r")
	w.see("/rules rm needs the ID of a rule")
	w.keys("/new\r")
	w.see("a new conversation")
}

// /mcp says which MCP servers there are, how they are, and which tools agents have of them. What servers say of themselves
// moves nothing on the screen.
func TestSlashMCP(t *testing.T) {
	w := open(t, 100, 30)
	w.keys("\t/mcp\r")
	w.see("no MCP servers: [mcp.NAME] in the settings")
	servers := []wire.MCPServerStatus{
		{Name: "db", What: "db-mcp --read", State: wire.MCPUp, Tools: []string{"mcp__db__query", "mcp__db__drop"}, Left: "odd\x1b[2J (its schema is no object)"},
		{Name: "files", What: "files-mcp", State: wire.MCPFailed, Error: "it ended: exit status 3", Client: true},
		{Name: "web", What: "https://mcp.example.com", State: wire.MCPResting},
	}
	if err := w.d.with(func() { w.d.servers = servers }); err != nil {
		t.Fatal(err)
	}
	w.keys("/mcp\r")
	w.see("db · up · db-mcp --read\n  mcp__db__query, mcp__db__drop\n  left out: odd")
	w.see("files · failed · this window's · files-mcp\n  it ended: exit status 3")
	w.see("web · started when a turn needs it · https://mcp.example.com")
	w.see("no MCP servers") // nothing was cleared
}

// /export writes where it is told to, also below ~, for the user's eyes only, and never over a file that is there.
func TestExport(t *testing.T) {
	w := open(t, 100, 24, func(w *window) { w.d.export, w.d.turns = "# a talk\n", 1 })
	name := filepath.Join(lookup(w.p.opt.Env)("HOME"), "talk.md")
	w.keys("\t/export ~/talk.md\r")
	w.see("written to")
	if got, err := os.ReadFile(name); err != nil || string(got) != "# a talk\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
	w.keys("/export ~/talk.md\r")
	w.see("file exists")
}

// A conversation in which nobody was asked anything is no file.
func TestExportNothing(t *testing.T) {
	w := open(t, 100, 24, func(w *window) { w.d.export = "# \n" })
	name := filepath.Join(lookup(w.p.opt.Env)("HOME"), "talk.md")
	w.keys("\t/export ~/talk.md\r")
	w.see("nothing to export")
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

// What a / command prints is read later: above it stands what was asked, in both modes. One that does not exist leaves
// the line as it is and nothing above it.
func TestSlashIsEchoed(t *testing.T) {
	w := open(t, 100, 24)
	w.keys("/sta\x15\t/status\r")
	w.see("> /status\n")
	w.see("daemon 1 · pid 7")
	w.keys("/sess\r")
	w.see("> /sessions\n")
	w.keys("/nothing\r")
	w.see("there is no /nothing")
	w.keys("\x03\t/accept\r")
	w.see("> /accept\n")
	if text := w.screen.all(); strings.Contains(text, "/nothing") {
		t.Errorf("what was not done is above:\n%s", text)
	}
}

// In a narrow window help and hints are wrapped between words, and nothing of them is lost.
func TestNarrowWords(t *testing.T) {
	w := open(t, 40, 40)
	w.keys("\t/help\r")
	w.see("other words say")
	w.see("    leave")
	w.keys("/nothing-of-that-name\r")
	w.see("/help lists what there is")
	w.keys("\x03/clear\r")
	w.see("/new only")
	if text := w.screen.text(); strings.Contains(text, "…") {
		t.Errorf("cut:\n%s", text)
	}
}

// The settings may change while the window is open: the footer and /model name the model that answers now.
func TestModelChanges(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Models: []wire.ModelInfo{{Name: "offline", ProviderKind: "offline", Loaded: true}}})
	w.keys("\t")
	w.see("  offline")
	w.p.Send(&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 1}, Agent: "orchestrator", Prompt: "go", Model: "ollama/x"})
	w.p.Send(&wire.AgentComplete{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 2}, Status: "success"})
	w.see("  ollama/x")
	w.keys("/model\r")
	w.see("▸ ollama/x")
	w.see("  offline")
}

// ^C begins a new line, also where a search or a list of completions is open, or vi's command mode is on: what was typed next
// went behind the old line (`rm -f ls note2`), or was taken for commands of vi.
func TestInterruptBeginsANewLine(t *testing.T) {
	for name, keys := range map[string]string{
		"a search": "rm -f \x12make\x03", "completions": "rm \t\x03", "a search that found nothing": "rm \x12zzz\x03", "nothing": "rm \x03",
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, 80, 24, func(w *window) {
				w.sh.complete = func(_ string, at int) (int, []shell.Completion, error) {
					return at, []shell.Completion{{Text: "a.txt"}, {Text: "b.txt"}}, nil
				}
			})
			for key := range strings.SplitSeq(keys, "") {
				w.keys(key)
				if key == "\t" {
					w.see("b.txt")
				}
			}
			w.runs("ls note2\r")
			if got := w.sh.commands(); got[len(got)-1] != "ls note2" {
				t.Errorf("ran %q", got)
			}
		})
	}
	d := newDesk(t)
	d.ed.setVi(true)
	d.key("a", "b", "esc", "ctrl+c", "e", "c") // e and c would be commands
	if d.ed.text != "ec" {
		t.Errorf("vi: the line holds %q", d.ed.text)
	}
	d.search = &search{}
	d.ed.reset()
	d.turn = &turn{}
	if d.key("ctrl+c"); d.search != nil || len(d.d.cancelled) > 0 {
		t.Error("it ended the turn, and not the search alone")
	}
}

// Esc stops the agent also where it was asked from the shell (`?…`), but not in the middle of a line.
func TestEscapeStopsTheAgent(t *testing.T) {
	for line, want := range map[string]int{"": 1, "ls": 0} {
		d := newDesk(t)
		d.turn = &turn{id: "t1"}
		d.ed.set(line)
		d.key("esc")
		if got := len(d.d.cancelled); got != want || d.ed.text != line {
			t.Errorf("%q: cancelled %d times, want %d; the line holds %q", line, got, want, d.ed.text)
		}
	}
}
