package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/client/internal/tui/cells"
)

// canvas is a painter on a test terminal, drawn by hand.
func canvas(w, h int) (*painter, *termScreen) {
	s := newTermScreen(w, h)
	p := newPainter(s, w, h, testTheme())
	p.take()
	return p, s
}

func (p *painter) drawNow(f frame) { p.set(f); p.work() }

func TestPainterDrawsAndPrints(t *testing.T) {
	p, s := canvas(20, 6)
	p.drawNow(frame{lines: []string{"status", "$ ls"}, row: 1, col: 4})
	if got := s.text(); got != "status\n$ ls" {
		t.Fatalf("got %q", got)
	}
	if r, c := s.cursor(); r != 1 || c != 4 {
		t.Errorf("cursor: got %d,%d, want 1,4", r, c)
	}
	p.print("done one\ndone two")
	p.drawNow(frame{lines: []string{"$ "}, row: 0, col: 2})
	if got := s.text(); got != "done one\ndone two\n$" {
		t.Errorf("got %q", got)
	}
	// Far more than a screenful: all of it is in the scrollback, in order, without a gap.
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprint("row ", i))
	}
	p.print(strings.Join(lines, "\n"))
	p.work()
	want := "done one\ndone two\n" + strings.Join(lines, "\n") + "\n$"
	if got := s.all(); got != want {
		t.Errorf("scrollback: got %d bytes, want %d", len(got), len(want))
	}
}

// tmux takes "erase below" from the screen's first cell for a clear, and keeps what stood there in its scrollback: a
// live part at the top of the screen would be seen twice.
func TestPainterErasesWithoutClearing(t *testing.T) {
	p, s := canvas(20, 6)
	p.drawNow(frame{lines: []string{"$ "}, row: 0, col: 2})
	p.print("note")
	p.drawNow(frame{lines: []string{"status", "$ "}, row: 1, col: 2})
	p.print("more")
	p.drawNow(frame{lines: []string{"$ "}, row: 0, col: 2})
	p.hold("$ ls\r\n")
	p.work()
	if got := s.all(); got != "note\nmore\n$ ls" {
		t.Errorf("got %q", got)
	}
}

// An unchanged picture costs nothing, and a key no more than its line.
func TestPainterBytesPerKey(t *testing.T) {
	for before, key := range map[string]string{"echo hello": "x", "echo 漢字 漢字": "x", "echo 漢": "字", "\x1b[32m>\x1b[m ls": "x"} {
		p, s := canvas(80, 24)
		p.drawNow(frame{lines: []string{"above", before, "below 漢字"}, row: 1, col: cells.Width(before)})
		was := s.bytesWritten()
		p.drawNow(frame{lines: []string{"above", before, "below 漢字"}, row: 1, col: cells.Width(before)})
		if n := s.bytesWritten() - was; n != 0 {
			t.Errorf("%q: nothing changed and %d bytes were written", before, n)
		}
		line := before + key
		p.drawNow(frame{lines: []string{"above", line, "below 漢字"}, row: 1, col: cells.Width(line)})
		if n := s.bytesWritten() - was; n > len(line)+6 {
			t.Errorf("%q: got %d bytes for a key, want at most %d", before, n, len(line)+6)
		}
	}
}

