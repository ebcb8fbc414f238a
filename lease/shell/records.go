package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/lease/shell/procs"
	"sublet/lease/shell/term"
	"sublet/wire/visible"
)

// The kinds of marks and records. Package dialect has the fields of each record. markErased, markState and markStart have no record.
const (
	markPrompt = "P" // a prompt is about to be shown
	markBegan  = "B" // a command of the user's begins
	markHeld   = "A" // the widget answers the hold key and blocks
	markErased = "C" // the widget has erased the prompt
	markState  = "T" // the widget has written the state
	markIdle   = "I" // the widget ends, and the user has the editor
	markStart  = "S" // the text of a borrowed command begins
	markEnd    = "E" // it has ended
)

// records are what came over the FIFO "up" from the current process.
type records struct {
	unread  string // records whose marks are still to come
	prompts int    // how many prompts were shown
	status  int    // of the last record of markPrompt, as is dir
	dir     string
	text    string // of the record of markBegan for the command before it; "" = not known
}

// ack is the widget's answer to the hold key: the fields of the record of markHeld, and the line that it found.
type ack struct{ context, flags, cursor, line string }

// readRecordsLocked handles the records that the integration script wrote to the FIFO "up" (package dialect has their format),
// up to the first of that kind from the current process; without one it handles none. It is called at each mark, and for each key. The script
// writes a record before the mark of the same kind, so at the mark the record is there. Records of later marks may be there
// too, since the shell may be ahead of the reader of the terminal; they stay in unread. Records with another process id are
// dropped.
func (s *Shell) readRecordsLocked(kind string) {
	s.records.unread += string(drain(s.files.up))
	pid := strconv.Itoa(s.proc.pid)
	list := strings.Split(s.records.unread, "\x00")
	complete := list[:len(list)-1]
	n := 1 + slices.IndexFunc(complete, func(r string) bool { return strings.HasPrefix(r+" ", kind+" "+pid+" ") })
	for _, record := range list[:n] {
		kind, text, _ := strings.Cut(record, " ")
		if of, text, _ := strings.Cut(text, " "); of == pid {
			s.onRecordLocked(kind, text)
		}
	}
	s.records.unread = strings.Join(list[n:], "\x00")
}

// onRecordLocked handles a record of the current process: the state of the prompt, the line that began, the widget's answer to the hold
// key, or the end of the borrowed command. rest is what follows the process id.
func (s *Shell) onRecordLocked(kind, rest string) {
	switch kind {
	case markPrompt:
		status, dir, _ := strings.Cut(rest, " ")
		s.records.dir = dir
		s.records.status, _ = strconv.Atoi(status)
	case markBegan:
		s.records.text = strings.TrimRight(rest, "\n")
	case markHeld:
		head, line, _ := strings.Cut(rest, "\n")
		f := strings.Fields(head)
		if len(f) < 3 {
			return
		}
		if s.editor.widget != asked { // take gave up: the widget must not block
			s.directLocked(keepLine)
			return
		}
		a := ack{f[0], f[1], f[2], strings.TrimSuffix(line, "\n")}
		if s.editor.typed.other { // what was typed before the prompt has begun a line, which bash cannot know
			a.context = "continuation"
		}
		s.editor.ack, s.editor.widget, s.editor.erased = a, blocked, false
	case markEnd:
		f := strings.SplitN(rest, " ", 3)
		if r := s.run; r != nil && len(f) == 3 && f[0] == s.nonces.current && !r.ended {
			r.status, _ = strconv.Atoi(f[1])
			r.dir, r.recorded = f[2], true
		}
	}
}

// promptLocked handles markPrompt, whose record was read. Whatever ran before has ended.
func (s *Shell) promptLocked() {
	record, e := s.records, &s.editor
	s.records.text = ""
	if s.records.prompts++; s.records.prompts == 1 {
		s.proc.commandLine = procs.CommandLine(s.proc.pid)
	}
	e.prompt, e.unreported, e.typed = true, false, typing{last: e.typed.last}
	drain(s.files.down) // where a signal to the shell ended the widget: its next call must not find what was meant for this one
	if e.widget == blocked || e.widget == leaving {
		e.widget = idle
	}
	s.out.painted = painted{}
	s.dir = record.dir
	if r := s.run; r != nil && !r.ended && r.restarted == "" { // ^C ended the line before its end mark
		r.status, r.dir, r.ended = record.status, record.dir, true
		s.out.route = toLater
	}
	if c := s.command; c != nil {
		s.command, s.stale = nil, true
		text := cmp.Or(record.text, c.text)
		if strings.HasPrefix(text, " ") {
			text = "" // the user keeps it out of the history, so out of everything
		}
		e := UserEnded{Text: strings.TrimSpace(text), ExitCode: record.status, Dir: record.dir, Started: c.started, Duration: time.Since(c.started)}
		if !c.screen && e.Text != "" {
			output := strings.TrimRight(string(term.Render(c.tail.Bytes(), s.size.Cols)), " ") // zsh fills a row before its prompt
			e.Output = []byte(visible.CutTail(output, userOutput))
		}
		s.event(e)
	}
	if s.run == nil {
		s.event(PromptShown{Dir: record.dir})
	}
}

const (
	userOutput = 4 << 10  // how much of the output of a user's command is reported, in bytes
	userTail   = 16 << 10 // how much of its raw output that is rendered from
)

// keepLine is the directive that ends the widget with the line as it was.
const keepLine = "none"

// directLocked sends a directive to the widget, which must be blocked, as a line of 20 bytes, which the script of zsh reads at once.
func (s *Shell) directLocked(directive string) {
	if _, err := fmt.Fprintf(s.files.down, "%-19s\n", directive); err != nil {
		s.log.Warn("direct the line editor", "err", err)
	}
}
