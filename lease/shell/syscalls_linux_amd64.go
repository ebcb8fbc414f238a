package shell

import "golang.org/x/sys/unix"

// Calls that only the older architectures have.
func init() {
	for _, nr := range []int{unix.SYS_SELECT, unix.SYS_POLL, unix.SYS_EPOLL_WAIT} {
		waitCalls[nr] = true
	}
}