// Whatever follows whatever, the terminal shows the last picture below all that was printed.
func TestPainterAnySequence(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"a", "bc", " ", "漢", "e\u0301", "\x1b[31mred\x1b[m", "\x1b[1mbold\x1b[m", "👨‍👩‍👧", "word ", "\x1b]133;B\a", "\x1b[32mgreen then\x1b[m plain",
	}
	line := func(w int) string {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return cells.Fit(b.String(), w)
	}
	for range 60 {
		const w, h = 24, 8
		p, s := canvas(w, h)
		var printed []string
		var f frame
		for range 40 {
			switch rnd.IntN(5) {
			case 0:
				text := "printed " + fmt.Sprint(len(printed))
				printed = append(printed, text)
				p.print(text)
			case 1: // one line grows or shrinks, as under typing
				if len(f.lines) > 0 {
					f.lines = slices.Clone(f.lines)
					i := rnd.IntN(len(f.lines))
					f.lines[i] = cells.Fit(f.lines[i]+pieces[rnd.IntN(len(pieces))], w)
				}
			default:
				f.lines = make([]string, rnd.IntN(h))
				for i := range f.lines {
					f.lines[i] = line(w)
				}
			}
			f.row, f.col = 0, 0
			if n := len(f.lines); n > 0 {
				f.row = rnd.IntN(n)
				f.col = rnd.IntN(min(w, cells.Width(f.lines[f.row])+1))
			}
			p.drawNow(f)
			want := append(slices.Clone(printed), f.lines...)
			for i, l := range want {
				want[i] = stripped(l)
			}
			got := strings.TrimRight(s.all(), "\n")
			if got != strings.TrimRight(strings.Join(want, "\n"), "\n ") {
				t.Fatalf("got\n%s\nwant\n%s\nraw %q", got, strings.Join(want, "\n"), s.rawText()[max(0, len(s.rawText())-400):])
			}
			if row, col := s.cursor(); len(f.lines) > 0 && (col != min(f.col, w-1) || row < 0) {
				t.Fatalf("cursor: got column %d, want %d", col, f.col)
			}
		}
	}
}

func stripped(l string) string {
	var s termScreenLine
	return s.plain(l)
}

type termScreenLine struct{}

func (termScreenLine) plain(l string) string {
	t := newTermScreen(200, 1)
	_, _ = t.Write([]byte(l))
	return t.text()
}

