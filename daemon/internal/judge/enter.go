package judge

import (
	"os"
	"path/filepath"

	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/wire/visible"
)

// Entering returns v, with the reach raised to free if the command changes the user's shell into a git repository inside the project root.
// A prompt that shows git's state runs what that repository's settings name, and a command confined to the project may have written them.
// v is unchanged where root is not a project that commands are confined to, such as a home folder.
func Entering(v risk.Verdict, root, home string) risk.Verdict {
	if dir := entered(v, root); dir != "" && v.Reach == risk.ReachShell && reach.IsProject(root, home) {
		v.Reach = risk.ReachFree
		v.Reasons = append(v.Reasons, risk.Reason{Text: "a prompt that shows git's state runs what the settings of the repository in " + visible.Exact(dir) + " name", Effect: risk.RunCode, Level: risk.Low})
	}
	return v
}

// entered returns the folder in a project that a text changes into and that is, or is in, a repository other than the project's own;
// "" if there is none.
func entered(v risk.Verdict, root string) string {
	root = reach.Real(root)
	for _, c := range v.Commands {
		if len(c.Argv) < 2 || c.Cwd == "" || c.Name != "cd" && c.Name != "pushd" {
			continue
		}
		dir := c.Argv[len(c.Argv)-1]
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Cwd, dir)
		}
		for dir = reach.Real(dir); dir != root && within(root, dir); dir = filepath.Dir(dir) {
			for _, name := range []string{".git", "HEAD"} { // HEAD: one without a work tree
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
					return dir
				}
			}
		}
	}
	return ""
}
