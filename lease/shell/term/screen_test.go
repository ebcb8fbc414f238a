package term

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What a person would have read (design section 5, output).
func TestRender(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, raw, want string }{
		{"empty", "", ""},
		{"a line", "abc\r\n", "abc\n"},
		{"no newline", "abc", "abc"},
		{"bare line feeds (onlcr off)", "a\nb\n", "a\nb\n"},
		{"blank lines", "a\r\n\r\n\r\nb\r\n", "a\n\n\nb\n"},
		{"colours", "\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\r\n", "red and blue\n"},
		{"progress by carriage return", "10%\r50%\r100%\r\n", "100%\n"},
		{"a shorter line over a longer", "longer\rab\r\n", "abnger\n"},
		{"erase to the end", "longer\rab\x1b[K\r\n", "ab\n"},
		{"erase the line", "old\x1b[2K\rnew\r\n", "new\n"},
		{"erase to the beginning", "abcdef\x1b[3D\x1b[1K\r\n", "    ef\n"},
		{"backspace", "abc\b\bX\r\n", "aXc\n"},
		{"backspace behind the last column", strings.Repeat("x", 79) + "y\bZ\r\n", strings.Repeat("x", 78) + "Zy\n"},
		{"spinner", "|\b/\b-\b\\\b \r\n", " \n"},
		{"cursor left and right", "abc\x1b[2DX\x1b[1CY\r\n", "aXcY\n"},
		{"column", "abc\x1b[2GX\r\n", "aXc\n"},
		{"column beyond the end", "a\x1b[5GX\r\n", "a   X\n"},
		{"two lines of progress", "one 0\r\ntwo 0\r\n\x1b[2Aone 9\r\ntwo 9\r\n", "one 9\ntwo 9\n"},
		{"lines erased above", "one\r\ntwo\r\n\x1b[2A\x1b[Jdone\r\n", "done\n"},
		{"tab kept", "a\tb\r\n", "a\tb\n"},
		{"tab over text", "abcdefghij\r\tX\r\n", "abcdefghXj\n"},
		{"tabs in a row", "\t\tx\r\n", "\t\tx\n"},
		{"clipboard and queries", "\x1b]52;c;aGk=\a\x1b]52;c;?\x1b\\\x1b[c\x1b[6n\x1b]11;?\atext\r\n", "text\n"},
		{"title", "\x1b]0;title\atext\r\n", "text\n"},
		{"hyperlink", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\r\n", "link\n"},
		{"device control string", "\x1bPq#0;2;0;0;0\x1b\\text\r\n", "text\n"},
		{"bell and nul", "a\a\x00b\r\n", "ab\n"},
		{"wide characters", "漢字\rX\r\n", "X 字\n"},
		{"half of a wide character", "漢字\r\x1b[CX\r\n", " X字\n"},
		{"combining", "e\u0301x\r\n", "e\u0301x\n"},
		{"C1 control", "a\u0085b\r\n", "ab\n"},
		{"variation selector", "\u2764\ufe0f ok\r\n", "\u2764\ufe0f ok\n"},
		{"emoji", "🙂 ok\r\n", "🙂 ok\n"},
		{"invalid UTF-8", "a\xffb\r\n", "a\ufffdb\n"},
		{"cut character", "a\xe6\xbc", "a\ufffd"},
		{"alternate screen dropped", "before\r\n\x1b[?1049h\x1b[2J\x1b[Hscreen\x1b[?1049lafter\r\n", "before\nafter\n"},
		{"cut character on the alternate screen", "before\r\n\x1b[?1049h\xe6\xbc", "before\n"},
		{"alternate screen for ever", "before\r\n\x1b[?1049hscreen", "before\n"},
		{"clear keeps what was read", "old\r\n\x1b[H\x1b[2Jnew\r\n", "old\nnew\n"},
		{"clear of tmux", "old\r\n\x1b[H\x1b[J\x1b[3Jnew\r\n", "old\nnew\n"},
		{"progress in the first line", "10%\r\x1b[J20%\r\n", "20%\n"},
		{"erase the scrollback", "ab\x1b[3Jcd\r\n", "abcd\n"},
		{"reset in a line", "ab\x1bccd\r\n", "ab\ncd\n"},
		{"reset", "old\r\n\x1bcnew\r\n", "old\nnew\n"},
		{"insert and delete", "abcd\r\x1b[2Pxy\r\x1b[1@-\r\n", "-xy\n"},
		{"erase characters", "abcd\r\x1b[2X\r\n", "  cd\n"},
		{"save and restore", "a\x1b7bcd\x1b8X\r\n", "aXcd\n"},
		{"next line", "a\x1bEb\r\n", "a\nb\n"},
		{"reverse index", "a\r\nb\r\x1bMX\r\n", "X\nb"},
		{"a long line is one line", strings.Repeat("x", 200) + "\r\n", strings.Repeat("x", 200) + "\n"},
		{"exactly the width", strings.Repeat("x", 80) + "\r\ny\r\n", strings.Repeat("x", 80) + "\ny\n"},
		{"progress on a wrapped line", strings.Repeat("x", 90) + "\r" + strings.Repeat("y", 5) + "\r\n", strings.Repeat("x", 80) + "yyyyyxxxxx\n"},
		{"huge counts", "a\x1b[99999999Cb\x1b[99999999A\x1b[99999999B\r\n", ""},
		{"unfinished sequence", "a\x1b[3", "a"},
		{"mouse and paste modes", "\x1b[?1000h\x1b[?2004h\x1b[?25lx\x1b[?25h\r\n", "x\n"},
		{"query", "\x1b[6n\x1b[c\x1b]11;?\ax\r\n", "x\n"},
	}
	for _, c := range cases {
		got := string(Render([]byte(c.raw), 80))
		if c.want != "" && got != c.want || c.raw == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		// The same in pieces of every size.
		for size := 1; size <= 3; size++ {
			var out []byte
			s := newScreen(80, func(p []byte) { out = append(out, p...) })
			for i := 0; i < len(c.raw); i += size {
				s.Write([]byte(c.raw)[i:min(i+size, len(c.raw))])
			}
			s.Flush()
			if string(out) != got {
				t.Errorf("%s: in pieces of %d: got %q, want %q", c.name, size, out, got)
			}
		}
	}
}

