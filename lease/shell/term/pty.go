package term

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open opens a pseudo-terminal. The caller closes slave once a child has it. modes are the terminal's first settings, nil = sane
// defaults. With bareLF, line feeds are output as they are, not as carriage return and line feed. The master is a duplicate,
// non-blocking and known to the runtime's poller: the one that creack/pty returns ignores deadlines, and closing it does not wake a
// reader.
func Open(size Size, modes *unix.Termios, bareLF bool) (t *Terminal, slave *os.File, err error) {
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
		err = t.setUp(size, modes, bareLF)
	}
	if err != nil {
		t.Close()
		slave.Close()
		return nil, nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return t, slave, nil
}

func (t *Terminal) setUp(size Size, modes *unix.Termios, bareLF bool) error {
	var m unix.Termios
	if modes != nil {
		m = *modes // saved by the caller before its own terminal went raw
	} else {
		got, err := t.Modes()
		if err != nil {
			return err
		}
		m = *got
		m.Iflag |= unix.ICRNL | unix.IXON | unix.IUTF8
	}
	// These must be on, also if the caller's terminal had them off.
	m.Oflag |= unix.OPOST | unix.ONLCR
	m.Lflag |= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	if bareLF {
		// With ONLCR, output in short lines takes 4 to 17 times as long (cmd/internal/bench, O3). The type screen, which renders it,
		// returns the carriage at each line feed.
		m.Oflag &^= unix.ONLCR
	}
	if err := t.do(func(fd int) error { return unix.IoctlSetTermios(fd, ioctlSetTermios, &m) }); err != nil {
		return err
	}
	return t.Resize(size)
}

func clamp16(n int) uint16 { return uint16(max(0, min(n, 1<<16-1))) }
