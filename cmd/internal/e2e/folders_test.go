package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Where there is no folder for a daemon, the shell opens all the same. In AI mode one line says why nobody can be asked and
// what mends it, and nothing is left behind, whichever way it ends.
func TestShellWithoutFolders(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  func(*world) []string // what is different
		said string
		kill bool
	}{
		{"state cannot be made", func(w *world) []string {
			w.write(w.path("file"), "")
			return []string{"SUBLET_STATE_DIR=" + w.path("file/state")}
		}, `no daemon yet: .*file/state cannot be made: not a.*set`, false},
		{"state cannot be written", func(w *world) []string {
			if err := os.Mkdir(filepath.Join(w.state, "daemon.log"), 0o700); err != nil {
				w.t.Fatal(err)
			}
			return nil
		}, `no daemon yet: .*daemon.log: is a directory`, false},
		{"runtime open to others", func(w *world) []string {
			if err := os.Chmod(w.path("run"), 0o777); err != nil {
				w.t.Fatal(err)
			}
			return nil
		}, `no daemon yet: .*is open to others`, true},
		{"no HOME", func(*world) []string { return []string{"HOME=", "SUBLET_STATE_DIR="} }, `no daemon yet: HOME is not set`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, "", nil)
			bad := *w
			bad.env = append(slices.Clone(w.env), "TMPDIR="+w.path("tmp"))
			if err := os.Mkdir(w.path("tmp"), 0o700); err != nil {
				t.Fatal(err)
			}
			bad.env = append(bad.env, tc.env(w)...)
			term := bad.open()
			term.mode(true)
			term.see(tc.said)
			term.mode(false)
			term.run("echo still $((40+2))", `^still 42$`)
			term.atPrompt()
			if tc.kill {
				signal(syscall.SIGKILL)(term)
			} else {
				term.send("exit", enter)
			}
			if code := term.wait(); code != 0 && !tc.kill {
				t.Errorf("exit status %d, want 0", code)
			}
			w.await("the terminal to be as it was, and nothing to be left", func() bool {
				spare, err := os.ReadDir(w.path("tmp"))
				return err == nil && len(spare) == 0 && term.modes() == term.first && len(modesLeftOn(term.bytes())) == 0
			})
			if text := term.bytes(); strings.Count(text, "no daemon yet") != 1 {
				t.Errorf("it is printed more than once:\n%s", text)
			}
			if err := os.Chmod(w.path("run"), 0o700); err != nil {
				t.Fatal(err)
			}
		})
	}
}
