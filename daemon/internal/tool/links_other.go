//go:build !linux

package tool

import (
	"os"
	"path/filepath"
	"syscall"
)

// openNoLinks opens a file, unless it is a link.
func openNoLinks(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags|syscall.O_NOFOLLOW, 0)
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
