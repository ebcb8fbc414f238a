package paint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/screentest"
	"sublet/client/internal/tui/style"
)

// canvas is a painter on a test terminal, drawn by hand.
func canvas(w, h int) (*Painter, *screentest.Screen) {
	s := screentest.New(w, h)
	p := New(s, w, h, theme())
	p.Take()
	p.Flush()
	return p, s
}

func (p *Painter) drawNow(f Frame) { p.Set(f); p.Flush() }

func TestPainterDrawsAndPrints(t *testing.T) {
	p, s := canvas(20, 6)
	p.drawNow(Frame{Lines: []string{"status", "$ ls"}, Row: 1, Col: 4})
	if got := s.Text(); got != "status\n$ ls" {
		t.Fatalf("got %q", got)
	}
	if r, c := s.Cursor(); r != 1 || c != 4 {
		t.Errorf("cursor: got %d,%d, want 1,4", r, c)
	}
	p.Print("done one\ndone two")
	p.drawNow(Frame{Lines: []string{"$ "}, Row: 0, Col: 2})
	if got := s.Text(); got != "done one\ndone two\n$" {
		t.Errorf("got %q", got)
	}
	// Far more than a screenful: all of it is in the scrollback, in order, without a gap.
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprint("row ", i))
	}
	p.Print(strings.Join(lines, "\n"))
	p.Flush()
	want := "done one\ndone two\n" + strings.Join(lines, "\n") + "\n$"
	if got := s.All(); got != want {
		t.Errorf("scrollback: got %d bytes, want %d", len(got), len(want))
	}
}

// While the terminal does not take what is written, one picture waits, the newest, and all that is printed, in order.
func TestOnePictureWaits(t *testing.T) {
	p, s := canvas(20, 6)
	for i := range 100 {
		p.Set(Frame{Lines: []string{fmt.Sprint("picture ", i)}})
		if i%50 == 0 {
			p.Print(fmt.Sprint("printed ", i))
		}
	}
	p.Hold("$ ls\r\n")
	p.Release()
	p.Set(Frame{Lines: []string{"$ "}, Col: 2})
	if n := len(p.requests); n != 4 {
		t.Errorf("%d requests wait, want two prints, Hold and Release", n)
	}
	p.Flush()
	if got := s.All(); got != "printed 0\nprinted 50\n$ ls\n$" {
		t.Errorf("got %q", got)
	}
}

// What is printed while the terminal reads nothing (^S) is bounded: the oldest text is left out, which a line says, and what was printed
// last and the newest picture are there when the terminal reads again. It grew until the system killed the program.
func TestATerminalThatDoesNotRead(t *testing.T) {
	p, s := canvas(60, 6)
	line := strings.Repeat("x", 59)
	for i := range 3 * textMost / len(line) {
		p.Print(line)
		if i%1000 == 0 {
			p.Set(Frame{Lines: []string{fmt.Sprint("picture ", i)}})
		}
	}
	p.Print("the last line")
	p.Set(Frame{Lines: []string{"$ "}, Col: 2})
	if p.text > textMost || len(p.requests) > textMost/len(line)+10 {
		t.Errorf("%d bytes in %d requests wait, want at most %d", p.text, len(p.requests), textMost)
	}
	p.Flush()
	if got := s.Text(); !strings.HasSuffix(got, "the last line\n$") {
		t.Errorf("at the end: got %q", got)
	}
	if n := strings.Count(string(s.Raw()), "some output was left out"); n != 1 {
		t.Errorf("%d lines say that text was left out, want one", n)
	}
}

// What is printed while a program has the terminal is bounded in the same way, though the requests are served meanwhile.
func TestAProgramThatKeepsTheTerminal(t *testing.T) {
	p, s := canvas(60, 6)
	p.Hold("$ vim\r\n")
	line := strings.Repeat("x", 59)
	for i := range 3 * textMost / len(line) {
		p.Print(line)
		if i%1000 == 0 {
			p.Flush()
		}
	}
	p.Print("the last line")
	p.Flush()
	if n := len(p.prints); n > textMost/len(line)+10 {
		t.Errorf("%d lines wait", n)
	}
	p.Release()
	p.Flush()
	if got := s.All(); !strings.HasSuffix(got, "the last line") || strings.Count(s.Raw(), "some output was left out") != 1 {
		t.Errorf("at the end: got %.300q", got)
	}
}

