package markdown

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// sampleMarkdown has each kind of block.
//
//go:embed testdata/sample.md
var sampleMarkdown string

func blocksOf(text string, pieces func(string) []string) []string {
	var m Stream
	var out []string
	for _, p := range pieces(text) {
		out = append(out, m.Add(p)...)
	}
	if rest := m.Finish(); rest != "" {
		out = append(out, rest)
	}
	for i, block := range out {
		out[i] = strings.Trim(block, "\n") // the empty lines around a block are not shown
	}
	return out
}

func TestMarkdownBlocks(t *testing.T) {
	want := []string{
		"# What happened",
		"The **build** failed: `go vet` found a *shadowed* variable, see [the log](https://example.org/log).",
		"- first\n- second, which is long enough that it has to be wrapped when the window is as narrow as the narrowest here\n  - nested",
		"1. mend it\n2. run the tests",
		"> as they say",
		"```go\nif err := run(); err != nil {\n\treturn err\n}\n```",
		"| file | lines |\n|---|---:|\n| run.go | 240 |\n| 漢字.go | 7 |",
		"Done.",
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	cut := func(s string) (out []string) {
		for s != "" {
			n := min(len(s), 1+rnd.IntN(9))
			out = append(out, s[:n])
			s = s[n:]
		}
		return out
	}
	for range 50 {
		got := blocksOf(sampleMarkdown, cut)
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
}

// However the text comes, nothing is lost, and nothing is invented.
func TestMarkdownStreamIsWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	parts := []string{"# h\n", "text\n", "\n", "- item\n", "1. one\n", "```\n", "~~~go\n", "code();\n", "| a |\n", "  indented\n", "> q\n", "tail", "漢\n", "    ```\n"}
	for range 300 {
		var b strings.Builder
		for range rnd.IntN(40) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		text := b.String()
		var m Stream
		var out []string
		for i := 0; i < len(text); {
			n := min(len(text)-i, 1+rnd.IntN(6))
			out = append(out, m.Add(text[i:i+n])...)
			i += n
		}
		out = append(out, m.Finish())
		got := strings.Join(out, "")
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if squeeze(got) != squeeze(text) {
			t.Fatalf("got %q, want %q", got, text)
		}
	}
}

// A long block stays one, since an empty line is printed between two, and its live end is drawn as code.
func TestLongBlock(t *testing.T) {
	var m Stream
	code := "```go\n"
	for i := range 5000 {
		code += fmt.Sprintf("# line %d\n", i)
	}
	for line := range strings.Lines(code) {
		if blocks := m.Add(line); blocks != nil {
			t.Fatalf("%d blocks before the end", len(blocks))
		}
	}
	if live := (&Renderer{}).Live(m.Rest(), 80, 2); strings.Join(live, "|") != "  # line 4998|  # line 4999" {
		t.Errorf("live: got %q", live)
	}
	blocks := append(m.Add("```\n"), m.Add(strings.Repeat("After it.\n\n", 1000))...)
	if len(blocks) != 1001 || blocks[0] != code+"```\n" {
		t.Errorf("got %d blocks, the first of %d bytes, want 1001, the first of %d", len(blocks), len(blocks[0]), len(code)+4)
	}
}

func BenchmarkStreamedAnswer(b *testing.B) {
	md := &Renderer{Profile: colorprofile.ANSI}
	text := strings.Repeat(sampleMarkdown, 30)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var m Stream
		for i := 0; i < len(text); i += 60 {
			for _, block := range m.Add(text[i:min(len(text), i+60)]) {
				md.Render(block, 80)
			}
			md.Live(m.rest, 79, 16)
		}
	}
}
