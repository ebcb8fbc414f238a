package line

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/screentest"
)

// feed types a script: <name> is a key, anything else text. | in the result is the cursor.
func feedEditor(e *Line, script string) {
	for script != "" {
		if script[0] == '<' {
			name, rest, _ := strings.Cut(script[1:], ">")
			e.Key(name)
			script = rest
			continue
		}
		i := strings.IndexByte(script, '<')
		if i < 0 {
			i = len(script)
		}
		for _, r := range script[:i] {
			e.Insert(string(r))
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
		var e Line
		feedEditor(&e, tc.script)
		if got := e.Text[:e.Pos] + "|" + e.Text[e.Pos:]; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.script, got, tc.want)
		}
	}
}

func TestEditorMovesByLines(t *testing.T) {
	var e Line
	e.Set("for i in 1 2\ndo 漢字 echo\ndone")
	e.Pos = len("for i in 1")
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
		if ok := e.Vertical(tc.down); ok != tc.ok {
			t.Fatalf("vertical(%v): got %v, want %v", tc.down, ok, tc.ok)
		}
		if got := e.Text[e.lineStart(e.Pos):e.Pos]; got != tc.want {
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
		var e Line
		for _, b := range script {
			switch k := int(b); {
			case k < len(keys) && keys[k] == "up":
				e.Vertical(false)
			case k < len(keys) && keys[k] == "down":
				e.Vertical(true)
			case k < len(keys):
				e.Key(keys[k])
			default:
				e.Insert(text)
			}
			if len(e.Text) > 1<<16 {
				return
			}
			if e.Pos < 0 || e.Pos > len(e.Text) || e.Pos < len(e.Text) && !utf8.RuneStart(e.Text[e.Pos]) {
				t.Fatalf("cursor at %d of %q after key %d", e.Pos, e.Text, b)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	var h History
	h.Add("one")
	h.Add("two")
	steps := []struct {
		back bool
		want string
		ok   bool
	}{{true, "two", true}, {true, "one", true}, {true, "", false}, {false, "two", true}, {false, "draft", true}, {false, "", false}}
	for i, s := range steps {
		got, ok := h.Move(s.back, "draft")
		if got != s.want || ok != s.ok {
			t.Errorf("step %d: got %q %v, want %q %v", i, got, ok, s.want, s.ok)
		}
	}
	h.Add("two")
	if len(h.lines) != 2 {
		t.Errorf("a repeated line was added: got %q", h.lines)
	}
}

func TestRenderGolden(t *testing.T) {
	for _, s := range screentest.Sizes {
		var out []string
		for _, text := range []string{
			"", "ls -la", "echo " + strings.Repeat("wide 漢字 ", 12), "for i in 1 2 3\ndo echo $i\ndone", "tab\there \x1b \u202e",
		} {
			l := Line{Text: text, Pos: len(text)}
			lines, row, col := l.Render("\x1b[36m>\x1b[m ", "", s.W, s.H)
			out = append(out, lines...)
			out = append(out, "   cursor "+strconv.Itoa(row)+","+strconv.Itoa(col))
		}
		screentest.Golden(t, "editor-"+s.Name, out, s.W, 0)
	}
}

// The cursor is where its character is, whatever the width and the text.
func TestRenderCursor(t *testing.T) {
	text := "a漢b\ncd e\u0301f 👨‍👩‍👧 long enough to wrap a few times over"
	for width := 4; width < 40; width++ {
		for pos := 0; pos <= len(text); pos++ {
			l := Line{Text: text, Pos: pos}
			if pos > 0 && l.prev(l.next(l.prev(pos))) != l.prev(pos) || l.next(l.prev(pos)) != pos && pos > 0 {
				continue // inside a character
			}
			lines, row, col := l.Render("> ", "", width, 100)
			if row >= len(lines) {
				t.Fatalf("width %d, position %d: row %d of %d lines", width, pos, row, len(lines))
			}
			if pos < len(text) && slices.Contains(lines, "") { // it was below a line as wide as the window
				t.Errorf("width %d, position %d: an empty row in %q", width, pos, lines)
			}
			if pos < len(text) && text[pos] != '\n' {
				want := text[pos:l.next(pos)]
				if got := ansi.Cut(lines[row], col, col+max(1, cells.Width(want))); got != want {
					t.Errorf("width %d, position %d: the cursor is on %q, want %q", width, pos, got, want)
				}
			}
		}
	}
}
