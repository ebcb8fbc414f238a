package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush discards unread input of a terminal: tcflush(3), ioctl_tty(2).
func flush(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
