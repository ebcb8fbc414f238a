package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"sublet/daemon/internal/project"
	"sublet/daemon/internal/risk/secret"
)

const (
	maxLinks = 40       // as the kernel's own limit on one path: path_resolution(7)
	maxFile  = 64 << 20 // bytes of a file that is read whole: for write, edit and digests
)

// Resolve makes path absolute against cwd, cleans it, and resolves symbolic links as far as the path exists, dangling ones
// too, so that the policy judges the file that would be accessed.
func Resolve(cwd, path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("path: %w", err)
		}
		path = filepath.Join(home, path[1:])
	}
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(cwd) {
			return "", fmt.Errorf("path: %q is relative and the working directory is unknown", path)
		}
		path = filepath.Join(cwd, path)
	}
	todo := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	done := "/"
	for links := 0; len(todo) > 0; {
		next := filepath.Join(done, todo[0])
		todo = todo[1:]
		target, err := os.Readlink(next)
		if err != nil { // not a link, or it does not exist
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("path: %s: %w", path, syscall.ELOOP)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(done, target)
		}
		todo = append(strings.Split(strings.TrimPrefix(filepath.Clean(target), "/"), "/"), todo...)
		done = "/"
	}
	return done, nil
}

// located is the file or folder that a call works on.
type located struct {
	path  string   // without links
	names []string // what is judged: path, and before it the path in the home folder if a link leads from there to path
}

// find resolves a path. If a link leads from the home folder out of it, names has the path in the home folder too, which shows what the
// file is for, such as the start of a shell. It has not for a file of cwd's project, unless the path in the home begins with a dot.
func (l *located) find(cwd, path string) (err error) {
	if l.path, err = Resolve(cwd, path); err != nil {
		return err
	}
	l.names = []string{l.path}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // without one no path is in it
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[1:])
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	real, err := Resolve(home, ".")
	if err != nil {
		return err
	}
	for _, dir := range []string{home, real} {
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) || filepath.Join(real, rel) == l.path {
			continue
		}
		if root := project.Root(cwd); rel[0] == '.' || root == "" || root == dir || !secret.Under(filepath.Clean(path), root) {
			l.names = []string{filepath.Join(real, rel), l.path}
		}
	}
	return nil
}

// OpenRegular opens a regular file for reading; it does not block on a pipe. The caller closes it.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	return regular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// openResolved is OpenRegular for a path from Resolve: it fails if a command has put a link into the path since.
func openResolved(path string) (*os.File, fs.FileInfo, error) {
	return regular(openNoLinks(path, os.O_RDONLY|syscall.O_NONBLOCK))
}

// openNoLinks is openDescriptor for an *os.File.
func openNoLinks(path string, flags int) (*os.File, error) {
	fd, err := openDescriptor(path, flags)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// regular passes on the result of opening a file, and closes one that is not regular, which is an error.
func regular(f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is %s, not a file", f.Name(), kindOf(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "something else"
}

// readWhole reads a regular file of at most maxFile bytes.
func readWhole(path string) ([]byte, fs.FileInfo, error) {
	f, info, err := openResolved(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(content) > maxFile {
		return nil, nil, fmt.Errorf("%s: is larger than %d MiB", path, maxFile>>20)
	}
	return content, info, nil
}

// fileState returns the digest of a file, "" if there is none.
func fileState(path string) (digest string, content []byte, err error) {
	content, _, err = readWhole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	return Digest(content), content, nil
}

// replaceFile replaces the content of path atomically: a reader sees the old file or the new one. It keeps the permissions; a new
// file has those of the umask. A file with several hard links is written in place instead, to keep the links.
func replaceFile(path string, content []byte) error {
	if info, err := os.Lstat(path); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			return writeInPlace(path, content)
		}
	}
	return renameio.WriteFile(path, content, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

func writeInPlace(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