// tmux takes "erase below" from the screen's first cell for a clear, and keeps what stood there in its scrollback: a
// live part at the top of the screen would be seen twice.
func TestPainterErasesWithoutClearing(t *testing.T) {
	p, s := canvas(20, 6)
	p.drawNow(Frame{Lines: []string{"$ "}, Row: 0, Col: 2})
	p.Print("note")
	p.drawNow(Frame{Lines: []string{"status", "$ "}, Row: 1, Col: 2})
	p.Print("more")
	p.drawNow(Frame{Lines: []string{"$ "}, Row: 0, Col: 2})
	p.Hold("$ ls\r\n")
	p.Flush()
	if got := s.All(); got != "note\nmore\n$ ls" {
		t.Errorf("got %q", got)
	}
}

// An unchanged picture costs nothing, and a key no more than its line.
func TestPainterBytesPerKey(t *testing.T) {
	for before, key := range map[string]string{"echo hello": "x", "echo 漢字 漢字": "x", "echo 漢": "字", "\x1b[32m>\x1b[m ls": "x"} {
		p, s := canvas(80, 24)
		p.drawNow(Frame{Lines: []string{"above", before, "below 漢字"}, Row: 1, Col: cells.Width(before)})
		was := len(s.Raw())
		p.drawNow(Frame{Lines: []string{"above", before, "below 漢字"}, Row: 1, Col: cells.Width(before)})
		if n := len(s.Raw()) - was; n != 0 {
			t.Errorf("%q: nothing changed and %d bytes were written", before, n)
		}
		line := before + key
		p.drawNow(Frame{Lines: []string{"above", line, "below 漢字"}, Row: 1, Col: cells.Width(line)})
		if n := len(s.Raw()) - was; n > len(line)+26 {
			t.Errorf("%q: got %d bytes for a key, want at most %d", before, n, len(line)+26)
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
		var f Frame
		for range 40 {
			switch rnd.IntN(5) {
			case 0:
				text := "printed " + fmt.Sprint(len(printed))
				printed = append(printed, text)
				p.Print(text)
			case 1: // one line grows or shrinks, as under typing
				if len(f.Lines) > 0 {
					f.Lines = slices.Clone(f.Lines)
					i := rnd.IntN(len(f.Lines))
					f.Lines[i] = cells.Fit(f.Lines[i]+pieces[rnd.IntN(len(pieces))], w)
				}
			default:
				f.Lines = make([]string, rnd.IntN(h))
				for i := range f.Lines {
					f.Lines[i] = line(w)
				}
			}
			f.Row, f.Col = 0, 0
			if n := len(f.Lines); n > 0 {
				f.Row = rnd.IntN(n)
				f.Col = rnd.IntN(min(w, cells.Width(f.Lines[f.Row])+1))
			}
			p.drawNow(f)
			want := append(slices.Clone(printed), f.Lines...)
			for i, l := range want {
				want[i] = strings.TrimRight(ansi.Strip(l), " ")
			}
			got := strings.TrimRight(s.All(), "\n")
			if got != strings.TrimRight(strings.Join(want, "\n"), "\n ") {
				t.Fatalf("got\n%s\nwant\n%s\nraw %q", got, strings.Join(want, "\n"), s.Raw()[max(0, len(s.Raw())-400):])
			}
			if row, col := s.Cursor(); len(f.Lines) > 0 && (col != min(f.Col, w-1) || row < 0) {
				t.Fatalf("cursor: got column %d, want %d", col, f.Col)
			}
		}
	}
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
		closed, c := canvas(20, 8)
		closed.Hold("cmd\r\n")
		closed.Raw([]byte(tc.out))
		closed.Print("note")
		closed.Close() // printed on the program's alternate screen, the text was lost with that
		if got, want := c.Text(), strings.TrimSuffix(tc.want, "\n$"); got != want && got != strings.Replace(want, "\n⏎", "", 1) {
			t.Errorf("%s: closed meanwhile: got\n%s\nwant\n%s", tc.name, got, want)
		}

		p, s := canvas(20, 8)
		p.drawNow(Frame{Lines: []string{"$ cmd"}, Col: 5})
		p.Hold("cmd\r\n")
		p.Flush()
		if s.On("2004") {
			t.Errorf("%s: bracketed paste is on while a program has the terminal", tc.name)
		}
		p.Print("note")
		p.Set(Frame{Lines: []string{"not now"}})
		p.Flush()
		p.Raw([]byte(tc.out))
		p.Flush()
		if strings.Contains(s.Text(), "not") {
			t.Errorf("%s: drawn over a program:\n%s", tc.name, s.Text())
		}
		p.Release()
		p.Flush()
		p.drawNow(Frame{Lines: []string{"$"}, Col: 1})
		got := s.Text()
		if tc.name == "a full line without line feed" { // the mark may or may not need a line
			got = strings.Replace(got, "\n⏎", "", 1)
			tc.want = strings.Replace(tc.want, "\n⏎", "", 1)
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		p.Close()
		if odd := s.Odd(); len(odd) > 0 {
			t.Errorf("%s: modes left on: %v", tc.name, odd)
		}
	}
}

// After a `clear` the mark for a missing line feed stood in the first row when the screen was cleared from there. tmux keeps
// what such a clear takes away: each `clear` left a mark in its scrollback.
func TestNoMarkIsLeftByClear(t *testing.T) {
	p, s := canvas(20, 8)
	p.Hold("")
	p.Flush()
	p.Raw([]byte("\x1b[H\x1b[J"))
	p.Flush()
	p.Release()
	p.Flush()
	p.drawNow(Frame{Lines: []string{"$"}, Col: 1})
	if got := s.All(); got != "$" {
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
	s := screentest.New(20, 5)
	for _, m := range []string{"1000", "1002", "1003", "1006", "1004", "2004", "2026", "1"} {
		_, _ = s.Write([]byte("\x1b[?" + m + "h"))
	}
	_, _ = s.Write([]byte("\x1b[?25l" + ResetSequences()))
	if odd := s.Odd(); len(odd) > 0 {
		t.Errorf("left on: %v", odd)
	}
	var m modeTracker
	m.scan([]byte("\x1b[2;4r" + ResetSequences()))
	if m.has("margin") {
		t.Error("only a part of the screen scrolls")
	}
}

// A window made narrower wraps what stood there; the picture is drawn in its place, once.
func TestPainterResize(t *testing.T) {
	p, s := canvas(20, 6)
	p.Print("printed")
	p.drawNow(Frame{Lines: []string{"0123456789012345", "$ x"}, Row: 1, Col: 3})
	p.Resize(10, 6)
	s.Resize(10, 6, "printed", "0123456789", "012345", "$ x") // as a terminal that reflows
	p.drawNow(Frame{Lines: []string{"0123456789", "$ x"}, Row: 1, Col: 3})
	if got, want := s.Text(), "printed\n0123456789\n$ x"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A window made lower: the terminal cuts off what stood below the cursor's row and scrolls the rest up. The picture is
// drawn in its own place, not over the line above it.
func TestPainterResizeLower(t *testing.T) {
	p, s := canvas(20, 6)
	p.Print("one\ntwo\nthree")
	p.drawNow(Frame{Lines: []string{"> ask", "  footer"}, Row: 0, Col: 2})
	p.Resize(20, 3)
	s.Resize(20, 3, "two", "three", "> ask")
	_, _ = s.Write([]byte("\r\x1b[2C"))
	p.drawNow(Frame{Lines: []string{"> ask", "  footer"}, Row: 0, Col: 2})
	if got, want := s.Text(), "three\n> ask\n  footer"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// After a stop (SIGTSTP, SIGCONT) what another program has printed stands below the live part. It was not drawn again, since no
// line of it had changed.
func TestPainterRedraws(t *testing.T) {
	p, s := canvas(20, 6)
	f := Frame{Lines: []string{"status", "> ask"}, Row: 1, Col: 5}
	p.drawNow(f)
	_, _ = s.Write([]byte("\r\n$ fg\r\nsublet\r\n"))
	p.Redraw()
	p.drawNow(f)
	if got, want := s.Text(), "status\n> ask\n$ fg\nsublet\nstatus\n> ask"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The shell's bytes pass untouched while it has the screen, and none of them otherwise. The modes of its editor are off
// meanwhile, and on again afterwards.
func TestPainterPassesTheShell(t *testing.T) {
	s := screentest.New(20, 8)
	p := New(s, 20, 8, theme())
	p.Set(Frame{Lines: []string{"not now"}})
	p.Print("later")
	p.Flush()
	prompt := "\x1b[?2004h\x1b[?1004h\x1b[>4;1m\x1b[=5u\x1b=\x1b[32m$\x1b[m "
	if !p.ShellOutput([]byte(prompt)) || s.Raw() != prompt {
		t.Fatalf("got %q", s.Raw())
	}
	_ = p.ShellOutput([]byte("\r\x1b[K"))
	from := len(s.Raw())
	p.Take()
	p.Flush()
	if got, want := s.Raw()[from:], "\x1b[m\x1b[?2004l\x1b[?1004l\x1b[>4;0m\x1b>\x1b[>0u\x1b[?2004h"; !strings.HasPrefix(got, want) {
		t.Errorf("taken: got %q, want %q at its start", got, want)
	}
	if p.ShellOutput([]byte("job")) {
		t.Error("the shell printed into the picture")
	}
	p.drawNow(Frame{Lines: []string{"> ask", "footer"}, Col: 2})
	if got := s.Text(); got != "later\n> ask\nfooter" {
		t.Errorf("got\n%s", got)
	}
	from = len(s.Raw())
	p.Print("answer")
	p.Give()
	p.Flush()
	if got, want := s.Raw()[from:], "answer\r\n\x1b[m\x1b[?2004l\x1b[<u\x1b[?2004h\x1b[?1004h\x1b[>4;1m\x1b="; !strings.HasSuffix(got, want) {
		t.Errorf("given: got %q, want %q at its end", got, want)
	}
	if row, col := s.Cursor(); row != 2 || col != 0 {
		t.Errorf("given: the cursor is at %d,%d, want 2,0", row, col)
	}
	p.Set(Frame{Lines: []string{"not now"}})
	p.Flush()
	_ = p.ShellOutput([]byte("$ "))
	if got := s.All(); got != "later\nanswer\n$" {
		t.Errorf("got\n%s", got)
	}
}

// The picture that is set last is drawn, also where the screen was lent and came back before anything of that was written.
func TestPainterDrawsTheLastPicture(t *testing.T) {
	p, s := canvas(20, 8)
	p.drawNow(Frame{Lines: []string{"old"}})
	p.Hold("cmd\r\n")
	p.Raw([]byte("out\r\n"))
	p.Release()
	p.Set(Frame{Lines: []string{"new"}})
	p.Flush()
	if got := s.All(); got != "cmd\nout\nnew" {
		t.Errorf("got\n%s", got)
	}
	p.Give()
	p.Take()
	p.Set(Frame{Lines: []string{"again"}})
	p.Flush()
	if got := s.All(); got != "cmd\nout\nagain" {
		t.Errorf("got\n%s", got)
	}
}

// What is said to be written is on the screen, whatever stands before it.
func TestPainterWritten(t *testing.T) {
	p, s := canvas(20, 8)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for i := range 100 {
		p.Print(strconv.Itoa(i))
		p.Set(Frame{Lines: []string{"live " + strconv.Itoa(i)}})
		done := make(chan struct{})
		p.WhenWritten(done)
		<-done
		if got := s.Text(); !strings.HasSuffix(got, strconv.Itoa(i)+"\nlive "+strconv.Itoa(i)) {
			t.Fatalf("got\n%s", got)
		}
	}
}

func theme() *style.Theme {
	th := style.New([]string{"TERM=xterm-256color", "LANG=C.UTF-8"})
	return &th
}
