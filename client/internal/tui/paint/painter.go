// Package paint writes to the terminal: the live part at the bottom of the screen, drawn with the fewest bytes, the finished
// text above it, and, while the shell or a program has the terminal, their output.
package paint

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"sublet/client/internal/tui/style"
)

// Frame is the live part of the screen: what is below the printed text and is redrawn. Each line is at most as
// wide as the terminal, starts and ends in the default style, and holds no line feed.
type Frame struct {
	Lines    []string
	Row, Col int // the cursor's place
}

// screen is the owner of the terminal's screen.
type screen int

const (
	shellScreen   screen = iota // the user's shell: its output is passed on
	ourScreen                   // this program
	programScreen               // a borrowed command that has the terminal: its output is passed on
	noScreen                    // nobody: Close was called
)

// Painter draws the live part by rewriting only the lines that changed, and prints finished text above it, from where it scrolls
// into the terminal's scrollback. While the shell or a program has the screen, it passes their output on and keeps what is to
// be drawn. Requests take effect in order and do not wait for the terminal; only ShellOutput writes at once.
type Painter struct {
	// NoReflow is set where the terminal cuts long lines at a resize instead of wrapping them (xterm).
	NoReflow bool

	out  io.Writer
	th   *style.Theme
	wake chan struct{}

	mu       sync.Mutex
	requests []request // guarded by mu, which is never held while writing
	text     int       // guarded by mu; bytes of text that wait: in requests and, while a program has the terminal, in prints
	next     *Frame    // guarded by mu; the live part after requests, dropped if somebody else has the screen then; nil = the last one stays

	wmu sync.Mutex
	// Guarded by wmu, held while writing.
	want     Frame
	prints   []string
	newW     int
	newH     int
	written  []chan struct{} // closed when all requests so far are written
	buf      []byte
	shown    []string
	row, col int
	w, h     int
	has      screen
	shell    modeTracker // modes that the shell has set
	modes    modeTracker // modes that the program with the terminal has set
	lastByte byte        // that program's last byte of output
}

// textMost is how many bytes of text may wait for a terminal that does not read, such as one whose output ^S has stopped, or for the
// program that has it. Beyond it the waiting text is left out, and a line reports that. The newest live part is drawn in any case.
const textMost = 8 << 20

// request is something to do to the screen. do runs with wmu held.
type request struct {
	do   func()
	text int // bytes of text that wait with it; 0 = it has none
}

// New returns a painter for a terminal of w by h cells, whose screen the shell has.
func New(out io.Writer, w, h int, th *style.Theme) *Painter {
	return &Painter{out: out, th: th, w: w, h: h, newW: w, newH: h, wake: make(chan struct{}, 1)}
}

// Run draws until ctx ends.
func (p *Painter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.Flush()
		}
	}
}

// Flush carries out the requests since the last Flush.
func (p *Painter) Flush() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.serve()
	if p.has == ourScreen {
		p.draw()
	}
	p.closeWritten()
}

// serve runs the queued requests. The caller has wmu.
func (p *Painter) serve() {
	p.mu.Lock()
	requests, next := p.requests, p.next
	p.requests, p.next, p.text = nil, nil, 0
	p.mu.Unlock()
	for _, r := range requests {
		r.do()
	}
	if next != nil && p.has == ourScreen {
		p.want = *next
	}
	if p.has == programScreen {
		p.mu.Lock()
		for _, s := range p.prints {
			p.text += len(s)
		}
		p.mu.Unlock()
	}
}

// closeWritten closes the channels of WhenWritten and Give. The caller has wmu.
func (p *Painter) closeWritten() {
	for _, done := range p.written {
		close(done)
	}
	p.written = nil
}

// queue adds a request without text.
func (p *Painter) queue(do func()) { p.queueText(0, do) }

// queueText adds a request that keeps size bytes of text.
func (p *Painter) queueText(size int, do func()) {
	p.mu.Lock()
	if p.text += size; p.text > textMost {
		p.requests = slices.DeleteFunc(p.requests, func(r request) bool { return r.text > 0 })
		p.requests = append(p.requests, request{text: 1, do: func() { // 1: the next such notice replaces this one
			p.prints = []string{p.th.Warn.Render("! some output was left out: too much waited for the terminal")}
		}})
		p.text = 1 + size
	}
	p.requests = append(p.requests, request{do: do, text: size})
	p.mu.Unlock()
	p.signal()
}

func (p *Painter) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Set replaces the live part. One that was set before and was not drawn yet is dropped.
func (p *Painter) Set(f Frame) {
	if p.th.ASCII {
		f.Lines = strings.Split(p.th.Spell(strings.Join(f.Lines, "\n")), "\n")
	}
	p.mu.Lock()
	p.next = &f
	p.mu.Unlock()
	p.signal()
}

// Print prints text, one or more whole lines, above the live part. While a program has the terminal the text waits.
func (p *Painter) Print(text string) {
	p.queueText(len(text), func() { p.prints = append(p.prints, p.th.Spell(text)) })
}

// Resize sets the terminal's new size.
func (p *Painter) Resize(w, h int) { p.queue(func() { p.newW, p.newH = w, h }) }

// WhenWritten closes done when all requests so far are written.
func (p *Painter) WhenWritten(done chan struct{}) {
	p.queue(func() { p.written = append(p.written, done) })
}

