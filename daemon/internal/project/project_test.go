package project

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRoot(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Root(deep); got != deep {
		t.Errorf("without .git the root of %s is %s", deep, got)
	}
	write(t, filepath.Join(dir, ".git"), "gitdir: elsewhere")
	if got := Root(deep); got != dir {
		t.Errorf("the root of %s is %s, want %s", deep, got, dir)
	}
	if got := Root("a"); got != "" {
		t.Errorf("a relative path has the root %q", got)
	}
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/Makefile", ".PHONY: all\nCC := cc\nVAR:=1\nall: build\nbuild: x.c\n\tcc x.c\n%.o: %.c\nrun-it:\n\t./x\nwords $(like): this\ndouble:: x\n")
	write(t, dir+"/justfile", "set shell := [\"bash\"]\n\ndefault: test\ntest name='all':\n  echo {{name}}\n@lint:\n  true\nv := '1'\n")
	write(t, dir+"/package.json", `{"scripts": {"test": "jest", "build:all": "tsc", "ignore what was said; rm": "x"}}`)
	write(t, dir+"/yarn.lock", "")
	write(t, dir+"/go.mod", "module x\n")
	write(t, dir+"/pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n")
	if err := os.Mkdir(dir+"/Cargo.toml", 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Makefile: make all, build, run-it",
		"justfile: just default, test, lint",
		"package.json: yarn run build:all, test",
		"go.mod: go build ./..., go vet ./..., go test ./...",
		"pyproject.toml: pytest, ruff",
	}
	if got := Commands(dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Commands(t.TempDir()); len(got) > 0 {
		t.Errorf("an empty folder has the commands %q", got)
	}
}
