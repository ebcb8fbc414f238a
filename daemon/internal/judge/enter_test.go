package judge

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/wire"
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
	if err := os.Symlink("made/sub", filepath.Join(root, "deep")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/cwd/made", filepath.Join(root, "proc")); err != nil { // the daemon's own folder is another one
		t.Fatal(err)
	}
	cdpath := ""
	p := Place{Cwd: root, Home: t.TempDir()}
	facts := func(_ context.Context, c *risk.Context) bool {
		c.Env = map[string]string{"OLDPWD": filepath.Join(root, "plain"), "CDPATH": cdpath}
		return true
	}
	for text, want := range map[string]risk.Reach{
		"cd plain": risk.ReachShell, "cd plain/sub": risk.ReachShell, "cd ..": risk.ReachShell, "cd /": risk.ReachShell, "cd": risk.ReachShell, "cd plain && cd ..": risk.ReachShell,
		"cd made": risk.ReachFree, "cd ./made/sub": risk.ReachFree, "cd " + root + "/made": risk.ReachFree, "cd link": risk.ReachFree, "cd -P -- made": risk.ReachFree, "cd plain && cd ../made": risk.ReachFree,
		"cd /proc/self/cwd/made": risk.ReachFree, "cd proc": risk.ReachFree, "cd /dev/fd/../cwd/made": risk.ReachFree,
		"pushd made": risk.ReachFree, "cd bare": risk.ReachFree, "cd mad*": risk.ReachFree, "cd plain made": risk.ReachFree, "cd -P deep/..": risk.ReachFree,
		"cd -": risk.ReachFree, "OLDPWD=made; cd -": risk.ReachFree, "cd elsewhere": risk.ReachFree, "cd plain && cd -": risk.ReachFree, "popd": risk.ReachFree, "pushd": risk.ReachFree, "cd -2": risk.ReachFree,
	} {
		if v := p.Judge(t.Context(), tool.Action{Command: text, Facts: facts}); v.Reach != want {
			t.Errorf("%s: %s, want %s: %+v", text, v.Reach, want, v.Reasons)
		}
		if v := p.Judge(t.Context(), tool.Action{Command: text, AgentShell: true, Facts: facts}); v.Reach != risk.ReachShell { // nobody's prompt is there
			t.Errorf("%s in an agent's own shell: %s", text, v.Reach)
		}
	}
	cdpath = "/usr:made"
	for text, want := range map[string]risk.Reach{"cd sub": risk.ReachFree, "cd ./sub": risk.ReachShell, "cd plain": risk.ReachFree} {
		if v := p.Judge(t.Context(), tool.Action{Command: text, Facts: facts}); v.Reach != want {
			t.Errorf("%s with CDPATH %s: %s, want %s", text, cdpath, v.Reach, want)
		}
	}
	cdpath = ""
	// A command that ran while the shell entered a folder made a repository there then.
	p.Jobs = []string{t.TempDir()} // in another project
	if v := p.Judge(t.Context(), tool.Action{Command: "cd plain/sub", Facts: facts}); v.Reach != risk.ReachShell {
		t.Errorf("with a job elsewhere: %s", v.Reach)
	}
	p.Jobs = nil
	placeholder := filepath.Join(root, ".envrc")
	open := []string{root + "/plain"}
	for name, change := range map[string][2]func(){
		"a job":               {func() { p.Jobs = []string{root} }, func() { p.Jobs = []string{t.TempDir()} }},
		"a command":           {func() { _ = os.Mkdir(placeholder, 0o555); _ = os.Chmod(placeholder, os.ModeSticky|0o555) }, func() { _ = os.Remove(placeholder) }},
		"a folder for writes": {func() { p.Settings.Project.Write = open }, func() { p.Settings.Project.Write = nil }},
		"a server's folder":   {func() { p.ServerWrite = open }, func() { p.ServerWrite = nil }},
	} {
		change[0]()
		if v := p.Judge(t.Context(), tool.Action{Command: "cd plain/sub", Facts: facts}); v.Reach != risk.ReachFree {
			t.Errorf("with %s: %s", name, v.Reach)
		}
		if v := p.Judge(t.Context(), tool.Action{Command: "cd " + root, Facts: facts}); v.Reach != risk.ReachShell {
			t.Errorf("to the project's folder, with %s: %s", name, v.Reach)
		}
		change[1]()
	}
	// What a command made in a build cache or in another project was entered unasked.
	p.Home = root
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "repo/.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, ".bashrc"), filepath.Join(root, "page2")); err != nil {
		t.Fatal(err)
	}
	allow := []wire.Rule{{Decision: policy.Allow, Pattern: "bash: git fetch *"}, {Decision: policy.Allow, Pattern: "bash: cd *"}, {Decision: policy.Allow, Pattern: "bash: curl *"}}
	for text, want := range map[string]string{
		"cd " + other + "/repo":                      policy.Allow, // "always" to the question about it
		"cd " + root + "/made && git fetch":          policy.Ask,   // git runs what the settings of made name
		"cd " + other + "/repo && git fetch -q":      policy.Allow,
		"cd " + other + "/none && git fetch":         policy.Allow,
		"cd mad? && git fetch":                       policy.Ask,
		"cd " + other + "/repo/../repo && git fetch": policy.Ask,
		"git fetch":                         policy.Allow,
		"curl -so page https://x.example":   policy.Allow,
		"curl -so page2 https://x.example":  policy.Ask, // a link to a file in the home, or to git's hooks
		"curl -so deep/p https://x.example": policy.Ask,
		"git fetch; cat page":               policy.Allow,
		"git fetch; cat page2":              policy.Ask,
		"git fetch; cat < page*":            policy.Ask,
	} {
		p.Cwd, p.Home = root, filepath.Join(other, "home")
		v := p.Judge(t.Context(), tool.Action{Command: text, Facts: facts})
		if d := (policy.Policy{Rules: allow}).Decide(v, policy.Action{Tool: "bash", Command: text, Cwd: root, Reach: v.Reach}); d.Outcome != want {
			t.Errorf("%s: %s (%s), want %s", text, d.Outcome, d.Why, want)
		}
	}
	p.Home = root
	for _, cwd := range []string{root, other, "/"} {
		p.Cwd = cwd
		if v := p.Judge(t.Context(), tool.Action{Command: "cd " + root + "/made/sub", Facts: facts}); v.Reach != risk.ReachFree {
			t.Errorf("from %s: %s", cwd, v.Reach)
		}
		if v := p.Judge(t.Context(), tool.Action{Command: "cd " + other, Facts: facts}); v.Reach != risk.ReachShell {
			t.Errorf("to no repository, from %s: %s", cwd, v.Reach)
		}
	}
}
