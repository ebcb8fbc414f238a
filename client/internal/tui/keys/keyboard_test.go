package keys

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// typist is a keyboard without a terminal.
type typist struct {
	k       *Keyboard
	clock   time.Time
	events  []string
	shell   []byte
	program []byte
	asked   []string // chunks that the shell was asked about
	enter   bool     // what it answers
	pass    bool     // what the event loop does with keys
	onKey   func(name string)
}

func newTypist() *typist {
	ty := &typist{clock: time.Unix(1_000_000, 0)}
	ty.k = &Keyboard{
		Now:       func() time.Time { return ty.clock },
		Shell:     func(p []byte) { ty.shell = append(ty.shell, p...) },
		Answer:    func(p []byte) { ty.program = append(ty.program, p...) },
		Bracketed: func() bool { return true },
	}
	ty.k.Deliver = func(msg any) (bool, bool) {
		switch msg := msg.(type) {
		case Enter:
			ty.asked = append(ty.asked, string(msg))
			if ty.enter {
				ty.k.Route(ToUs)
			}
			return ty.enter, true
		case Key:
			ty.events = append(ty.events, msg.Name)
			if ty.onKey != nil {
				ty.onKey(msg.Name)
			}
		case Paste:
			ty.events = append(ty.events, "paste:"+msg.Text())
		case Switch:
			ty.events = append(ty.events, "switch")
		}
		return ty.pass, true
	}
	return ty
}

