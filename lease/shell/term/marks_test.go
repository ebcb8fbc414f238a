package term

import (
	"bytes"
	"strings"
	"testing"
)

// Marks that are split anywhere are found; all else comes through once and in order.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("output\x1b]7701;E;1;no"), 3)
	f.Add([]byte("\x1b\x1b]7701;E;"), 1)
	f.Add([]byte("\x1b]7701;;;\a"), 2)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		nonce := strings.Repeat("a", 32)
		if size < 1 || len(body) > 4096 || bytes.Contains(body, []byte(nonce)) || bytes.Contains(body, []byte(markIntro)) {
			return
		}
		raw := []byte("before" + markIntro + "S;12;" + nonce + "\a")
		raw = append(raw, body...)
		raw = append(raw, "\x1b\\"+markIntro+"E;12;"+nonce+"\aafter"...)
		var out []byte
		var marks []Mark
		var s Splitter
		data := func(p []byte) { out = append(out, p...) }
		for i := 0; i < len(raw); i += size {
			s.Feed(raw[i:min(i+size, len(raw))], data, func(m Mark) { marks = append(marks, m) })
		}
		want := append(append([]byte("before"), body...), "\x1b\\after"...)
		if !bytes.Equal(out, want) {
			t.Errorf("got %q, want %q", out, want)
		}
		last := Mark{Kind: 'E', PID: 12, Nonce: nonce}
		if len(marks) != 2 || marks[0] != (Mark{Kind: 'S', PID: 12, Nonce: nonce}) || marks[1] != last {
			t.Errorf("got marks %+v", marks)
		}
	})
}
