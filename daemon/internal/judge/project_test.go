package judge

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/policy"
)

// Every file from the folder up to home counts, by either way through a link; none above home.
func TestTightenLooksUpwards(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, deep := filepath.Join(top, "home"), filepath.Join(top, "home", "p", "a [1]", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{
		top: "mode = \"plan\"", home: "ask = [\"read: ~/x\"]", filepath.Join(home, "p"): "mode = \"auto\"", filepath.Dir(deep): "deny = [\"write[high]: ./db/**\"]",
	} {
		if err := os.WriteFile(filepath.Join(dir, config.ProjectFile), []byte("[policy]\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var p Projects
	for range 2 { // the second time nothing is read
		got := p.Tighten(home, deep, deep, "", "relative")
		var patterns []string
		for _, r := range got.Rules {
			patterns = append(patterns, r.Pattern)
		}
		want := []string{"write[high]: " + home + `/p/a \[1\]/db/**`, "read: ~/x"}
		if got.mode != "auto" || len(got.bad) != 0 || !slices.Equal(patterns, want) {
			t.Errorf("got %s %q %v, want auto %q", got.mode, patterns, got.bad, want)
		}
		for _, pattern := range patterns {
			if err := policy.ParseRule(pattern); err != nil {
				t.Error(err)
			}
		}
	}
	if got := p.Tighten(home, link); got.mode != "plan" || len(got.Rules) != 2 {
		t.Errorf("through a link: got %s and %d rules, want those of both ways", got.mode, len(got.Rules))
	}
	file := filepath.Join(deep, config.ProjectFile)
	if err := os.Symlink("nowhere", file); err != nil {
		t.Fatal(err)
	}
	if got := p.Tighten(home, deep); len(got.bad) != 1 {
		t.Errorf("a link that leads nowhere: got %v, want a fault", got.bad)
	}
}

func TestStricter(t *testing.T) {
	for _, tt := range []struct{ a, b, want policy.Mode }{
		{"", "", ""}, {"", "auto", "auto"}, {"plan", "", "plan"}, {"full", "ask", "ask"}, {"plan", "auto", "plan"}, {"auto", "auto", "auto"}, {"ask", "odd", "odd"},
	} {
		for _, got := range []policy.Mode{Stricter(tt.a, tt.b), Stricter(tt.b, tt.a)} {
			if got != tt.want {
				t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, got, tt.want)
			}
		}
	}
}
