package shell

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/lease/shell/term"
)

// recordMost is longer than any record, in bytes.
const recordMost = 64 << 10

// promptRecord is what a record P holds.
type promptRecord struct {
	status int
	dir    string
	text   string // of the command that ended, "" = not known
}

// ack is the widget's answer to the hold key.
type ack struct {
	context, flags, cursor string
	line                   bool // the editor's line is not empty
}

// readRecordsLocked takes the records that lie on the side channel. A script writes each before the mark that belongs to it, so
// at a mark they are all there. The protocol is described in package dialect.
func (s *Shell) readRecordsLocked() {
	s.unread = append(s.unread, drain(s.up)...)
	for {
		record, rest, whole := strings.Cut(string(s.unread), "\x00")
		if !whole {
			if len(s.unread) > recordMost {
				s.unread = nil
			}
			return
		}
		s.unread = []byte(rest)
		kind, text, _ := strings.Cut(record, " ")
		pid, text, _ := strings.Cut(text, " ")
		if strconv.Itoa(s.proc.pid) == pid {
			s.onRecordLocked(kind, text)
		}
	}
}

func (s *Shell) onRecordLocked(kind, rest string) {
	switch kind {
	case "P":
		status, dir, _ := strings.Cut(rest, " ")
		s.reported = promptRecord{dir: dir, text: cmp.Or(s.lastEntry(), s.userText)}
		s.reported.status, _ = strconv.Atoi(status)
		s.userText = ""
	case "B":
		s.userText = rest
	case "A":
		f := strings.Fields(rest)
		if len(f) < 4 {
			return
		}
		a := ack{context: f[0], flags: f[1], cursor: f[2], line: f[3] != "0"}
		if !s.editor.asking { // nobody waits any more
			s.directLocked("none")
			return
		}
		s.editor.asking, s.editor.held = false, true // in one step: what the user types is kept from here on
		s.acks <- a                                  // capacity 1, and emptied before each question
	case "T":
		s.editor.looks = false
		s.stale = false
	case "E":
		f := strings.SplitN(rest, " ", 3)
		if r := s.run; r != nil && len(f) == 3 && f[0] == s.nonce && !r.ended {
			r.status, _ = strconv.Atoi(f[1])
			r.dir, r.recorded = f[2], true
		}
	}
}

// lastEntry returns the text of the newest history entry, where the shell wrote it down, and takes it away.
func (s *Shell) lastEntry() string {
	path := filepath.Join(s.folder, "last")
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	os.Remove(path)
	text := strings.TrimLeft(string(b), " 0123456789*")
	return strings.TrimRight(text, "\n")
}

// promptLocked takes the prompt that a mark P began. It ends what ran.
func (s *Shell) promptLocked() {
	t, e := s.reported, &s.editor
	s.hook = nil // what a DEBUG trap or set -x printed of the prompt hook
	s.prompts++
	e.prompt, e.typed = true, typing{last: e.typed.last}
	e.ignored, e.unhooked = 0, false
	s.painted = painted{}
	s.dir = t.dir
	if r := s.run; r != nil && !r.ended { // ^C ended the line before its end mark
		r.status, r.dir, r.ended = t.status, t.dir, true
		s.route = toLater
	}
	if c := s.command; c != nil {
		s.command, s.stale = nil, true
		text := cmp.Or(t.text, c.text)
		if strings.HasPrefix(text, " ") {
			text = "" // the user keeps it out of the history, so out of everything
		}
		e := UserEnded{Text: strings.TrimSpace(text), ExitCode: t.status, Dir: t.dir, Started: c.started, Duration: time.Since(c.started)}
		if !c.tail.Alternate && e.Text != "" {
			e.Output = lastBytes(term.Render(c.tail.Bytes(), s.size.Cols), userOutput)
		}
		s.event(e)
	}
	if s.run == nil {
		s.event(PromptShown{Dir: t.dir})
	}
}

// userOutput is how much of the output of a user's command is reported, in bytes.
const userOutput = 4 << 10

// lastBytes returns the last n bytes of b, beginning at a character.
func lastBytes(b []byte, n int) []byte {
	b = b[max(0, len(b)-n):]
	for len(b) > 0 && b[0]&0xc0 == 0x80 {
		b = b[1:]
	}
	return b
}

// directLocked gives the blocked widget a directive.
func (s *Shell) directLocked(directive string) {
	if _, err := s.down.Write([]byte(directive + "\n")); err != nil {
		s.log.Warn("direct the line editor", "err", err)
	}
}
