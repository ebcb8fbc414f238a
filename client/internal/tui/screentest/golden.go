package screentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Sizes are a large window, the classic one, and a very small one.
var Sizes = []struct {
	Name string
	W, H int
}{{"120x40", 120, 40}, {"80x24", 80, 24}, {"34x10", 34, 10}}

// Theme returns the theme of a terminal with colours.
func Theme() *style.Theme {
	th := style.New([]string{"TERM=xterm-256color", "LANG=C.UTF-8"})
	return &th
}

// Golden compares lines, without colours, with testdata/golden/NAME.txt, and reports lines that are wider than w, more than h (0:
// any number) or more than one.
func Golden(t *testing.T, name string, lines []string, w, h int) {
	t.Helper()
	if h > 0 && len(lines) > h {
		t.Errorf("%s: got %d lines, want at most %d", name, len(lines), h)
	}
	for _, l := range lines {
		if cells.Width(l) > w || strings.ContainsAny(l, "\n\r") {
			t.Errorf("%s: %q is wider than %d cells, or more than one line", name, ansi.Strip(l), w)
		}
	}
	got := ansi.Strip(strings.Join(lines, "\n")) + "\n"
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with -update and look at what it wrote", err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