// Give prints the text that waits, erases the live part and leaves the screen to the shell, with the cursor in the first
// column of an empty row and the modes that the shell had set. The channel is closed when that is written.
func (p *Painter) Give() <-chan struct{} {
	done := make(chan struct{})
	p.queue(func() {
		if p.has == ourScreen {
			b := append(p.erase(p.buf[:0]), "\x1b[m"+pasteOff...)
			p.has = shellScreen
			p.write(p.shell.resume(b))
		}
	})
	p.WhenWritten(done)
	return done
}

// Hold erases the live part, writes head in its place and leaves the terminal to a borrowed command.
func (p *Painter) Hold(head string) {
	p.queue(func() {
		if p.has == ourScreen {
			b := append(append(p.erase(p.buf[:0]), pasteOff...), p.th.Spell(head)...)
			p.has, p.lastByte = programScreen, '\n'
			p.write(b)
		}
	})
}

// Raw writes a program's output. It keeps its order with Hold and Release.
func (p *Painter) Raw(data []byte) {
	p.queueText(len(data), func() {
		if p.has == programScreen && len(data) > 0 {
			p.modes.scan(data)
			p.lastByte = data[len(data)-1]
			_, _ = p.out.Write(data)
		}
	})
}

// Release takes the terminal back: modes that the program left on are switched off, and the live part is drawn again
// on a line of its own.
func (p *Painter) Release() {
	p.queue(func() {
		if p.has == programScreen {
			p.has = ourScreen
			p.write(append(p.tidy(p.buf[:0]), pasteOn...))
		}
	})
}

// Clear empties the screen; the scrollback stays.
func (p *Painter) Clear() { p.redrawAfter("\x1b[H\x1b[2J") }

// Redraw draws the live part again, from the row of the cursor on, which another program has moved.
func (p *Painter) Redraw() { p.redrawAfter("\r\x1b[J") }

// redrawAfter draws the live part again after it has written erase, which leaves the cursor in the first column.
func (p *Painter) redrawAfter(erase string) {
	p.queue(func() {
		if p.has == ourScreen {
			p.shown, p.row, p.col = nil, 0, 0
			p.write(append(p.buf[:0], erase...))
		}
	})
}

// Notice writes lines below the shell's output, for when the screen cannot be taken from the shell.
func (p *Painter) Notice(text string) {
	p.queue(func() {
		if p.has == shellScreen {
			_, _ = p.out.Write(appendPrints([]byte("\r\n"), []string{p.th.Spell(text)}))
		}
	})
}

// ShellOutput writes the shell's output unchanged if the shell has the screen, and reports whether it has. It waits for the
// terminal.
func (p *Painter) ShellOutput(data []byte) bool {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	if p.has != shellScreen {
		return false
	}
	p.shell.scan(data)
	_, _ = p.out.Write(data) // an error: the terminal is gone, which ends Keyboard.Run
	return true
}

// Take takes the screen from the shell, whose prompt was erased: the cursor is in the first column of an empty row.
func (p *Painter) Take() {
	p.queue(func() {
		if p.has == shellScreen {
			p.has, p.w, p.h = ourScreen, p.newW, p.newH
			p.shown, p.row, p.col = nil, 0, 0
			p.write(append(p.shell.suspend(append(p.buf[:0], "\x1b[m"...)), pasteOn...))
		}
	})
}

// Brackets reports whether the shell has set bracketed paste mode.
func (p *Painter) Brackets() bool {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	return p.shell.has("2004")
}

// Close erases the live part, prints the text that waits, and resets the terminal's modes. Run must have ended.
func (p *Painter) Close() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.serve()
	b := p.buf[:0]
	switch p.has {
	case programScreen: // tidied first, since what is printed on the program's alternate screen would be lost
		b = p.tidy(b)
		fallthrough
	case ourScreen:
		b = append(p.erase(b), pasteOff...)
	}
	p.has = noScreen
	p.write(append(p.shell.reset(b), "\x1b[m\x1b[?25h"...))
	p.closeWritten()
}

// erase appends what erases the live part and prints the text that waits. The live part is empty then.
func (p *Painter) erase(b []byte) []byte {
	b = appendPrints(p.wipe(b), p.prints)
	p.want, p.prints = Frame{}, nil
	p.shown, p.row, p.col = nil, 0, 0
	return b
}

// write writes b to the terminal and keeps b's memory for the next write. An error needs no handling: if the terminal is gone,
// Keyboard.Run ends.
func (p *Painter) write(b []byte) {
	if p.buf = b; len(b) > 0 {
		_, _ = p.out.Write(b)
	}
}

// tidy resets the modes that a program has left set and moves the cursor to the start of an empty line. The cursor's column is
// not known: a mark and a line's width of spaces wrap to the next line unless it was the first column, and then the mark is
// erased again.
func (p *Painter) tidy(b []byte) []byte {
	b = p.modes.reset(append(b, quiet...))
	p.w, p.h = p.newW, p.newH
	if p.lastByte != '\n' {
		// If the cursor was in the first column, this erases the mark. The mark's line is erased by itself first: when tmux
		// erases the whole screen from its top, as after `clear`, it moves what is left on it into its scrollback.
		b = append(b, "\x1b[m"+p.th.Spell(p.th.Dim.Render("⏎"))+strings.Repeat(" ", max(0, p.w-1))+"\r\x1b[m\x1b[K"...)
	}
	return append(b, "\x1b[m\x1b[J"...)
}

func appendPrints(b []byte, prints []string) []byte {
	for _, s := range prints {
		for l := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			b = append(append(b, l...), '\r', '\n')
		}
	}
	return b
}
