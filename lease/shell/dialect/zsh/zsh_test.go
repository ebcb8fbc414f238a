package zsh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/wire/citest"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/dialect/dialecttest"
)

const plain = "PS1='%?> '\nHISTFILE=~/history SAVEHIST=100\n"

// options are those of a shell with this .zshrc.
func options(zshrc string) dialecttest.Options {
	return dialecttest.Options{Files: map[string]string{".zshrc": zshrc}}
}

func start(t *testing.T, zshrc string) *dialecttest.Shell {
	t.Helper()
	t.Parallel()
	return dialecttest.Start(t, Dialect, options(zshrc))
}

// words are for a shell with this .zshrc.
func words(zshrc string) dialecttest.Words {
	return dialecttest.Words{
		Options:  options(zshrc),
		Export:   "export COLOUR='blue green'",
		Alias:    "alias hello='echo hallo'",
		Function: "function greet { echo greetings; }",
		Status:   "$?",
		History:  "fc -l 1",
		Unbind:   `for map in emacs viins vicmd; do builtin bindkey -M $map -r '\eO~'; done`,
	}
}

func TestSuite(t *testing.T) { dialecttest.Suite(t, Dialect, words(plain)) }

// The suite holds under options that change what script text means, and with names of builtins taken by the user.
func TestSuiteUnderOptions(t *testing.T) {
	for name, zshrc := range map[string]string{
		"strange options": "setopt nounset ksharrays shwordsplit noclobber correctall globsubst rcexpandparam ignorebraces ignoreclosebraces " +
			"histignorespace extendedhistory autopushd warncreateglobal\n",
		"sh":             "emulate sh\n",
		"ksh":            "emulate ksh\n",
		"shared history": "setopt sharehistory histignorealldups incappendhistory  histnostore\n",
		"names": "IFS=xyz; TMOUT=600; function read print local typeset zle bindkey trap emulate source { true }\n" +
			"alias read=no print=no\n",
	} {
		t.Run(name, func(t *testing.T) {
			dialecttest.Suite(t, Dialect, words(plain+zshrc))
		})
	}
}

func TestStartupFiles(t *testing.T) {
	t.Parallel()
	report := "print -rn -- $ZDOTDIR-${ZDOTDIR+set}"
	for name, row := range map[string]struct {
		options dialecttest.Options
		want    string // ZDOTDIR in the shell, and what the files printed; HOME is ~
	}{
		"unset": {dialecttest.Options{Files: map[string]string{".zshenv": "from=env", ".zshrc": "from+=,rc"}}, "-,env,rc"},
		"set": {dialecttest.Options{
			Env:   []string{"ZDOTDIR=/tmp/does/not/exist"},
			Files: map[string]string{".zshenv": "from=env", ".zshrc": "from+=,rc"},
		}, "/tmp/does/not/exist-set,"},
		"set by .zshenv": {dialecttest.Options{Files: map[string]string{
			".zshenv": "export ZDOTDIR=~/it\\'s; from=env", ".zshrc": "from+=,rc", "it's/.zshrc": "from+=,dotrc",
		}}, "~/it's-set,env,dotrc"},
		"without":              {dialecttest.Options{NoStartup: true, Files: map[string]string{".zshenv": "from=env", ".zshrc": "from+=,rc"}}, "-,"},
		"that replace hooks":   {options("precmd_functions=() preexec_functions=(); precmd() { from=called }"), "-,called"},
		"that end in an error": {options("from=rc; this is (not zsh"), "-,rc"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialecttest.Start(t, Dialect, row.options)
			if r := s.Run(report + "; print -rn -- ,$from"); r.Output != strings.ReplaceAll(row.want, "~", s.Home) {
				t.Errorf("got %q, want %q", r.Output, row.want)
			}
		})
	}
}

func TestRestoreAtStart(t *testing.T) {
	t.Parallel()
	o := options(plain)
	o.Restore = "typeset -g kept='a b'\nsetopt autocd\nalias kept=echo\n"
	s := dialecttest.Start(t, Dialect, o)
	if r := s.Run("echo $kept $options[autocd] $aliases[kept]"); r.Output != "a b on echo\r\n" {
		t.Errorf("got %q", r.Output)
	}
}

