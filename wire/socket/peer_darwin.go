package socket

import "golang.org/x/sys/unix"

// credentials reads LOCAL_PEERCRED and LOCAL_PEERPID: unix(4).
func credentials(fd int) (uid, pid int, err error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return int(c.Uid), pid, err
}
