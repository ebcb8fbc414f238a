package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxPackage = 5000 // lines, without tests
	maxFields  = 25   // of a struct
)

// tooLarge lists what is over these limits. An entry that is within them is an error, so that the list can only shrink.
var tooLarge = []string{
	"daemon/internal/agent.Turn",
	"daemon/internal/agent.runner",
}

// Packages and structs stay small enough for one reader.
func TestSizes(t *testing.T) {
	root := os.DirFS("../..")
	lines, over := map[string]int{}, []string{}
	fields := func(dir string, spec *ast.TypeSpec) {
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		if n := st.Fields.NumFields(); n > maxFields {
			over = append(over, dir+"."+spec.Name.Name)
			if !slices.Contains(tooLarge, dir+"."+spec.Name.Name) {
				t.Errorf("%s: struct %s has %d fields, more than %d", dir, spec.Name.Name, n, maxFields)
			}
		}
	}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		lines[dir] += bytes.Count(text, []byte{'\n'})
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				fields(dir, spec)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 10 {
		t.Fatalf("saw %d packages: found nothing to check", len(lines))
	}
	for dir, n := range lines {
		if n > maxPackage {
			over = append(over, dir)
			if !slices.Contains(tooLarge, dir) {
				t.Errorf("%s has %d lines, more than %d", dir, n, maxPackage)
			}
		}
	}
	for _, name := range tooLarge {
		if !slices.Contains(over, name) {
			t.Errorf("%s is within the limits: take it out of the list", name)
		}
	}
}
