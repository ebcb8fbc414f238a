package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxPackage = 5000 // lines, without tests
	maxFields  = 25   // of a struct
)

// Packages and structs stay small enough for one reader.
func TestSizes(t *testing.T) {
	root := os.DirFS("../..")
	lines := map[string]int{}
	fields := func(dir string, spec *ast.TypeSpec) {
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		if n := st.Fields.NumFields(); n > maxFields {
			t.Errorf("%s: struct %s has %d fields, more than %d", dir, spec.Name.Name, n, maxFields)
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
			t.Errorf("%s has %d lines, more than %d", dir, n, maxPackage)
		}
	}
}
