package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var openat2 = unix.Openat2 // replaced by a test

// openDescriptor opens a file without following any link in its path, which a command may have put there since it was judged. Before
// Linux 5.6, and in containers that refuse the call, only the last name may not be a link: no command is held there either.
func openDescriptor(path string, flags int) (fd int, err error) {
	fd, err = openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	return fd, err
}

// inFolder calls f with another path of the file: one that leads to the same folder whatever commands do to the folders on the way.
// With create it makes folders that do not exist.
func inFolder(path string, create bool, f func(path string) error) error {
	dir := filepath.Dir(path)
	folder, err := openNoLinks(dir, unix.O_PATH|unix.O_DIRECTORY)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := inFolder(dir, true, func(path string) error { return os.Mkdir(path, 0o755) }); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		folder, err = openNoLinks(dir, unix.O_PATH|unix.O_DIRECTORY)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	err = f(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)))
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Path = path
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	}
	return err
}
