package tool

import (
	"fmt"
	"strings"

	"sublet/wire/visible"
)

// bounded returns a successful Result with text, cut in the middle to MaxWhole bytes.
func bounded(text string) Result {
	content, left := Bound(text, MaxWhole)
	return Result{Content: content, TruncatedBy: left}
}

// Bound returns a text over limit bytes as its head and tail, about limit bytes together, with a line between them that counts the
// left bytes left out. out is valid UTF-8: no character is cut.
func Bound(text string, limit int) (out string, left int64) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text, 0
	}
	head, tail := visible.Cut(text, limit/2), visible.CutTail(text, limit-limit/2)
	n := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, n, tail), int64(n)
}
