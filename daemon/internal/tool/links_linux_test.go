package tool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A command that is held to the project can replace a folder by a link that leads out, after a path was judged or a change was made.
func TestFoldersReplacedByLinks(t *testing.T) {
	env := undoable(t)
	outside := t.TempDir()
	put(t, outside, "f", "new")
	put(t, env.Cwd, "d/f", "old")
	judged := located{path: filepath.Join(env.Cwd, "d/f")}
	made := located{path: filepath.Join(env.Cwd, "d/sub/made")}
	mustDo(t, Write(), env, m{"path": "d/f", "content": "new"})
	if err := errors.Join(os.Rename(filepath.Join(env.Cwd, "d"), filepath.Join(env.Cwd, "e")), os.Symlink(outside, filepath.Join(env.Cwd, "d"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openResolved(judged.path); err == nil {
		t.Error("a file outside can be read")
	}
	evil := func([]byte) ([]byte, error) { return []byte("evil"), nil }
	for file, digest := range map[*located]string{&judged: Digest([]byte("new")), &made: ""} {
		if _, _, err := env.replace(t.Context(), *file, digest, evil); err == nil {
			t.Errorf("%s was written outside", file.path)
		}
	}
	if err := inFolder(made.path, true, func(string) error { return nil }); err == nil {
		t.Error("a folder was made outside")
	}
	_, _, err := env.Files.Undo(t.Context())
	wantErr(t, err, "stays as it is")
	if got := slurp(t, filepath.Join(outside, "f")); got != "new" {
		t.Errorf("the file outside is %q now", got)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
		t.Errorf("outside are %v, %v", list, err)
	}
}
