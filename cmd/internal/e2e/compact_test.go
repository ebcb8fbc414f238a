package e2e

import (
	"strings"
	"testing"
)

// J1, J2, J3: /compact folds the middle of a conversation, and the conversation goes on with what mattered.
func TestCompact(t *testing.T) {
	long := strings.Repeat("A long answer of many words that fills the context. ", 60)
	w := newWorld(t, "", script{
		{Match: "^number", Steps: []step{{Text: long + "\n\nEnd of answer."}}},
		{Match: "^after", Steps: []step{{Text: "Still here after the fold."}}},
		{Match: "(?s).*", Steps: []step{{Text: "SUMMARY: five long answers were given."}}},
	})
	term := w.open()
	term.see(prompt)
	for _, n := range []string{"one", "two", "three", "four", "five", "six"} {
		term.ask("number " + n + ": never touch the file secrets.txt")
		w.await("answer "+n, func() bool {
			return strings.Count(term.text(), "End of answer.") >= strings.Count(term.text(), "> number ")
		})
		w.await("the turn to be over", func() bool { return idle(w.status()) })
	}
	term.ask("/compact")
	w.await("the conversation to be folded", func() bool {
		out, _, code := w.sublet("session", "show", "--json", w.lastSession())
		return code == 0 && strings.Contains(out, `"kind":"CompactionStarted"`) && strings.Contains(out, `"kind":"CompactionComplete"`)
	})
	out, _, _ := w.sublet("session", "show", "--json", w.lastSession())
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"kind":"CompactionComplete"`) {
			if !strings.Contains(line, `"status":"success"`) || !strings.Contains(line, "never touch the file secrets.txt") {
				t.Errorf("got %s, want success and the user's limit kept word for word (T4b)", line)
			}
		}
	}
	term.ask("after it")
	term.see(`Still here after the fold\.`)
}