// While a program has the terminal nothing else is written; what it leaves behind is put in order, and the prompt stands
// on a line of its own.
func TestPainterHold(t *testing.T) {
	for _, tc := range []struct{ name, out, want string }{
		{"whole lines", "a\r\nb\r\n", "cmd\na\nb\nnote\n$"},
		{"no line feed at the end", "a\r\nb", "cmd\na\nb⏎\nnote\n$"},
		{"nothing", "", "cmd\nnote\n$"},
		{"a full line without line feed", strings.Repeat("x", 20), "cmd\n" + strings.Repeat("x", 20) + "\n⏎\nnote\n$"},
		{"a string left open", "a\r\n\x1bP+qb", "cmd\na\nnote\n$"},
		{"killed in the alternate screen with the mouse on", "\x1b[?1049h\x1b[?1002;1006h\x1b[?25l\x1b[2Jeditor", "cmd\nnote\n$"},
	} {
		p, s := canvas(20, 8)
		p.drawNow(frame{lines: []string{"$ cmd"}, col: 5})
		p.hold("cmd\r\n")
		p.work()
		if s.on("2004") {
			t.Errorf("%s: bracketed paste is on while a program has the terminal", tc.name)
		}
		p.print("note")
		p.set(frame{lines: []string{"not now"}})
		p.work()
		p.raw([]byte(tc.out))
		p.work()
		if strings.Contains(s.text(), "not") {
			t.Errorf("%s: drawn over a program:\n%s", tc.name, s.text())
		}
		p.release()
		p.work()
		p.drawNow(frame{lines: []string{"$"}, col: 1})
		got := s.text()
		if tc.name == "a full line without line feed" { // the mark may or may not need a line
			got = strings.Replace(got, "\n⏎", "", 1)
			tc.want = strings.Replace(tc.want, "\n⏎", "", 1)
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		p.close()
		if odd := s.odd(); len(odd) > 0 {
			t.Errorf("%s: modes left on: %v", tc.name, odd)
		}
	}
}

// After a `clear` the mark for a missing line feed stood in the first row when the screen was cleared from there. tmux keeps
// what such a clear takes away: each `clear` left a mark in its scrollback.
func TestNoMarkIsLeftByClear(t *testing.T) {
	p, s := canvas(20, 8)
	p.hold("")
	p.work()
	p.raw([]byte("\x1b[H\x1b[J"))
	p.work()
	p.release()
	p.work()
	p.drawNow(frame{lines: []string{"$"}, col: 1})
	if got := s.all(); got != "$" {
		t.Errorf("got\n%s\nwant the prompt alone", got)
	}
}

func TestModeTracker(t *testing.T) {
	for _, tc := range []struct{ out, want string }{
		{"plain text", ""},
		{"\x1b[?1049h\x1b[?1049l", ""},
		{"\x1b[?1049h", "\x1b[?1049l"},
		{"\x1b[?25l\x1b[31m", "\x1b[?25h"},
		{"\x1b[?1000;1006h", "\x1b[?1000l\x1b[?1006l"},
		{"\x1b[>1u\x1b[>3u\x1b[<u", "\x1b[<1u"},
		{"\x1b[?2026h\x1b[?1004h", "\x1b[?2026l\x1b[?1004l"},
		{"\x1b=", "\x1b>"},
		{"\x1b[>4;2m", "\x1b[>4;0m"},
		{"\x1b[>4;2m\x1b[>4m", ""},
		{"\x1b[=5u", "\x1b[=0u"},
		{"\x1b[=5;1u\x1b[=0u", ""},
		{"\x1b[2;5r", "\x1b7\x1b[r\x1b8"},
		{"\x1b[2;5r\x1b[r\x1b[?1r", ""},
		{"\x1b[?1049h\x1bc", ""},
		{"\x1b[?", ""},
		{"\x1b[" + strings.Repeat("9", 300) + "h", ""},
	} {
		for cut := 0; cut <= len(tc.out); cut++ {
			var m modeTracker
			m.scan([]byte(tc.out[:cut]))
			m.scan([]byte(tc.out[cut:]))
			if got := string(m.reset(nil)); got != tc.want {
				t.Errorf("%q cut at %d: got %q, want %q", tc.out, cut, got, tc.want)
			}
		}
		var m modeTracker
		for i := range len(tc.out) {
			m.scan([]byte{tc.out[i]})
		}
		if got := string(m.reset(nil)); got != tc.want {
			t.Errorf("%q byte by byte: got %q, want %q", tc.out, got, tc.want)
		}
	}
}

// Whatever was on, ResetSequences brings a terminal back.
func TestResetSequences(t *testing.T) {
	s := newTermScreen(20, 5)
	for _, m := range []string{"1000", "1002", "1003", "1006", "1004", "2004", "2026", "1"} {
		_, _ = s.Write([]byte("\x1b[?" + m + "h"))
	}
	_, _ = s.Write([]byte("\x1b[?25l" + ResetSequences()))
	if odd := s.odd(); len(odd) > 0 {
		t.Errorf("left on: %v", odd)
	}
	var m modeTracker
	m.scan([]byte("\x1b[2;4r" + ResetSequences()))
	if m.margin {
		t.Error("only a part of the screen scrolls")
	}
}

// A window made narrower wraps what stood there; the picture is drawn in its place, once.
func TestPainterResize(t *testing.T) {
	p, s := canvas(20, 6)
	p.print("printed")
	p.drawNow(frame{lines: []string{"0123456789012345", "$ x"}, row: 1, col: 3})
	p.resize(10, 6)
	// What a terminal that reflows does with the rows above.
	s.mu.Lock()
	s.w = 10
	s.rows = [][]string{cellsOf("printed", 10), cellsOf("0123456789", 10), cellsOf("012345", 10), cellsOf("$ x", 10), cellsOf("", 10), cellsOf("", 10)}
	s.row, s.col = 3, 3
	s.mu.Unlock()
	p.drawNow(frame{lines: []string{"0123456789", "$ x"}, row: 1, col: 3})
	if got, want := s.text(), "printed\n0123456789\n$ x"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A window made lower: the terminal cuts off what stood below the cursor's row and scrolls the rest up. The picture is
// drawn in its own place, not over the line above it.
func TestPainterResizeLower(t *testing.T) {
	p, s := canvas(20, 6)
	p.print("one\ntwo\nthree")
	p.drawNow(frame{lines: []string{"> ask", "  footer"}, row: 0, col: 2})
	p.resize(20, 3)
	s.mu.Lock()
	s.h = 3
	s.rows = [][]string{cellsOf("two", 20), cellsOf("three", 20), cellsOf("> ask", 20)}
	s.row, s.col = 2, 2
	s.mu.Unlock()
	p.drawNow(frame{lines: []string{"> ask", "  footer"}, row: 0, col: 2})
	if got, want := s.text(), "three\n> ask\n  footer"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func cellsOf(text string, w int) []string {
	r := strings.Split(text, "")
	for len(r) < w {
		r = append(r, " ")
	}
	return r
}

// The shell's bytes pass untouched while it has the screen, and none of them otherwise. The modes of its editor are off
// meanwhile, and on again afterwards.
func TestPainterPassesTheShell(t *testing.T) {
	s := newTermScreen(20, 8)
	p := newPainter(s, 20, 8, testTheme())
	p.set(frame{lines: []string{"not now"}})
	p.print("later")
	p.work()
	prompt := "\x1b[?2004h\x1b[?1004h\x1b[>4;1m\x1b[=5u\x1b=\x1b[32m$\x1b[m "
	if !p.shellOutput([]byte(prompt)) || s.rawText() != prompt {
		t.Fatalf("got %q", s.rawText())
	}
	_ = p.shellOutput([]byte("\r\x1b[K"))
	from := s.bytesWritten()
	p.take()
	if got, want := s.rawText()[from:], "\x1b[m\x1b[?2004l\x1b[?1004l\x1b>\x1b[>4;0m\x1b[>0u\x1b[?2004h"; got != want {
		t.Errorf("taken: got %q, want %q", got, want)
	}
	if p.shellOutput([]byte("job")) {
		t.Error("the shell printed into the picture")
	}
	p.drawNow(frame{lines: []string{"> ask", "footer"}, col: 2})
	if got := s.text(); got != "later\n> ask\nfooter" {
		t.Errorf("got\n%s", got)
	}
	from = s.bytesWritten()
	p.print("answer")
	p.give()
	p.work()
	if got, want := s.rawText()[from:], "answer\r\n\x1b[m\x1b[?2004l\x1b[<u\x1b[?2004h\x1b[?1004h\x1b=\x1b[>4;1m"; !strings.HasSuffix(got, want) {
		t.Errorf("given: got %q, want %q at its end", got, want)
	}
	if row, col := s.cursor(); row != 2 || col != 0 {
		t.Errorf("given: the cursor is at %d,%d, want 2,0", row, col)
	}
	p.set(frame{lines: []string{"not now"}})
	p.work()
	_ = p.shellOutput([]byte("$ "))
	if got := s.all(); got != "later\nanswer\n$" {
		t.Errorf("got\n%s", got)
	}
}

// The picture that is set last is drawn, also where the screen was lent and came back before anything of that was written.
func TestPainterDrawsTheLastPicture(t *testing.T) {
	p, s := canvas(20, 8)
	p.drawNow(frame{lines: []string{"old"}})
	p.hold("cmd\r\n")
	p.raw([]byte("out\r\n"))
	p.release()
	p.set(frame{lines: []string{"new"}})
	p.work()
	if got := s.all(); got != "cmd\nout\nnew" {
		t.Errorf("got\n%s", got)
	}
	p.give()
	p.takeLater()
	p.set(frame{lines: []string{"again"}})
	p.work()
	if got := s.all(); got != "cmd\nout\nagain" {
		t.Errorf("got\n%s", got)
	}
}

// What is said to be written is on the screen, whatever stands before it, and at once.
func TestPainterWritten(t *testing.T) {
	p, s := canvas(20, 8)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.run(ctx) })
	defer running.Wait()
	defer cancel()
	start := time.Now()
	const rounds = 100
	for i := range rounds {
		p.print(itoa(i))
		p.set(frame{lines: []string{"live " + itoa(i)}})
		done := make(chan struct{})
		p.whenWritten(done)
		<-done
		if got := s.text(); !strings.HasSuffix(got, itoa(i)+"\nlive "+itoa(i)) {
			t.Fatalf("got\n%s", got)
		}
	}
	if took := time.Since(start); took > rounds*frameEvery/2 {
		t.Errorf("%d rounds took %v: whoever waits was paced", rounds, took)
	}
}
