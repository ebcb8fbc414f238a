package connect

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func agent(t *testing.T, name string) (Agent, string) {
	t.Helper()
	home := t.TempDir()
	a, ok := Find(Agents(home, "sublet", func(string) string { return "" }), name)
	if !ok {
		t.Fatalf("no agent %s", name)
	}
	return a, home
}

func connect(t *testing.T, f File) string { t.Helper(); return changed(t, f, f.Connect) }

func undo(t *testing.T, f File) string { t.Helper(); return changed(t, f, f.Undo) }

// changed writes what a file is to become, and returns it.
func changed(t *testing.T, f File, change func() (Change, error)) string {
	t.Helper()
	c, err := change()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// Codex' TOML keeps its comments, order and other settings; what Codex itself writes after us stays when it is taken back.
func TestCodex(t *testing.T) {
	const before = `# mine
model = "gpt"   # the model

[features]
web_search = true # on
shell_tool = true

[projects."/home/u/src"]
trust_level = "trusted"
`
	const after = `# mine
model = "gpt"   # the model

[features]
web_search = true # on
shell_tool = false
unified_exec = false

[projects."/home/u/src"]
trust_level = "trusted"

[mcp_servers.sublet]
args = ['serve', 'mcp']
command = 'sublet'
env_vars = ['SUBLET_CONFIG', 'SUBLET_RUNTIME_DIR', 'SUBLET_STATE_DIR', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME']
tool_timeout_sec = 3600
`
	a, _ := agent(t, "codex")
	f := a.Files[0]
	write(t, f.Path, before)
	if got := connect(t, f); got != after {
		t.Errorf("got\n%s", got)
	}
	if c, err := f.Connect(); err != nil || !c.Empty() {
		t.Errorf("a second time: %s, %v", c.Diff(), err)
	}
	later := "\n[projects.\"/home/u/new\"]\ntrust_level = \"trusted\"\n"
	write(t, f.Path, after+later)
	if got := undo(t, f); got != before+later {
		t.Errorf("taken back:\n%s", got)
	}
	if _, err := os.Stat(f.Path + backupSuffix); err == nil {
		t.Error("the backup is still there")
	}
}

// goose's YAML keeps its comments and its order; its layout becomes that in which goose writes it. Of its extension developer only the
// switch is changed where it is there; where it is not, goose needs the rest of it too, or starts its own default.
func TestGoose(t *testing.T) {
	const mine = `# mine
active_provider: openai # who answers

extensions:
    # what it has
    developer:
        bundled: true
        enabled: true # needed
        name: 'developer'

    todo:
        args:
          - "#1"

# the last one
GOOSE_MODE: auto
`
	const after = `# mine
active_provider: openai # who answers
extensions:
  # what it has
  developer:
    bundled: true
    enabled: false # needed
    name: 'developer'
    description: files and shell commands
    type: builtin
  todo:
    args:
    - "#1"
  sublet:
    args:
    - serve
    - mcp
    cmd: sublet
    description: the user's live shell
    enabled: true
    name: sublet
    timeout: 3600
    type: stdio
# the last one
GOOSE_MODE: auto
`
	const developer = `  developer:
    description: files and shell commands
    enabled: false
    name: developer
    type: builtin
`
	const written = `
extensions:
  todo: {enabled: true, type: platform, name: todo}
  developer:
    enabled: false
    type: builtin
    name: developer
    description: files and shell commands
    display_name: Developer
  sublet:
    enabled: true
    type: stdio
    name: sublet
    description: the user's live shell
    cmd: sublet
    args:
    - serve
    - mcp
    timeout: 3600
`
	a, _ := agent(t, "goose")
	f := a.Files[0]
	write(t, f.Path, mine)
	if got := connect(t, f); got != after {
		t.Errorf("got\n%s", got)
	}
	if got := undo(t, f); got != mine {
		t.Errorf("taken back:\n%s", got)
	}
	connect(t, f)
	write(t, f.Path, after+"later: 1\n")
	if got := undo(t, f); !strings.Contains(got, "enabled: true # needed\n    name: 'developer'\n  todo:") || !strings.HasSuffix(got, "# the last one\nGOOSE_MODE: auto\nlater: 1\n") {
		t.Errorf("taken back with a later setting:\n%s", got)
	}
	write(t, f.Path, "GOOSE_MODE: auto\n")
	if got := connect(t, f); !strings.Contains(got, developer) {
		t.Errorf("without the extension:\n%s", got)
	}
	write(t, f.Path, "# to do\n\n# later\n")
	if got := connect(t, f); !strings.HasPrefix(got, "# to do\n\n# later\n") {
		t.Errorf("a file of comments:\n%s", got)
	}
	write(t, f.Path, "GOOSE_MODE: auto"+written) // as goose writes it, with what it adds
	if c, err := f.Connect(); err != nil || !c.Empty() {
		t.Errorf("a second time: %s, %v", c.Diff(), err)
	}
	if got := undo(t, f); got != "GOOSE_MODE: auto\nextensions:\n  todo: {enabled: true, type: platform, name: todo}\n" {
		t.Errorf("taken back after goose wrote it:\n%s", got)
	}
}

// What the user added to the server, such as that the agent need not ask, stays when it is connected again, and goes with the
// server when that is taken back: Codex does not start with a server that has no command.
func TestWhatTheUserAddedToTheServer(t *testing.T) {
	for _, c := range []struct{ agent, before, server, added, nested string }{
		{"codex", "model = \"gpt\"\n\n# mine\n[a]\nb = 1\n", "[mcp_servers.sublet]", "[mcp_servers.sublet]\ndefault_tools_approval_mode = \"approve\"", "\n[mcp_servers.sublet.tools.shell]\napproval_mode = \"approve\"\n"},
		{"gemini", "{\n  \"model\": {}\n}\n", `"sublet": {`, `"sublet": {"trust": true,`, ""},
	} {
		a, _ := agent(t, c.agent)
		f := a.Files[0]
		write(t, f.Path, c.before)
		text := strings.Replace(connect(t, f), c.server, c.added, 1) + c.nested
		write(t, f.Path, strings.Replace(text, "3600", "60", 1))
		if got := connect(t, f); got != text && !strings.Contains(got, `"trust": true`) {
			t.Errorf("%s: connected again:\n%s", c.agent, got)
		}
		if got := undo(t, f); got != c.before {
			t.Errorf("%s: taken back:\n%s", c.agent, got)
		}
	}
}

// A file that did not exist is made, and removed when that is taken back.
func TestNewFiles(t *testing.T) {
	for _, name := range []string{"claude", "codex", "crush", "gemini", "goose", "opencode", "qwen"} {
		a, _ := agent(t, name)
		for _, f := range a.Files {
			text := connect(t, f)
			if name != "claude" && !strings.Contains(text, "serve") {
				t.Errorf("%s: %s", f.Path, text)
			}
			c, err := f.Undo()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{f.Path, f.Path + backupSuffix} {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v", path, err)
				}
			}
		}
	}
}

