package paint

import (
	"slices"
	"strconv"

	"sublet/client/internal/tui/cells"
)

// draw prints the text that waits and, below it, draws want.
func (p *Painter) draw() {
	f, prints, w, h := p.want, p.prints, p.newW, p.newH
	p.prints = nil
	resized := w != p.w || h != p.h
	if resized {
		p.reflow(w)
		p.w, p.h = w, h
	}
	f = f.within(p.w, p.h)
	anew := resized || len(prints) > 0
	b := p.buf[:0]
	if !anew && slices.Equal(f.Lines, p.shown) {
		p.write(p.moveTo(b, f.Row, f.Col))
		return
	}
	b = append(b, "\x1b[?2026h"...)
	if anew {
		b = appendPrints(p.wipe(b), prints)
		p.shown = nil
	}
	for i, l := range f.Lines {
		switch {
		case i < len(p.shown) && p.shown[i] == l:
			continue
		case i < len(p.shown): // erased first: behind a line that fills the row, this would take its last character
			b = append(p.moveTo(b, i, 0), "\x1b[K"...)
		case i > 0: // only a line feed scrolls at the bottom of the screen
			b = append(p.moveTo(b, i-1, -1), "\r\n"...)
		}
		b = append(b, l...)
		p.row, p.col = i, -1
	}
	switch {
	case len(f.Lines) >= len(p.shown):
	case len(f.Lines) == 0:
		b = p.wipe(b)
	default:
		b = append(p.moveTo(b, len(f.Lines), 0), "\x1b[J"...)
	}
	b = append(p.moveTo(b, f.Row, f.Col), "\x1b[?2026l"...)
	p.shown = slices.Clone(f.Lines)
	p.write(b)
}

// moveTo moves the cursor within the live part. col -1 leaves the column alone.
func (p *Painter) moveTo(b []byte, row, col int) []byte {
	if d := row - p.row; d < 0 {
		b = csi(b, -d, 'A')
	} else if d > 0 {
		b = csi(b, d, 'B')
	}
	p.row = row
	if col < 0 || col == p.col {
		return b
	}
	if col == 0 {
		b = append(b, '\r')
	} else {
		b = csi(b, col+1, 'G')
	}
	p.col = col
	return b
}

// wipe moves the cursor to the first cell of the live part and erases the part. The first line is erased by itself: in the
// screen's first cell, tmux treats "erase below" as a clear and moves the erased text into its scrollback. The cursor returns by
// save and restore, not by moving up: if the window became lower, the rows below may not exist.
func (p *Painter) wipe(b []byte) []byte {
	below := len(p.shown) > 1 || p.row > 0
	b = append(p.moveTo(b, 0, -1), "\r\x1b[K"...)
	p.col = 0
	if below {
		b = append(b, "\x1b7\x1b[B\x1b[J\x1b8"...)
	}
	return b
}

// reflow computes how many rows the live part above the cursor takes in a narrower terminal that wraps long lines again.
func (p *Painter) reflow(w int) {
	if p.NoReflow || w >= p.w || w < 1 {
		return
	}
	rows := 0
	for _, l := range p.shown[:min(p.row, len(p.shown))] {
		rows += max(1, (cells.Width(l)+w-1)/w)
	}
	p.row = rows + max(0, p.col)/w
}

func csi(b []byte, n int, final byte) []byte {
	b = append(b, '\x1b', '[')
	if n != 1 {
		b = append(b, strconv.Itoa(n)...)
	}
	return append(b, final)
}

// within cuts f to the size of the screen. It keeps the last lines.
func (f Frame) within(w, h int) Frame {
	if h > 0 && len(f.Lines) > h {
		cut := len(f.Lines) - h
		if f.Row < cut { // keep the cursor in sight
			cut = max(0, f.Row)
		}
		f.Lines = f.Lines[cut:min(len(f.Lines), cut+h)]
		f.Row -= cut
	}
	if slices.ContainsFunc(f.Lines, func(l string) bool { return cells.Width(l) > w }) {
		f.Lines = slices.Clone(f.Lines)
		for i, l := range f.Lines {
			f.Lines[i] = cells.Fit(l, w)
		}
	}
	f.Row = min(max(0, f.Row), max(0, len(f.Lines)-1))
	f.Col = min(max(0, f.Col), max(0, w-1))
	return f
}
