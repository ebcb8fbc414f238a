package shell

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/lease/shell/term"
)

// promptRecord is what is known of the newest prompt. It is complete once the record and the mark came, in either order.
type promptRecord struct {
	records int // that came
	settled int // prompts that were reported
	status  int
	dir     string
	text    string   // of the command that ended, "" = not known
	output  *userRun // the command that ended
}

// ack is the widget's answer to the hold key.
type ack struct {
	context, flags, cursor string
	length                 int
}

// readRecords reads the side channel until Close. The protocol is described in package dialect.
func (s *Shell) readRecords() {
	defer s.up.Close()
	r := bufio.NewReader(s.up)
	for {
		rec, err := r.ReadString(0)
		if err != nil {
			return
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(rec, "\x00"), " ")
		if kind == "X" {
			return
		}
		pid, rest, _ := strings.Cut(rest, " ")
		s.mu.Lock()
		if p := s.proc; p != nil && strconv.Itoa(p.pid) == pid {
			s.onRecordLocked(kind, rest)
			s.changeLocked()
		}
		s.mu.Unlock()
	}
}

func (s *Shell) onRecordLocked(kind, rest string) {
	switch kind {
	case "P":
		status, dir, _ := strings.Cut(rest, " ")
		s.told.status, _ = strconv.Atoi(status)
		s.told.dir = dir
		s.told.text, s.userText = cmp.Or(s.lastEntry(), s.userText), ""
		s.told.records++
		s.settlePromptLocked()
	case "B":
		s.userText = rest // nothing of the user's can begin before the record P that follows
	case "A":
		f := strings.Fields(rest)
		if len(f) < 4 {
			return
		}
		a := ack{context: f[0], flags: f[1], cursor: f[2]}
		a.length, _ = strconv.Atoi(f[3])
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
			status, _ := strconv.Atoi(f[1])
			r.recorded(status, f[2])
			s.dir = f[2]
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

// settlePromptLocked reports a prompt once its record and its mark came.
func (s *Shell) settlePromptLocked() {
	t := &s.told
	if t.records < s.prompts {
		return
	}
	if t.records > s.prompts || t.settled == s.prompts {
		return
	}
	t.settled = s.prompts
	s.dir = t.dir
	if r := s.run; r != nil && !r.ended {
		r.recorded(t.status, t.dir)
	}
	if c := t.output; c != nil {
		t.output, s.stale = nil, true
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
