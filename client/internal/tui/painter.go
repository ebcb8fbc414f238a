package tui

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"
)

// frameEvery is the least time between two pictures. The first change after a pause is drawn at once: bubbletea's own
// renderer waits for its next tick, and is switched off for that.
const frameEvery = 16 * time.Millisecond

// frame is the live part of the screen: what stands below the scrollback and is drawn over. Each line is at most as
// wide as the terminal, starts and ends in the default style, and holds no line feed.
type frame struct {
	lines    []string
	row, col int // of the cursor
}

// screen is who has the terminal's screen.
type screen int

const (
	shellScreen   screen = iota // the user's shell: its bytes pass
	ourScreen                   // the live part and what is printed above it
	programScreen               // a borrowed command that has the terminal: its bytes pass
	noScreen                    // the program has ended
)

// painter owns what is written to the terminal. While the screen is the program's it draws the live part with the fewest
// lines that change the old picture into the new one, and puts finished text above it, where the terminal's own scrollback
// takes it. Otherwise it passes bytes on and keeps what is to be drawn. Its goroutine is run; set, print and the other
// requests never wait for the terminal, but for shellOutput and take, which write at once.
type painter struct {
	out  io.Writer
	eol  string // shown where a program's last line has no line feed
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu, never held while writing.
	want   frame
	fresh  bool // want was not drawn yet
	prints []string
	ops    []op
	newW   int
	newH   int

	wmu sync.Mutex
	// Guarded by wmu, held while writing.
	buf      []byte
	shown    []string
	row, col int
	w, h     int
	has      screen
	noReflow bool        // the terminal cuts long lines at a resize instead of wrapping them (xterm)
	shell    modeTracker // what the shell switched on
	modes    modeTracker // what the program with the terminal did
	lastByte byte        // of that program
}

// op is something to do in order with others; done is closed when it, and all that was printed before it, is written.
type op struct {
	do   func() // with wmu held
	done chan struct{}
}

func newPainter(out io.Writer, w, h int, th *theme) *painter {
	return &painter{
		out: out, w: w, h: h, newW: w, newH: h, wake: make(chan struct{}, 1),
		eol: th.dim.Render(th.glyph("⏎", "%")),
	}
}

// run draws until ctx ends.
func (p *painter) run(ctx context.Context) {
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if !pace(ctx, last, p.wake, p.asked) {
			return
		}
		p.work()
		last = time.Now()
	}
}

// asked reports whether somebody may wait for what is to be written.
func (p *painter) asked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ops) > 0
}

func (p *painter) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// set replaces the live part.
func (p *painter) set(f frame) {
	p.mu.Lock()
	p.want, p.fresh = f, true
	p.mu.Unlock()
	p.rouse()
}

// print puts text, one or more whole lines, above the live part for good. While a program has the terminal it waits.
func (p *painter) print(text string) {
	p.mu.Lock()
	p.prints = append(p.prints, text)
	p.mu.Unlock()
	p.rouse()
}

// resize sets the terminal's new size.
func (p *painter) resize(w, h int) {
	p.mu.Lock()
	p.newW, p.newH = w, h
	p.fresh = true
	p.mu.Unlock()
	p.rouse()
}

// give prints what is to be printed, takes the live part away and leaves the screen to the shell, with the cursor in the first
// column of an empty row and the modes that the shell had.
func (p *painter) give() <-chan struct{} {
	done := make(chan struct{})
	p.set(frame{})
	p.queue(op{p.giveLocked, done})
	return done
}

// takeLater is take in order with the other requests.
func (p *painter) takeLater() { p.later(p.takeLocked) }

// hold takes the live part away, writes commit in its place and leaves the terminal to a borrowed command.
func (p *painter) hold(commit string) {
	p.set(frame{}) // not to be seen again afterwards
	p.later(func() { p.holdLocked(commit) })
}

// release takes the terminal back: modes that the program left on are switched off, and the live part is drawn again
// on a line of its own.
func (p *painter) release() { p.later(p.releaseLocked) }

// raw writes a program's output, in order with hold and release.
func (p *painter) raw(data []byte) { p.later(func() { p.rawLocked(data) }) }

// clear empties the screen; the scrollback stays.
func (p *painter) clear() { p.later(p.clearLocked) }

// notice writes lines below whatever the shell shows. It is for what cannot be shown otherwise.
func (p *painter) notice(text string) {
	p.later(func() {
		if p.has == shellScreen {
			_, _ = p.out.Write(appendPrints([]byte("\r\n"), []string{text}))
		}
	})
}

// whenWritten closes done when all that was asked for so far is written.
func (p *painter) whenWritten(done chan struct{}) { p.queue(op{func() {}, done}) }

func (p *painter) later(do func()) { p.queue(op{do, make(chan struct{})}) }

func (p *painter) queue(o op) {
	p.mu.Lock()
	p.ops = append(p.ops, o)
	p.mu.Unlock()
	p.rouse()
}

