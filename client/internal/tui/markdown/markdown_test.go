package markdown

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/screentest"
)

// show writes escape sequences so that they can be read: {1;36}bold and cyan{}.
func show(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		sgr, rest, _ := strings.Cut(after, "m")
		b.WriteString("{" + sgr + "}")
		s = rest
	}
}

// A line that begins thousands of quotes or items took seconds, and so did each picture while it was written. It is shown as it is.
func TestDeepNesting(t *testing.T) {
	m := &Renderer{Profile: colorprofile.ASCII}
	for _, marker := range []string{">", "> ", "- ", "* ", "+ ", "1. ", "12) ", "> - "} {
		if got := m.Render(strings.Repeat(marker, maxNested+1)+"deep", 100); !strings.HasPrefix(got, strings.TrimSpace(marker)) {
			t.Errorf("%q: got %.40q", marker, got)
		}
	}
	for _, text := range []string{"> > > deep", strings.Repeat("-", 1000), strings.Repeat("1", 1000), strings.Repeat("- a\n", 1000)} {
		if n := nested(text); n > 3 {
			t.Errorf("%.20q: got %d", text, n)
		}
	}
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"headings", "# One *two*\n## Three", "{1;4;36}One {}{1;4;36;3}two{}\n\n{1;36}Three{}"},
		{"emphasis", "a *b* __c__ ***d*** ~~e~~ `f g`", "a {3}b{} {1}c{} {3;1}d{} {9}e{} {33}f g{}"},
		{"a line break in the source is a space, two spaces before it keep it", "one\ntwo  \nthree\\\nfour", "one two\nthree\nfour"},
		{"wrapped, the style on each line", "*one two three four five six seven*", "{3}one two three four five{}\n{3}six seven{}"},
		{"wide characters", "漢字漢字漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字漢字\n漢字漢字"},
		{"list", "- a\n- b\n  1. c\n  2. d\n     - e\n- f", "• a\n• b\n  1. c\n  2. d\n     • e\n• f"},
		{"numbers go on from the first", "9) a\n1) b", "9) a\n10) b"},
		{"loose list", "- a\n\n  b\n- c", "• a\n\n  b\n\n• c"},
		{"an item of two lines", "- one two three four five six", "• one two three four five\n  six"},
		{"an empty item", "- a\n-\n- c", "• a\n•\n• c"},
		{"task list", "- [x] a\n- [ ] b", "[✓] a\n[ ] b"},
		{"code in a list", "- a\n\n  ```\n  b\n\n  c\n  ```", "• a\n\n    b\n\n    c"},
		{"quote", "> a\n> - b\n>\n> > c", "{2}│{} {2}a{}\n{2}│{}\n{2}│{} {2}• {}{2}b{}\n{2}│{}\n{2}│{} {2}│{} {2}c{}"},
		{"rule", "a\n\n---\n\nb", "a\n\n{2}────────{}\n\nb"},
		{"link", "[a *b*](https://x.org/_y_) <https://x.org> [https://z.org](https://z.org)", "{1}a {}{1;3}b{} {4;34}https://x.org/_y_{}\n{4;34}https://x.org{}\n{4;34}https://z.org{}"},
		{"reference", "[a][1]\n\n[1]: /b", "{1}a{} {4;34}/b{}"},
		{"image", "![a](b.png)", "image: a {4;34}b.png{}"},
		{"code is not wrapped", "```\n" + strings.Repeat("ab ", 20) + "\n```", "  " + strings.Repeat("ab ", 20)},
		{"indented code", "    a\n\n    b", "  a\n\n  b"},
		{"html as it is written", "<details>\n<b>x</b>\n</details>", "<details>\n<b>x</b>\n</details>"},
		{"html in a line", "a<br>b <kbd>c</kbd>", "a\nb <kbd>c</kbd>"},
		{"escapes and references", `\*a\* &lt;b&gt; &amp;amp; &copy &nosuch; &#65; a&b;`, "*a* <b> &amp; &copy\n&nosuch; A a&b;"},
		{"no reference twice, and none behind a backslash", `\&amp; \\&amp; &#38;lt; \&#65; \a&Amp;`, "&amp; \\& &lt; &#65;\n\\a&Amp;"},
		{"a reference is no way to a control character", "&#27;[31m &#x9b;1m &#x202e;", "␛[31m ⟨U+009B⟩1m ⟨U+202E⟩"},
		{"table", "|a|b|c|\n|:-|:-:|-:|\n|x|`y`|z|\n|1|2<br>33333|4444|", " a │   b   │    c\n───┼───────┼──────\n x │   {33}y{}   │    z\n 1 │   2   │ 4444\n   │ 33333 │"},
		{"a table as wide as the window", "|name|what it does|\n|-|-|\n|a|one two three four five six|", " name │ what it does\n──────┼──────────────────\n a    │ one two three\n      │ four five six"},
		{"a table with a bar in code", "|a|\n|-|\n|`x\\|y`|", " a\n─────\n {33}x|y{}"},
		{"a table behind text, with rows that are too short and too long", "text\n| a | b |\n|---|:--|\n| 1 |\n1|2|3\n\nend", "text\n\n a │ b\n───┼───\n 1 │\n 1 │ 2\n\nend"},
		{"no table", "a|b\n|-|\n\na\n- | -", "a|b |-|\n\na\n\n• | -"},
		{"one ~ and many", "~a~ ~~~b~~~ ~ c", "{9}a{} ~~~b~~~ ~ c"},
		{"a task whose text goes on", "- [X] *a*\n  b\n- [ ] z\n- [y] c\n- [ ]d", "[✓] {3}a{} b\n[ ] z\n• [y] c\n• [ ]d"},
		{"emphasis in itself", "*a _b **c *d*** e_*", "{3}a {}{3}b {}{3;1}c {}{3;1}d{}{3} e{}"},
		{"nothing", "\n\n", ""},
	} {
		md := &Renderer{Profile: colorprofile.ANSI}
		if got := show(md.Render(c.text, 25)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestHighlight(t *testing.T) {
	for _, c := range []struct{ language, code, want string }{
		{"go", "func f(a int) { return `x\ny` // \"z\"\n}", "{1;34}func{} {36}f{}(a {36}int{}) { {1;34}return{} {32}`x{}\n{32}y`{} {90}// \"z\"{}\n}"},
		{"Go", `c := '\'' + "\"" /* a`, `c := {32}'\''{} + {32}"\""{} {90}/* a{}`},
		{"python", "@dec\nx = 0x1F + a2  # it's\n'''doc\n''' or 1.5", "{35}@dec{}\nx = {35}0x1F{} + a2  {90}# it's{}\n{32}'''doc{}\n{32}'''{} {1;34}or{} {35}1.5{}"},
		{"sh", "for f in $x ${y}; do echo \"it's\" don't $# a#b; done # end", "{1;34}for{} f {1;34}in{} {35}$x{} {35}${y}{}; {1;34}do{} {36}echo{} {32}\"it's\"{} don't $# a#b; {1;34}done{} {90}# end{}"},
		{"rust", "fn f<'a>(x: &'a str) -> char { 'b' }", "{1;34}fn{} f<'a>(x: &'a {36}str{}) -> {36}char{} { {32}'b'{} }"},
		{"c", "#include <a.h>\nint x;", "{35}#include{} <a.h>\n{36}int{} x;"},
		{"sql", "SELECT a FROM b -- c", "{1;34}SELECT{} a {1;34}FROM{} b {90}-- c{}"},
		{"json", `{"a": ["b", 1, true]}`, `{{34}"a"{}: [{32}"b"{}, {35}1{}, {36}true{}]}`},
		{"yaml", "- a-b: http://x # c", "- {34}a-b{}: http://x {90}# c{}"},
		{"toml", "[a]\nb.c = 1", "[a]\n{34}b.c{} = {35}1{}"},
		{"html", "<!-- a --><a href=\"b\">it's</a>", "{90}<!-- a -->{}{34}<a{} {36}href{}={32}\"b\"{}{34}>{}it's{34}</a{}{34}>{}"},
		{"diff", "diff --git a b\n--- a\n+++ b\n@@ -1,2 +1 @@\n-b\n--- comment\n+c\n+++ d\n e", "{1}diff --git a b{}\n{1}--- a{}\n{1}+++ b{}\n{36}@@ -1,2 +1 @@{}\n{31}-b{}\n{31}--- comment{}\n{32}+c{}\n{32}+++ d{}\n e"},
		{"brainfuck", "+[-->]", "+[-->]"},
		{"", "if x", "if x"},
	} {
		if got := show(highlight(c.code, c.language)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.language, got, c.want)
		}
	}
	names := map[string]bool{}
	for _, s := range syntaxes {
		for _, name := range strings.Fields(s.names) {
			if names[name] || name != strings.ToLower(name) {
				t.Errorf("language %s is there twice, or not in lower case", name)
			}
			names[name] = true
		}
		// A block of a language without comments, such as vim, was rendered for ever.
		if s.tokens().MatchString("") {
			t.Errorf("%s: its expression matches the empty text", s.names)
		}
		if len(strings.Fields(s.block))%2 != 0 {
			t.Errorf("%s: got delimiters %q, want pairs", s.names, s.block)
		}
		for _, w := range strings.Fields(s.keywords) {
			if s.fold && w != strings.ToLower(w) {
				t.Errorf("%s: keyword %s is not in lower case", s.names, w)
			}
		}
	}
}

// Whatever the text: prose keeps to the width, no line ends in spaces without a style, the only escape sequences are styles, each line ends
// those that it begins, and of the text itself nothing is lost.
func TestMarkdownAnyText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	parts := []string{
		"word ", "漢字", "- ", "1. ", "> ", "  ", "    ", "\n", "\n\n", "*", "**", "_", "`", "~~", "# ", "[a](b)", "![", "<br>", "<x>", "&amp;",
		"&#27;", "\\", "|", "|-|-|\n", "- [x] ", "---\n", "```go\n", "\"", "'", "/*", "${", "👩‍👩‍👧", strings.Repeat("x", 40),
	}
	md := &Renderer{Profile: colorprofile.ANSI}
	for range 3000 {
		var b strings.Builder
		words := 0
		for range rnd.IntN(40) {
			part := parts[rnd.IntN(len(parts))]
			b.WriteString(part)
			words += strings.Count(part, "word")
		}
		width := 10 + rnd.IntN(50)
		out := md.Render(b.String(), width)
		code := strings.Contains(b.String(), "```") || strings.Contains(b.String(), "~~~") || strings.Contains(b.String(), "    ") || strings.Contains(b.String(), "|-|")
		for line := range strings.SplitSeq(out, "\n") {
			bare := ansi.Strip(line)
			if !code && (cells.Width(bare) > width || strings.HasSuffix(line, " ")) {
				t.Fatalf("%q, width %d: got line %q", b.String(), width, line)
			}
			if strings.ContainsAny(bare, "\x1b\r\u009b") {
				t.Fatalf("%q: got a control character in %q", b.String(), line)
			}
			if last := strings.LastIndexByte(line, '\x1b'); last >= 0 && !strings.HasPrefix(line[last:], "\x1b[m") {
				t.Fatalf("%q: got a style that does not end: %q", b.String(), line)
			}
		}
		joined := strings.NewReplacer("\n", "", " ", "", "│", "", "|", "").Replace(ansi.Strip(out))
		if got := strings.Count(joined, "word"); got < words && !code && !strings.Contains(b.String(), "|") {
			t.Fatalf("%q, width %d: got %d of %d words in %q", b.String(), width, got, words, out)
		}
	}
}

// On a terminal without colours nothing has one.
func TestNoColour(t *testing.T) {
	if out := (&Renderer{Profile: colorprofile.ASCII}).Render("```go\nvar a = 1\n```\n\n`x`", 60); strings.Contains(out, "\x1b[3") || strings.Contains(out, "\x1b[9") {
		t.Errorf("got colour in %q", out)
	}
}

func TestMarkdownGolden(t *testing.T) {
	md := &Renderer{Profile: screentest.Theme().Profile}
	for _, s := range screentest.Sizes {
		var lines []string
		var stream Stream
		blocks := stream.Add(sampleMarkdown)
		if rest := stream.Finish(); rest != "" {
			blocks = append(blocks, rest)
		}
		for _, b := range blocks {
			lines = append(lines, strings.Split(md.Render(b, s.W-1), "\n")...)
			lines = append(lines, "")
		}
		screentest.Golden(t, "markdown-"+s.Name, lines, 200, 0)
	}
}
