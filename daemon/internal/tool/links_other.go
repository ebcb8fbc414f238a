//go:build !linux

package tool

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openDescriptor opens a file, unless it is a link.
func openDescriptor(path string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// inFolder calls f with the path of a file. With create it makes folders that do not exist.
func inFolder(path string, create bool, f func(path string) error) error {
	if create {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}
	return f(path)
}
