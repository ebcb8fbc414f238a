package risk

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/commands.txt
var commandsText string

type tableRow struct {
	level   string
	command string
	line    int
}

// commandTable reads testdata/commands.txt.
func commandTable(t testing.TB) (rows []tableRow) {
	t.Helper()
	for i, line := range strings.Split(commandsText, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		level, command, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("commands.txt:%d: no tab", i+1)
		}
		rows = append(rows, tableRow{level, strings.ReplaceAll(command, "«»", "\n"), i + 1})
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
	if len(rows) < 600 {
		t.Errorf("got %d commands, want at least 600", len(rows))
	}
	for _, r := range rows {
		if v := Analyze(r.command, here()); v.Level.String() != r.level {
			t.Errorf("commands.txt:%d: %q: got %s, want %s%s", r.line, r.command, v.Level, r.level, reasonsText(v))
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
}
