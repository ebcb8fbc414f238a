package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestProject(t *testing.T) {
	dir := t.TempDir()
	if p, err := LoadProject(dir); err != nil || p.Path != "" {
		t.Errorf("no file: got %+v, %v, want nothing", p, err)
	}
	path := filepath.Join(dir, ProjectFile)
	text := "[policy]\nmode = \"plan\"\ndeny = [\"bash: git push *\"]\nask = [\n  \"write: db/**\",\n]\n" +
		"[[policy.rules]]\ndecision = \"deny\"\npattern = \"bash: make *\"\nmatch = [\"make x\"]\nno_match = [\"ls\"]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadProject(dir)
	if err != nil || p.Path != path || p.Mode != "plan" || !reflect.DeepEqual(p.Rules, []Rule{
		{Decision: "deny", Pattern: "bash: git push *"},
		{Decision: "ask", Pattern: "write: db/**"},
		{Decision: "deny", Pattern: "bash: make *", Match: []string{"make x"}, NoMatch: []string{"ls"}},
	}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if got, want := p.Fault("write: db/**", errors.New("bad")).Error(), path+":5:4: bad"; got != want {
		t.Errorf("fault: got %q, want %q", got, want)
	}
}

// A project's file cannot permit anything, and a bad one is never half taken.
func TestProjectOnlyTightens(t *testing.T) {
	for _, tc := range []struct{ text, place, message string }{
		{"[policy]\nallow = [\"bash: *\"]\n", ":2:1:", "policy.allow: a project's file can only tighten"},
		{"[policy]\nmode = \"full\"\n", ":2:1:", "none of plan, ask, auto"},
		{"[policy]\nmode = \"\"\n", ":2:1:", "none of plan, ask, auto"},
		{"[policy]\ndeny = \"bash: x\"\n", ":2:", ""},
		{"model = \"x/y\"\n", ":1:1:", "model: a project's file can only tighten"},
		{"\n[provider.openai]\nbase_url = \"http://evil\"\n", ":2:", "can only tighten"},
		{"[shell]\npass = [\"TOKEN\"]\n", ":1:", "can only tighten"},
		{"[mcp.x]\ncommand = \"evil\"\n", ":1:", "can only tighten"},
		{"[policy]\n[[policy.rules]]\ndecision = \"allow\"\npattern = \"bash: ls\"\n", ":4:12:", "policy.rules[0].decision: a project's file can only tighten"},
		{"[[policy.rules]]\ndecision = \"maybe\"\npattern = \"bash: ls\"\n", ":3:12:", "none of deny, ask"},
		{"[[policy.rules]]\ndecision = \"deny\"\n", ": ", "policy.rules[0].pattern: is missing"},
		{"[[policy.rules]]\ndecision = \"deny\"\npattern = \"bash: ls\"\nscope = \"always\"\n", ":4:1:", "can only tighten"},
		{"[policy\n", ":1:", ""},
		{strings.Repeat("#", maxProjectFile+1), ": ", "longer than the limit"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ProjectFile)
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := LoadProject(dir)
		if err == nil || !strings.HasPrefix(err.Error(), path+tc.place) || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%.60q: got %v, want %s…%s", tc.text, err, tc.place, tc.message)
		}
		if _, ok := errors.AsType[*Error](err); !ok || p.Path != "" {
			t.Errorf("%.60q: got %+v and a %T, want nothing and an *Error", tc.text, p, err)
		}
	}
	for name, make := range map[string]func(string) error{
		"pipe": func(p string) error { return syscall.Mkfifo(p, 0o600) }, "folder": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, ProjectFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadProject(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: got %v, want an error at once", name, err)
		}
	}
}

// While a confined command runs, a placeholder stands where the project has no file, and is gone at its end: also between the
// attempt to read it and the look at what it is.
func TestPlaceholderThatComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		path := filepath.Join(dir, ProjectFile)
		for range 2_000 {
			if err := errors.Join(os.Mkdir(path, os.ModeSticky|0o555), os.Remove(path)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() { <-done }()
	for {
		if _, err := LoadProject(dir); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
