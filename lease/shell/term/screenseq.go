package term

import "github.com/charmbracelet/x/ansi"

// csi carries out the sequences that change what can be read; all others (colours, modes, queries) have no effect.
func (s *screen) csi(cmd ansi.Cmd, params ansi.Params) {
	if cmd.Prefix() == '?' {
		s.privateMode(cmd, params)
		return
	}
	if s.alt || cmd.Prefix() != 0 || cmd.Intermediate() != 0 {
		return
	}
	homed := s.atHome
	s.atHome = false
	if s.moves(cmd.Final(), params) {
		return
	}
	w := count(params, 0, s.cols)
	switch cmd.Final() {
	case 'J':
		mode := rawParam(params, 0)
		if mode == 0 && homed && s.x == 0 && s.y == 0 {
			mode = 2 // as `clear` does in tmux, in screen and on the console
		}
		s.eraseDisplay(mode)
	case 'K':
		s.eraseLine(rawParam(params, 0))
	case 'X':
		s.erase(s.x, s.x+w)
	case 'P':
		s.deleteCells(w)
	case '@':
		s.insertCells(w)
	}
}

// moves carries out a sequence that moves, saves or restores the cursor; it returns false for any other.
func (s *screen) moves(final byte, params ansi.Params) bool {
	n := count(params, 0, windowRows)
	w := count(params, 0, s.cols)
	switch final {
	case 'A': // up
		s.y = max(0, s.y-n)
	case 'F':
		s.x, s.y = 0, max(0, s.y-n)
	case 'B', 'e': // down, into rows that are there
		s.y = min(s.n-1, s.y+n)
	case 'E':
		s.x, s.y = 0, min(s.n-1, s.y+n)
	case 'C', 'a':
		s.x = min(s.cols-1, s.x+w)
	case 'D':
		s.x = max(0, min(s.x, s.cols-1)-w)
	case 'G', '`':
		s.x = min(s.cols, w) - 1
	case 'd':
		s.row(n)
	case 'H', 'f':
		s.row(n)
		s.x = min(s.cols, count(params, 1, s.cols)) - 1
		s.atHome = s.x == 0 && s.y == 0
	case 's':
		s.savedX, s.savedY = s.x, s.y
	case 'u':
		s.x, s.y = s.savedX, min(s.savedY, s.n-1)
	default:
		return false
	}
	return true
}

// count is parameter i, at least 1 and at most limit.
func count(params ansi.Params, i, limit int) int {
	n, _, _ := params.Param(i, 1)
	return max(1, min(n, limit))
}

func rawParam(params ansi.Params, i int) int {
	n, _, _ := params.Param(i, 0)
	return n
}

func (s *screen) privateMode(cmd ansi.Cmd, params ansi.Params) {
	if cmd.Final() != 'h' && cmd.Final() != 'l' {
		return
	}
	on := cmd.Final() == 'h'
	for i := range params {
		switch rawParam(params, i) {
		case 47, 1047, 1049:
			s.alt = on
		}
	}
}

// row goes to a row of the screen, counted from 1. Where the top of the real screen is cannot be known: it is the oldest
// row of the window.
func (s *screen) row(n int) {
	for s.n < n {
		s.at(s.n).reset()
		s.n++
	}
	s.y = n - 1
}

// eraseDisplay erases the screen after the cursor (mode 0), before it (1) or all of it (2). Mode 3 erases the scrollback, which
// is not kept here. Before all of the screen is erased its rows go to sink, because the user has seen them; the window then begins
// at the cursor's row.
func (s *screen) eraseDisplay(mode int) {
	switch mode {
	case 0:
		s.eraseLine(0)
		for i := s.y + 1; i < s.n; i++ {
			s.at(i).reset()
		}
		s.n = s.y + 1
	case 1:
		s.eraseLine(1)
		for i := range s.y {
			s.at(i).reset()
		}
	case 2:
		for s.n > 1 && len(s.at(s.n-1).cells) == 0 {
			s.n--
		}
		for s.n > 1 {
			s.retire()
		}
		if len(s.at(0).cells) > 0 {
			s.retire()
			s.n = 1 // an empty row for the cursor
		}
		s.at(0).reset()
		s.x, s.y = min(s.x, s.cols-1), 0
	}
}

func (s *screen) eraseLine(mode int) {
	switch mode {
	case 0:
		r := s.at(s.y)
		s.clearOverlap(r, s.x, len(r.cells))
		if s.x < len(r.cells) {
			r.cells = r.cells[:s.x]
		}
		r.wrapped = false
	case 1:
		s.erase(0, s.x+1)
	case 2:
		s.at(s.y).reset()
	}
}

// erase blanks the cells that exist.
func (s *screen) erase(from, to int) {
	r := s.at(s.y)
	to = min(to, len(r.cells))
	if from >= to {
		return
	}
	s.clearOverlap(r, from, to)
	for i := from; i < to; i++ {
		r.cells[i] = ' '
	}
}

// deleteCells removes n cells at the cursor; those right of them move left.
func (s *screen) deleteCells(n int) {
	r := s.at(s.y)
	if s.x >= len(r.cells) {
		return
	}
	to := min(len(r.cells), s.x+n)
	s.clearOverlap(r, s.x, to)
	r.extra = nil // its columns shift; accents are lost rather than misplaced
	r.cells = append(r.cells[:s.x], r.cells[to:]...)
}

func (s *screen) insertCells(n int) {
	r := s.at(s.y)
	if s.x >= len(r.cells) {
		return
	}
	s.clearOverlap(r, s.x, s.x)
	r.extra = nil // its columns shift; accents are lost rather than misplaced
	tail := append([]rune(nil), r.cells[s.x:]...)
	r.cells = r.cells[:s.x]
	for range n {
		r.cells = append(r.cells, ' ')
	}
	r.cells = append(r.cells, tail...)
	if len(r.cells) > s.cols {
		r.cells = r.cells[:s.cols]
	}
}

func (s *screen) esc(cmd ansi.Cmd) {
	if s.alt || cmd.Intermediate() != 0 {
		return
	}
	switch cmd.Final() {
	case '7':
		s.savedX, s.savedY = s.x, s.y
	case '8':
		s.x, s.y = s.savedX, min(s.savedY, s.n-1)
	case 'D':
		s.down()
	case 'E':
		s.control('\n')
	case 'M':
		s.y = max(0, s.y-1)
	case 'c':
		s.eraseDisplay(2)
		s.x = 0
	}
}
