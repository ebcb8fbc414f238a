package tool

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

var errNotRegular = errors.New("not a regular file")

// folder opens files below a search's root by relative path. Compared with package os it saves a system call and an
// allocation for each file, half of the cost of reading a small one.
type folder struct {
	root string
	fd   int // -1: the root is a file
}

func openFolder(root string) (folder, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		fd = -1
	case err != nil:
		return folder{}, fmt.Errorf("open %s: %w", root, err)
	}
	return folder{root, fd}, nil
}

func (d folder) close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd) // it was only read
	}
}

// open opens one regular file; rel is "" for the root itself. It returns errNotRegular for anything else, links included.
func (d folder) open(rel string) (plainFile, error) {
	at, name := d.fd, rel
	if rel == "" {
		at, name = unix.AT_FDCWD, d.root
	}
	fd, err := again(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ELOOP) {
		return plainFile{}, errNotRegular
	}
	if err != nil {
		return plainFile{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd) // nothing was read
		return plainFile{}, errNotRegular
	}
	return plainFile{fd: fd, size: st.Size}, nil
}

type plainFile struct {
	fd   int
	size int64 // when it was opened
	read int64
}

func (f *plainFile) close() { _ = unix.Close(f.fd) } // it was read only

// fill reads until buf is full or the file ends; eof reports the latter.
func (f *plainFile) fill(buf []byte) (n int, eof bool, err error) {
	for n < len(buf) {
		k, err := again(func() (int, error) { return unix.Read(f.fd, buf[n:]) })
		if err != nil {
			return n, false, err
		}
		n += k
		f.read += int64(k)
		if k == 0 || f.read == f.size {
			return n, true, nil
		}
	}
	return n, false, nil
}

// again repeats a system call while it returns EINTR.
func again(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
