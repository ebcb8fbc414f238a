// Package term is a terminal as a lent shell has one: the pseudo-terminal, the private marks in what it prints, a small
// screen that renders output for a model, and the bounded places where output is kept.
package term

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Size of a terminal, in cells and pixels.
type Size struct{ Cols, Rows, PixelWidth, PixelHeight int }

// Terminal is the master side of a pseudo-terminal. Its methods are safe for concurrent use; after Close they fail with
// os.ErrClosed or report nothing.
type Terminal struct {
	Name   string // path of the slave side
	master *os.File
}

// Read reads what the terminal prints. It returns an error once the last holder of the slave side is gone, and
// os.ErrDeadlineExceeded after SetReadDeadline.
func (t *Terminal) Read(p []byte) (int, error) { return t.master.Read(p) }

// Write types into the terminal. It waits while the terminal's input queue is full.
func (t *Terminal) Write(p []byte) (int, error) { return t.master.Write(p) }

// SetReadDeadline bounds reads.
func (t *Terminal) SetReadDeadline(at time.Time) error { return t.master.SetReadDeadline(at) }

// do runs f with the master's descriptor, without making it blocking, as master.Fd would.
func (t *Terminal) do(f func(fd int) error) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Resize sets the size; the foreground process group gets SIGWINCH.
func (t *Terminal) Resize(z Size) error {
	w := &unix.Winsize{Row: clamp16(z.Rows), Col: clamp16(z.Cols), Xpixel: clamp16(z.PixelWidth), Ypixel: clamp16(z.PixelHeight)}
	return t.do(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, w) })
}

// Modes returns the terminal's settings.
func (t *Terminal) Modes() (m *unix.Termios, err error) {
	err = t.do(func(fd int) (err error) {
		m, err = unix.IoctlGetTermios(fd, ioctlGetTermios)
		return err
	})
	return m, err
}

// Echoes reports whether the terminal echoes what is typed; a line editor has that off.
func (t *Terminal) Echoes() bool {
	m, err := t.Modes()
	return err == nil && m.Lflag&unix.ECHO != 0
}

// Foreground returns the foreground process group; 0 where there is none.
func (t *Terminal) Foreground() (pgid int) {
	err := t.do(func(fd int) (err error) {
		pgid, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	if err != nil {
		return 0
	}
	return pgid
}

// InputEmpty reports whether everything that was typed has been read. On Linux a worker thread passes the input on; poll waits for it
// (n_tty_poll in the kernel), so that input on its way counts.
func (t *Terminal) InputEmpty() bool {
	fd, err := unix.Open(t.Name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 0
}

// Signal makes the terminal send SIGINT, SIGQUIT or SIGTSTP to its foreground process group, as its keys do: also to processes of other
// users, and whatever the keys are set to.
func (t *Terminal) Signal(sig syscall.Signal) error {
	return t.do(func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig)) })
}

// Unread reports whether output is still to be read.
func (t *Terminal) Unread() bool {
	ready := 0
	err := t.do(func(fd int) (err error) {
		ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err
	})
	return err == nil && ready > 0
}

// Close closes the master side: the shell and its foreground group get SIGHUP. It is idempotent.
func (t *Terminal) Close() { t.master.Close() }
