package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/config"
)

// TestExplain: the verdict of `sublet explain`, with its spans in bytes, for the folder that is given (section 12).
func TestExplain(t *testing.T) {
	project := t.TempDir()
	if err := os.MkdirAll(filepath.Join(project, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(project, "a", "b")
	for text, want := range map[string]string{"ls": "low", "go test ./...": "medium", "git push": "high", "rm -rf /": "critical", "": "medium", "if (": "high"} {
		if v := Explain(text, sub, config.Policy{}); v.Level != want {
			t.Errorf("Explain(%q): got %s, want %s", text, v.Level, want)
		}
	}
	v := Explain("ls && git push --force", sub, config.Policy{})
	found := false
	for _, r := range v.Reasons {
		if r.Effect == "history" && r.Span != nil && "ls && git push --force"[r.Span.Start:r.Span.End] == "--force" {
			found = true
		}
	}
	if v.Level != "critical" || !found || v.Reversible {
		t.Errorf("git push --force: got %+v, want critical, for its --force, not reversible", v)
	}
	if got := freshShell(sub, config.Policy{}).ProjectRoot; got != project {
		t.Errorf("the project of %s is %s, want %s", sub, got, project)
	}
}

// TestExplainAtHome: the home is not a project whose commands run without a question, as in the daemon.
func TestExplainAtHome(t *testing.T) {
	for _, at := range []string{".", "proj"} {
		home := t.TempDir()
		t.Setenv("HOME", home)
		if err := os.MkdirAll(filepath.Join(home, at, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := freshAction("make", freshShell(filepath.Join(home, at), config.Policy{})).Editable; got != (at == "proj") {
			t.Errorf("~/%s: editable is %v", at, got)
		}
	}
}
