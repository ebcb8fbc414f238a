package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// typist is a keyboard without a terminal.
type typist struct {
	k       *keyboard
	events  []string
	program []byte
	onKey   func(name string)
}

func newTypist() *typist {
	ty := &typist{}
	ty.k = &keyboard{now: time.Now, program: func(p []byte) error {
		ty.program = append(ty.program, p...)
		return nil
	}}
	ty.k.key = func(msg tea.Msg) bool {
		switch msg := msg.(type) {
		case tea.KeyPressMsg:
			name := keyName(msg)
			ty.events = append(ty.events, name)
			if ty.onKey != nil {
				ty.onKey(name)
			}
		case tea.PasteMsg:
			ty.events = append(ty.events, "paste:"+msg.Content)
		}
		return true
	}
	return ty
}

func TestKeyboardDecodes(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"ab", []string{"a", "b"}},
		{"\r", []string{"enter"}},
		{"\n", []string{"ctrl+j"}},
		{"\t", []string{"tab"}},
		{"\x7f\x08", []string{"backspace", "ctrl+h"}},
		{"\x1b[A\x1bOB", []string{"up", "down"}},
		{"\x1b[1;5C", []string{"ctrl+right"}},
		{"\x1bb\x1b\x7f", []string{"alt+b", "alt+backspace"}},
		{"\x1b\r", []string{"alt+enter"}},
		{"\x1f", []string{"ctrl+_"}},
		{"漢é", []string{"漢", "é"}},
		{"\x1b[200~two\r\nlines\rhere\x1b[201~x", []string{"paste:two\nlines\nhere", "x"}},
		{"\x1b[200~\x03\x1b[A\x1b[201~", []string{"paste:\x03\x1b[A"}},
		// What a terminal says unasked is no key: cursor report, attributes, focus, colour.
		{"\x1b[?62;4c\x1b[12;40R\x1b[I\x1b[O\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?2026;2$y", nil},
		{strings.Repeat("paste without brackets ", 3), []string{"paste:" + strings.Repeat("paste without brackets ", 3)}},
	} {
		for _, size := range []int{1, 2, 3, len(tc.in)} {
			if size < pasteRun && strings.HasPrefix(tc.in, "paste") {
				continue // typed slowly it is typing
			}
			ty := newTypist()
			for c := range slices.Chunk([]byte(tc.in), size) {
				ty.k.feed(slices.Clone(c))
			}
			ty.k.decode(true)
			if got := strings.Join(ty.events, " "); got != strings.Join(tc.want, " ") {
				t.Errorf("%q in pieces of %d: got %q, want %q", tc.in, size, ty.events, tc.want)
			}
		}
	}
}

// A lone escape byte is the Escape key once nothing follows it.
func TestKeyboardEscape(t *testing.T) {
	ty := newTypist()
	ty.k.feed([]byte{0x1b})
	if len(ty.events) != 0 || len(ty.k.pending) != 1 {
		t.Fatalf("got %q at once, want to wait", ty.events)
	}
	ty.k.decode(true)
	if !slices.Equal(ty.events, []string{"esc"}) {
		t.Errorf("got %q, want esc", ty.events)
	}
}

// T2g: all that was read together with the Enter that starts a command is the command's, and not one byte of it before
// the command runs; what is typed once the command is over is the editor's.
func TestKeyboardHandsOverBehindEnter(t *testing.T) {
	ty := newTypist()
	ty.onKey = func(name string) {
		if name == "enter" {
			ty.k.route(true)
		}
	}
	ty.k.feed([]byte("cat\rhello\r\x1b[Aworld\x04"))
	if want := []string{"c", "a", "t", "enter"}; !slices.Equal(ty.events, want) {
		t.Errorf("editor: got %q, want %q", ty.events, want)
	}
	if len(ty.program) != 0 {
		t.Errorf("before the command runs its terminal got %q", ty.program)
	}
	ty.k.begin()
	if got, want := string(ty.program), "hello\r\x1b[Aworld\x04"; got != want {
		t.Errorf("program: got %q, want %q", got, want)
	}
	ty.k.feed([]byte("\x1b[?1;2cmore"))
	ty.k.route(false)
	ty.k.feed([]byte("ls"))
	if got, want := string(ty.program), "hello\r\x1b[Aworld\x04\x1b[?1;2cmore"; got != want {
		t.Errorf("program: got %q, want %q: every byte, untouched, and none after the end", got, want)
	}
	if got := ty.events[4:]; !slices.Equal(got, []string{"l", "s"}) {
		t.Errorf("editor: got %q, want l s", got)
	}
}

// T2g: what is typed for a program that asked for a secret, before it asks again, waits for that: neither the editor nor the
// terminal, which would show it, has it meanwhile. What ends or stops the program does not wait, and nothing typed before it
// is typed after it.
func TestKeyboardPause(t *testing.T) {
	ty := newTypist()
	ty.k.route(true)
	ty.k.begin()
	ty.k.feed([]byte("wrong\r"))
	ty.k.pause()
	ty.k.feed([]byte("se"))
	ty.k.feed([]byte("cret\r"))
	if got := string(ty.program); got != "wrong\r" {
		t.Errorf("paused: the program got %q", got)
	}
	ty.k.begin()
	ty.k.feed([]byte("more"))
	if got := string(ty.program); got != "wrong\rsecret\rmore" {
		t.Errorf("asked again: the program got %q", got)
	}
	ty.k.pause()
	ty.k.feed([]byte("sec\x03\x1aret"))
	if got := string(ty.program); got != "wrong\rsecret\rmore\x1a" {
		t.Errorf("interrupted: the program got %q", got)
	}
	ty.k.route(false)
	ty.k.feed([]byte("l"))
	if !slices.Equal(ty.events, []string{"l"}) {
		t.Errorf("editor: got %q, want l", ty.events)
	}
}

