package bash

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/dialect/dialecttest"
)

const plain = "PS1='$?> '\nHISTFILE=~/history\n"

func options(bashrc string) dialecttest.Options {
	return dialecttest.Options{Files: map[string]string{".bashrc": bashrc}}
}

func start(t *testing.T, bashrc string) *dialecttest.Shell {
	t.Helper()
	t.Parallel()
	return dialecttest.Start(t, Dialect, options(bashrc))
}

func words(bashrc string) dialecttest.Words {
	return dialecttest.Words{
		Options:  options(bashrc),
		Export:   "export COLOUR='blue green'",
		Alias:    "alias hello='echo hallo'",
		Function: "greet() { echo greetings; }",
		Status:   "$?",
		History:  "fc -l 1",
		Unbind:   `for map in emacs vi-insert vi-command; do bind -m $map -r '\eO~'; done`,
		Late:     true,
	}
}

func TestSuite(t *testing.T) { dialecttest.Suite(t, Dialect, words(plain)) }

// What people have in their ~/.bashrc changes nothing.
func TestSuiteUnderOptions(t *testing.T) {
	for name, bashrc := range map[string]string{
		"history": "HISTCONTROL=ignoreboth:erasedups HISTTIMEFORMAT='%F ' HISTIGNORE='ls*'; shopt -s histappend\n",
		"nounset": "set -u; shopt -s extglob globstar nullglob\n",
		"hooks":   "PROMPT_COMMAND='true one; false'; PS0='[begins]'; trap 'last=$BASH_COMMAND' DEBUG; PS0=\n",
	} {
		t.Run(name, func(t *testing.T) { dialecttest.Suite(t, Dialect, words(plain+bashrc)) })
	}
}

