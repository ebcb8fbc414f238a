package risk

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var docRow = regexp.MustCompile("^\\| `(.*)` \\| ([a-z]+) \\| .+ \\|$")

// TestBorderlineCases judges every row of the table in docs/security.md: what users are told is what is done (H9).
func TestBorderlineCases(t *testing.T) {
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Borderline cases\n")
	if !ok {
		t.Fatal("docs/security.md has no table of borderline cases")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	c := here()
	c.Tracked = func(p string) bool { return p == "/home/u/proj/main.go" || p == "/home/u/proj/run.sh" }
	rows := 0
	for line := range strings.Lines(table) {
		m := docRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "| `") {
				t.Errorf("a row that cannot be read: %s", line)
			}
			continue
		}
		rows++
		command := strings.ReplaceAll(m[1], `\|`, "|")
		if v := Analyze(command, c); v.Level.String() != m[2] {
			t.Errorf("%q: got %s, docs/security.md says %s%s", command, v.Level, m[2], reasonsText(v))
		}
	}
	if rows < 50 {
		t.Errorf("got %d rows, want at least 50", rows)
	}
}
