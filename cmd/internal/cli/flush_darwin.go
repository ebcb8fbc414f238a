package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush discards unread input of a terminal: tcflush(3), tty(4), which takes a pointer to FREAD.
func flush(tty *os.File) { _ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, 1) }
