package marks

import (
	"strings"
	"testing"

	"sublet/wire"
)

// The marks stand below the parts they are about, in cells, however wide the characters are.
func TestDraw(t *testing.T) {
	for _, tt := range []struct {
		command string
		marked  []string // parts of it
		width   int
		want    string
	}{
		{"ls && rm -rf x", []string{"rm -rf x"}, 80, "ls && rm -rf x\n      ~~~1~~~~"},
		{"rm -rf x y", []string{"x", "y", "rm -rf x"}, 80, "rm -rf x y\n~~~1~~~~ 3\n       2"},
		{"echo 日本 x", []string{"x", "日本"}, 80, "echo 日本 x\n     ~1~~ 2"},
		{"a\tbc", []string{"bc"}, 80, "a    bc\n     1~"},
		{"a\x1b[2Jb", []string{"b"}, 80, "a␛[2Jb\n     1"},
		{"if x\nthen y\nfi", []string{"x\nthen y"}, 80, "if x\n   1\nthen y\n~~1~~~\nfi"},
		{"aaaaaaaaaaaaaaaaaaaa bbbb", []string{"bbbb"}, 20, "aaaaaaaaaaaaaaaaaaaa\n bbbb\n ~1~~"},
		{"x\xffy", []string{"y"}, 80, "x⟨FF⟩y\n     1"},
		{"", nil, 80, ""},
	} {
		var reasons []wire.Reason
		for _, part := range tt.marked {
			at := strings.Index(tt.command, part)
			reasons = append(reasons, wire.Reason{Span: &wire.Span{Start: at, End: at + len(part)}})
		}
		list, _ := Of(tt.command, reasons)
		var lines []string
		for _, row := range Draw(tt.command, list, tt.width) {
			lines = append(append(lines, row.Text), row.Marks...)
		}
		if got := strings.Join(lines, "\n"); got != tt.want {
			t.Errorf("%q, marked %q: got\n%s\nwant\n%s", tt.command, tt.marked, got, tt.want)
		}
	}
}
