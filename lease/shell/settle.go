package shell

import (
	"golang.org/x/sys/unix"
)

// settle puts the terminal back: as it was, behind a borrower's command; so that the shell reads whole lines, each of our
// own too, behind a person's. It tells whether there was something to put back.
func (s *Shell) settle(r *run, p *process) (changed bool) {
	if !r.c.User {
		defer func() { changed = s.settleSize(p) || changed }()
	}
	now, err := p.modes()
	if err != nil || r.modes == nil || *now == *r.modes {
		return false
	}
	want := *r.modes
	if r.c.User {
		want = *now
		mendModes(&want, r.modes)
	}
	if want == *now {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if err := setModes(p.master, &want); err != nil {
		s.log.Warn("restore terminal modes", "error", err)
		return false
	}
	return true
}

// settleSize puts back the size that a borrower's command gave the terminal (`stty cols 200`).
func (s *Shell) settleSize(p *process) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	err := control(p.master, func(fd int) error {
		now, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		changed = err == nil && (now.Col != windowSize(s.size).Col || now.Row != windowSize(s.size).Row)
		return err
	})
	if err == nil && changed {
		err = setSize(p.master, s.size)
	}
	if err != nil {
		s.log.Warn("restore terminal size", "error", err)
		return false
	}
	return changed
}

// mendModes puts back of was what no shell without a line editor can live with: raw input, and printable characters that
// would end, stop or rub out what is typed (`stty intr x`). All else is the user's to set.
func mendModes(t, was *unix.Termios) {
	t.Iflag &^= unix.INLCR // a line would never end
	if t.Lflag&unix.ICANON == 0 {
		t.Lflag |= unix.ICANON | unix.ISIG
		t.Iflag |= unix.ICRNL
		t.Oflag |= was.Oflag & (unix.OPOST | unix.ONLCR)
		t.Cc = was.Cc
	}
	for i, c := range t.Cc {
		if c >= ' ' && c < 127 && i != unix.VMIN && i != unix.VTIME {
			t.Cc[i] = was.Cc[i]
		}
	}
}
