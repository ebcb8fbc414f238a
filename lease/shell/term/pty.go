package term

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open opens a pseudo-terminal. The caller closes slave once a child has it. modes are the terminal's first settings, nil = sane
// defaults; raw leaves line feeds as they are on output. The master is a duplicate, non-blocking and known to the runtime's
// poller: the one that creack/pty returns ignores deadlines, and closing it does not wake a reader.
func Open(size Size, modes *unix.Termios, raw bool) (t *Terminal, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	defer m.Close()
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		slave.Close()
		return nil, nil, fmt.Errorf("duplicate the terminal: %w", err)
	}
	err = unix.SetNonblock(fd, true) // before NewFile, which asks for it
	t = &Terminal{Name: slave.Name(), master: os.NewFile(uintptr(fd), "pty")}
	if err == nil {
		err = setUp(t.master, slave, size, modes, raw)
	}
	if err != nil {
		t.Close()
		slave.Close()
		return nil, nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return t, slave, nil
}

func setUp(master, slave *os.File, size Size, modes *unix.Termios, private bool) error {
	var t unix.Termios
	if modes != nil {
		t = *modes // saved by the caller before its own terminal went raw
	} else {
		got, err := getModes(slave)
		if err != nil {
			return err
		}
		t = *got
		t.Iflag |= unix.ICRNL | unix.IXON | unix.IUTF8
	}
	t.Oflag |= unix.OPOST | unix.ONLCR
	t.Lflag |= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	if private {
		t.Oflag &^= unix.ONLCR // 4 to 17 times faster on short lines
	}
	if err := control(slave, func(fd int) error { return unix.IoctlSetTermios(fd, ioctlSetTermios, &t) }); err != nil {
		return err
	}
	return control(master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, windowSize(size)) })
}

func windowSize(s Size) *unix.Winsize {
	if s.Cols <= 0 || s.Rows <= 0 {
		s.Cols, s.Rows = 80, 24
	}
	return &unix.Winsize{Row: clamp16(s.Rows), Col: clamp16(s.Cols), Xpixel: clamp16(s.PixelWidth), Ypixel: clamp16(s.PixelHeight)}
}

func clamp16(n int) uint16 { return uint16(max(0, min(n, 1<<16-1))) }

func getModes(f *os.File) (t *unix.Termios, err error) {
	err = control(f, func(fd int) (err error) {
		t, err = unix.IoctlGetTermios(fd, ioctlGetTermios)
		return err
	})
	return t, err
}

// control runs f with the descriptor of file without making it blocking, as file.Fd would.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}
