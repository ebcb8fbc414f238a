package risk

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sublet/daemon/internal/text"
)

//go:embed testdata/commands.txt
var commandsText string

//go:embed testdata/tricky.txt
var trickyText string

//go:embed testdata/attacks.txt
var attacksText string

type tableRow struct {
	level   string
	command string
	place   string
}

// commandTable reads the tables in testdata.
func commandTable(t testing.TB) (rows []tableRow) {
	t.Helper()
	seen := map[string]string{}
	for _, file := range []struct{ name, text string }{{"commands.txt", commandsText}, {"tricky.txt", trickyText}, {"attacks.txt", attacksText}} {
		for i, line := range strings.Split(file.text, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			place := fmt.Sprintf("%s:%d", file.name, i+1)
			level, command, ok := strings.Cut(line, "\t")
			if !ok {
				t.Fatalf("%s: no tab", place)
			}
			if seen[command] != "" {
				t.Errorf("%s: %q stands in %s already", place, command, seen[command])
			}
			seen[command] = place
			command = strings.ReplaceAll(strings.ReplaceAll(command, "«»", "\n"), "«", "\n")
			rows = append(rows, tableRow{level, command, place})
		}
	}
	return rows
}

// here is where the commands of the table run.
func here() Context {
	return Context{Cwd: "/home/u/proj", Home: "/home/u", ProjectRoot: "/home/u/proj", Aliases: map[string]string{"ll": "ls -alF"}}
}

// TestCommandTable keeps the levels that were decided once: everyday reading is low, nothing dangerous is, and what only
// looks dangerous is not taken for it (T3c to T3k, H9).
func TestCommandTable(t *testing.T) {
	rows := commandTable(t)
	if len(rows) < 1200 {
		t.Errorf("got %d commands, want at least 1200", len(rows))
	}
	for _, r := range rows {
		if v := Analyze(r.command, here()); v.Level.String() != r.level {
			t.Errorf("%s: %q: got %s, want %s%s", r.place, r.command, v.Level, r.level, reasonsText(v))
		}
	}
}

var update = flag.Bool("update", false, "write testdata/reasons.txt anew")

// TestReasons keeps the main reason of every command of the table: look at the diff after -update, a reason that is not
// the one a person would give is as wrong as a level.
func TestReasons(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Effect and text of the highest reason of each command: go test ./daemon/internal/risk -run TestReasons -update\n")
	for _, r := range commandTable(t) {
		v := Analyze(r.command, here())
		var top Reason
		for _, reason := range v.Reasons {
			if reason.Level > top.Level {
				top = reason
			}
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", v.Level, top.Effect, strings.ReplaceAll(text.Visible(r.command), "\n", "«»"), top.Text)
	}
	const path = "testdata/reasons.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	got, want := strings.Split(b.String(), "\n"), strings.Split(string(text), "\n")
	if len(got) != len(want) {
		t.Errorf("got %d lines, %s has %d: run with -update and look at the diff", len(got), path, len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s:%d:\ngot  %s\nwant %s", path, i+1, got[i], want[i])
		}
	}
}

// reasonsText writes a verdict's reasons for a failure.
func reasonsText(v Verdict) string {
	var b strings.Builder
	for _, r := range v.Reasons {
		b.WriteString("\n\t\t" + r.Level.String() + " " + string(r.Effect) + ": " + r.Text)
	}
	return b.String()
}

// TestTableReads reads every line of the table of programs, and keeps its size.
func TestTableReads(t *testing.T) {
	programs := map[string]*spec{}
	for _, text := range tableTexts {
		for line := range tableLines(text) {
			if err := readLine(programs, line); err != nil {
				t.Errorf("%.100s: %v", line, err)
			}
		}
	}
	if len(programs) < 300 {
		t.Errorf("got %d programs, want at least 300", len(programs))
	}
	checkProse(t, programs)
}

var joinedWords = regexp.MustCompile(`[,;:][^\s\d]`)

// checkProse looks at what users read of programs. A line of the table that went on with another after a comma lost the
// blank between them: "publishes,or changes what was published".
func checkProse(t *testing.T, programs map[string]*spec) {
	for name, s := range programs {
		texts := []string{s.says}
		for _, o := range s.opts {
			texts = append(texts, o.says)
		}
		for _, text := range texts {
			if joinedWords.MatchString(text) || strings.Contains(text, "  ") {
				t.Errorf("%s: %q lacks a blank, or has one too many", name, text)
			}
		}
		checkProse(t, s.subs)
	}
}
