package term

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Defaults of Options.Head and Options.Tail, in bytes.
const (
	defaultHead = 32 << 10
	defaultTail = 32 << 10
)

// headTail keeps the beginning and the end of a text, whatever its length, in fixed memory.
type headTail struct {
	head, tail []byte
	headMax    int
	tailMax    int
	at         int   // where the ring's oldest byte is, once it is full
	total      int64 // bytes written
}

func newHeadTail(head, tail int) *headTail {
	if head <= 0 {
		head = defaultHead
	}
	if tail <= 0 {
		tail = defaultTail
	}
	return &headTail{headMax: head, tailMax: tail}
}

func (h *headTail) Write(p []byte) {
	h.total += int64(len(p))
	if n := min(h.headMax-len(h.head), len(p)); n > 0 {
		h.head = append(h.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > h.tailMax {
		p = p[len(p)-h.tailMax:]
	}
	if n := min(h.tailMax-len(h.tail), len(p)); n > 0 {
		h.tail = append(h.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(h.tail[h.at:], p)
		h.at = (h.at + n) % h.tailMax
		p = p[n:]
	}
}

// cut reports whether something was left out.
func (h *headTail) cut() bool { return h.total > int64(h.headMax+h.tailMax) }

// result returns the text, with a line in place of what was left out, and how many bytes those are. Head and tail are
// cut at a line where one is near, never inside a character.
func (h *headTail) result() (text []byte, left int64) {
	tail := append(bytes.Clone(h.tail[h.at:]), h.tail[:h.at]...)
	if !h.cut() {
		return append(bytes.Clone(h.head), tail...), 0
	}
	head := h.head
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 && i >= len(head)-1024 {
		head = head[:i+1]
	} else {
		head = trimPartial(head)
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < 1024 {
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

// trimPartial takes an unfinished character off the end.
func trimPartial(p []byte) []byte {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			return p
		}
	}
	return p
}
