package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush throws away what was typed so far: tcflush(3), ioctl_tty(2).
func flush(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
