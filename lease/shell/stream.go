package shell

import (
	"bytes"
	"strings"
	"sync"
)

// A mark is what the shell prints to the terminal where a command begins (PS0) and ends (the hook or the line's tail):
// ESC ] 7701 ; 2|E ; nonce BEL. Only the nonce of the command that runs is a mark; all else is output.
const (
	markIntro = "\x1b]7701;"
	markStart = '2'
	markEnd   = 'E'
)

// echoLimit bounds what is held back while the echo of a typed line is awaited.
const echoLimit = 64 << 10

type streamMode int

const (
	modeIdle    streamMode = iota // what comes belongs to no command
	modeTyped                     // a person's line was typed: output begins behind its echo
	modeSourced                   // our fixed line was typed: output begins at the start mark
	modeRunning
)

// stream splits what the terminal prints into the output of the command that runs and what belongs to none. Its methods
// are safe for concurrent use; callbacks are made with the lock held, one at a time and in order.
type stream struct {
	unowned func([]byte) // may be nil

	mu      sync.Mutex
	mode    streamMode
	held    []byte // a possible beginning of a mark, or output before the echo was seen
	nonce   string
	echo    []byte       // what we typed, without its newline; nil when it was dropped
	output  func([]byte) // of the command
	started func()
	begun   bool          // the start mark came
	ended   chan struct{} // closed at the end mark
	closed  bool          // ended is
	drop    int           // echoes of bare newlines (our questions) still to be dropped
	cutting bool          // the rest of a line of ours is to be dropped
}

// expect prepares for a command whose line is about to be typed.
func (s *stream) expect(mode streamMode, nonce, echo string, started func(), output func([]byte)) (ended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	s.mode, s.nonce, s.echo = mode, nonce, []byte(echo)
	s.started, s.output = started, output
	s.begun, s.closed, s.ended = false, false, make(chan struct{})
	return s.ended
}

// hush drops all up to the end mark of a line of ours.
func (s *stream) hush(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	s.mode, s.nonce, s.output, s.started = modeRunning, nonce, nil, nil
	s.begun, s.closed, s.ended = true, false, make(chan struct{})
}

// retype prepares for one more fixed line, typed while the command still counts as running.
func (s *stream) retype(echo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	s.mode, s.echo = modeSourced, []byte(echo)
}

// renonce changes the nonce a line that was typed already will answer with. Its start mark may have come before.
func (s *stream) renonce(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nonce = nonce
	if s.mode == modeTyped || s.mode == modeSourced {
		s.beginLocked()
	}
}

// question notes that a bare newline is about to be typed while no command runs; under set -v bash prints it again. Its mark
// is taken out, too.
func (s *stream) question(nonce string, verbose bool) {
	s.mu.Lock()
	s.flushLocked()
	s.nonce = nonce
	s.drop++
	if verbose {
		s.drop++
	}
	s.mu.Unlock()
}

// current is the nonce of the last line.
func (s *stream) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nonce
}

// finish gives up waiting for the end mark: what is held goes to the command, the rest to nobody.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	s.endLocked()
}

func (s *stream) endLocked() {
	s.mode, s.output, s.started, s.echo = modeIdle, nil, nil, nil
	if s.ended != nil && !s.closed {
		s.closed = true
		close(s.ended)
	}
}

// do runs f under the lock under which output is delivered, so that callbacks never overlap.
func (s *stream) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// feed takes what was read from the terminal; p is not kept.
func (s *stream) feed(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == modeTyped || s.mode == modeSourced {
		s.held = append(s.held, p...)
		s.beginLocked()
		return
	}
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	s.scanLocked(p)
}

// beginLocked looks for the start mark or, for a typed line, for the end of its echo.
func (s *stream) beginLocked() {
	data := s.held
	if i := bytes.Index(data, s.markBytes(markStart)); i >= 0 {
		before, rest := data[:i], data[i+s.markLen():]
		s.held = nil
		early, shown, ok := s.splitEcho(before)
		switch {
		case !ok:
			s.emitLocked(modeIdle, before)
		case s.mode == modeTyped: // bash shows what history expansion made of the line
			s.emitLocked(modeIdle, early)
			rest = append(bytes.Clone(s.withoutOursLocked(shown)), rest...)
		default:
			s.emitLocked(modeIdle, append(bytes.Clone(early), shown...))
		}
		s.mode = modeRunning
		s.startLocked()
		s.scanLocked(rest)
		return
	}
	if s.mode == modeTyped {
		if before, after, ok := s.splitEcho(data); ok {
			s.held = nil
			s.emitLocked(modeIdle, before)
			s.echo = nil
			s.mode = modeRunning // a syntax error or a PS2 prompt comes without a start mark
			s.scanLocked(after)
			return
		}
	}
	if i := bytes.Index(data, s.markBytes(markEnd)); i >= 0 {
		// It cannot end before it began: the shell prompted once more, or what was typed is no command.
		s.held = append(data[:i], data[i+s.markLen():]...)
	}
	if len(data) > echoLimit {
		s.held = nil
		if before, ok := s.cutEcho(data); ok {
			data = before
		}
		s.mode = modeRunning
		s.scanLocked(data)
	}
}

