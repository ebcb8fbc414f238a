package cli

import (
	"bytes"
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// sequenceMost bounds a control sequence in bytes; a longer one is not treated as one.
const sequenceMost = 64 << 10

// filtered returns p without the control sequences for which keep returns false, and the beginning of one with which p ends.
func filtered(p []byte, keep func(seq []byte) bool) (text, rest []byte) {
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

// keepSilent reports whether a sequence does not make a terminal send something. It refuses queries, whose answers would be typed into the shell behind this
// program, and modes that report keys, the mouse or the focus. The program has the window's terminal for that.
func keepSilent(seq []byte) bool {
	if len(seq) < 3 {
		return !slices.Contains([]string{"\x1bZ", "\x1b="}, string(seq))
	}
	body, final := seq[2:len(seq)-1], seq[len(seq)-1]
	switch seq[1] {
	case ']':
		return !bytes.HasSuffix(bytes.TrimRight(seq, "\a\x1b\\"), []byte(";?"))
	case 'P':
		return !bytes.HasPrefix(body, []byte("$q")) && !bytes.HasPrefix(body, []byte("+q"))
	case '[':
	default:
		return true
	}
	private := len(body) > 0 && body[0] >= '<' && body[0] <= '?'
	switch final {
	case 'c', 'n', 't', 'x':
		return false
	case 'p', 'y':
		return !bytes.ContainsAny(body, "$*") // DECRQM, DECRQCRA
	case 'q', 'u', 'm':
		return !private // XTVERSION, the kitty keyboard, XTMODKEYS
	case 'h', 'l':
		return !private || !slices.ContainsFunc(bytes.Split(body[1:], []byte(";")), func(mode []byte) bool {
			return slices.Contains(reportingModes, string(mode))
		})
	}
	return true
}

// reportingModes are the private modes (xterm's ctlseqs, and what newer terminals added) that make a terminal send something, or
// send keys in another way.
var reportingModes = []string{"1", "9", "66", "1000", "1001", "1002", "1003", "1004", "1005", "1006", "1015", "1016", "2004", "2031", "2048"}
