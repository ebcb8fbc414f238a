//go:build darwin || freebsd || netbsd || openbsd

package client

import (
	"os"

	"golang.org/x/sys/unix"
)

func getTermios(f *os.File) (*unix.Termios, error) {
	return unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
}
