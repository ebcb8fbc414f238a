package bash

import (
	"slices"
	"strings"
	"testing"

	"sublet/lease/shell/dialect"
)

// A $ inside $'…' was taken for the end of the quotes, and the variables behind it were not seen.
func TestStatementsOf(t *testing.T) {
	want := []string{`declare -- a=$'1\n$2'`, `declare -a b=([0]="$3" [1]='4')`, `declare -- c="5"`}
	if got := statementsOf(strings.Join(want, "\n") + "\n"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
		if want.Job = got.Job; got != want { // TestJobText has that
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

// What changes nothing in the shell can be one job of it: a pipeline as it is, a longer text in a subshell, unless it starts jobs of its
// own or names the shell's.
func TestJobText(t *testing.T) {
	known := func(name string) bool { return name == "mine" }
	for text, want := range map[string]string{
		"make":                       "make",
		"X=1 make 2>&1 | tee log":    "X=1 make 2>&1 | tee log",
		"make && make test":          "(\nmake && make test\n)",
		"make; ls # all":             "(\nmake; ls # all\n)",
		"while sleep 1; do ls; done": "(\nwhile sleep 1; do ls; done\n)",
		"make; exit 3":               "(\nmake; exit 3\n)",
		"! make":                     "(\n! make\n)",
		"serve & ls":                 "",
		"ls; kill %1":                "",
		"make; wait":                 "",
		"mine":                       "",
		"cd /; make":                 "",
		"for x in a; do make; done":  "",
		"for x in a b {{":            "",
	} {
		if got := Dialect.Examine(text, known).Job; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