func (ty *typist) feed(chunks ...string) {
	for _, c := range chunks {
		ty.k.Feed([]byte(c))
	}
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
		// What a terminal says unasked is not a key: cursor report, attributes, focus, colour.
		{"\x1b[?62;4c\x1b[12;40R\x1b[I\x1b[O\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?2026;2$y", nil},
		{strings.Repeat("paste without brackets ", 3), []string{"paste:" + strings.Repeat("paste without brackets ", 3)}},
	} {
		for _, size := range []int{1, 2, 3, len(tc.in)} {
			if size < pasteRun && strings.HasPrefix(tc.in, "paste") {
				continue // typed slowly it is typing
			}
			ty := newTypist()
			ty.k.Route(ToUs)
			for c := range slices.Chunk([]byte(tc.in), size) {
				ty.k.Feed(slices.Clone(c))
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
	ty.k.Route(ToUs)
	ty.feed("\x1b")
	if len(ty.events) != 0 || len(ty.k.decoder.pending) != 1 {
		t.Fatalf("got %q at once, want to wait", ty.events)
	}
	ty.k.decode(true)
	if !slices.Equal(ty.events, []string{"esc"}) {
		t.Errorf("got %q, want esc", ty.events)
	}
}

// In command mode every byte is the shell's, as it came. It is asked about a Tab or the chosen key that come by themselves and
// about a question mark that begins what was typed, and about nothing else: not one in a paste, at the end of one, or in what was typed ahead.
// A paste whose end was lost ends with a ^C a second later: else no key would lead out of it.
func TestKeyboardLostPaste(t *testing.T) {
	ty := newTypist()
	ty.k.Route(ToUs)
	ty.feed("\x1b[200~x", "\x03")
	ty.clock = ty.clock.Add(2 * time.Second)
	ty.feed("\x03", "y")
	if want := []string{"ctrl+c", "y"}; !slices.Equal(ty.events, want) {
		t.Errorf("%q, want %q", ty.events, want)
	}
}

func TestKeyboardIsTransparent(t *testing.T) {
	all := ""
	for i := range 256 {
		all += string([]byte{byte(i)})
	}
	ty := newTypist()
	ty.k.Switch = []byte("\x1b[24~")
	long := strings.Repeat("make\r", 800)
	for _, chunk := range []string{all, "\x1b", "[A", "\tls", "ls?", "ls\t", "\x1b[200~\t\x1b[201~", "\x1b[24~x", long, "\t", "?", "?x"} {
		ty.shell = nil
		ty.feed(chunk)
		if string(ty.shell) != chunk || len(ty.asked) != 0 || len(ty.events) != 0 {
			t.Errorf("%.20q: the shell got %.20q, was asked about %q; events %q", chunk, ty.shell, ty.asked, ty.events)
		}
	}
	ty.shell = nil
	ty.clock = ty.clock.Add(time.Second)
	ty.feed("\t", "?", "\x1b[24~", "?why")
	if want := []string{"\t", "?", "\x1b[24~", "?"}; !slices.Equal(ty.asked, want) || string(ty.shell) != strings.Join(want, "")+"why" {
		t.Errorf("refused: asked about %q, the shell got %q, want %q for both and \"why\"", ty.asked, ty.shell, want)
	}
	ty.enter, ty.shell = true, nil
	ty.feed("?hi")
	if string(ty.shell) != "" || !slices.Equal(ty.events, []string{"h", "i"}) {
		t.Errorf("taken, typed fast: the shell got %q; events %q", ty.shell, ty.events)
	}
	ty.events = nil
	ty.k.Route(ToShell)
	ty.feed("\t", "a\x1b[24~")
	if string(ty.shell) != "" || !slices.Equal(ty.events, []string{"a", "switch"}) {
		t.Errorf("taken: the shell got %q; events %q", ty.shell, ty.events)
	}
}

// A key that gives the screen away takes what was read together with it along. A paste is whoever's its beginning was.
func TestKeyboardGivesTheRestAway(t *testing.T) {
	ty := newTypist()
	ty.k.Route(ToUs)
	ty.onKey = func(name string) {
		if name == "tab" {
			ty.k.Route(ToShell)
		}
	}
	ty.feed("a\tls\r\x1b[A", "pwd\r")
	if want := "ls\r\x1b[Apwd\r"; string(ty.shell) != want || !slices.Equal(ty.events, []string{"a", "tab"}) {
		t.Errorf("the shell got %q, want %q; events %q", ty.shell, want, ty.events)
	}
	ty.k.Route(ToUs)
	ty.feed("\x1b[200~rm x\r")
	ty.k.Route(ToShell)
	ty.shell = nil
	ty.feed("rm y\r\x1b[201~ls")
	if string(ty.shell) != "ls" || ty.events[len(ty.events)-1] != "paste:rm x\nrm y\n" {
		t.Errorf("the shell got %q; events %q", ty.shell, ty.events)
	}
}

// What the event loop does not want for itself the shell gets as it was typed.
func TestKeyboardPassesOn(t *testing.T) {
	ty := newTypist()
	ty.k.Route(ToUs)
	ty.pass = true
	ty.feed("l\x1b", "[A漢\r\x1b[200~a\rb\x1b[201~", strings.Repeat("x", 40))
	if want := "l\x1b[A漢\r\x1b[200~a\rb\x1b[201~" + strings.Repeat("x", 40); string(ty.shell) != want {
		t.Errorf("got %q, want %q", ty.shell, want)
	}
}

// Muted, the keyboard drops what is typed, wherever it would go, and what was half typed.
func TestKeyboardMute(t *testing.T) {
	for _, to := range []Receiver{ToShell, ToUs} {
		ty := newTypist()
		ty.k.Route(to)
		ty.k.Mute(500 * time.Millisecond)
		ty.feed("se\x1b", "cr", "\t", "\x1b[200~et")
		ty.clock = ty.clock.Add(499 * time.Millisecond)
		ty.feed("\r")
		if got := string(ty.shell) + string(ty.program) + strings.Join(ty.events, "") + strings.Join(ty.asked, "") + string(ty.k.ahead) + string(ty.k.decoder.pending); got != "" {
			t.Errorf("to %d: got %q", to, got)
		}
		ty.clock = ty.clock.Add(time.Millisecond)
		ty.k.Route(ToUs)
		ty.feed("l")
		if !slices.Equal(ty.events, []string{"l"}) {
			t.Errorf("afterwards: got %q, want l", ty.events)
		}
	}
}

// What is typed for a program that asked for a secret, before it asks again, waits for that: nobody else has it meanwhile, nor
// the terminal, which would show it. What ends or stops the program does not wait, and nothing typed before it is typed
// after it.
func TestKeyboardPause(t *testing.T) {
	ty := newTypist()
	ty.k.Route(ToProgram)
	ty.feed("wrong\r")
	ty.k.Pause()
	ty.feed("se", "cret\r")
	if got := string(ty.program); got != "wrong\r" {
		t.Errorf("paused: the program got %q", got)
	}
	ty.k.Resume()
	ty.feed("more")
	if got := string(ty.program); got != "wrong\rsecret\rmore" {
		t.Errorf("asked again: the program got %q", got)
	}
	ty.k.Pause()
	ty.feed("sec\x03\x1aret")
	if got := string(ty.program); got != "wrong\rsecret\rmore\x1a" {
		t.Errorf("interrupted: the program got %q", got)
	}
	ty.k.Route(ToUs)
	ty.feed("l")
	if !slices.Equal(ty.events, []string{"l"}) || len(ty.shell) != 0 {
		t.Errorf("got %q, want l; the shell got %q", ty.events, ty.shell)
	}
}

func FuzzKeyboard(f *testing.F) {
	f.Add([]byte("\x1b[200~x\x1b[201~\x1b[1;5A\xe6\xbc"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		ty := newTypist()
		ty.k.Route(ToUs)
		for c := range slices.Chunk(in, int(size)+1) {
			ty.k.Feed(slices.Clone(c))
		}
		for i := 0; len(ty.k.decoder.pending) > 0 && ty.k.decoder.paste == nil; i++ {
			if i > len(in)+1 {
				t.Fatalf("never done with %q", ty.k.decoder.pending)
			}
			ty.k.decode(true)
		}
	})
}
