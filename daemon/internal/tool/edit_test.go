package tool

import (
	"strings"
	"testing"
)

const source = `package main

func main() {
	if ready() {
		start(1)
	}
	stop()
}

func ready() bool { return true }
`

func TestEditsAreMadeTogetherOrNotAtAll(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "main.go", source)
	mustDo(t, Read(), env, m{"path": "main.go"})
	edits := func(list ...m) m { return m{"path": "main.go", "edits": list} }
	for _, tc := range []struct {
		args m
		want string
	}{
		{edits(m{"old": "start(1)", "new": "start(2)"}, m{"old": "halt()", "new": ""}), "edits[1]: old does not occur in the file"},
		{edits(m{"old": "start(1)", "new": "start(2)"}, m{"old": "ready()", "new": "x"}), "edits[1]: old occurs in the file 2 times, in lines 4 and 10"},
		{edits(m{"old": "\tstart(1)\n", "new": ""}, m{"old": "start(1)", "new": "x"}), "edits[0] and edits[1] overlap in line 5"},
		{edits(m{"old": "", "new": "x"}), "old: is empty"},
		{edits(m{"old": "x"}), `edits[]: required: missing properties: ["new"]`},
		{edits(), "edits: is missing"},
		{m{"path": "main.go", "old": "stop()", "new": "x", "edits": []m{{"old": "a", "new": "b"}}}, "either edits or old and new"},
		{m{"path": "main.go", "old": "stop()"}, "new: is missing"},
	} {
		_, err := do(t, Edit(), env, tc.args)
		wantErr(t, err, tc.want)
		if got := slurp(t, path); got != source {
			t.Fatalf("%v: got %q, want the file left alone", tc.args, got)
		}
	}
	r := mustDo(t, Edit(), env, edits(m{"old": "stop()", "new": "start(1)"}, m{"old": "start(1)", "new": "stop()"}, m{"old": "ready", "new": "able", "replace_all": true}))
	want := strings.NewReplacer("start(1)", "stop()", "stop()", "start(1)", "ready", "able").Replace(source)
	if got := slurp(t, path); got != want || !strings.Contains(r.Content, "replaced 4 times") {
		t.Errorf("got %q and %q, want each old found in the file as it was: %q", r.Content, got, want)
	}
}

func TestEditShowsTheNearestLines(t *testing.T) {
	edit := func(old string) error {
		repl := "x"
		_, err := apply([]byte(source), []edit{{Old: &old, New: &repl}})
		return err
	}
	for old, want := range map[string]string{
		"\tif ready() {\n\t\tstart(2)\n\t}": "the nearest is lines 4-6 (- is old, + is the file):\n \tif ready() {\n-\t\tstart(2)\n+\t\tstart(1)\n \t}",
		"func ready() boolean {":            "the nearest is line 10 (- is old, + is the file):\n-func ready() boolean {\n+func ready() bool { return true }",
		"\tshop()":                          "the nearest is line 7 ",
		"stop()\n}\n\nfunc never() {}":      "the nearest is lines 7-10",
		"entirely different":                "nor anything like it",
		" \n ":                              "nor anything like it",
	} {
		wantErr(t, edit(old), want)
	}
	var long strings.Builder
	for range 10_000 {
		long.WriteString("\tstart(1)\n\tdo()\n")
	}
	if err := edit(long.String()); err == nil || len(err.Error()) > 3*maxNearest {
		t.Errorf("got %v, want a bounded error", err)
	}
}

// White space alone is no reason to ask again, where it leaves one place; what is put there is indented as the file is.
func TestEditIgnoresWhiteSpaceWhereOnePlaceIsLeft(t *testing.T) {
	for _, tc := range []struct{ file, old, repl, want, err string }{
		{
			source, "    if ready() {\n        start(1)\n    }\n", "    if ready() {\n        start(2)\n            more()\n    }\n",
			strings.Replace(source, "\t\tstart(1)\n", "\t\tstart(2)\n\t\t    more()\n", 1), "",
		},
		{source, "if ready() {\nstart(1)\n}", "if ready() {\nstart(1)\n}", "", "the nearest is lines 4-6"}, // one indentation would become two
		{"a = [ 1 ]  \nb\n", "a  = [ 1 ]", "a = 2", "a = 2\nb\n", ""},
		{"x\n\ta\n\n\tb\n", "  a\n\n", "  c\n\n", "x\n\tc\n\n\tb\n", ""},
		{"a\r\n\tb", " b\n", " c\n", "a\r\n\tc", ""},
		{"x\n\ta\n\n\tb\n", "  a\n\n", "", "x\n\tb\n", ""},
		{"\ta\r\n\tb\r\nc", "a\nb\n", "x\ny\n", "\tx\r\n\ty\r\nc", ""},
		{"  a\n\ta\n", "    a", "b", "", "lines 1 and 2 begin texts that differ"},
		{"x = 1\n", "x=1", "x=2", "", "the nearest is line 1"},
		{"b\n  a\nb\n a\na\n", "  a\nb\n", "c\n", "b\nc\n a\na\n", "exact"},
		{"b\n\ta\nb\na\nc\n", " a\n b\n", "  c\n", "", "the nearest is lines 2-3"}, // no indentation of the file is that of c
		{strings.Repeat("a b\n", 200_000) + "c\n", strings.Repeat("a  b\n", 10_000) + "d\n", "c", "", "old does not occur"},
	} {
		got, err := apply([]byte(tc.file), []edit{{Old: &tc.old, New: &tc.repl}})
		if tc.err == "exact" {
			if string(got.after) != tc.want || len(got.notes) != 0 {
				t.Errorf("%q: got %q, %q", tc.old, got.after, got.notes)
			}
			continue
		}
		if tc.err != "" {
			wantErr(t, err, tc.err)
			continue
		}
		if err != nil || string(got.after) != tc.want || len(got.notes) != 1 || !strings.Contains(got.notes[0], "white space only") {
			t.Errorf("%q: got %q, %q, %v; want %q", tc.old, got.after, got.notes, err, tc.want)
		}
	}
}
