package procs

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxWatched bounds how many descriptors of one call are looked at.
const maxWatched = 1024

// polled, selected and epolled report whether the system call c, in which a thread of process pid is blocked, waits for input
// on a descriptor for which isTerminal reports true. waitCalls has them by system call.

// polled reads poll's array of pollfd: args[0] is its address, args[1] its length.
func polled(pid int, c blocked, isTerminal func(fd uint64) bool) bool {
	const size = 8
	b := memoryOf(pid, c.args[0], size*min(c.args[1], maxWatched))
	for ; len(b) >= size; b = b[size:] {
		if fd := int32(binary.NativeEndian.Uint32(b)); fd >= 0 && binary.NativeEndian.Uint16(b[4:])&unix.POLLIN != 0 && isTerminal(uint64(fd)) {
			return true
		}
	}
	return false
}

// selected reads select's set of descriptors to read: args[0] is the number of bits, args[1] the address of the set, in words
// of 64 bits.
func selected(pid int, c blocked, isTerminal func(fd uint64) bool) bool {
	n := min(c.args[0], maxWatched)
	b := memoryOf(pid, c.args[1], (n+63)/64*8)
	for fd := range n {
		if word := fd / 64 * 8; word+8 <= uint64(len(b)) && binary.NativeEndian.Uint64(b[word:])&(1<<(fd%64)) != 0 && isTerminal(fd) {
			return true
		}
	}
	return false
}

// epolled reads what the epoll descriptor args[0] watches (proc(5), /proc/PID/fdinfo).
func epolled(pid int, c blocked, isTerminal func(fd uint64) bool) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/fdinfo/" + strconv.FormatUint(c.args[0], 10))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "tfd:" || f[2] != "events:" {
			continue
		}
		fd, err := strconv.ParseUint(f[1], 10, 64)
		events, err2 := strconv.ParseUint(f[3], 16, 64)
		if err == nil && err2 == nil && events&unix.EPOLLIN != 0 && isTerminal(fd) {
			return true
		}
	}
	return false
}

// memoryOf reads a process's memory; the result is empty if that is not allowed or nothing is mapped there.
func memoryOf(pid int, at, size uint64) []byte {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, int64(at)) // n < size at the end of the mapping
	return b[:n]
}
