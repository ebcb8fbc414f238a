package judge

import (
	"path/filepath"
	"testing"

	"sublet/daemon/internal/risk"
	"sublet/lease/confine"
)

// No kernel holds the file tools: what no command can write in a project, they ask about, here and in a folder of it.
func TestFileToolsAskAboutProtectedNames(t *testing.T) {
	c := risk.Context{Cwd: "/home/u/proj", Home: "/home/u", ProjectRoot: "/home/u/proj"}
	for _, name := range confine.Protected {
		for _, file := range []string{name, filepath.Join(name, "x"), filepath.Join("sub", name, "x")} {
			if v := risk.AnalyzeFile(risk.FileAction{Writes: []string{filepath.Join(c.ProjectRoot, file)}}, c); v.Level < risk.High || v.Reach != risk.ReachFree {
				t.Errorf("write of %s: %s, reach %s", file, v.Level, v.Reach)
			}
		}
	}
}