// A file that sublet made stays when other settings were added to it, and so does one that was there and empty.
func TestUndoKeepsTheFile(t *testing.T) {
	a, _ := agent(t, "codex")
	f := a.Files[0]
	text := connect(t, f)
	write(t, f.Path, "model = \"gpt\"\n\n"+text)
	if got := undo(t, f); strings.TrimSpace(got) != `model = "gpt"` {
		t.Errorf("with another setting: %s", got)
	}
	write(t, f.Path, "")
	connect(t, f)
	if got := undo(t, f); got != "" {
		t.Errorf("an empty file: %q", got)
	}
}

// Without a backup nothing is taken back: sublet did not change the file, or has taken that back already.
func TestUndoWithoutBackup(t *testing.T) {
	const mine = `{"permissions": {"deny": ["Bash"]}}` + "\n"
	a, _ := agent(t, "claude")
	f := a.Files[1]
	if c, err := f.Undo(); err == nil || !c.Empty() {
		t.Errorf("without a file: %s", c.Diff())
	}
	write(t, f.Path, mine)
	if c, err := f.Undo(); err == nil || !c.Empty() {
		t.Errorf("never connected: %s", c.Diff())
	}
	connect(t, f)
	undo(t, f)
	if c, err := f.Undo(); err == nil || !c.Empty() {
		t.Errorf("a second time: %s", c.Diff())
	}
}

