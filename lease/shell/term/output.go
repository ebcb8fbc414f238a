package term

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// In bytes; the first two are the defaults of NewCollector.
const (
	defaultHead = 32 << 10
	defaultTail = 32 << 10
	cutRange    = 1024 // bytes in which result looks for a line end
)

// headTail keeps the beginning and the end of a text, whatever its length, in bounded memory.
type headTail struct {
	head    []byte
	headMax int
	tail    Tail
	total   int64 // bytes written
}

func newHeadTail(head, tail int) *headTail {
	if head <= 0 {
		head = defaultHead
	}
	if tail <= 0 {
		tail = defaultTail
	}
	return &headTail{headMax: head, tail: Tail{Most: tail}}
}

func (h *headTail) Write(p []byte) {
	h.total += int64(len(p))
	if n := min(h.headMax-len(h.head), len(p)); n > 0 {
		h.head = append(h.head, p[:n]...)
		p = p[n:]
	}
	h.tail.Add(p)
}

// result returns the text, with a line in place of what was left out, and how many bytes those are. Head and tail are cut at a line end
// if there is one within cutRange bytes, and never inside a character.
func (h *headTail) result() (text []byte, left int64) {
	tail := h.tail.Bytes()
	if h.total == int64(len(h.head)+len(tail)) {
		return append(bytes.Clone(h.head), tail...), 0
	}
	head := h.head
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 && i >= len(head)-cutRange {
		head = head[:i+1]
	} else {
		for r, size := utf8.DecodeLastRune(head); r == utf8.RuneError && size == 1; r, size = utf8.DecodeLastRune(head) {
			head = head[:len(head)-1]
		}
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < cutRange {
		tail = tail[i+1:]
	} else {
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	left = h.total - int64(len(head)+len(tail))
	text = bytes.Clone(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		text = append(text, '\n')
	}
	text = fmt.Appendf(text, "[... %d bytes left out ...]\n", left)
	return append(text, tail...), left
}
