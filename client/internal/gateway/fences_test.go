package gateway

import (
	"fmt"
	"strings"
	"testing"
)

// pieces splits text that comes in pieces of size bytes, and writes what that gives: «text» and [info|code].
func pieces(text string, size int) string {
	var f Fences
	var list []Piece
	for ; len(text) > size; text = text[size:] {
		list = append(list, f.Add(text[:size])...)
	}
	var b strings.Builder
	for _, p := range append(append(list, f.Add(text)...), f.End()...) {
		if p.Code {
			fmt.Fprintf(&b, "[%s|%s]", p.Info, p.Text)
		} else {
			fmt.Fprintf(&b, "«%s»", p.Text)
		}
	}
	return strings.ReplaceAll(b.String(), "»«", "")
}

func TestFences(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text", "«plain text»"},
		{"a `code` and ```inline``` here\n", "«a `code` and ```inline``` here\n»"},
		{"```inline``` first\n", "«```inline``` first\n»"},
		{"before\n```rust\nfn x() {}\n```\nafter", "«before\n»[rust|fn x() {}]«after»"},
		{"~~~~ python\na\n~~~\nb\n~~~~\n", "[python|a\n~~~\nb]"},
		{"````md\n```\nx\n```\n````", "[md|```\nx\n```]"},
		{"  ```sh\n  ls\n  ```\n", "[sh|  ls]"},
		{"    ```\nindented code is text\n", "«    ```\nindented code is text\n»"},
		{"```\nnever closed", "[|never closed]"},
		{"```\n```\n", "[|]"},
		{"--- not a fence\ntext\n", "«--- not a fence\ntext\n»"},
		{"café ``` é\n```é\nü\n```\n", "«café ``` é\n»[é|ü]"},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			if got := pieces(c.in, size); got != c.want {
				t.Errorf("%q in pieces of %d:\n got %s\nwant %s", c.in, size, got, c.want)
			}
		}
	}
}

// O3: text is not held back: a token that cannot begin a fence goes out at once.
func TestTextPassesAtOnce(t *testing.T) {
	var f Fences
	for _, token := range []string{"The", " ls", " command\n", "lists", " `files`", "\n\n", "- and"} {
		if got := f.Add(token); len(got) != 1 || got[0].Text != token {
			t.Errorf("%q: got %v", token, got)
		}
	}
}

func FuzzFences(f *testing.F) {
	for _, seed := range []string{"a\n```go\nx\n```\nb", "~~~\n", "   ```x\r\n````"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 || size > 1000 || len(text) > 10000 {
			return
		}
		if a, b := pieces(text, size), pieces(text, len(text)+1); a != b {
			t.Errorf("depends on the pieces: %s and %s", a, b)
		}
	})
}
