package term

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
	"github.com/clipperhouse/displaywidth"
)

// windowRows is how many lines stay open to cursor movement; older ones are final. Common terminals are no higher, and progress
// displays of several lines (docker, npm) fit.
const windowRows = 64

// screen is the small terminal that turns raw output into what a person would have read: carriage returns, backspaces
// and cursor movement are carried out, colours and other sequences are gone, and what was drawn on the alternate screen
// is dropped. Lines come out at sink once they have left the window. Every count a sequence gives is clamped to the
// window, so that no input costs more than its length. It is not safe for concurrent use.
type screen struct {
	cols int
	sink func([]byte)

	rows           [windowRows]row // a ring
	first, n       int             // oldest row, number of rows
	x, y           int             // cursor; y counts from the oldest row
	savedX, savedY int             // saved cursor
	alt            bool            // the alternate screen is shown
	atHome         bool            // the previous CSI sequence moved the cursor to the upper left corner

	seq     *ansi.Parser
	inSeq   bool
	partial []byte // an unfinished UTF-8 character
	line    []byte // scratch
}

// A row is one line of the screen. If it is wrapped, its logical line continues in the next row.
type row struct {
	cells   []rune
	extra   map[int]string // combining characters, by column
	wrapped bool
}

// filler stands in the cells that a wide character or a tab also covers.
const filler rune = -1

func newScreen(cols int, sink func([]byte)) *screen {
	if cols <= 0 {
		cols = 80
	}
	cols = min(cols, 4096) // since a sequence may write that many cells
	s := &screen{cols: cols, sink: sink, n: 1, seq: new(ansi.Parser)}
	s.seq.SetParamsSize(parser.MaxParamsSize)
	s.seq.SetDataSize(256) // bytes; longer titles and links are cut, which does not matter: they are dropped
	s.seq.SetHandler(ansi.Handler{HandleCsi: s.csi, HandleEsc: s.esc, Execute: s.control})
	return s
}

// CursorRow returns how many rows the cursor is below its start after p was printed on a terminal of cols columns.
func CursorRow(p []byte, cols int) int {
	s := newScreen(cols, func([]byte) {})
	s.Write(p)
	return s.y
}

// Write takes output in pieces of any size; p is not kept.
func (s *screen) Write(p []byte) {
	if len(s.partial) > 0 {
		p = append(s.partial, p...)
		s.partial = nil
	}
	for i := 0; i < len(p); {
		b := p[i]
		switch {
		case s.inSeq:
			s.seq.Advance(b)
			s.inSeq = s.seq.State() != parser.GroundState
			i++
		case b >= 0x20 && b < 0x7f:
			j := i + 1
			for j < len(p) && p[j] >= 0x20 && p[j] < 0x7f {
				j++
			}
			if !s.alt {
				s.ascii(p[i:j])
			}
			i = j
		case b == 0x1b:
			s.seq.Advance(b)
			s.inSeq = true
			i++
		case b < 0x20 || b == 0x7f:
			s.control(b)
			i++
		default:
			if !utf8.FullRune(p[i:]) {
				s.partial = append([]byte(nil), p[i:]...)
				return
			}
			r, size := utf8.DecodeRune(p[i:])
			if !s.alt {
				s.rune(r)
			}
			i += size
		}
	}
}

// Flush ends the output: all that is on the screen comes out. The last line gets no newline that it did not have.
func (s *screen) Flush() {
	if len(s.partial) > 0 && !s.alt {
		s.rune(utf8.RuneError)
	}
	s.partial = nil
	for s.n > 1 && s.y < s.n-1 && len(s.at(s.n-1).cells) == 0 {
		s.n--
	}
	for s.n > 1 {
		s.retire()
	}
	s.line = s.at(0).append(s.line[:0])
	if len(s.line) > 0 {
		s.sink(s.line)
	}
	s.at(0).reset()
	s.x, s.y = 0, 0
}

func (s *screen) at(y int) *row { return &s.rows[(s.first+y)%windowRows] }

func (r *row) reset() { r.cells, r.extra, r.wrapped = r.cells[:0], nil, false }

// append encodes the row.
func (r *row) append(dst []byte) []byte {
	for x, c := range r.cells {
		switch {
		case c == filler:
		case c < utf8.RuneSelf:
			dst = append(dst, byte(c))
		default:
			dst = utf8.AppendRune(dst, c)
		}
		if r.extra != nil {
			dst = append(dst, r.extra[x]...)
		}
	}
	return dst
}

