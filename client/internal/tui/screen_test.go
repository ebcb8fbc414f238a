package tui

import (
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// termScreen is a terminal for tests: what a person would see, and the scrollback above it. It knows the sequences that
// the painter writes and the commonest of programs.
type termScreen struct {
	mu       sync.Mutex
	w, h     int
	rows     [][]string // cells; "" continues a wide one
	scroll   []string
	row, col int
	wrapNext bool
	modes    map[string]bool
	alt      bool
	saved    [][]string
	srow     int
	scol     int
	krow     int // the cursor kept by DECSC
	kcol     int
	raw      []byte
	part     []byte
	written  int
}

func newTermScreen(w, h int) *termScreen {
	s := &termScreen{w: w, h: h, modes: map[string]bool{"25": true}}
	s.rows = s.blank()
	return s
}

func (s *termScreen) blank() [][]string {
	rows := make([][]string, s.h)
	for i := range rows {
		rows[i] = s.emptyRow()
	}
	return rows
}

func (s *termScreen) emptyRow() []string {
	r := make([]string, s.w)
	for i := range r {
		r[i] = " "
	}
	return r
}

func (s *termScreen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, p...)
	s.written += len(p)
	b := append(s.part, p...)
	s.part = nil
	for len(b) > 0 {
		seq, width, n, state := ansi.DecodeSequence(b, ansi.NormalState, nil)
		if n == 0 || (state != ansi.NormalState && n == len(b)) {
			s.part = append([]byte(nil), b...)
			break
		}
		b = b[n:]
		if width > 0 {
			s.put(string(seq), width)
			continue
		}
		s.control(string(seq))
	}
	return len(p), nil
}

func (s *termScreen) put(c string, width int) {
	if s.wrapNext || s.col+width > s.w {
		s.col, s.wrapNext = 0, false
		s.down()
	}
	s.rows[s.row][s.col] = c
	for i := 1; i < width; i++ {
		s.rows[s.row][s.col+i] = ""
	}
	s.col += width
	if s.col >= s.w {
		s.col, s.wrapNext = s.w-1, true
	}
}

func (s *termScreen) down() {
	if s.row < s.h-1 {
		s.row++
		return
	}
	if !s.alt {
		s.scroll = append(s.scroll, rowText(s.rows[0]))
	}
	s.rows = append(s.rows[1:], s.emptyRow())
}

func (s *termScreen) control(seq string) {
	switch seq {
	case "\n":
		s.wrapNext = false
		s.down()
		return
	case "\r":
		s.col, s.wrapNext = 0, false
		return
	case "\b":
		s.col, s.wrapNext = max(0, s.col-1), false
		return
	case "\x1b7":
		s.krow, s.kcol = s.row, s.col
		return
	case "\x1b8":
		s.row, s.col, s.wrapNext = s.krow, s.kcol, false
		return
	}
	if !strings.HasPrefix(seq, "\x1b[") || len(seq) < 3 {
		return
	}
	final, params := seq[len(seq)-1], seq[2:len(seq)-1]
	n := max(1, number([]byte(params)))
	switch final {
	case 'A':
		s.row, s.wrapNext = max(0, s.row-n), false
	case 'B':
		s.row, s.wrapNext = min(s.h-1, s.row+n), false
	case 'C':
		s.col, s.wrapNext = min(s.w-1, s.col+n), false
	case 'D':
		s.col, s.wrapNext = max(0, s.col-n), false
	case 'G':
		s.col, s.wrapNext = min(s.w-1, n-1), false
	case 'H':
		r, c, _ := strings.Cut(params, ";")
		s.row, s.col, s.wrapNext = min(s.h, max(1, number([]byte(r))))-1, min(s.w, max(1, number([]byte(c))))-1, false
	case 'K':
		if params == "" || params == "0" {
			copy(s.rows[s.row][s.col:], s.emptyRow())
		}
	case 'J':
		switch params {
		case "", "0":
			if s.row == 0 && s.col == 0 && !s.alt {
				s.keepUsed()
			}
			copy(s.rows[s.row][s.col:], s.emptyRow())
			for r := s.row + 1; r < s.h; r++ {
				s.rows[r] = s.emptyRow()
			}
		case "2":
			s.rows = s.blank()
		}
	case 'h', 'l':
		if !strings.HasPrefix(params, "?") {
			return
		}
		for m := range strings.SplitSeq(params[1:], ";") {
			s.modes[m] = final == 'h'
			if m == "1049" && s.alt != (final == 'h') {
				s.alt = final == 'h'
				if s.alt {
					s.saved, s.srow, s.scol = s.rows, s.row, s.col
					s.rows = s.blank()
				} else {
					s.rows, s.row, s.col = s.saved, s.srow, s.scol
				}
			}
		}
	}
}

func rowText(r []string) string { return strings.TrimRight(strings.Join(r, ""), " ") }

// text is the visible screen without the empty lines at its end.
func (s *termScreen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.textLocked()
}

func (s *termScreen) textLocked() string {
	lines := make([]string, s.h)
	for i, r := range s.rows {
		lines[i] = rowText(r)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// all is scrollback and screen.
func (s *termScreen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scroll) == 0 {
		return s.textLocked()
	}
	return strings.Join(s.scroll, "\n") + "\n" + s.textLocked()
}

// keepUsed moves what is on the screen into the scrollback, as tmux does before it erases the whole of it.
func (s *termScreen) keepUsed() {
	used := strings.TrimRight(s.textLocked(), "\n")
	if used == "" {
		return
	}
	s.scroll = append(s.scroll, strings.Split(used, "\n")...)
	s.rows = s.blank()
}

// odd lists the modes that are not as a shell expects them.
func (s *termScreen) odd() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for m, on := range s.modes {
		if on != (m == "25" || m == "7") {
			out = append(out, m)
		}
	}
	return out
}

func (s *termScreen) on(mode string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modes[mode]
}

func (s *termScreen) cursor() (row, col int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.row, s.col
}

func (s *termScreen) bytesWritten() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *termScreen) rawText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.raw)
}

// number reads a small decimal number; anything else is 0.
func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}
