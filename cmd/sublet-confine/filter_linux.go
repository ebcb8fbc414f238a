package main

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// installFilter installs the system call filter for the calling thread. Package filter generates filterProgram and lists what it
// refuses. Each word of it is a struct sock_filter of the kernel, as it is in little-endian memory.
func installFilter() error {
	if len(filterProgram) == 0 {
		return errors.New("there is none for this architecture")
	}
	prog := unix.SockFprog{Len: uint16(len(filterProgram)), Filter: (*unix.SockFilter)(unsafe.Pointer(&filterProgram[0]))}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("install: %w", errno)
	}
	return nil
}
