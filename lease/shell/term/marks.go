package term

import (
	"bytes"
	"strconv"
	"strings"
)

// A Mark is a private control sequence of the shell's integration script: ESC ] 7701 ; KIND ; PID ; NONCE BEL.
// It is data of whoever printed it until PID and Nonce are compared with what the shell was given.
type Mark struct {
	Kind  byte
	PID   int
	Nonce string
}

const (
	markIntro = "\x1b]7701;"
	markMost  = 160 // bytes of a mark; a longer one is output
)

// A Splitter takes marks out of what a terminal prints. It is not safe for concurrent use.
type Splitter struct {
	held []byte // the end of the output so far, which may be the beginning of a mark
}

// Feed calls data with the output in p, and mark with each mark, in order. What may be the beginning of a mark is held until the next
// call. p is not kept.
func (s *Splitter) Feed(p []byte, data func([]byte), mark func(Mark)) {
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	for from := 0; len(p) > 0; {
		i := bytes.IndexByte(p[from:], '\x1b')
		if i < 0 {
			data(p)
			return
		}
		i += from
		m, size, partial := parseMark(p[i:])
		switch {
		case partial:
			if i > 0 {
				data(p[:i])
			}
			s.held = bytes.Clone(p[i:])
			return
		case size == 0:
			from = i + 1
			continue
		}
		if i > 0 {
			data(p[:i])
		}
		mark(m)
		p, from = p[i+size:], 0
	}
}

// parseMark parses the mark at the start of p. partial reports that p may end inside a mark; otherwise size is the mark's
// length, 0 if there is none.
func parseMark(p []byte) (m Mark, size int, partial bool) {
	intro := p[:min(len(p), len(markIntro))]
	if !strings.HasPrefix(markIntro, string(intro)) {
		return m, 0, false
	}
	end := bytes.IndexByte(p[:min(len(p), markMost)], '\a')
	if end < 0 {
		return m, 0, len(p) < markMost
	}
	f := strings.Split(string(p[len(markIntro):end]), ";")
	if len(f) != 3 || len(f[0]) != 1 {
		return m, 0, false
	}
	m.Kind, m.Nonce = f[0][0], f[2]
	m.PID, _ = strconv.Atoi(f[1])
	return m, end + 1, false
}