// shellOutput writes what the shell prints, untouched, and reports whether it has the screen. It waits for the terminal.
func (p *painter) shellOutput(data []byte) bool {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	if p.has != shellScreen {
		return false
	}
	p.shell.scan(data)
	_, _ = p.out.Write(data) // a terminal that went away ends the keyboard's reader
	return true
}

// take takes the screen from the shell, whose prompt is gone: the cursor is in the first column of an empty row.
func (p *painter) take() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.takeLocked()
}

func (p *painter) takeLocked() {
	if p.has != shellScreen {
		return
	}
	p.has = ourScreen
	p.takeSize()
	b := p.shell.suspend(append(p.buf[:0], "\x1b[m"...))
	b = append(b, pasteOn...)
	p.shown, p.row, p.col = nil, 0, 0
	p.write(b)
}

func (p *painter) giveLocked() {
	if p.has != ourScreen {
		return
	}
	b := append(p.erase(), "\x1b[m"+pasteOff...)
	p.has = shellScreen
	p.write(p.shell.resume(b))
}

// erase begins a write with what takes the live part away and prints what waits.
func (p *painter) erase() []byte {
	p.mu.Lock()
	prints := p.prints
	p.prints = nil
	p.mu.Unlock()
	b := appendPrints(p.wipe(p.buf[:0]), prints)
	p.shown, p.row, p.col = nil, 0, 0
	return b
}

func (p *painter) holdLocked(commit string) {
	if p.has != ourScreen {
		return
	}
	b := append(append(p.erase(), pasteOff...), commit...)
	p.has, p.lastByte = programScreen, '\n'
	p.write(b)
}

func (p *painter) rawLocked(data []byte) {
	if p.has != programScreen || len(data) == 0 {
		return
	}
	p.modes.scan(data)
	p.lastByte = data[len(data)-1]
	_, _ = p.out.Write(data)
}

func (p *painter) releaseLocked() {
	if p.has != programScreen {
		return
	}
	p.has = ourScreen
	p.write(append(p.tidy(p.buf[:0]), pasteOn...))
}

func (p *painter) clearLocked() {
	if p.has != ourScreen {
		return
	}
	p.shown, p.row, p.col = nil, 0, 0
	p.write(append(p.buf[:0], "\x1b[H\x1b[2J"...))
	p.mu.Lock()
	p.fresh = true
	p.mu.Unlock()
}

// brackets reports whether the shell asked for bracketed pastes.
func (p *painter) brackets() bool {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	return p.shell.odd[2004]
}

// write writes b to the terminal and keeps its memory for the next time. A terminal that is gone ends the keyboard's reader.
func (p *painter) write(b []byte) {
	if p.buf = b; len(b) > 0 {
		_, _ = p.out.Write(b)
	}
}

// close erases the live part, writes what is still to be printed, and leaves the terminal as a program found it. The
// goroutine must have ended.
func (p *painter) close() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.mu.Lock()
	for _, o := range p.ops {
		close(o.done)
	}
	p.ops = nil
	p.mu.Unlock()
	var b []byte
	switch p.has {
	case programScreen:
		b = append(p.tidy(p.erase()), pasteOff...)
	case ourScreen:
		b = append(p.erase(), pasteOff...)
	}
	p.has = noScreen
	p.write(append(p.shell.reset(b), "\x1b[m\x1b[?25h"...))
}

// work does what was asked since the last time.
func (p *painter) work() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.mu.Lock()
	ops := p.ops
	p.ops = nil
	p.mu.Unlock()
	for _, o := range ops {
		o.do()
	}
	if p.has == ourScreen {
		p.drawLocked()
	}
	for _, o := range ops {
		close(o.done)
	}
}

// tidy undoes the modes that a program left behind and goes to the start of an empty line. Where the cursor is, is not
// known: a mark and a line's width of spaces wrap to the next line unless the cursor stood at column 0, in which case
// the mark is erased again.
func (p *painter) tidy(b []byte) []byte {
	b = p.modes.reset(append(b, quiet...))
	p.takeSize()
	if p.lastByte != '\n' {
		b = append(b, "\x1b[m"...)
		b = append(b, p.eol...)
		b = append(b, strings.Repeat(" ", max(0, p.w-1))...)
		// Where the cursor was in the first column the mark goes again. Its line first: what is left of the screen when all of
		// it is cleared from its top, as after `clear`, goes to tmux's scrollback.
		b = append(b, "\r\x1b[m\x1b[K"...)
	}
	return append(b, "\x1b[m\x1b[J"...)
}

func (p *painter) takeSize() {
	p.mu.Lock()
	p.w, p.h = p.newW, p.newH
	p.mu.Unlock()
}

func appendPrints(b []byte, prints []string) []byte {
	for _, s := range prints {
		for l := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			b = append(b, l...)
			b = append(b, '\r', '\n')
		}
	}
	return b
}
