package judge

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/daemon/internal/worktree"
)

// An agent changed the user's shell into a repository that its held command had made, and the prompt ran what that names.
func TestEnteringARepository(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{".git", "made/.git", "made/sub", "bare/HEAD", "plain/sub"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("made", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	p := Place{Cwd: root, Home: t.TempDir(), Trees: &worktree.Trees{}, Shell: func(context.Context, *risk.Context) bool { return true }}
	for text, want := range map[string]risk.Reach{
		"cd plain": risk.ReachShell, "cd plain/sub": risk.ReachShell, "cd ..": risk.ReachShell, "cd /": risk.ReachShell, "cd": risk.ReachShell, "cd plain && cd ..": risk.ReachShell,
		"cd made": risk.ReachFree, "cd ./made/sub": risk.ReachFree, "cd " + root + "/made": risk.ReachFree, "cd link": risk.ReachFree, "cd -P -- made": risk.ReachFree, "cd plain && cd ../made": risk.ReachFree,
		"pushd made": risk.ReachFree, "cd bare": risk.ReachFree,
	} {
		if v := p.Judge(t.Context(), tool.Action{Command: text}); v.Reach != want {
			t.Errorf("%s: %s, want %s: %+v", text, v.Reach, want, v.Reasons)
		}
		if v := p.Judge(t.Context(), tool.Action{Command: text, AgentShell: true}); v.Reach != risk.ReachShell { // nobody's prompt is there
			t.Errorf("%s in an agent's own shell: %s", text, v.Reach)
		}
	}
	p.Home = root // in which no command is held to project
	if v := p.Judge(t.Context(), tool.Action{Command: "cd made"}); v.Reach != risk.ReachShell {
		t.Errorf("in a home: %s", v.Reach)
	}
}
