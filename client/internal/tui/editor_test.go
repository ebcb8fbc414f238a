package tui

import (
	"strings"
	"testing"
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
		{"one<ctrl+u>two<ctrl+u><ctrl+y><alt+y>", "one|"},
		{"teh<ctrl+t>", "the|"},
		{"abc<ctrl+a><ctrl+f><ctrl+t>", "ba|c"},
		{"word here<ctrl+a><alt+u><alt+c>", "WORD Here|"},
		{"one two<ctrl+_>", "one |"},
		{"one two<ctrl+_><ctrl+_>", "|"},
		{"keep<ctrl+w><ctrl+_>", "keep|"},
		// Characters as a person counts them: an accent, a family, a flag are one each.
		{"ae\u0301b<left><left>", "a|e\u0301b"},
		{"x👨‍👩‍👧y<left><backspace>", "x|y"},
		{"🇩🇪🇫🇷<backspace>", "🇩🇪|"},
		{"漢字<left><delete>", "漢|"},
		{"gone<alt+r>", "|"},
		{"<backspace><delete><ctrl+t><alt+d><ctrl+_>", "|"},
	} {
		var e editor
		e.reset()
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
		"alt+backspace", "alt+d", "ctrl+y", "alt+y", "ctrl+t", "alt+u", "alt+c", "ctrl+_", "alt+r", "up", "down",
	}
	f.Add([]byte{1, 40, 3, 41, 15, 16, 2, 19}, "a e\u0301 漢\n字🇩🇪")
	f.Fuzz(func(t *testing.T, script []byte, text string) {
		text = strings.ToValidUTF8(text, "?")
		var e editor
		e.reset()
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
			if e.pos < 0 || e.pos > len(e.text) || inside(e.text, e.pos) {
				t.Fatalf("cursor at %d of %q after key %d", e.pos, e.text, b)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	var h history
	h.load([]string{"one", "two"})
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
	if w, _ := h.lastWord(0); w != "two" {
		t.Errorf("last word: got %q, want two", w)
	}
}

func TestSearch(t *testing.T) {
	lines := []string{"make build", "git status", "make test", "git status"}
	s := search{at: len(lines), query: "git"}
	s.find(lines, true, false)
	if s.found != "git status" || s.at != 3 {
		t.Errorf("first: got %q at %d, want git status at 3", s.found, s.at)
	}
	s.find(lines, true, true) // the same line further up is no other find
	if !s.failed || s.at != 3 {
		t.Errorf("again: got failed %v at %d, want true at 3", s.failed, s.at)
	}
	s = search{at: len(lines), query: "make"}
	s.find(lines, true, false)
	s.find(lines, true, true)
	if s.found != "make build" {
		t.Errorf("older: got %q, want make build", s.found)
	}
	s.find(lines, false, true)
	if s.found != "make test" {
		t.Errorf("newer: got %q, want make test", s.found)
	}
}

// Enter asks for another line exactly where bash would.
func TestUnfinished(t *testing.T) {
	for text, want := range map[string]bool{
		"ls":                       false,
		"echo 'open":               true,
		"echo \"open":              true,
		"for i in 1 2":             true,
		"if true; then":            true,
		"cat <<EOF":                true,
		"cat <<EOF\nhi\nEOF":       false,
		"echo a |":                 true,
		"echo a &&":                true,
		"echo \\":                  true,
		"echo \\\\":                false,
		"f() {":                    true,
		"echo )":                   false, // an error is bash's to tell
		"echo $(date":              true,
		"shopt -s extglob; ls !(a": true,
		"echo \\\\\\":              true,
		"cat <<'EOF'":              true,
		"cat <<'EOF'\nEOF":         false,
		"cat <<-\"E\" >o\n\tx":     true,
		"cat <<\\EOF\n\n\n\n\n\nx": true,
		"cat <<EOF\n\xff":          true,
		"echo 'open\n\n\n\n\n\n":   true,
		"if true; then\n\n\n":      true,
		"if true; then\n\n\n\n":    false, // four empty lines send it whatever it is
		"cat <<EOF\n" + strings.Repeat("line ${HOME} $(true)\n", 600):                        true,
		"f() {\n" + strings.Repeat("if [[ $a == ${b[1]} ]]; then echo $(c); fi\n", 50):       true,
		"f() {\n" + strings.Repeat("if [[ $a == ${b[1]} ]]; then echo $(c); fi\n", 50) + "}": false,
		strings.Repeat("(", 3000): false, // too deep to be asked about (pitfall 8)
	} {
		if got := unfinished(text, len(text)); got != want {
			t.Errorf("unfinished(%.30q): got %v, want %v", text, got, want)
		}
	}
}

// M-. takes the last word as the shell has it: of `ls My\ File` it took File, which is another one.
func TestLastWord(t *testing.T) {
	for line, want := range map[string]string{
		"ls": "ls", "ls -l  a ": "a", `ls My\ File`: `My\ File`, `ls "My File"`: `"My File"`, "ls 'a b'c": "'a b'c", `x="a \" b"`: `x="a \" b"`,
		"echo a>b": "b", "echo a >>": ">>", "make &": "&", "ls; pwd;": ";", "(cd x)": ")", "echo $(ls a b)": "$(ls a b)", "echo `ls a`": "`ls a`",
		"cat <(ls a)": "<(ls a)", "a <b(": "(", "echo 'open a": "'open a", `echo a\`: `a\`, "a &&": "&&", "echo $((1 + 2))x": "$((1 + 2))x", "": "", "  ": "", "ls ünï 漢": "漢",
	} {
		h := history{lines: []string{line}}
		if got, ok := h.lastWord(0); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", line, got, ok, want)
		}
	}
}
