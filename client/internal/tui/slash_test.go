package tui

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"sublet/wire"
)

func TestSlashCommands(t *testing.T) {
	w := open(t, 80, 40, func(w *window) {
		w.sh.undone, w.d.suspects = []string{"cd /one", "cd /two", "cd /three"}, []string{"PATH", "ls"}
	})
	w.ai()
	w.keys("/")
	w.see("go on with an earlier conversation")
	w.keys("help\r")
	w.see("Two modes")
	w.keys("/nothing\r")
	w.see("there is no /nothing")
	w.keys("\x03/mode plan\r")
	w.see("plan mode: agents only look")
	w.keys("/mo")
	w.see("/mode [plan|ask|auto|NAME] what agents may do unasked") // no blank was between them
	w.keys("de full\r")                                            // the hint named a flag that there is not
	w.see("/mode takes plan, ask or auto\n  what agents may do unasked, or a hosted agent's own mode; full:")
	w.keys("/accept\r")
	w.see("accepted: PATH ls\n! changed meanwhile, and not accepted: PAGER")
	w.keys("/accept\r")
	w.see("· accepted: PAGER") // not the line above, "not accepted: PAGER"
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
	w.see("this conversation: s1, ")
	w.see("2 windows · 3 sublet lease run · sublet serve acp\n") // each for what it is: all were called windows
	w.keys("/undo shell\r")
	w.see("put back in your shell: cd /three")
	w.keys("/undo-shell\r")
	w.see("put back in your shell: cd /two")
	w.keys("/undo shell all\r")
	w.see("put back in your shell: all\n· still different: alias ll")
	w.keys("/undo-shell all\r")
	w.see("nothing that an agent changed in your shell is left to put back")
	w.keys("/rules rm\r")
	w.see("/rules rm needs the ID of a rule")
	w.keys("/new\r")
	w.see("a new conversation")
}

// /mcp says which MCP servers there are, how they are, and which tools agents have of them. What servers say of themselves
// moves nothing on the screen.
func TestSlashMCP(t *testing.T) {
	w := open(t, 100, 30)
	w.ai()
	w.keys("/mcp\r")
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
	name := filepath.Join(uv.Environ(w.p.opt.Env).Getenv("HOME"), "talk.md")
	w.ai()
	w.keys("/export ~/talk.md\r")
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
	name := filepath.Join(uv.Environ(w.p.opt.Env).Getenv("HOME"), "talk.md")
	w.ai()
	w.keys("/export ~/talk.md\r")
	w.see("nothing to export")
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

// What a / command prints is read later: above it stands what was asked. One that does not exist leaves the line as it is and
// nothing above it.
func TestSlashIsEchoed(t *testing.T) {
	w := open(t, 100, 24)
	w.ai()
	w.keys("/sta\t\r")
	w.see("> /status\n")
	w.see("daemon 1 · pid 7")
	w.keys("/sess\r")
	w.see("> /sessions\n")
	w.keys("/nothing\r")
	w.see("there is no /nothing")
	w.keys("\x03/accept\r")
	w.see("> /accept\n")
	if text := w.screen.All(); strings.Contains(text, "/nothing") {
		t.Errorf("what was not done is above:\n%s", text)
	}
}

// In a narrow window help and hints are wrapped between words, and nothing of them is lost.
func TestNarrowWords(t *testing.T) {
	w := open(t, 40, 40)
	w.ai()
	w.keys("/help\r")
	w.see("words name what")
	w.see("    leave")
	w.keys("/nothing-of-that-name\r")
	w.see("/help lists what there is")
	w.keys("\x03/clear\r")
	w.see("/new only")
	if text := w.screen.Text(); strings.Contains(text, "…") {
		t.Errorf("cut:\n%s", text)
	}
}

// The settings may change while the window is open: the footer and /model name the model that answers now.
func TestModelChanges(t *testing.T) {
	w := open(t, 80, 24)
	w.p.Send(&wire.Ready{Session: wire.SessionInfo{ID: "s1"}, Models: []wire.ModelInfo{{Name: "offline", ProviderKind: "offline", Loaded: true}}})
	w.ai()
	w.see("mode · offline")
	w.p.Send(&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 1}, Agent: "orchestrator", Prompt: "go", Model: "ollama/x"})
	w.p.Send(&wire.AgentComplete{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 2}, Status: "success"})
	w.see("mode · ollama/x")
	w.keys("/model\r")
	w.see("▸ ollama/x · 8.0k tokens")
	w.see("  offline")
	w.see("openai: no API key")
}

// A model that is chosen answers the next questions, and so much thinking goes with them; one that cannot be used is not.
func TestModelIsChosen(t *testing.T) {
	w := open(t, 80, 24)
	w.ai()
	w.keys("/model nobody/x\r")
	w.see("/model: no such provider in the settings")
	w.keys("/model ollama/x\r")
	w.see("ollama/x answers from now on")
	w.keys("/thinking loud\r")
	w.see("/thinking takes off, low, medium, high or default")
	w.keys("/thinking low\r")
	w.see("thinking: low")
	if r := w.ask("go\r"); r.Options.Model != "ollama/x" || r.Options.Thinking != "low" {
		t.Errorf("got %+v", r.Options)
	}
	w.keys("\x14")
	w.see("thinking: medium")
	w.keys("\x14\x14")
	w.see("thinking: as in the settings")
}