// Where the user has removed the settings, or the file, taking them back changes nothing and removes the backup: it used to stay,
// and the next undo restored what the file had long before that.
func TestUndoWithNothingToChange(t *testing.T) {
	const before = "{\"a\": 1}\n"
	for _, remove := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte(before), 0o600) }} {
		a, _ := agent(t, "gemini")
		f := a.Files[0]
		write(t, f.Path, before)
		connect(t, f)
		if err := remove(f.Path); err != nil {
			t.Fatal(err)
		}
		c, err := f.Undo()
		if err != nil || !c.Empty() {
			t.Errorf("%s, %v", c.Diff(), err)
		}
		was, _, _ := read(f.Path)
		if err := c.Write(); err != nil {
			t.Error(err)
		}
		if is, _, err := read(f.Path); err != nil || string(is) != string(was) {
			t.Errorf("got %q, %v", is, err)
		}
		if _, err := f.Undo(); !errors.Is(err, ErrNoBackup) {
			t.Errorf("the backup: %v", err)
		}
	}
}

// A file that changed after the diff was made is not overwritten, also not one that came into being.
func TestChangedMeanwhile(t *testing.T) {
	for _, before := range []string{"", "{\"a\": 1}\n"} {
		a, _ := agent(t, "claude")
		f := a.Files[0]
		if before != "" {
			write(t, f.Path, before)
		}
		c, err := f.Connect()
		if err != nil {
			t.Fatal(err)
		}
		const now = "{\"a\": 2}\n"
		write(t, f.Path, now)
		if err := c.Write(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("got %v", err)
		}
		if text, err := os.ReadFile(f.Path); err != nil || string(text) != now {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := os.Stat(f.Path + backupSuffix); err == nil {
			t.Error("a backup was made")
		}
	}
}

// A write that fails, of the backup or of the file, leaves no backup and the file as it was. The limit that makes it fail is
// set in a process of its own, since it would cut off a log that "go test" has each test's process write.
func TestWriteFails(t *testing.T) {
	if os.Getenv("LIMITED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriteFails$")
		cmd.Env = append(os.Environ(), "LIMITED=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // a write past the limit fails instead
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	const before = "{\n  \"model\": \"opus\"\n}\n"
	for _, size := range []int{len(before) - 1, len(before)} { // the file is longer than its backup
		a, _ := agent(t, "claude")
		f := a.Files[1]
		write(t, f.Path, before)
		c, err := f.Connect()
		if err != nil {
			t.Fatal(err)
		}
		small := limit
		small.Cur = uint64(size)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
			t.Fatal(err)
		}
		err = c.Write()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("got %v", err)
		}
		if files, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(files) != 1 {
			t.Errorf("%v, %v", files, err)
		}
		if text, err := os.ReadFile(f.Path); err != nil || string(text) != before {
			t.Errorf("%s, %v", text, err)
		}
	}
}

// A file that has all settings is left as it is, also without a newline at its end or with a layout of its own.
func TestNothingToChange(t *testing.T) {
	for _, name := range []string{"claude", "codex", "crush", "gemini", "goose", "opencode", "qwen"} {
		a, _ := agent(t, name)
		for _, f := range a.Files {
			text := strings.TrimSuffix(connect(t, f), "\n")
			write(t, f.Path, text)
			if c, err := f.Connect(); err != nil || !c.Empty() {
				t.Errorf("connect: %s, %v", c.Diff(), err)
			}
			write(t, f.Path+backupSuffix, text)
			if c, err := f.Undo(); err != nil || !c.Empty() {
				t.Errorf("undo: %s, %v", c.Diff(), err)
			}
		}
	}
}

