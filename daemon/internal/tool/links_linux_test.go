package tool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Before Linux 5.6, and in containers that refuse the call openat2, the file tools failed.
func TestFileToolsWithoutOpenat2(t *testing.T) {
	t.Cleanup(func() { openat2 = unix.Openat2 })
	for _, errno := range []error{unix.ENOSYS, unix.EPERM} {
		openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, errno }
		env := newEnv(t)
		mustDo(t, Write(), env, m{"path": "d/sub/f", "content": "old"})
		mustDo(t, Edit(), env, m{"path": "d/sub/f", "old": "old", "new": "new"})
		if got := mustDo(t, Read(), env, m{"path": "d/sub/f"}).Content; !strings.Contains(got, "new") {
			t.Errorf("read %q", got)
		}
		if err := os.Symlink("f", filepath.Join(env.Cwd, "d/sub/link")); err != nil {
			t.Fatal(err)
		}
		if _, err := openNoLinks(filepath.Join(env.Cwd, "d/sub/link"), os.O_RDONLY); !errors.Is(err, unix.ELOOP) {
			t.Errorf("a link: got %v", err)
		}
	}
}

// A command that is confined to the project can replace a folder by a link that leads out, after a path was judged or a change was made.
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
