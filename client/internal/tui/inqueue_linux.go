package tui

import "golang.org/x/sys/unix"

// unread is the number of bytes that wait in a terminal's input queue.
func unread(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
