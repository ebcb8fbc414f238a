package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// coldCopy copies a program to where nobody else runs it, so that it can be made cold.
func coldCopy(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close()) // what is not on disk cannot be dropped
}

// chill drops a program from the page cache. It waits a little for a process of it that is just ending, and fails where
// the kernel keeps the file, as on a file system in memory.
func chill(path string) error {
	var err error
	for range 50 {
		if err = drop(path); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func drop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop %s from the page cache: %w", path, err)
	}
	view, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(view)
	pages := make([]byte, (len(view)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&view[0])), uintptr(len(view)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		return fmt.Errorf("mincore: %w", errno)
	}
	warm := 0
	for _, p := range pages {
		warm += int(p & 1)
	}
	if warm > len(pages)/20 {
		return fmt.Errorf("%d of %d pages of %s are still in the page cache: is its folder in memory?", warm, len(pages), path)
	}
	return nil
}
