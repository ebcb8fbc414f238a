package hub

import (
	"errors"
	"syscall"

	"sublet/lease/procstat"
)

// owner is the process that lends a shell, whichever of its connections it is on. The client's own word for its pid is not
// enough: it is one of the client's namespace, and pids are used again.
type owner struct {
	says    int   // the pid by the client's own word
	pid     int   // as the kernel tells of the connection's other end; 0 where it does not
	started int64 // when that process was, in clock ticks since boot; 0 where there is no /proc
}

// ownerOf names the process at the other end of a connection.
func ownerOf(says, pid int) owner {
	o := owner{says: says, pid: pid}
	if st, err := procstat.Read(pid); err == nil {
		o.started = st.Start
	}
	return o
}

// gone reports whether the process has ended, so that it cannot come back. It is false where the kernel did not tell which
// process it is.
func (o owner) gone() bool {
	if o.pid <= 0 {
		return false
	}
	if st, err := procstat.Read(o.pid); err == nil {
		return st.Start != o.started || st.State == 'Z' || st.State == 'X'
	}
	return errors.Is(syscall.Kill(o.pid, 0), syscall.ESRCH)
}

// descends reports whether process pid has ancestor above it. Where that cannot be read (no /proc) it is false, and the
// queue's bound answers instead.
func descends(pid, ancestor int) bool {
	below, err := procstat.Descends(pid, ancestor)
	return below && err == nil
}
