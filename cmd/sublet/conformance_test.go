package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sections are how many rows each part of docs/conformance.md has.
var sections = map[byte]int{
	'A': 20, 'B': 15, 'C': 13, 'D': 12, 'E': 23, 'F': 22, 'G': 13, 'H': 13, 'I': 11, 'J': 4, 'K': 11, 'L': 33, 'M': 7, 'N': 9,
	'O': 8, 'P': 12, 'Q': 8, 'R': 4, 'T': 10,
}

var (
	rowLine  = regexp.MustCompile("(?m)^\\| ([A-T]\\d+) \\|.*\\| ((?:`[^`]+`(?:, )?)+) \\|$")
	inTicks  = regexp.MustCompile("`([^`]+)`")
	rowRange = regexp.MustCompile(`\b([A-T])(\d{1,2}) to (?:[A-T])?(\d{1,2})\b`)
)

// Each row of the documents is held by tests that name it: what docs/conformance.md says of them is so.
func TestConformance(t *testing.T) {
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string][]string{}
	for _, m := range rowLine.FindAllStringSubmatch(string(page), -1) {
		for _, test := range inTicks.FindAllStringSubmatch(m[2], -1) {
			held[m[1]] = append(held[m[1]], test[1])
		}
	}
	parsed := map[string][]*ast.File{} // by folder: its tests
	named := map[string]string{}       // by test: where it speaks of rows
	rows := 0
	for section, n := range sections {
		for i := range n {
			row := fmt.Sprintf("%c%d", section, i+1)
			rows++
			if len(held[row]) == 0 {
				t.Errorf("%s: no test holds it", row)
			}
			for _, test := range held[row] {
				if _, known := named[test]; !known {
					named[test] = speech(t, test, parsed)
				}
				if !names(named[test], row) {
					t.Errorf("%s: %s does not name it", row, test)
				}
			}
		}
	}
	if len(held) != rows {
		t.Errorf("%d rows in docs/conformance.md, want %d", len(held), rows)
	}
}

// names reports whether a text has a row's name, alone or within a range such as G1 to G4.
func names(text, row string) bool {
	if regexp.MustCompile(`(?:^|[^A-Za-z0-9+])` + row + `(?:[^A-Za-z0-9]|$)`).MatchString(text) {
		return true
	}
	n, _ := strconv.Atoi(row[1:]) // as sections has it
	for _, m := range rowRange.FindAllStringSubmatch(text, -1) {
		low, _ := strconv.Atoi(m[2]) // digits
		high, _ := strconv.Atoi(m[3])
		if m[1] == row[:1] && low <= n && n <= high {
			return true
		}
	}
	return false
}

// speech is where a test speaks of rows: a function's name, its comments, and the names of its subtests; of a file, all.
func speech(t *testing.T, test string, parsed map[string][]*ast.File) string {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(test))
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	dot := strings.LastIndexByte(test, '.')
	if dot < 0 {
		t.Errorf("%s: neither a file nor a test", test)
		return ""
	}
	folder := test[:dot]
	if _, done := parsed[folder]; !done {
		parsed[folder] = parseTests(t, filepath.Join("..", "..", filepath.FromSlash(folder)))
	}
	for _, f := range parsed[folder] {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == test[dot+1:] {
				return said(f, fn)
			}
		}
	}
	t.Errorf("%s: there is no such test", test)
	return ""
}

func parseTests(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// said is a function's name, its comments, and what it calls its subtests.
func said(f *ast.File, fn *ast.FuncDecl) string {
	from, to := fn.Pos(), fn.End()
	if fn.Doc != nil {
		from = fn.Doc.Pos()
	}
	text := strings.ReplaceAll(strings.TrimPrefix(fn.Name.Name, "Test"), "_", " ") + "\n"
	for _, group := range f.Comments {
		// A comment may stand behind the function's opening brace, on its line.
		if group.Pos() >= from && group.End() <= to {
			text += group.Text() + "\n"
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		name := ""
		switch fun := call.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok && strings.EqualFold(name, "run") && lit.Kind == token.STRING {
			text += lit.Value + "\n"
		}
		return true
	})
	return text
}
