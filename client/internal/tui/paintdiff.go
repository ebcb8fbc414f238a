package tui

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// diff turns the shown picture into f.
func (p *painter) diff(b []byte, f frame) []byte {
	changed := 0
	for i, l := range f.lines {
		if i >= len(p.shown) || p.shown[i] != l {
			changed++
		}
	}
	many := changed > 1 || len(f.lines) != len(p.shown)
	if many {
		b = append(b, "\x1b[?2026h"...)
	}
	for i, l := range f.lines {
		if i < len(p.shown) {
			if p.shown[i] != l {
				b = p.changeLine(b, i, p.shown[i], l)
			}
			continue
		}
		// A new line at the end: only a line feed makes room for it at the bottom of the screen.
		b = p.moveTo(b, i-1, -1)
		b = append(b, '\r', '\n')
		b = append(b, l...)
		p.row, p.col = i, -1
		p.shown = append(p.shown, l)
	}
	if len(f.lines) < len(p.shown) {
		if len(f.lines) == 0 {
			b = p.wipe(b)
		} else {
			b = append(p.moveTo(b, len(f.lines), 0), "\x1b[J"...)
		}
	}
	b = p.moveTo(b, f.row, f.col)
	if many {
		b = append(b, "\x1b[?2026l"...)
	}
	return b
}

// changeLine rewrites the part of a line that differs.
func (p *painter) changeLine(b []byte, row int, old, line string) []byte {
	n := commonPrefix(old, line)
	start := cells(line[:n])
	if start >= p.w { // the cursor would stand beyond the last column
		n, start = 0, 0
	}
	b = p.moveTo(b, row, start)
	b = append(b, line[n:]...)
	width := start + cells(line[n:])
	if width < cells(old) {
		b = append(b, "\x1b[K"...)
	}
	p.col = width
	if width >= p.w {
		p.col = -1 // the terminal is about to wrap: only an absolute column is sure
	}
	return b
}

// commonPrefix is the number of leading bytes that may stay: equal, in the default style at their end, and not cut
// through a character or an escape sequence.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	n = plainPrefix(b, n)
	for n > 0 && (inside(b, n) || inside(a, n)) {
		n--
	}
	if (n < len(b) && b[n] >= 0x80) || (n < len(a) && a[n] >= 0x80) {
		// What follows may join the character before it.
		if cells(b[:n])+cells(b[n:]) != cells(b) || cells(a[:n])+cells(a[n:]) != cells(a) || joins(b[n:]) || joins(a[n:]) {
			return 0
		}
	}
	return n
}

// inside tells that s[n] continues a UTF-8 sequence.
func inside(s string, n int) bool { return n < len(s) && s[n]&0xc0 == 0x80 }

// plainPrefix is the longest prefix of s, at most n bytes, after which the default style holds.
func plainPrefix(s string, n int) int {
	if strings.IndexByte(s[:n], '\x1b') < 0 {
		return n
	}
	safe, styled := 0, false
	for i := 0; i < n; {
		if s[i] != '\x1b' {
			i++
			if !styled {
				safe = i
			}
			continue
		}
		seq, _, length, _ := ansi.DecodeSequence(s[i:], ansi.NormalState, nil)
		if length == 0 || i+length > n {
			break
		}
		if strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") {
			styled = seq != "\x1b[m" && seq != "\x1b[0m"
		}
		i += length
		if !styled {
			safe = i
		}
	}
	return safe
}

// joins tells that s begins with something that has no width of its own.
func joins(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && r >= 0x300 && cells(s[:n]) == 0
}

// moveTo moves the cursor within the live part. col -1 leaves the column alone.
func (p *painter) moveTo(b []byte, row, col int) []byte {
	if d := row - p.row; d < 0 {
		b = csi(b, -d, 'A')
	} else if d > 0 {
		b = csi(b, d, 'B')
	}
	p.row = row
	if col < 0 || col == p.col {
		return b
	}
	switch {
	case col == 0:
		b = append(b, '\r')
	case p.col >= 0 && col == p.col-1:
		b = append(b, '\b')
	default:
		b = csi(b, col+1, 'G')
	}
	p.col = col
	return b
}

// toTop goes to the first cell of the live part.
func (p *painter) toTop(b []byte) []byte {
	if p.row > 0 {
		b = csi(b, p.row, 'A')
	}
	p.row, p.col = 0, 0
	return append(b, '\r')
}

// wipe goes to the first cell of the live part and erases it. The first line is erased by itself: from the screen's first
// cell tmux takes "erase below" for a clear, and moves what stood there into its scrollback. The way back is a saved
// cursor and not a move up: a window that became lower may have cut off the rows below, and then there is no way down.
func (p *painter) wipe(b []byte) []byte {
	below := len(p.shown) > 1 || p.row > 0
	b = append(p.toTop(b), "\x1b[K"...)
	if below {
		b = append(b, "\x1b7\x1b[B\x1b[J\x1b8"...)
	}
	return b
}

// reflowed reckons how many rows of a narrower terminal the live part above the cursor takes, as terminals that wrap
// long lines anew do.
func (p *painter) reflowed(b []byte, w int) []byte {
	if p.noReflow || w >= p.w || w < 1 {
		return b
	}
	rows := 0
	for _, l := range p.shown[:min(p.row, len(p.shown))] {
		rows += max(1, (cells(l)+w-1)/w)
	}
	p.row = rows + max(0, p.col)/w
	return b
}

func csi(b []byte, n int, final byte) []byte {
	b = append(b, '\x1b', '[')
	if n != 1 {
		b = append(b, itoa(n)...)
	}
	return append(b, final)
}

// within cuts f to the size of the screen: the last lines stay.
func (f frame) within(w, h int) frame {
	if h > 0 && len(f.lines) > h {
		cut := len(f.lines) - h
		if f.row < cut { // keep the cursor in sight
			cut = max(0, f.row)
		}
		f.lines = f.lines[cut:min(len(f.lines), cut+h)]
		f.row -= cut
	}
	for i, l := range f.lines {
		if cells(l) > w {
			f.lines = slices.Clone(f.lines)
			for j := i; j < len(f.lines); j++ {
				f.lines[j] = fit(f.lines[j], w)
			}
			break
		}
	}
	f.row = min(max(0, f.row), max(0, len(f.lines)-1))
	f.col = min(max(0, f.col), max(0, w-1))
	return f
}
