package shell

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/shell/term"
)

// output is where the terminal's output goes, and the part of it that was kept. Shell.mu guards it.
type output struct {
	route   route
	kept    []byte  // while route is toLater
	painted painted // what the editor painted since the prompt
}

type route int

const (
	toScreen  route = iota // Options.Output
	toCommand              // the borrowed command
	toNobody               // dropped: the echo of the line that runs a borrowed command
	toLater                // kept until Release
)

// readTerminal reads what the terminal of p prints until it is closed.
func (s *Shell) readTerminal(p *process) {
	buf := make([]byte, 32<<10)
	var marks term.Splitter
	for {
		n, err := p.term.Read(buf)
		if n > 0 {
			marks.Feed(buf[:n], func(b []byte) { s.deliver(p, b) }, func(m term.Mark) { s.onMark(p, m) })
		}
		if err == nil {
			continue
		}
		// A deadline is set once the shell has ended. What it printed before is read to its end.
		if errors.Is(err, os.ErrDeadlineExceeded) && p.term.Unread() && p.term.SetReadDeadline(time.Now().Add(lastOutput)) == nil {
			continue
		}
		if !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.EIO) && !errors.Is(err, os.ErrDeadlineExceeded) {
			s.log.Warn("terminal read", "err", err)
		}
		return // EIO: the last holder of the slave side is gone
	}
}

// keptMost bounds output.kept, in bytes: a prompt is much shorter. Beyond it all of it is shown at once.
const keptMost = 256 << 10

// deliver handles output of p between marks: it passes b on as output.route requires. The caller holds no lock.
func (s *Shell) deliver(p *process, b []byte) {
	s.mu.Lock()
	to, r := s.out.route, s.run
	if to != toCommand && s.editor.prompt {
		s.out.painted.add(b)
	}
	if s.command != nil { // the user's own, not the borrowed one (r)
		s.command.add(b)
	}
	s.notePasteModeLocked(p, b)
	if to == toLater {
		if len(s.out.kept)+len(b) <= keptMost {
			s.out.kept = append(s.out.kept, b...)
			b = nil
		} else {
			b, s.out.kept = append(s.out.kept, b...), nil
		}
	}
	if s.editor.prompt {
		s.changeLocked() // awaitEditor waits for the first output after the prompt's mark
	}
	s.mu.Unlock()
	switch {
	case len(b) == 0 || to == toNobody:
	case to == toCommand && r != nil:
		r.output(b)
	case s.o.Output != nil:
		s.o.Output(b)
	}
}

// notePasteModeLocked records what output of the shell says about its line editor, which switches bracketed paste on when it begins to
// read a line, and off when it has read one.
func (s *Shell) notePasteModeLocked(p *process, output []byte) {
	e, borrowed := &s.editor, s.run != nil && !s.run.ended
	switch mode := pasteMode(output); {
	case mode == 'l': // the line was read: what runs now may be a program that asks for a password
		e.unreported = false
	case mode != 'h':
	case e.prompt && s.out.route == toScreen && bytes.Count(s.out.painted.b, pasteModeOn) > 1: // a continuation prompt: bash does not report one
		e.typed.other = true
	case !e.prompt && s.records.prompts > 0 && !borrowed && p.term.Foreground() == p.pid:
		e.unreported, e.typed = true, typing{last: e.typed.last}
		s.changeLocked()
	}
}

// onMark handles a mark. One of another process, or with neither of the two nonces, is ignored.
func (s *Shell) onMark(p *process, m term.Mark) {
	s.mu.Lock()
	if m.PID != p.pid || m.Nonce != s.nonces.current && m.Nonce != s.nonces.next {
		s.mu.Unlock()
		return
	}
	s.nonces.current = m.Nonce
	kind := string(m.Kind)
	s.readRecordsLocked(kind)
	e := &s.editor
	switch kind {
	case markPrompt:
		s.promptLocked()
	case markBegan:
		if s.run == nil {
			e.prompt = false
			if s.command == nil {
				s.command = &userRun{started: time.Now(), text: s.out.painted.line(), tail: term.Tail{Most: userTail}}
			}
			s.event(UserBegan{})
		}
	case markErased:
		erase := s.eraseLocked()
		s.mu.Unlock()
		if s.o.Output != nil && len(erase) > 0 {
			s.o.Output(erase)
		}
		s.mu.Lock()
		e.done, e.erased = kind, true
		if s.run != nil { // what comes now is the echo of its line
			s.out.route, e.prompt = toNobody, false
		}
	case markState:
		e.done = kind
	case markIdle:
		if e.widget == leaving {
			e.widget = idle
		}
	case markStart:
		if r := s.run; r != nil && !r.began() {
			r.started, s.out.route = time.Now(), toCommand
			s.mu.Unlock()
			if r.command.Started != nil {
				r.command.Started()
			}
			s.mu.Lock()
		}
	case markEnd:
		if r := s.run; r != nil && r.recorded && !r.ended {
			r.ended, s.dir, s.out.route = true, r.dir, toLater
		}
	}
	s.changeLocked()
	s.mu.Unlock()
}

// painted is what the editor painted since the prompt, the prompt included.
type painted struct {
	b      []byte
	prompt int // its length when the first key was typed; 0 = none was
}

// paintedMost bounds painted.b, in bytes, but for the last piece of output. What is longer is incomplete.
const paintedMost = 16 << 10

func (p *painted) add(b []byte) {
	if len(p.b) < paintedMost {
		p.b = append(p.b, b...)
	}
}

// typed records that a key was typed: what was painted until then is the prompt.
func (p *painted) typed() {
	if p.prompt == 0 {
		p.prompt = len(p.b)
	}
}

// pasteModeOn switches bracketed paste on; with "l" at its end it would switch it off.
var pasteModeOn, alternateOn = []byte("\x1b[?2004h"), []byte("\x1b[?1049h")

// pasteMode returns 'h' or 'l', the end of the last sequence in b that switches bracketed paste on or off; 0 = there is none.
// It searches forward: bytes.LastIndex, twice, was a fifth of what a window costs that passes much output on.
func pasteMode(b []byte) (last byte) {
	for found := true; found; {
		if _, b, found = bytes.Cut(b, pasteModeOn[:len(pasteModeOn)-1]); found && len(b) > 0 && (b[0] == 'h' || b[0] == 'l') {
			last = b[0]
		}
	}
	return last
}

// rows returns how many rows below the prompt's first one the cursor is, as far as that is certain. The editor begins its prompt
// by switching paste mode on; what precedes that is output of prompt hooks.
func (p *painted) rows(cols int) int {
	i := bytes.LastIndex(p.b, pasteModeOn)
	if len(p.b) >= paintedMost {
		return 0
	}
	return term.CursorRow(p.b[max(i, 0):], cols)
}

// line returns the line that was typed after the prompt, "" if it cannot be distinguished from the prompt.
func (p *painted) line() string {
	if p.prompt == 0 || len(p.b) >= paintedMost {
		return ""
	}
	const cols = 4096 // so that nothing wraps
	prompt := string(term.Render(p.b[:p.prompt], cols))
	all := string(term.Render(p.b, cols))
	line, ok := strings.CutPrefix(lastLine(all), lastLine(prompt))
	if !ok {
		return ""
	}
	return line
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}
