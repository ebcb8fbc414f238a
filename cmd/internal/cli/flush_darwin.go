package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush throws away what was typed so far: tcflush(3), tty(4), which wants a pointer to FREAD.
func flush(tty *os.File) { _ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, 1) }