// splitEcho finds the echoed line with its newline.
func (s *stream) splitEcho(data []byte) (before, after []byte, ok bool) {
	i := bytes.Index(data, s.echo)
	if i < 0 || len(s.echo) == 0 {
		return nil, nil, false
	}
	rest := data[i+len(s.echo):]
	if r, found := bytes.CutPrefix(rest, []byte("\r\n")); found {
		return data[:i], r, true
	}
	if r, found := bytes.CutPrefix(rest, []byte("\n")); found {
		return data[:i], r, true
	}
	return nil, nil, false
}

func (s *stream) cutEcho(data []byte) ([]byte, bool) {
	before, after, ok := s.splitEcho(data)
	if !ok {
		return data, false
	}
	return append(bytes.Clone(before), after...), true
}

func (s *stream) markLen() int { return len(markIntro) + 2 + len(s.nonce) + 1 }

func (s *stream) markBytes(kind byte) []byte {
	return []byte(markIntro + string(kind) + ";" + s.nonce + "\a")
}

// scanLocked delivers p, taking out marks. A beginning of a mark at its end is held back.
func (s *stream) scanLocked(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\x1b')
		if i < 0 {
			if at := hookBegins(p); at < len(p) && s.mode == modeRunning {
				s.held = bytes.Clone(p[at:])
				p = p[:at]
			}
			s.emitLocked(s.mode, p)
			return
		}
		for i >= 0 {
			kind, size, state := s.matchLocked(p[i:])
			if state == matchPart {
				s.emitLocked(s.mode, p[:i])
				s.held = bytes.Clone(p[i:])
				return
			}
			if state == matchFull {
				if kind == markEnd && s.mode == modeRunning {
					s.emitLocked(s.mode, cutTrace(p[:i]))
				} else {
					s.emitLocked(s.mode, p[:i])
				}
				p = p[i+size:]
				s.markLocked(kind)
				break
			}
			next := bytes.IndexByte(p[i+1:], '\x1b')
			if next < 0 {
				s.emitLocked(s.mode, p)
				return
			}
			i += 1 + next
		}
	}
}

type match int

const (
	matchNo match = iota
	matchPart
	matchFull
)

// matchLocked tells whether p begins with a mark, and how long it is. While a command runs only that of its nonce is one.
// Between commands all are, for one may come behind the record that told of it (T1f): they are taken out.
func (s *stream) matchLocked(p []byte) (kind byte, size int, m match) {
	if s.mode == modeIdle {
		return matchAny(p)
	}
	if s.nonce == "" {
		return 0, 0, matchNo
	}
	for _, kind := range []byte{markEnd, markStart} {
		mark := markIntro + string(kind) + ";" + s.nonce + "\a"
		if len(p) < len(mark) {
			if strings.HasPrefix(mark, string(p)) {
				return 0, 0, matchPart
			}
		} else if string(p[:len(mark)]) == mark {
			return kind, len(mark), matchFull
		}
	}
	return 0, 0, matchNo
}

func matchAny(p []byte) (kind byte, size int, m match) {
	const most = len(markIntro) + 2 + nonceMax + 1
	intro := p[:min(len(p), len(markIntro))]
	if !strings.HasPrefix(markIntro, string(intro)) {
		return 0, 0, matchNo
	}
	end := bytes.IndexByte(p[:min(len(p), most)], '\a')
	switch {
	case end > len(markIntro):
		return 0, end + 1, matchFull
	case end < 0 && len(p) < most:
		return 0, 0, matchPart
	}
	return 0, 0, matchNo
}

func (s *stream) markLocked(kind byte) {
	switch {
	case kind == markStart && s.mode == modeRunning:
		s.startLocked()
	case kind == markEnd && s.mode == modeRunning && s.begun:
		s.endLocked()
	}
}

func (s *stream) startLocked() {
	s.begun = true
	if s.started != nil {
		s.started()
		s.started = nil
	}
}

func (s *stream) emitLocked(mode streamMode, p []byte) {
	if len(p) == 0 {
		return
	}
	if mode == modeRunning {
		if !s.begun { // a typed line's echo came, its start mark did not
			p = s.withoutOursLocked(p)
		}
		if s.output != nil && len(p) > 0 {
			s.output(p)
		}
		return
	}
	if bytes.Contains(p, []byte(markIntro)) { // of a question, behind the next line's echo
		p = markOfOurs.ReplaceAll(p, nil)
	}
	p = s.withoutOursLocked(p)
	for s.drop > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		from := i
		if from > 0 && p[from-1] == '\r' {
			from--
		}
		p = append(bytes.Clone(p[:from]), p[i+1:]...)
		s.drop--
	}
	if len(p) > 0 && s.unowned != nil {
		s.unowned(p)
	}
}

func (s *stream) flushLocked() {
	p := s.held
	s.held = nil
	if s.mode == modeTyped || s.mode == modeSourced {
		p, _ = s.cutEcho(p)
		s.mode = modeIdle
	}
	s.emitLocked(s.mode, p)
}
