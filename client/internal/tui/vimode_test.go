package tui

import "testing"

// With `set -o vi` the line is edited as readline's vi mode does, history and Enter included. Esc and a key arrive as
// one here, as a terminal also sends Alt and that key.
func TestViMode(t *testing.T) {
	w := open(t, 80, 24, func(w *window) { w.sh.editing = "vi" })
	w.prompt()
	for _, c := range []struct{ keys, ran string }{
		{"echo one two\x1bbcwthree\r", "echo one three"},
		{"\x1bkwdwA four\r", "echo three four"},
		{"\x1bkk$r!\r", "echo one thre!"},
		{"\x1bk0\x1bjiecho\r", "echo"}, // down again to the line that was empty
		{"oops\x1b#", "#oops"},
		{"echo done\x1b\r", "echo done"},
		{"for i in 1; do\x1b0\rdone\r", "for i in 1; do\ndone"}, // not complete: the next line
		{"\x1b/one t\r\r", "echo one thre!"},
	} {
		before := len(w.sh.commands())
		w.runs(c.keys)
		if got := w.sh.commands()[before]; got != c.ran {
			t.Errorf("%q: ran %q, want %q", c.keys, got, c.ran)
		}
	}
}