func FuzzKeyboard(f *testing.F) {
	f.Add([]byte("\x1b[200~x\x1b[201~\x1b[1;5A\xe6\xbc"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		ty := newTypist()
		for c := range slices.Chunk(in, int(size)+1) {
			ty.k.feed(slices.Clone(c))
		}
		for i := 0; len(ty.k.pending) > 0 && ty.k.paste == nil; i++ {
			if i > len(in)+1 {
				t.Fatalf("never done with %q", ty.k.pending)
			}
			ty.k.decode(true)
		}
	})
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text\n":            "plain text\n",
		"a\x1b[31mb":              "a␛[31mb",
		"\r\nend\rover":           "\nend␍over",
		"\x00\x07\x7f":            "␀␇␡",
		"tab\there":               "tab    here",
		"a\u202eb":                "a⟨U+202E⟩b", // right-to-left override (T3j)
		"a\u200bb\ufeff":          "a⟨U+200B⟩b⟨U+FEFF⟩",
		"\u009b2J":                "⟨U+009B⟩2J",
		"broken \xff":             "broken ⟨FF⟩",
		"👨\u200d👩\u200d👧 ❤\ufe0f": "👨\u200d👩\u200d👧 ❤\ufe0f",
		"a\u200db":                "a⟨U+200D⟩b",
		"e\u0301 漢":               "e\u0301 漢",
		"\U000e0041":              "⟨U+E0041⟩",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q): got %q, want %q", in, got, want)
		}
	}
	if got := visibleLine("a\nb"); got != "a␤b" {
		t.Errorf("got %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := visible(s)
		for _, r := range out {
			if (r < 0x20 && r != '\n') || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || r == 0x200b {
				t.Fatalf("visible(%q) = %q holds %U", s, out, r)
			}
		}
		if again := visible(out); again != out {
			t.Fatalf("visible is not stable: %q, then %q", out, again)
		}
	})
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"a\r\nb\r\nc", []string{"a", "b", "c"}},
		{" 10%\r 50%\r100%\n", []string{"100%"}},
		{"long line\rshort\x1b[K\n", []string{"short"}},
		{"\x1b[32mgreen\x1b[m \x1b]0;title\aend", []string{"green end"}},
		{"back\b\bXY\n", []string{"baXY"}},
		{"a\tb", []string{"a       b"}},
		{"漢字\n", []string{"漢字"}},
		{"gone\n\x1b[2Jhere", []string{"here"}},
		{"\x1bP1$r\x1b\\dcs\x1b(B", []string{"dcs"}},
		{"evil \u202e\n", []string{"evil ⟨U+202E⟩"}},
		{"\x1b]52;c;aGVsbG8=\a\x1b]52;c;?\x1b\\\x1b[c\x1b[6n\x1b]11;?\aend\n", []string{"end"}}, // T6f: the clipboard, and what a terminal would answer
	} {
		for size := 1; size <= len(tc.in); size += 3 {
			var l tail
			for c := range slices.Chunk([]byte(tc.in), size) {
				l.write(c)
			}
			if got := l.last(5); !slices.Equal(got, tc.want) {
				t.Errorf("%q in pieces of %d: got %q, want %q", tc.in, size, got, tc.want)
			}
		}
	}
	var l tail
	for i := range 10_000 {
		l.write([]byte(fmt.Sprintf("line %d\n", i)))
	}
	if len(l.lines) > 2*tailLines || len(l.raw) > 2*rawKept {
		t.Errorf("a tail must stay short (T6e): %d lines, %d raw bytes", len(l.lines), len(l.raw))
	}
	if got := string(func() []byte { l.write([]byte("\x1b[1mPassword: ")); return l.unfinished() }()); got != "\x1b[1mPassword: " {
		t.Errorf("unfinished: got %q", got)
	}
	l.write([]byte("x\n\x1b[?1049h\x1b[Hscreen"))
	if got := string(l.fromAltScreen()); got != "\x1b[?1049h\x1b[Hscreen" {
		t.Errorf("from the alternate screen: got %q", got)
	}
}

// Half of a paste is another text, perhaps another command: one that is longer than the line may be is not taken at all,
// and the user is told. The keys behind it are keys.
func TestPasteTooLong(t *testing.T) {
	w := open(t, 100, 24)
	w.keys("echo \x1b[200~")
	line := strings.Repeat("rm -rf build # a line of a paste\n", 2000)
	for sent := 0; sent <= maxPaste; sent += len(line) {
		w.keys(line)
	}
	w.keys("\x1b[201~")
	w.see("nothing was pasted")
	w.keys("x\r")
	w.until("the command", func() bool { return len(w.sh.commands()) == 1 })
	if got := w.sh.commands()[0]; got != "echo x" {
		t.Errorf("ran %d bytes: %.40q", len(got), got)
	}
}