// retire passes the oldest row to sink and removes it.
func (s *screen) retire() {
	r := s.at(0)
	s.line = r.append(s.line[:0])
	if !r.wrapped {
		s.line = append(s.line, '\n')
	}
	s.sink(s.line)
	r.reset()
	s.first = (s.first + 1) % windowRows
	s.n--
	s.y = max(0, s.y-1)
	s.savedY = max(0, s.savedY-1)
}

// down moves to the next row, which is made where there is none.
func (s *screen) down() {
	s.y++
	if s.y < s.n {
		return
	}
	if s.n == windowRows {
		s.retire()
	}
	s.at(s.n).reset()
	s.n++
	s.y = s.n - 1
}

func (s *screen) wrap() {
	s.at(s.y).wrapped = true
	s.down()
	s.x = 0
}

// pad fills the cursor's row with blanks up to the cursor, and returns it.
func (s *screen) pad() *row {
	r := s.at(s.y)
	for len(r.cells) < s.x {
		r.cells = append(r.cells, ' ')
	}
	return r
}

func (s *screen) ascii(p []byte) {
	for len(p) > 0 {
		if s.x >= s.cols {
			s.wrap()
		}
		n := min(s.cols-s.x, len(p))
		r := s.pad()
		s.clearOverlap(r, s.x, s.x+n)
		over := min(n, len(r.cells)-s.x)
		for i := range over {
			r.cells[s.x+i] = rune(p[i])
		}
		for _, b := range p[over:n] {
			r.cells = append(r.cells, rune(b))
		}
		s.x += n
		p = p[n:]
	}
}

// clearOverlap prepares the cells from..to for being overwritten: it removes their combining characters, and blanks the other part of wide
// characters that are only partly in the range.
func (s *screen) clearOverlap(r *row, from, to int) {
	if from >= len(r.cells) {
		return
	}
	if r.cells[from] == filler {
		for i := from - 1; i >= 0; i-- {
			was := r.cells[i]
			r.cells[i] = ' '
			if was != filler {
				break
			}
		}
	}
	for i := to; i < len(r.cells) && r.cells[i] == filler; i++ {
		r.cells[i] = ' '
	}
	for x := range r.extra {
		if x >= from && x < to {
			delete(r.extra, x)
		}
	}
}

// rune puts a character at the cursor; one of width 0 joins the cell before it.
func (s *screen) rune(r rune) {
	if r >= 0x80 && r < 0xa0 {
		return // C1 controls
	}
	w := displaywidth.Rune(r)
	if w == 0 {
		s.combine(r)
		return
	}
	if s.x+w > s.cols {
		s.wrap()
	}
	row := s.pad()
	s.clearOverlap(row, s.x, s.x+w)
	for i := range w {
		c := filler
		if i == 0 {
			c = r
		}
		if s.x+i < len(row.cells) {
			row.cells[s.x+i] = c
		} else {
			row.cells = append(row.cells, c)
		}
	}
	s.x += w
}

// combine adds r to the character before the cursor, unless that has 32 bytes of them already: so a cell's size is bounded.
func (s *screen) combine(r rune) {
	row := s.at(s.y)
	x := min(s.x, len(row.cells)) - 1
	for x > 0 && row.cells[x] == filler {
		x--
	}
	if x < 0 {
		return
	}
	if row.extra == nil {
		row.extra = make(map[int]string)
	}
	if len(row.extra[x]) < 32 {
		row.extra[x] += string(r)
	}
}

func (s *screen) control(b byte) {
	if s.alt {
		return
	}
	switch b {
	case '\n', '\v', '\f':
		// The daemon's own shells have ONLCR off, for speed (pty.go), so a line feed always means a carriage return, too.
		s.at(s.y).wrapped = false
		s.down()
		s.x = 0
	case '\r':
		s.x = 0
	case '\b':
		s.x = max(0, min(s.x, s.cols-1)-1)
	case '\t':
		s.tab()
	}
}

// tab moves to the next tab stop. After the end of the row it writes a tab, not blanks, because a model that copies the line needs it.
func (s *screen) tab() {
	to := min(s.cols, (s.x/8+1)*8)
	r := s.pad()
	if s.x == len(r.cells) && s.x < to {
		r.cells = append(r.cells, '\t')
		for len(r.cells) < to {
			r.cells = append(r.cells, filler)
		}
	}
	s.x = to
}

// Render returns what a person would have read of raw terminal output on a terminal of cols columns.
func Render(raw []byte, cols int) []byte {
	out := make([]byte, 0, len(raw))
	s := newScreen(cols, func(p []byte) { out = append(out, p...) })
	s.Write(raw)
	s.Flush()
	return out
}