// What real programs print on a terminal of 80 columns reads as tmux showed it; testdata/progress/record took both. Blanks at
// the ends of lines are no difference.
func TestRenderProgress(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/progress/*.raw")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	blanks := regexp.MustCompile(`[ \t]+\n|\n+$`)
	read := func(text []byte) string { return blanks.ReplaceAllString(string(text)+"\n", "\n") }
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, "raw") + "txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := read(Render(raw, 80)); got != read(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, read(want))
		}
	}
}

// More lines than the window come out in order.
func TestRenderScrolls(t *testing.T) {
	t.Parallel()
	var raw, want strings.Builder
	for i := range 1000 {
		raw.WriteString(strconv.Itoa(i+1) + " line\r\n")
		want.WriteString(strconv.Itoa(i+1) + " line\n")
	}
	if got := string(Render([]byte(raw.String()), 80)); got != want.String() {
		t.Errorf("got %d bytes, want %d", len(got), want.Len())
	}
}

// No input costs more than its length: one short sequence held another library for seconds.
func TestRenderIsBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"\x1b[20000000b", "\x1b[9999999@", "\x1b[9999999P", "\x1b[9999999;9999999H", "\x1b[9999999X", "\x1b[9999999C", "x\x1b[9999999b", "\x1b[J", "\x1b[64;1H\x1b[2J", "e\u0301", "\u0301", "\x1b7\x1b8", "\t"} {
		start := time.Now()
		got := Render(bytes.Repeat([]byte(unit), 5000), 200)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q 5000 times took %v for %d bytes", unit, took, len(got))
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte("a\x1b[2Kb\r\nc\x1b[Ad\x1b[?1049he\x1b[?1049l"), 80)
	f.Add([]byte("漢\b\b\x1b[1@\x1b[P\t\x1b[5b"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, cols int) {
		if len(raw) > 4096 {
			return
		}
		out := Render(raw, cols)
		if bytes.IndexByte(out, 0x1b) >= 0 {
			t.Errorf("an escape came through: %q", out)
		}
		if again := Render(out, 4096); bytes.Count(again, []byte("\n")) > bytes.Count(out, []byte("\n"))+len(out)/4096+1 {
			t.Errorf("rendering twice changed %q to %q", out, again)
		}
		var pieces []byte
		s := newScreen(cols, func(p []byte) { pieces = append(pieces, p...) })
		for i := range raw {
			s.Write(raw[i : i+1])
		}
		s.Flush()
		if !bytes.Equal(pieces, out) {
			t.Errorf("whole %q, in pieces %q", out, pieces)
		}
	})
}
