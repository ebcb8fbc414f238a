package hub

import (
	"os"
	"strconv"
	"strings"
)

// owner is the process that lends a shell, whichever of its connections it is on. The client's own word for its pid is not
// enough: it is one of the client's namespace, and pids are used again.
type owner struct {
	says    int    // the pid by the client's own word
	pid     int    // as the kernel tells of the connection's other end; 0 where it does not
	started string // of that process, in the kernel's words; "" where there is no /proc
}

// ownerOf names the process at the other end of a connection.
func ownerOf(says, pid int) owner {
	o := owner{says: says, pid: pid}
	if fields := procStat(pid); len(fields) > startTime {
		o.started = fields[startTime]
	}
	return o
}

// Of a process's stat, counted from behind its name: proc_pid_stat(5) counts them from 3 on.
const (
	parent    = 4 - 3
	startTime = 22 - 3
)

// procStat reads a process's stat from behind its name; nothing where that cannot be read.
func procStat(pid int) []string {
	if pid <= 0 {
		return nil
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// "pid (name) state ppid …", where the name may hold anything.
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}

// descends reports whether process pid has ancestor above it. Where that cannot be read (no /proc) it is false, and the
// queue's bound answers instead.
func descends(pid, ancestor int) bool {
	for range 64 {
		if pid == ancestor && pid > 0 {
			return true
		}
		fields := procStat(pid)
		if pid <= 1 || len(fields) <= parent {
			return false
		}
		var err error
		if pid, err = strconv.Atoi(fields[parent]); err != nil {
			return false
		}
	}
	return false
}
