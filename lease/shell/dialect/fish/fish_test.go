package fish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/dialect/dialecttest"
)

const plain = "function fish_prompt; echo -n \"$status> \"; end\nset fish_greeting\n"

func options(config string) dialecttest.Options {
	return dialecttest.Options{Files: map[string]string{
		".config/fish/config.fish": config,
		// Without that fish makes completions of all manual pages, in the background.
		".local/share/fish/generated_completions/none.fish": "",
	}}
}

func start(t *testing.T, config string) *dialecttest.Shell {
	t.Helper()
	t.Parallel()
	return dialecttest.Start(t, Dialect, options(config))
}

var words = dialecttest.Words{
	Options:  options(plain),
	Export:   "set -gx COLOUR 'blue green'",
	Alias:    "abbr -a hello echo hallo",
	Function: "function greet; echo greetings; end",
	Status:   "$status",
	History:  "history",
	Unbind:   "bind --erase --all",
}

func TestSuite(t *testing.T) { dialecttest.Suite(t, Dialect, words) }

func TestStartupFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		".config/fish/config.fish": plain + "set -g from config", ".config/fish/conf.d/a.fish": "set -g early a",
		".local/share/fish/generated_completions/none.fish": "",
	}
	for name, row := range map[string]struct {
		options dialecttest.Options
		want    string
	}{
		"the user's": {dialecttest.Options{Files: files}, "a config "},
		"none":       {dialecttest.Options{Files: files, NoStartup: true}, "  "},
		"restored":   {dialecttest.Options{Files: files, Restore: "set -g from 'a  b'\nset -g fish_greeting\nset -gx kept yes\n"}, "a a  b yes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialecttest.Start(t, Dialect, row.options)
			if r := s.Run("echo \"$early $from $kept\""); r.Output != row.want+"\r\n" {
				t.Errorf("got %q, want %q", r.Output, row.want)
			}
		})
	}
}

// The user's prompt may take long: it was made anew before each borrowed command, too, for nobody to see.
func TestPromptIsMadeOnceForACommand(t *testing.T) {
	s := start(t, "function fish_prompt; set -g made (math $made + 1); echo -n \"$made> \"; end\nset fish_greeting\n")
	s.AwaitScreen("1>")
	for _, want := range []string{"1\r\n", "2\r\n", "3\r\n"} {
		s.Hold()
		s.Erase()
		s.Begin("echo $made", "")
		if r := s.End(); r.Output != want {
			t.Errorf("the prompt was made %q times, want %q", r.Output, want)
		}
		s.Prompt()
	}
}

