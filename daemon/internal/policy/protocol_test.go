package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/risk"
)

// The patterns that PROTOCOL.md shows are patterns, of every kind there is.
func TestProtocolHasThePatterns(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "wire", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Patterns\n")
	section, _, _ = strings.Cut(section, "\n### ")
	_, examples, _ := strings.Cut(section, "For example:\n")
	var kinds []string
	for line := range strings.Lines(examples) {
		pattern, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if !ok {
			continue
		}
		r, err := parseRule(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		if strings.Contains(pattern, "[high, in /srv/app]") && (r.level != risk.High || r.dir != "/srv/app" || len(r.alts) != 2) {
			t.Errorf("%q: got level %v, folder %q, %d alternatives", pattern, r.level, r.dir, len(r.alts))
		}
		kinds = append(kinds, r.kind)
	}
	slices.Sort(kinds)
	if want := []string{"bash", "effect", "fetch", "reach", "read", "tool", "write"}; !slices.Equal(slices.Compact(kinds), want) {
		t.Errorf("examples of %v, want each of %v", kinds, want)
	}
	for _, c := range []string{"|", "&", "<", ">", "(", ")", "`", "$", "\r", "\n"} { // those that are not plain
		if _, err := parseRule("bash: a" + c + "b"); err == nil {
			t.Errorf("%q is plain in a word", c)
		}
	}
}