// A here-document is not noticed: there the client must not ask, and it never does behind Enter.
func TestContinuationIsNotReady(t *testing.T) {
	for line, rest := range map[string]string{
		"for i in 1 2; do\r": "echo got $i; done\r",
		"echo 'got\r":        "2'\r",
		"echo got \\\r":      "2\r",
	} {
		t.Run(line, func(t *testing.T) {
			s := start(t, plain+"PS2='more> '\n")
			s.Type(line)
			s.AwaitText("more>")
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

func TestViModes(t *testing.T) {
	s := start(t, plain+"set -o vi\nbind 'set keyseq-timeout 50'\n")
	s.Type("echo one two")
	s.AwaitText("two")
	before := s.Look()
	s.Type("\x1b")
	for mode := before; mode.Cursor != 11; s.Direct("none") { // once ESC was waited for
		mode = s.Hold()
	}
	s.Type("dbahi\r")
	s.Prompt()
	s.AwaitText("\none ohi\n")
}

func TestState(t *testing.T) {
	s := start(t, plain)
	s.Enter("declare -A map=([a b]='c' [d]=$'e\\nf'); declare -i n=3; declare -r fixed=1; list=(x 'y z' ''); declare -l lower=ABC")
	s.Enter("export VALUE=$'a\\nb\\ndeclare -x FORGED=\"1\"' OTHER=1; alias ll='ls -l' q=\"it's\"; greet() { echo \"it's\"; }; brace() { echo '\n}'; }")
	before := s.LookState()
	if before.Vars["VALUE"] != "a\nb\ndeclare -x FORGED=\"1\"" || before.Vars["FORGED"] != "" || before.Aliases["ll"] != "ls -l" || before.Aliases["q"] != "it's" ||
		!strings.Contains(before.Functions["greet"], "it's") || before.Umask != "0022" || len(before.Hashed) != 0 {
		t.Errorf("got %+v", before)
	}
	if d := dialect.Difference(before, s.LookState()); d != "" {
		t.Errorf("it differs by itself: %s", d)
	}
	s.Run(strings.Join([]string{
		"map[new]=1; unset n; n=text; list=(); fresh=$'1\\n\"2'; declare -ar wall=(1)", "unset OTHER; export VALUE=2 NEW=3 BASH_ENV=/nowhere; export n=exported; lower=X",
		"unalias q; alias ll=x other=y", "greet() { :; }; other() { :; }; unset -f brace", "cd /; umask 077; shopt -s autocd; set -o noclobber",
		"PATH=/tmp:$PATH; hash -p /nowhere/ls ls; enable -n kill",
	}, "\n"))
	after := s.LookState()
	if after.Hashed["ls"] != "/nowhere/ls" || len(after.Hashed) != 1 || len(after.Disabled) != 1 || after.Disabled[0] != "kill" {
		t.Errorf("hashed %q, disabled %q", after.Hashed, after.Disabled)
	}
	if after.Vars["BASH_ENV"] != "/nowhere" { // it was left out with the variables that bash sets itself
		t.Errorf("BASH_ENV is %q", after.Vars["BASH_ENV"])
	}
	s.Undo(before, after, "wall")
	if r := s.Run(`echo "${map[d]}" "${list[1]}" "${#list[@]}" "$lower"; brace`); r.Output != "e\r\nf y z 3 abc\r\n\r\n}\r\n" {
		t.Errorf("got %q", r.Output)
	}
}

// The widget has an IFS of its own, and the user's was not seen behind it, nor whether it is exported.
func TestStateHasIFS(t *testing.T) {
	for want, was := range map[string]string{`declare -- IFS=$' \t\n'`: "", `declare -x IFS=","`: "export IFS=,"} {
		t.Run(want, func(t *testing.T) {
			s := start(t, plain+was)
			before := s.LookState()
			s.Run("IFS=$':\\n'")
			after := s.LookState()
			if d := dialect.Difference(before, after); !strings.HasPrefix(d, "changed IFS, look at IFS") {
				t.Errorf("got %q", d)
			}
			s.Undo(before, after)
			if r := s.Run("declare -p IFS"); r.Output != want+"\r\n" {
				t.Errorf("got %q", r.Output)
			}
		})
	}
}

// A prompt that the user's hooks write is not a change by the command after which they did, but one by the command is.
func TestPaintedPrompt(t *testing.T) {
	for last, want := range map[string]string{"paint": "", "true": "changed PS1, look at PS1: it decides what later commands run"} {
		t.Run(last, func(t *testing.T) {
			s := start(t, plain+"paint() { PS1=$PWD'> '; }\nPROMPT_COMMAND=paint\n")
			before := s.LookState()
			s.Run("PROMPT_COMMAND=${PROMPT_COMMAND/paint/" + last + "}")
			s.Run("cd /; PS1=x")
			after := s.LookState()
			after.Local["PROMPT_COMMAND"] = before.Local["PROMPT_COMMAND"]
			if d := dialect.Difference(before, after); d != want {
				t.Errorf("got %q, want %q", d, want)
			}
		})
	}
}

// A $ inside $'…' was taken for the end of the quotes, and the variables behind it were not seen.
func TestStatementsOf(t *testing.T) {
	want := []string{`declare -- a=$'1\n$2'`, `declare -a b=([0]="$3" [1]='4')`, `declare -- c="5"`}
	if got := statementsOf(strings.Join(want, "\n") + "\n"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHistoryFile(t *testing.T) {
	s := start(t, plain+"HISTCONTROL=ignoredups\n")
	s.Enter("echo one")
	s.Run("echo borrowed")
	s.Enter("echo !#:0 two; echo ${HISTCONTROL}")
	s.AwaitText("\nignoredups\n")
	s.Type("exit\r")
	s.Exited()
	text, err := os.ReadFile(filepath.Join(s.Home, "history"))
	if want := "echo one\necho echo two; echo ${HISTCONTROL}\nexit\n"; err != nil || string(text) != want {
		t.Errorf("got %q, want %q, %v", text, want, err)
	}
}

func TestExamine(t *testing.T) {
	known := func(name string) bool { return name == "mine" }
	for text, want := range map[string]dialect.Examination{
		"ls -l | grep x && make":       {},
		"git commit -m 'exit; set -e'": {},
		"x=1":                          {Changes: true},
		"x=1 make":                     {},
		"echo $((i++))":                {Changes: true},
		"while read x; do y=1; done":   {Changes: true},
		"while ls a; do ls b; done":    {},
		"mine":                         {Changes: true},
		"cd /":                         {Changes: true, Lasts: "cd"},
		"export X=1":                   {Changes: true, Lasts: "export"},
		"echo ${x:=1}":                 {Changes: true},
		"(cd /; x=1)":                  {},
		"if true; then x=1; fi":        {Changes: true},
		"exit 3":                       {Ends: true},
		"make || exit":                 {Ends: true},
		"command -p exit":              {Ends: true},
		"command -v exit":              {Changes: true},
		"exec sh":                      {Ends: true},
		"set -euo pipefail; make":      {Ends: true, Lasts: "set"},
		"if make; then exit 1; fi":     {Ends: true},
		"for x in a b {{":              {Changes: true},
		"sh -c 'exit 3'":               {},
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
