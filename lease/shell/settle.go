package shell

import (
	"golang.org/x/sys/unix"
)

// settle puts the terminal back: as it was, behind a borrower's command; so that the shell reads whole lines, each of our
// own too, behind a person's. It tells whether there was something to put back.
func (s *Shell) settle(r *run, p *process) (changed bool) {
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
