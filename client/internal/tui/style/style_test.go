package style

import (
	"strings"
	"testing"
)

// Two colours at most say more than words: what is risky and what is gone.
func TestColours(t *testing.T) {
	th := New([]string{"TERM=xterm-256color"})
	if got, want := th.Level("critical"), "\x1b[1;31mcritical\x1b[m"; got != want {
		t.Errorf("critical: got %q, want %q", got, want)
	}
	plain := New([]string{"TERM=xterm-256color", "NO_COLOR=yes"})
	for _, s := range []string{plain.Level("critical"), plain.Good.Render("x")} {
		if strings.Contains(s, "\x1b[3") {
			t.Errorf("NO_COLOR: got colour in %q", s)
		}
	}
	for env, dark := range map[string]bool{"15;0": true, "0;15": false, "0;default;15": false, "12;8": true, "": true} {
		if got := New([]string{"TERM=xterm-256color", "COLORFGBG=" + env}).Dark; got != dark {
			t.Errorf("COLORFGBG=%s: got dark %v, want %v", env, got, dark)
		}
	}
}

// A terminal that has only ASCII gets it, and nothing else is touched.
func TestSpell(t *testing.T) {
	for env, want := range map[string]string{"LANG=C": "+ [x] | | done - 3s", "LANG=C.UTF-8": "✓ [✓] ▌ │ done · 3s"} {
		th := New([]string{"TERM=xterm", env})
		if got := th.Spell("✓ [✓] ▌ │ done · 3s"); got != want {
			t.Errorf("%s: got %q, want %q", env, got, want)
		}
	}
}

// An agent's name has one colour wherever it stands, and others have others; without colours it is plain. It is made safe.
func TestName(t *testing.T) {
	th := New([]string{"TERM=xterm-256color", "LANG=C.UTF-8"})
	if a, b := th.Name("codex"), th.Name("claude"); a != th.Name("codex") || strings.ReplaceAll(a, "codex", "") == strings.ReplaceAll(b, "claude", "") {
		t.Errorf("got %q and %q", a, b)
	}
	if plain := New([]string{"TERM=xterm", "NO_COLOR=1", "LANG=C.UTF-8"}); plain.Name("a\x1b[1m") != "a␛[1m" {
		t.Errorf("got %q", plain.Name("a\x1b[1m"))
	}
}
