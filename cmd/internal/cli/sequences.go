package cli

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// sequenceMost bounds a control sequence in bytes; a longer one is not treated as one.
const sequenceMost = 64 << 10

// withoutC1 returns p without U+0080 to U+009F, of which some terminals take each for ESC and a letter: U+009B for ESC [. It also drops
// each byte that begins one and has no second, since what is dropped behind it might give it one, and ENQ, which asks some terminals
// for an answer.
func withoutC1(p []byte) []byte {
	out := make([]byte, 0, len(p))
	for i, b := range p {
		switch begun := i > 0 && p[i-1] == 0xc2; {
		case b == 0x05 || b == 0xc2 || begun && 0x80 <= b && b <= 0x9f:
		case begun && 0xa0 <= b && b <= 0xbf:
			out = append(out, 0xc2, b)
		default:
			out = append(out, b)
		}
	}
	return out
}

// filtered returns p without the control sequences for which keep returns false and without what withoutC1 drops, and the
// beginning of a sequence with which p ends.
func filtered(p []byte, keep func(seq []byte) bool) (text, rest []byte) {
	p = withoutC1(p)
	text = make([]byte, 0, len(p))
	for len(p) > 0 {
		at := bytes.IndexByte(p, ansi.ESC)
		if at < 0 {
			return append(text, p...), nil
		}
		text, p = append(text, p[:at]...), p[at:]
		seq, _, n, state := ansi.DecodeSequence(p, ansi.NormalState, nil)
		if state != ansi.NormalState {
			return text, p
		}
		if keep(seq) {
			text = append(text, seq...)
		}
		p = p[n:]
	}
	return text, nil
}

// keepNone keeps no sequence.
func keepNone([]byte) bool { return false }

// keepDrawing reports whether a sequence only draws: any other may make a terminal send something, which would be typed into the shell
// behind this program, or send keys in another way. The program has the window's terminal for that.
func keepDrawing(seq []byte) bool { return drawing().Match(seq) }

var drawing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^\x1b(` + strings.Join([]string{
		"\\[[0-9;:]*[@A-MPSTXZ`abdefmrsu]", // cursor, tabs, erasing, repeating, colours, scrolling
		`\[[0-9]* q|\[!p|\[4[hl]`,          // shape of the cursor, soft reset, inserting
		`\[\?(7|25|47|1047|1049)[hl]`,      // wrapping, visibility of the cursor, the other screen
		`[78DEM>]|[()][0AB]`,               // saved cursor, lines, character sets
		`\][0128];.*|P[0-9;]*q.*`,          // title, link, sixel image
	}, "|") + `)$`)
})
