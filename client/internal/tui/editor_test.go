package tui

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// feed types a script: <name> is a key, anything else text. | in the result is the cursor.
func feedEditor(e *editor, script string) {
	for script != "" {
		if script[0] == '<' {
			name, rest, _ := strings.Cut(script[1:], ">")
			e.key(name)
			script = rest
			continue
		}
		i := strings.IndexByte(script, '<')
		if i < 0 {
			i = len(script)
		}
		for _, r := range script[:i] {
			e.insert(string(r))
		}
		script = script[i:]
	}
}

func TestEditorKeys(t *testing.T) {
	for _, tc := range []struct{ script, want string }{
		{"hello", "hello|"},
		{"hello<ctrl+a>", "|hello"},
		{"hello<ctrl+a><ctrl+f><ctrl+d>", "h|llo"},
		{"git commit<alt+b>", "git |commit"},
		{"git commit<ctrl+a><alt+f>", "git| commit"},
		{"a-b_c d<alt+b><alt+b>", "a-|b_c d"},
		{"one two three<ctrl+w>", "one two |"},
		{"one two three<ctrl+w><ctrl+w><ctrl+y>", "one two three|"},
		{"/usr/local/bin<alt+backspace>", "/usr/local/|"},
		{"one two<ctrl+a><ctrl+k>", "|"},
		{"one two<ctrl+a><ctrl+k><ctrl+y><ctrl+y>", "one twoone two|"},
		// Characters as a person counts them: an accent, a family, a flag are one each.
		{"ae\u0301b<left><left>", "a|e\u0301b"},
		{"x👨‍👩‍👧y<left><backspace>", "x|y"},
		{"🇩🇪🇫🇷<backspace>", "🇩🇪|"},
		{"漢字<left><delete>", "漢|"},
		{"<backspace><delete><ctrl+w><alt+d><ctrl+y>", "|"},
	} {
		var e editor
		feedEditor(&e, tc.script)
		if got := e.text[:e.pos] + "|" + e.text[e.pos:]; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.script, got, tc.want)
		}
	}
}

func TestEditorMovesByLines(t *testing.T) {
	var e editor
	e.set("for i in 1 2\ndo 漢字 echo\ndone")
	e.pos = len("for i in 1")
	for _, tc := range []struct {
		down bool
		want string
		ok   bool
	}{
		{true, "do 漢字 ec", true},
		{true, "done", true},
		{true, "done", false},
		{false, "do ", true}, // the column is in the middle of a wide character
	} {
		if ok := e.vertical(tc.down); ok != tc.ok {
			t.Fatalf("vertical(%v): got %v, want %v", tc.down, ok, tc.ok)
		}
		if got := e.text[e.lineStart(e.pos):e.pos]; got != tc.want {
			t.Errorf("vertical(%v): got %q before the cursor, want %q", tc.down, got, tc.want)
		}
	}
}

// Whatever keys come, the cursor stands in the text and between characters.
func FuzzEditor(f *testing.F) {
	keys := []string{
		"ctrl+a", "ctrl+e", "ctrl+b", "ctrl+f", "alt+b", "alt+f", "backspace", "ctrl+d", "ctrl+k", "ctrl+u", "ctrl+w",
		"alt+backspace", "alt+d", "ctrl+y", "up", "down",
	}
	f.Add([]byte{1, 40, 3, 41, 13, 14, 2}, "a e\u0301 漢\n字🇩🇪")
	f.Fuzz(func(t *testing.T, script []byte, text string) {
		text = strings.ToValidUTF8(text, "?")
		var e editor
		for _, b := range script {
			switch k := int(b); {
			case k < len(keys) && keys[k] == "up":
				e.vertical(false)
			case k < len(keys) && keys[k] == "down":
				e.vertical(true)
			case k < len(keys):
				e.key(keys[k])
			default:
				e.insert(text)
			}
			if len(e.text) > 1<<16 {
				return
			}
			if e.pos < 0 || e.pos > len(e.text) || e.pos < len(e.text) && !utf8.RuneStart(e.text[e.pos]) {
				t.Fatalf("cursor at %d of %q after key %d", e.pos, e.text, b)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	var h history
	h.add("one")
	h.add("two")
	steps := []struct {
		back bool
		want string
		ok   bool
	}{{true, "two", true}, {true, "one", true}, {true, "", false}, {false, "two", true}, {false, "draft", true}, {false, "", false}}
	for i, s := range steps {
		got, ok := h.move(s.back, "draft")
		if got != s.want || ok != s.ok {
			t.Errorf("step %d: got %q %v, want %q %v", i, got, ok, s.want, s.ok)
		}
	}
	h.add("two")
	if len(h.lines) != 2 {
		t.Errorf("a repeated line was added: got %q", h.lines)
	}
}