// JSON with comments keeps them, its layout and all other settings.
func TestOpencodeWithComments(t *testing.T) {
	const before = `{
  // who answers
  "model": "anthropic/claude",
  "mcp": {
    "other": {"type": "local", "command": ["other"]}, // mine
  },
  "permission": {"bash": "ask"}, /* careful */
}
`
	a, _ := agent(t, "opencode")
	f := a.Files[0]
	write(t, f.Path, before)
	got := connect(t, f)
	for _, want := range []string{"// who answers", "// mine", "/* careful */", `"sublet"`, `"bash": "deny"`, `"other": {"type": "local", "command": ["other"]}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	back := undo(t, f)
	if strings.Contains(back, "sublet") || !strings.Contains(back, `"bash": "ask"`) || !strings.Contains(back, "/* careful */") {
		t.Errorf("taken back:\n%s", back)
	}
}

// A list of the user's keeps its elements, and its order; regular JSON stays regular.
func TestClaudeSettings(t *testing.T) {
	a, _ := agent(t, "claude")
	f := a.Files[1]
	const before = "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\"\n    ]\n  },\n  \"model\": \"opus\"\n}\n"
	write(t, f.Path, before)
	const after = "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\",\n      \"Bash\"\n    ]\n  },\n  \"model\": \"opus\",\n  \"env\": {\n    \"MCP_TOOL_TIMEOUT\": \"3600000\"\n  }\n}\n"
	if got := connect(t, f); got != after {
		t.Errorf("got\n%s", got)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := undo(t, f); got != before {
		t.Errorf("taken back:\n%s", got)
	}
}

// What was denied before stays denied.
func TestWhatWasThereStays(t *testing.T) {
	a, _ := agent(t, "claude")
	f := a.Files[1]
	const before = "{\"permissions\": {\"deny\": [\"Bash\"]}, \"env\": {\"A\": \"1\"}}\n"
	write(t, f.Path, before)
	connect(t, f)
	if got := undo(t, f); got != before {
		t.Errorf("got %s", got)
	}
}

// A setting without a value is as one that is missing.
func TestEmptySetting(t *testing.T) {
	for _, c := range []struct{ agent, text string }{
		{"goose", "extensions: # none yet\n"},
		{"goose", "extensions: null\n"},
		{"goose", "null\n"},
		{"gemini", "{\"mcpServers\": null}\n"},
	} {
		a, _ := agent(t, c.agent)
		f := a.Files[0]
		write(t, f.Path, c.text)
		if got := connect(t, f); !strings.Contains(got, "sublet") {
			t.Errorf("%s became\n%s", c.text, got)
		}
		if got := undo(t, f); got != c.text {
			t.Errorf("%s taken back:\n%s", c.text, got)
		}
	}
}

// What cannot be changed with certainty is not.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ agent, text string }{
		{"codex", "features = {shell_tool = true}\n"},
		{"codex", "features.shell_tool = true\n"},
		{"codex", "this is = = not TOML"},
		{"goose", "extensions: [developer]\n"},
		{"goose", "a: b\n---\nc: d\n"},
		{"goose", "a: b: c\n"},
		{"opencode", "[1, 2]"},
		{"opencode", `{"permission": "allow"}`},
		{"opencode", "{"},
		{"gemini", `{"tools": {"exclude": "x"}}`},
	} {
		a, _ := agent(t, c.agent)
		f := a.Files[0]
		write(t, f.Path, c.text)
		if ch, err := f.Connect(); err == nil {
			t.Errorf("%s became %s", c.text, ch.After)
		}
	}
}

// A settings file that is a link stays one.
func TestLink(t *testing.T) {
	a, home := agent(t, "gemini")
	f := a.Files[0]
	real := filepath.Join(home, "dotfiles.json")
	write(t, real, "{}\n")
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, f.Path); err != nil {
		t.Fatal(err)
	}
	connect(t, f)
	if info, err := os.Lstat(f.Path); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
	undo(t, f)
	if text, err := os.ReadFile(real); err != nil || string(text) != "{}\n" {
		t.Errorf("taken back: %s, %v", text, err)
	}
}

// Tables below the one that sublet made stay when that is taken back.
func TestUndoKeepsTablesBelow(t *testing.T) {
	const mine, later = "[features.x]\na = 1\n", "\n[later]\nb = 2\n"
	a, _ := agent(t, "codex")
	f := a.Files[0]
	write(t, f.Path, mine)
	write(t, f.Path, connect(t, f)+later)
	if got := undo(t, f); got != mine+later {
		t.Errorf("got\n%s", got)
	}
}

// Codex 0.57 lists its features with tabs, and knows no shell_tool; 0.169 lists them with spaces.
func TestFeaturesOfCodex(t *testing.T) {
	a, _ := agent(t, "codex")
	for answer, want := range map[string]string{
		"unified_exec\texperimental\tfalse\n":                                     "features.unified_exec ",
		"shell_tool     stable   false\nunified_exec   stable   true\n":           "features.shell_tool features.unified_exec ",
		"shell_tool     stable   true\nunified_exec_tty   stable   true\nfalse\n": "",
	} {
		got := ""
		for _, s := range a.Checks[len(a.Checks)-1].Traces {
			if _, ok := s.In(answer); ok {
				got += s.Setting + " "
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", answer, got, want)
		}
	}
}
