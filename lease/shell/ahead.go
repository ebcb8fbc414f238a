package shell

import (
	"bytes"
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// What is typed while a command runs, and what the command does not read, would be the shell's next line: it would run
// outside of all bookkeeping. So the first key that is typed lays the flag w for the prompt hook, which then stands still
// until what is left was taken from the terminal. Commands during which nobody types cost nothing.

const (
	// strayMax bounds what is kept of keys that came when no command ran, in bytes: as much as a terminal's own queue
	// holds (N_TTY_BUF_SIZE).
	strayMax = 4 << 10
	// standWithin is how long the shell may take, after the end of a command, to come to where it stands still, and standRounds,
	// how often it may where it is seen that it does not wait for a line yet. Only the user's own prompt hooks lie between.
	standWithin = 2 * time.Second
	standRounds = 30
)

// Write passes keyboard bytes to the program that has the terminal. It is not for commands: use Run. What comes when the
// command has ended already belongs to its Result.Unread, or to the next one's.
func (s *Shell) Write(b []byte) (int, error) {
	s.keys.Lock() // one after the other; the keyboard is one
	defer s.keys.Unlock()
	if bytes.ContainsAny(b, "\x03\x1a\x1c") {
		s.shake()
	}
	for {
		s.mu.Lock()
		p, r := s.proc, s.run
		switch {
		case s.closed || s.gone || p == nil:
			s.mu.Unlock()
			return 0, ErrClosed
		case r == nil && p.ready: // there is no program
			s.stray = append(s.stray, b[:min(len(b), strayMax-len(s.stray))]...)
			s.mu.Unlock()
			return len(b), nil
		case r == nil || !r.hasBegun(): // what a start-up file asks; a line that bash finds incomplete
			if r != nil && bytes.ContainsAny(b, "\x03\x1c") {
				r.dropped = true
			}
			s.mu.Unlock()
			return p.write(b)
		case r.ended:
			at := bytes.LastIndexAny(b, "\x03\x1a\x1c")
			if !r.watched || r.taken || at < 0 {
				r.unread = append(r.unread, b...)
				s.mu.Unlock()
				return len(b), nil
			}
			// The user's prompt hooks run: the signal is for them, and what was typed before it goes, as in a terminal.
			r.unread = bytes.Clone(b[at+1:])
			s.mu.Unlock()
			_, err := p.write(b[at : at+1])
			return len(b), err
		case !r.watched:
			r.watched = true
			err := s.arrangeLocked(s.flags + "w")
			s.mu.Unlock()
			if err != nil {
				return 0, err
			}
			// Had the shell looked for the flag already, it has told the end before that.
			s.takeRecords(p)
			continue
		}
		r.writing = true
		r.noteSecret(p, b)
		r.zero = r.zero || bytes.IndexByte(b, 0) >= 0
		s.mu.Unlock()
		n, err := p.write(b)
		s.mu.Lock()
		r.writing = false
		s.mu.Unlock()
		return n, err
	}
}

// noteSecret notes whether what is typed may be, or stand behind, a password that nobody has read. One that was ended by Enter
// is read once echo is on again and no whole line is left: what is typed ahead of what runs behind it is none.
func (r *run) noteSecret(p *process, b []byte) {
	switch {
	case p.hides(r.modes):
		r.secret, r.entered = true, bytes.ContainsAny(b[max(0, len(b)-1):], "\r\n")
	case r.secret && r.entered && inputEmpty(p.tty):
		r.secret = false
	}
}

// onWait notes that the shell stands still.
func (s *Shell) onWait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	if r == nil {
		s.goOn() // the command was given up
		return
	}
	if !r.ended { // its end did not reach us
		r.ended = true
		r.end <- endRecord{nonce: r.nonce, status: r.status}
	}
	select {
	case r.stands <- struct{}{}:
	default:
	}
}

// takeAhead takes what was typed while the command ran and what nobody read, and lets the shell go on.
func (s *Shell) takeAhead(r *run, p *process) {
	s.mu.Lock()
	watched := r.watched
	s.mu.Unlock()
	if !watched {
		return
	}
	stands := s.standsStill(r, p)
	s.mu.Lock()
	r.taken = true
	s.mu.Unlock()
	var left []byte
	for more := stands; more; {
		b, err := takeInput(p.tty, r.zero)
		if err != nil {
			s.log.Warn("take what was typed ahead", "error", err)
		}
		left = append(left, b...)
		s.mu.Lock()
		more = r.writing || len(b) > 0
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.unread = append(left, r.unread...) // what came since the command's end was typed last
	if err := s.arrangeLocked(dropFlag(s.flags, 'w')); err != nil {
		s.log.Warn("let the shell go on", "error", err)
	}
	s.goOn()
}

func dropFlag(flags string, f byte) string {
	return string(slices.DeleteFunc([]byte(flags), func(b byte) bool { return b == f }))
}

// goOn wakes a shell that stands still; it looks at the flags itself.
func (s *Shell) goOn() {
	if _, err := s.gate.Load().Write([]byte("\n")); err != nil {
		s.log.Warn("let the shell go on", "error", err)
	}
}

// standsStill waits until the shell stands still. It may not, and wait for a line already: after a ^C, or where the flag came
// too late for it. By the line editor it waits in a way that is not seen, but it has told so.
func (s *Shell) standsStill(r *run, p *process) bool {
	reads := func() bool {
		s.mu.Lock()
		edits := s.edits
		s.mu.Unlock()
		waits, seen := p.waits()
		return edits || waits && seen
	}
	limit, stop := Patiently(context.Background(), standWithin)
	defer func() { stop() }()
	look := newSight()
	defer look.stop()
	for rounds := 1; ; {
		select {
		case <-r.stands:
			return true
		case <-p.exited:
			return false
		case <-limit.Done():
			if waits, seen := p.waits(); seen && !waits && rounds < standRounds {
				rounds++
				stop()
				limit, stop = Patiently(context.Background(), standWithin)
				continue
			}
			s.log.Warn("the shell did not wait for what was typed ahead to be taken")
			return false
		case <-look.tick():
			if reads() {
				return false
			}
			look.again()
		}
	}
}

// takeInput takes all that lies in a terminal's input queue, a line that is not finished too. Nothing may read the
// terminal meanwhile. A ^D that ended input lies in the queue of Linux as a zero byte, and is told as ^D unless zero says
// that zero bytes were typed.
func takeInput(tty string, zero bool) (got []byte, err error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(tty, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// What is on its way arrives under the modes it was typed under: see inputEmpty.
	_, err = retry(func() (int, error) { return unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) })
	if err != nil {
		return nil, err
	}
	modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
	if err != nil {
		return nil, err
	}
	loose := *modes
	loose.Lflag &^= unix.ICANON // lets go of an unfinished line
	loose.Cc[unix.VMIN], loose.Cc[unix.VTIME] = 0, 0
	if err := unix.IoctlSetTermios(fd, ioctlSetTermios, &loose); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	for {
		n, rerr := retry(func() (int, error) { return unix.Read(fd, buf) })
		if n <= 0 {
			if rerr != nil && rerr != unix.EAGAIN {
				err = rerr
			}
			break
		}
		got = append(got, buf[:n]...)
	}
	if serr := unix.IoctlSetTermios(fd, ioctlSetTermios, modes); err == nil {
		err = serr
	}
	if !zero && modes.Lflag&unix.ICANON != 0 {
		got = bytes.ReplaceAll(got, []byte{0}, []byte{4})
	}
	return got, err
}
