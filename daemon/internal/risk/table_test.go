package risk

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
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
// looks dangerous is not taken for it (H9).
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

// reasonsText writes a verdict's reasons for a failure.
func reasonsText(v Verdict) string {
	var b strings.Builder
	for _, r := range v.Reasons {
		b.WriteString("\n\t\t" + r.Level.String() + " " + string(r.Effect) + ": " + r.Text)
	}
	return b.String()
}
