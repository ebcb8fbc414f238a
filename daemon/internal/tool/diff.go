package tool

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
)

// maxPreview bounds a preview in bytes.
const maxPreview = 64 << 10

// Diff returns a unified diff of a file change for the user; existed reports whether there was a file. A file below cwd is named by its path
// from there.
func Diff(cwd, path string, before, after []byte, existed bool) Preview {
	oldName, newName := diffNames(cwd, path)
	if !existed {
		oldName = "/dev/null"
	}
	if bytes.IndexByte(before, 0) >= 0 {
		return Preview{Type: "text", Content: fmt.Sprintf("replaces %s, which is binary (%d bytes)", path, len(before))}
	}
	text := string(diff.Diff(oldName, before, newName, after))
	// The library's first line, "diff old new", is not part of a unified diff.
	if _, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "diff ") {
		text = rest
	}
	if text == "" && !existed {
		text = fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName)
	}
	p := Preview{Type: "diff"}
	p.Content, _ = Bound(text, maxPreview)
	header := 2
	for line := range strings.Lines(text) {
		switch {
		case header > 0:
			header--
		case line[0] == '+':
			p.plus++
		case line[0] == '-':
			p.minus++
		}
	}
	return p
}

// diffNames returns path's names in the header of a diff, as git writes them: a/main.go and b/main.go below cwd, elsewhere the
// path itself. A name that would break the header line is quoted.
func diffNames(cwd, path string) (before, after string) {
	before, after = path, path
	if root, err := Resolve(cwd, "."); err == nil { // the links in path are resolved already
		if below, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(below) {
			before, after = "a/"+below, "b/"+below
		}
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		before, after = strconv.Quote(before), strconv.Quote(after)
	}
	return before, after
}

// changeSummary counts the lines of a diff.
func changeSummary(p Preview) string { return fmt.Sprintf("+%d -%d lines", p.plus, p.minus) }