func TestSearchAndPagerAreNotReady(t *testing.T) {
	s := start(t, plain)
	for _, file := range []string{"menu1", "menu2"} {
		if err := os.WriteFile(filepath.Join(s.Home, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Enter("echo found")
	s.Type("echo m\t\t")
	s.AwaitText("menu2")
	if h := s.Look(); h.Context != "menu" {
		t.Errorf("in the pager: %+v", h)
	}
	s.Type("\x1b[C\r")
	s.AwaitText("> echo menu2")
	s.Type("\x15ec\x1b[A")
	s.AwaitText("> echo found")
	if h := s.Look(); h.Context != "search" {
		t.Errorf("in a search: %+v", h)
	}
	s.Type("\x1b[B")
	if h := s.Look(); h.Line != "ec" {
		t.Errorf("behind the search: %+v", h)
	}
	s.Type("\x15\x12")
	s.AwaitText("search:")
	if h := s.Look(); h.Context != "menu" {
		t.Errorf("in the history pager: %+v", h)
	}
	s.Type("found")
	s.AwaitText("search: found")
}

func TestViModes(t *testing.T) {
	s := start(t, plain+"set -g fish_key_bindings fish_vi_key_bindings\nfunction fish_mode_prompt; echo -n \"$fish_bind_mode \"; end\n")
	s.AwaitScreen("insert 0>")
	s.Type("echo one two")
	s.AwaitText("> echo one two")
	s.Look()
	s.Type("\x1b")
	s.AwaitText("default 0> echo one two")
	for _, mode := range []string{"default", "visual", "replace"} {
		if mode != "default" {
			s.Type(map[string]string{"visual": "v", "replace": "R"}[mode])
			s.AwaitText(mode + " 0>")
		}
		if h := s.Look(); h.Context != "ready" || h.Line != "echo one two" {
			t.Errorf("in mode %s: %+v", mode, h)
		}
		if mode != "default" {
			s.Type("\x1b")
			s.AwaitText("default 0>")
		}
	}
	before := s.Hold()
	s.Erase()
	s.Begin("echo borrowed", "")
	s.End()
	s.Prompt()
	s.Give(before)
	s.AwaitText("0> echo one two")
	if after := s.Hold(); after != before {
		t.Errorf("got %+v, want %+v", after, before)
	}
	s.Direct("none")
}

func TestPromptIsPaintedAgain(t *testing.T) {
	s := start(t, "function fish_prompt; echo $status; echo line two; echo -n '> '; end\nfunction fish_right_prompt; echo right; end\nset fish_greeting\n")
	s.Enter("echo above")
	s.AwaitText("above\n0\nline two\n>")
	s.Type("\x1b[200~echo 'a\nb\n" + strings.Repeat("long ", 30) + "\x1b[201~\x1b[A")
	s.AwaitText("\ng long")
	before := s.Hold()
	shown := s.Screen()
	s.Erase()
	if got := s.Screen(); got[len(got)-1] != "above" {
		t.Errorf("erased: %q", got)
	}
	s.Begin("echo borrowed; false", "")
	s.End()
	s.Prompt()
	s.Give(before)
	for i, l := range shown {
		if l == "above" {
			s.AwaitScreen(append(append(append([]string{}, shown[:i+1]...), "borrowed"), shown[i+1:]...)...)
		}
	}
}

func TestInterruptWhileHeld(t *testing.T) {
	s := start(t, plain)
	s.Type("echo half")
	before := s.Hold()
	s.Signal("INT")
	s.State()
	s.Direct("none")
	if after := s.Hold(); after != before {
		t.Errorf("got %+v, want %+v", after, before)
	}
	s.Direct("none")
	s.Run("true")
}

func TestHistoryFile(t *testing.T) {
	for name, setting := range map[string]string{"fish": "", "mine": "set -g fish_history mine\n"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, plain+setting)
			s.Enter("echo one")
			s.Run("echo borrowed; set -g seen $fish_history")
			s.Enter("echo \"seen $seen now $fish_history\"")
			if setting != "" {
				s.AwaitText("\nseen mine now mine\n")
			} else {
				s.AwaitText("\nseen  now\n")
			}
			s.Type("exit\r")
			s.Exited()
			text, err := os.ReadFile(filepath.Join(s.Home, ".local/share/fish", name+"_history"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(text)) {
				if cmd, ok := strings.CutPrefix(line, "- cmd: "); ok {
					got = append(got, strings.TrimSpace(cmd))
				}
			}
			if want := "echo one\necho \"seen $seen now $fish_history\"\nexit"; strings.Join(got, "\n") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestState(t *testing.T) {
	s := start(t, plain)
	s.Enter("set -g list x 'y z' ''; set -g none; set -U everywhere 1; set -gx VALUE 'a  b' c; set -gx OTHER 1; set -gx SOMEPATH a b")
	s.Enter("abbr -a gs git status; function greet; echo \"it's\"; end")
	before := s.LookState()
	if before.Vars["VALUE"] != "a  b c" || before.Vars["SOMEPATH"] != "a:b" || before.Local["list"] != `builtin set --global --unexport -- list 'x' 'y z' ''` ||
		before.Local["everywhere"] != `builtin set --universal --unexport -- everywhere '1'` || before.Local["none"] == "" ||
		!strings.Contains(before.Aliases["gs"], "git status") || !strings.Contains(before.Functions["greet"], "it's") || before.Umask != "0022" {
		t.Errorf("got %+v", before)
	}
	if d := dialect.Difference(before, s.LookState()); d != "" {
		t.Errorf("it differs by itself: %s", d)
	}
	s.Run(strings.Join([]string{
		"set -a list new; set -e none; set -U everywhere 2; set -g fresh 1; set -gx VALUE 2; set -e OTHER; set -gx NEW 3; set -gx SOMEPATH c; set -x list",
		"abbr -e gs; abbr -a other ls; function greet; end; function second; end; cd /; umask 077",
	}, "\n"))
	after := s.LookState()
	s.Undo(before, after)
}

func TestExamine(t *testing.T) {
	known := func(name string) bool { return name == "git" }
	for text, want := range map[string]string{
		"ls -l *.go":               "",
		"grep 'exit; exec' \"$x\"": "",
		"make -j4 # exit":          "",
		"git log":                  "changes",
		"cd /":                     "changes",
		"ls; ls":                   "",
		"mytool":                   "changes",
		"ls (cd /)":                "changes",
		"set -x A b":               "changes",
		"echo a > b":               "",
		"if true; cd /; end":       "changes",
		"echo 'a\\'; cd /; 'b'":    "changes",
		"exit 3":                   "refused",
		"ls; and exit":             "refused",
		"true && exec sh":          "refused",
		"if true\n  logout\nend":   "refused",
		"echo \"$(exit)\"":         "refused",
		"eval 'exit 1'":            "refused",
		"ls\x00":                   "refused",
		"echo it\\'s; exit":        "refused",
	} {
		e := Dialect.Examine(text, known)
		got := ""
		switch {
		case e.Refused != "":
			got = "refused"
		case e.Changes:
			got = "changes"
		}
		if got != want || e.Text != text || e.Ends {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