func TestContinuationIsNotReady(t *testing.T) {
	for line, rest := range map[string]string{
		"for i in 1 2; do\r": "echo got $i; done\r",
		"echo 'got\r":        "2'\r",
		"echo got \\\r":      "2\r",
		"cat <<end\r":        "got 2\rend\r",
	} {
		t.Run(line, func(t *testing.T) {
			s := start(t, plain)
			s.Type(line)
			s.AwaitText("\n") // PS2
			s.Type("e")
			s.AwaitText("> e")
			s.Type("\x7f")
			if h := s.Look(); h.Context != "continuation" {
				t.Errorf("got %+v", h)
			}
			s.Type(rest)
			s.Prompt()
			s.AwaitText("got")
			s.AwaitText("2\n0>")
		})
	}
}

func TestSearchAndMenuDoNotAnswer(t *testing.T) {
	s := start(t, plain+"autoload -Uz compinit; compinit -u; zstyle ':completion:*' menu select\n")
	s.Enter("echo found")
	s.Type("\x12ec")
	s.AwaitText("bck-i-search: ec")
	s.Key()
	s.Type("ho")
	s.AwaitText("bck-i-search: echo_")
	s.Type("\x07")
	s.AwaitScreen("0> echo found", "found", "0>")
	for _, file := range []string{"menu1", "menu2"} {
		if err := os.WriteFile(filepath.Join(s.Home, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 { // zsh has a keymap for menus only from the first on: there the widget answers, and the menu ends
		s.Type("echo m\t\t\t")
		s.AwaitText("> echo menu1")
		if i == 0 {
			s.Look()
			s.Type("x")
			s.AwaitText("> echo menu1 x")
		} else {
			s.Key()
			s.Type("\t")
			s.AwaitText("> echo menu2")
		}
		s.Type("\x15")
		s.Enter("clear")
	}
	s.Type("\x1bxredi") // execute-named-cmd
	s.AwaitText("redi")
	s.Key()
	s.Type("s")
	s.AwaitText("redis")
	if n := s.Count("A"); n > 1 {
		t.Errorf("the widget was called %d times in a search and in menus", n)
	}
}

func TestViModes(t *testing.T) {
	s := start(t, plain+"bindkey -v\nzle-keymap-select() { PS1='$KEYMAP> '; zle reset-prompt }; zle -N zle-keymap-select; setopt promptsubst\n")
	s.Type("echo one two")
	before := s.Look()
	s.Type("\x1b")
	s.AwaitText("vicmd> echo one two")
	if h := s.Look(); h.Context != "ready" || h.Line != before.Line || h.Cursor != 11 {
		t.Errorf("in command mode: %+v", h)
	}
	s.Type("dbahi\r")
	s.Prompt()
	s.AwaitText("\none ohi\n")
	s.Type("echo some\x1bhv")
	s.Look()
	s.Type("\x1b0x")
	s.AwaitText("vicmd> cho some")
	s.Run("true")
	if h := s.Look(); h.Line != "cho some" || h.Cursor != 0 {
		t.Errorf("behind a command: %+v", h)
	}
}

func TestPromptIsErasedAndPaintedAgain(t *testing.T) {
	s := start(t, "PS1=$'%?\\nline two\\n> ' RPS1='%~ right' PS2='more>'\n")
	s.Enter("echo above")
	s.AwaitText("right\nabove\n")
	s.Type("\x1b[200~echo 'a\nb\n" + strings.Repeat("long ", 30) + "\x1b[201~")
	s.AwaitText("long\n")
	s.Look()
	s.Type("\x1b[D\x1b[D")
	s.Hold()
	before := s.Screen()
	s.Erase()
	if got := s.Screen(); got[len(got)-1] != "above" {
		t.Errorf("erased: %q", got)
	}
	s.Direct("none")
	s.AwaitScreen(before...)
	r := s.Run("echo 'borrowed'; false")
	if r.Status != 1 {
		t.Errorf("got %+v", r)
	}
	for i, l := range before {
		if l == "above" {
			s.AwaitScreen(append(append(append([]string{}, before[:i+1]...), "borrowed"), before[i+1:]...)...)
		}
	}
}

// A resize while the client has the screen paints nothing on it.
func TestResizeWhileErased(t *testing.T) {
	s := start(t, "PS1='%?> ' RPS1=right\n")
	s.Type("echo half")
	s.AwaitText("half")
	s.Hold()
	s.Erase()
	s.Resize(60, 20)
	s.State() // it answers once it has taken note of the size
	if got := s.Screen(); len(got) != 0 {
		t.Errorf("painted %q", got)
	}
	s.Begin("", "")
	s.End()
	s.Prompt()
	s.AwaitScreen("0> echo half" + strings.Repeat(" ", 42) + "right")
}

func TestInterruptWhileHeld(t *testing.T) {
	s := start(t, plain+"TRAPINT() { print trapped; return 1 }\n")
	s.Type("echo half")
	before := s.Hold()
	s.Signal("INT")
	s.State()
	s.Direct("none")
	if after := s.Hold(); after != before {
		t.Errorf("got %+v, want %+v", after, before)
	}
	s.Direct("none")
	s.Type("x")
	s.AwaitText("halfx")
	s.Signal("INT") // the user's trap is there again
	s.AwaitText("trapped")
}

func TestErrorsEndTheText(t *testing.T) {
	s := start(t, plain)
	for _, text := range []string{
		"echo *.nothing; echo after", "if; echo after", "echo ${none:?message}; echo after", "readonly r=1; r=2; echo after", "return 3; echo after",
		"integer i; i='1 1'; echo after", "() { set -o errreturn; false; echo after }; echo end; false",
	} {
		if r := s.Run(text); r.Status == 0 || strings.Contains(r.Output, "after") {
			t.Errorf("%s: %+v", text, r)
		}
		s.Enter("clear; echo was $?")
		s.AwaitScreen("was 0", "0>")
	}
}

// The user's hooks see the user's lines only, but each prompt; a hook in between finds the history as it is.
func TestHooks(t *testing.T) {
	s := start(t, plain+`
		autoload -Uz add-zsh-hook
		before() { print -r "before $1" >> ~/log }
		adding() { print -r "adding ${1%$'\n'}" >> ~/log }
		prompt() { print -r "prompt $? $(fc -ln -1)" >> ~/log }
		add-zsh-hook preexec before; add-zsh-hook zshaddhistory adding; add-zsh-hook precmd prompt
	`)
	s.Enter("echo one")
	s.Run("cd /; false")
	s.Enter("(exit 3)")
	s.Run("true")
	text, err := os.ReadFile(filepath.Join(s.Home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	want := "prompt 0 \nadding echo one\nbefore echo one\nprompt 0 echo one\nprompt 0 echo one\n" +
		"adding (exit 3)\nbefore (exit 3)\nprompt 3 (exit 3)\nprompt 3 (exit 3)\n"
	if string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestPushedLineStays(t *testing.T) {
	s := start(t, plain)
	s.Type("echo pushed")
	s.AwaitText("pushed")
	s.Type("\x1bq")
	s.AwaitScreen("0>")
	s.Run("true")
	s.Type("echo own")
	if h := s.Look(); h.Line != "echo own" {
		t.Errorf("got %+v", h)
	}
	s.Type("\r")
	s.Prompt()
	s.AwaitText("> echo pushed")
}

func TestHistoryFile(t *testing.T) {
	for _, setting := range []string{"", "setopt sharehistory", "setopt incappendhistory", "setopt incappendhistorytime extendedhistory"} {
		t.Run(setting, func(t *testing.T) {
			s := start(t, plain+setting+"\n")
			s.Enter("echo one")
			s.Run("echo borrowed; print -sr 'echo stored'; HISTSIZE=77")
			s.Enter("echo $HISTSIZE !#:0 two")
			s.AwaitText("\n77 echo two\n")
			s.Type("exit\r")
			s.Exited()
			text, err := os.ReadFile(filepath.Join(s.Home, "history"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(text)) {
				got = append(got, strings.TrimSpace(line[strings.LastIndexByte(line, ';')+1:]))
			}
			if want := []string{"echo one", "echo stored", "echo $HISTSIZE echo two", "exit"}; strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestPlugins(t *testing.T) {
	var zshrc string
	for _, file := range []string{
		"/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh", "/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh",
		"/usr/share/doc/fzf/examples/key-bindings.zsh",
	} {
		if _, err := os.Stat(file); err != nil {
			citest.Skip(t, err)
		}
		zshrc += ". " + file + "\n"
	}
	s := start(t, plain+"autoload -Uz compinit; compinit -u\n"+zshrc)
	s.Enter("echo suggestion of mine")
	s.Enter("clear")
	s.Type("echo sugg")
	s.AwaitText("> echo suggestion of mine")
	before := s.Hold()
	s.Erase()
	s.Direct("none")
	s.AwaitScreen("0> echo suggestion of mine")
	if r := s.Run("echo borrowed; false"); r.Output != "borrowed\r\n" || r.Status != 1 {
		t.Errorf("got %+v", r)
	}
	s.AwaitText("borrowed\n0> echo sugg")
	if after := s.Hold(); after != before {
		t.Errorf("got %+v, want %+v", after, before)
	}
	s.Direct("none")
	s.Type("e")
	s.AwaitText("> echo suggestion of mine")
	s.Type("\x1b[C ") // right takes the suggestion
	s.AwaitText("> echo suggestion of mine")
	s.Type("\r")
	s.Prompt()
	s.AwaitText("\nsuggestion of mine\n0>")
}

// What hooks and plug-ins of the user's keep for themselves is no change by a command.
func TestStateOfPlugins(t *testing.T) {
	s := start(t, plain+"autoload -Uz is-at-least vcs_info; _cache=(a b); _gone=1; precmd() { vcs_info }\n")
	s.Run("git init -q repo")
	before := s.LookState()
	s.Run("is-at-least 5; _cache+=c; typeset -g _new=1; unset _gone; cd repo")
	loaded := s.LookState()
	if r := s.Run("print $vcs_info_msg_0_"); !strings.Contains(r.Output, "git") {
		t.Errorf("vcs_info: got %+v", r)
	}
	if d := dialect.Difference(before, loaded); d != "" {
		t.Errorf("got %q", d)
	}
	if text, _ := Dialect.Restore(before, loaded, loaded); strings.Contains(text, "is-at-least") {
		t.Errorf("a function that was loaded is put back:\n%s", text)
	}
	s.Run("is-at-least() { :; }; export _new")
	if d := dialect.Difference(loaded, s.LookState()); d != "changed _new, defined function is-at-least" {
		t.Errorf("got %q", d)
	}
}

func TestState(t *testing.T) {
	s := start(t, plain+"autoload -Uz compinit; compinit -u\n")
	s.Enter("typeset -A map=('a b' c d 'e\nf'); integer n=3; typeset -r fixed=1; typeset -T FOO foo; foo=(a b); list=(x 'y z' '')")
	s.Enter("export VALUE=$'a\\nb' OTHER=1; alias -g G='| grep'; alias -s txt=cat; alias ll='ls -l'; greet() { echo \"it's\"; }")
	before := s.LookState()
	if before.Vars["VALUE"] != "a\nb" || before.Aliases["-g G"] != "| grep" || before.Aliases["-s txt"] != "cat" || before.Aliases["ll"] != "ls -l" ||
		!strings.Contains(before.Functions["greet"], "it's") || before.Umask != "022" || len(before.Hashed) != 0 {
		t.Errorf("got %+v", before)
	}
	if d := dialect.Difference(before, s.LookState()); d != "" {
		t.Errorf("it differs by itself: %s", d)
	}
	s.Run(strings.Join([]string{
		"map[new]=1; unset n; n=text; foo+=c; list=(); IFS=:; fresh=1; typeset -ar wall=(1)", "unset OTHER; export VALUE=2 NEW=3; export n=exported",
		"unalias 'G'; alias -g 'G'=new; unalias -s txt; alias -s c=cc ll=x", "greet() { :; }; other() { :; }", "cd /; umask 077; setopt autocd nobeep extendedglob",
		"PATH=/tmp:$PATH; hash ls=/nowhere/ls; disable echo", "unset FOO",
	}, "\n"))
	after := s.LookState()
	if want := map[string]string{"ls": "/nowhere/ls"}; after.Hashed["ls"] != want["ls"] || len(after.Hashed) != 1 || len(after.Disabled) != 1 {
		t.Errorf("hashed %q, disabled %q", after.Hashed, after.Disabled)
	}
	s.Undo(before, after, "wall")
	if r := s.Run("print -r -- $map[d] $foo[2] $#list"); r.Output != "e\r\nf b 3\r\n" {
		t.Errorf("got %q", r.Output)
	}
}

func TestExamine(t *testing.T) {
	known := func(name string) bool { return name == "mine" }
	for text, want := range map[string]dialect.Examination{
		"foreach x (a b); echo; end": {Changes: true},
		"ls -l | grep x":             {},
		"x=1":                        {Changes: true},
		"mine":                       {Changes: true},
		"print -z x":                 {Changes: true},
		"setopt autocd":              {Changes: true, Lasts: "setopt"},
		"() { cd / }":                {Changes: true, Lasts: "cd"},
		"echo ${(f)x}":               {},
		"repeat 3 { x=1; }":          {Changes: true},
		"exit 3":                     {Ends: true},
		"make || exit":               {Ends: true},
		"exec zsh":                   {Ends: true},
		"logout":                     {Ends: true},
		"setopt err_exit":            {Ends: true, Lasts: "setopt"},
		"foreach x (a b) {{":         {Changes: true},
	} {
		got := Dialect.Examine(text, known)
		want.Text = text
		if want.Ends {
			want.Text = "(\n" + text + "\n)"
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
