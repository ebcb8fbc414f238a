package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/rogpeppe/go-internal/diff"
)

// backupSuffix is appended to the name of a settings file for its backup. An empty backup marks a file that did not exist.
const backupSuffix = ".before-sublet"

// ErrNoBackup is returned by Undo where nothing shows that Connect changed the file.
var ErrNoBackup = errors.New("nothing to undo: there is no backup")

// firstThere returns the first of the files that exists, the first of all where none does.
func firstThere(paths ...string) string {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return paths[0]
}

// Change is a settings file before and after a change.
type Change struct {
	Path          string
	Before, After []byte // nil = no file
	undo          bool
}

// read returns a file's text, nil where there is none.
func read(path string) (text []byte, mode fs.FileMode, err error) {
	text, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	return text, info.Mode().Perm(), nil
}

// Connect returns the change that connecting makes in a file. It writes nothing.
func (f File) Connect() (Change, error) {
	c, err := f.change()
	if err != nil {
		return c, err
	}
	if c.After, err = f.apply(c.Before); err != nil {
		return c, fmt.Errorf("%s: %w", f.Path, err)
	}
	return c, nil
}

// Undo returns the change that gives each setting of Connect the value that it has in the backup, or none. All other settings stay
// as they are. A file that Connect made is removed if nothing else is in it. Without a backup it returns ErrNoBackup and an empty
// change.
func (f File) Undo() (Change, error) {
	c, err := f.change()
	if err != nil {
		return c, err
	}
	c.After, c.undo = c.Before, true
	old, _, err := read(c.Path + backupSuffix)
	if err != nil {
		return c, err
	}
	if old == nil {
		return c, ErrNoBackup
	}
	if c.After, err = f.takeBack(c.Before, old); err != nil {
		return c, fmt.Errorf("%s: %w", f.Path, err)
	}
	if rest := string(bytes.Join(bytes.Fields(c.After), nil)); len(old) == 0 && (rest == "" || rest == "{}") {
		c.After = nil
	}
	return c, nil
}

func (f File) change() (c Change, err error) {
	c.Path = f.Path
	if to, err := filepath.EvalSymlinks(f.Path); err == nil {
		c.Path = to // settings are often links into a repository of the user's
	}
	c.Before, _, err = read(c.Path)
	return c, err
}

// Empty reports whether there is nothing to change.
func (c Change) Empty() bool { return bytes.Equal(c.Before, c.After) }

// Diff is the change as a unified diff.
func (c Change) Diff() string {
	text := string(diff.Diff(c.Path, c.Before, c.Path, c.After))
	_, text, _ = strings.Cut(text, "\n") // the library's own first line
	return text
}

// Write replaces the whole file and keeps the old content in a backup file next to it. The first backup stays; undoing removes it.
// If the file was changed since the Change was made, Write changes nothing and returns an error.
func (c Change) Write() error {
	now, mode, err := read(c.Path)
	if err != nil {
		return err
	}
	if (now == nil) != (c.Before == nil) || !bytes.Equal(now, c.Before) {
		return fmt.Errorf("%s changed meanwhile; run it again", c.Path)
	}
	backup := c.Path + backupSuffix
	if c.undo {
		switch {
		case c.Empty():
		case c.After == nil:
			err = os.Remove(c.Path)
		default:
			err = replace(c.Path, c.After, mode)
		}
		if err != nil {
			return err
		}
		return os.Remove(backup)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return err
	}
	old := c.Before
	if old != nil && len(old) == 0 {
		old = []byte("\n") // an empty backup would have undoing remove the user's file
	}
	_, missing := os.Lstat(backup)
	if missing != nil {
		if err := replace(backup, old, mode); err != nil {
			return fmt.Errorf("keep a backup: %w", err)
		}
	}
	err = replace(c.Path, c.After, mode)
	if err != nil && missing != nil {
		err = errors.Join(err, os.Remove(backup))
	}
	return err
}

// replace puts a new file in the place of one, or of none.
func replace(path string, text []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, text, mode, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode))
}
