package tui

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// frameEvery is the least time between two pictures. The first change after a pause is drawn at once: waiting for a
// tick would add half of it to every key (perf-limits.md section 6: 37 µs against bubbletea's 10 ms, and 1 byte against
// 1,430 for a key beside a wide character, which is why bubbletea's own renderer is switched off).
const frameEvery = 16 * time.Millisecond

// frame is the live part of the screen: what stands below the scrollback and is drawn over. Each line is at most as
// wide as the terminal, starts and ends in the default style, and holds no line feed.
type frame struct {
	lines    []string
	row, col int // of the cursor
}

// painter owns what is written to the terminal. It draws the live part with the fewest bytes that change the old
// picture into the new one, puts finished text above it, where the terminal's own scrollback takes it, and steps aside
// while a program has the terminal. Its goroutine is run; set, print and the other requests never wait for the terminal.
type painter struct {
	out io.Writer
	eol string // shown where a program's last line has no line feed
	// lines switches the terminal's own output processing for the editor, and off for a program's bytes, which have had theirs.
	// nil: there is none.
	lines func(on bool)
	wake  chan struct{}

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
	held     bool
	open     bool // paste mode is on: between start and close
	noReflow bool // the terminal cuts long lines at a resize instead of wrapping them (xterm)
	modes    modeTracker
	lastByte byte
}

// op is something to do in order with others.
type op struct {
	kind opKind
	data []byte
	done chan struct{}
}

type opKind int

const (
	opHold opKind = iota + 1
	opRaw
	opRelease
	opClear
)

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
		if wait := frameEvery - time.Since(last); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		p.work()
		last = time.Now()
	}
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

// resize tells the terminal's new size.
func (p *painter) resize(w, h int) {
	p.mu.Lock()
	p.newW, p.newH = w, h
	p.fresh = true
	p.mu.Unlock()
	p.rouse()
}

// hold takes the live part away, writes commit in its place and leaves the terminal to a program. The channel closes
// when that is done.
func (p *painter) hold(commit string) <-chan struct{} { return p.do(opHold, []byte(commit)) }

// release takes the terminal back: modes that the program left on are switched off, and the live part is drawn again
// on a line of its own.
func (p *painter) release() <-chan struct{} { return p.do(opRelease, nil) }

// rawLater writes a program's output, in order with hold and release.
func (p *painter) rawLater(data []byte) { p.do(opRaw, data) }

// clear empties the screen; the scrollback stays.
func (p *painter) clear() { p.do(opClear, nil) }

func (p *painter) do(kind opKind, data []byte) <-chan struct{} {
	done := make(chan struct{})
	p.mu.Lock()
	p.ops = append(p.ops, op{kind, data, done})
	p.mu.Unlock()
	p.rouse()
	return done
}

// raw writes a program's output at once, between hold and release. It waits for the terminal, as the program itself
// would.
func (p *painter) raw(data []byte) {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.rawLocked(data)
}

func (p *painter) rawLocked(data []byte) {
	if len(data) == 0 {
		return
	}
	p.modes.scan(data)
	p.lastByte = data[len(data)-1]
	_, _ = p.out.Write(data) // a terminal that went away tells the keyboard's reader
}

// isHeld tells that a program has the terminal.
func (p *painter) isHeld() bool {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	return p.held
}

// mark writes a sequence that shows nothing and leaves the cursor where it is, when a program is done with the terminal.
func (p *painter) mark(seq string) {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	if p.held {
		_, _ = p.out.Write([]byte(endString + seq))
	}
}

// start switches on what the editor needs.
func (p *painter) start() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.open = true
	p.cook(true)
	_, _ = p.out.Write([]byte(pasteOn))
}

func (p *painter) cook(on bool) {
	if p.lines != nil {
		p.lines(on)
	}
}

// rawMode says that the terminal was switched to raw mode again.
func (p *painter) rawMode() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.cook(!p.held)
}

// close erases the live part, writes what is still to be printed, and leaves the terminal as a program found it. The
// goroutine must have ended.
func (p *painter) close() {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	p.mu.Lock()
	prints := p.prints
	p.prints = nil
	for _, o := range p.ops {
		close(o.done)
	}
	p.ops = nil
	p.mu.Unlock()
	b := p.buf[:0]
	if p.held {
		b = p.tidy(b)
	}
	b = p.wipe(b)
	b = appendPrints(b, prints)
	if p.open {
		b = append(b, pasteOff...)
	}
	b = append(b, "\x1b[m\x1b[?25h"...)
	p.open, p.held, p.shown, p.row, p.col = false, false, nil, 0, 0
	_, _ = p.out.Write(b)
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
		switch o.kind {
		case opHold:
			p.holdLocked(string(o.data))
		case opRaw:
			p.rawLocked(o.data)
		case opRelease:
			p.releaseLocked()
		case opClear:
			if !p.held {
				p.shown, p.row, p.col = nil, 0, 0
				_, _ = p.out.Write([]byte("\x1b[H\x1b[2J"))
				p.mu.Lock()
				p.fresh = true
				p.mu.Unlock()
			}
		}
		close(o.done)
	}
	if !p.held {
		p.drawLocked()
	}
}

func (p *painter) holdLocked(commit string) {
	if p.held {
		return
	}
	p.mu.Lock()
	prints := p.prints
	p.prints = nil
	p.want, p.fresh = frame{}, false // not to be seen again when the program is done
	p.mu.Unlock()
	b := p.wipe(p.buf[:0])
	b = appendPrints(b, prints)
	b = append(b, pasteOff...)
	b = append(b, commit...)
	p.held, p.shown, p.row, p.col, p.lastByte = true, nil, 0, 0, '\n'
	p.buf = b
	_, _ = p.out.Write(b)
	p.cook(false)
}

func (p *painter) releaseLocked() {
	if !p.held {
		return
	}
	p.held = false
	p.cook(true)
	b := p.tidy(p.buf[:0])
	if p.open {
		b = append(b, pasteOn...)
	}
	p.buf = b
	_, _ = p.out.Write(b)
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

// drawLocked makes the screen show want.
func (p *painter) drawLocked() {
	p.mu.Lock()
	f, prints, fresh := p.want, p.prints, p.fresh
	w, h := p.newW, p.newH
	p.prints, p.fresh = nil, false
	p.mu.Unlock()
	if !fresh && len(prints) == 0 {
		return
	}
	b := p.buf[:0]
	resized := w != p.w || h != p.h
	if resized {
		b = p.reflowed(b, w)
		p.w, p.h = w, h
	}
	f = f.within(p.w, p.h)
	whole := resized || len(prints) > 0 || (len(p.shown) == 0 && len(f.lines) > 0)
	if whole {
		b = append(b, "\x1b[?2026h"...)
		b = p.wipe(b)
		b = appendPrints(b, prints)
		for i, l := range f.lines {
			if i > 0 {
				b = append(b, '\r', '\n')
			}
			b = append(b, l...)
		}
		p.row, p.col = max(0, len(f.lines)-1), -1
		b = p.moveTo(b, f.row, f.col)
		b = append(b, "\x1b[?2026l"...)
	} else {
		b = p.diff(b, f)
	}
	p.shown = slices.Clone(f.lines)
	p.buf = b
	if len(b) > 0 {
		_, _ = p.out.Write(b)
	}
}
