package tui

import (
	"slices"
	"strings"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/paint"
	"sublet/client/internal/tui/question"
	"sublet/wire/visible"
)

// compose draws the live part. From the top: what agents say and do, who has the shell, and the line being written or the
// question that must be answered first.
func (m *model) compose() {
	if !m.own.painting || m.programHasTerminal() {
		return
	}
	m.paint.Set(m.picture())
}

func (m *model) picture() paint.Frame {
	below, row, col := m.below(max(1, m.h-1))
	above := m.above(m.h - 1 - len(below))
	lines := append(above, below...)
	return paint.Frame{Lines: lines, Row: row + len(above), Col: col}
}

// leastQuestion is the least height of a question: title, one line of its body, the scroll position, and three for the answers.
const leastQuestion = 6

// below returns the lower part and the cursor's place: an agent's question, a list to choose from, or the line with its hints. It has at
// most room lines, but a question at least leastQuestion, and one more where the user's line waits.
func (m *model) below(room int) (lines []string, row, col int) {
	if q := m.question(); q != nil {
		lines, row, col = q.Render(&m.th, m.w, max(leastQuestion, room), len(m.questions), q.Ready(m.now(), m.lastKey))
		label, waits := "  your line waits: ", m.ed.Text
		if !m.own.ai() {
			label, waits = "  typed for your shell: ", m.ahead.Text
		}
		if waits != "" {
			lines = append(lines, m.th.Dim.Render(cells.Fit(label+visible.FirstLine(waits), m.w)))
		}
		return lines, row, col
	}
	if m.picker != nil {
		return m.picker.Render(&m.th, m.w, room, m.now())
	}
	text, prompt, placeholder := &m.ed, "", ""
	var after []string
	switch {
	case m.own.insert != "":
		text, prompt = &line.Line{Text: m.own.insert, Pos: len(m.own.insert)}, m.th.Dim.Render("$ ")
		after = cells.Wrap(m.th.Dim.Render("ending that command: your line runs when it has ended"), m.w)
	case !m.own.ai(): // the type-ahead for the shell
		if m.ahead.Empty() && m.hint == "" {
			return []string{""}, 0, 0
		}
		text, prompt = &m.ahead, m.th.Dim.Render("typed for your shell: ")
	default:
		mark := ">"
		if m.own.mode != aiMode {
			mark = "?"
		}
		prompt = m.th.Accent.Render(mark) + " "
		if m.ed.Empty() && m.turn == nil && len(m.waiting) == 0 {
			placeholder = m.th.Dim.Render("ask an agent · tab: shell · /help")
		}
		after = m.slashList(room - 2)
	}
	lines, row, col = text.Render(prompt, placeholder, m.w, max(1, room-2)) // a hint or the footer comes below
	lines = append(lines, after...)
	switch f, down := m.footer(), m.noDaemon(); {
	case m.hint != "":
		lines = append(lines, cells.Wrap(m.hint, m.w)...)
	case m.own.ai() && len(after) == 0 && down != "":
		lines = append(lines, cells.Indent(cells.Wrap(m.th.Dim.Render(down), m.w-2), "  ")...)
	case m.own.ai() && len(after) == 0 && f != "" && room > 6: // in a low window the lines are needed
		lines = append(lines, f)
	}
	return lines[:min(len(lines), room)], row, col
}

// footer returns one dim line with the mode, the model, how full its context is, and the session's name.
func (m *model) footer() string {
	mode := m.policy
	if mode != "" {
		mode += " mode"
	}
	parts := []string{mode, visible.Line(m.answering()), percent(m.use), visible.Line(m.SessionInfo.Name)}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return ""
	}
	return m.th.Dim.Render(cells.Fit("  "+strings.Join(parts, " · "), m.w))
}

// above returns what is drawn above the line editor, in at most room lines: text that is not in the scrollback yet, then running work.
func (m *model) above(room int) []string {
	if room < 1 {
		return nil
	}
	q := m.question()
	work := m.workLines(q, room)
	room -= len(work)
	out, last := m.unprinted(q, room)
	printed := m.lastKind != kindNone && m.lastKind != kindShell
	apart := false // whether an empty line comes before what follows out: a question, work or the line editor
	switch {
	case q != nil:
		apart = len(out) > 0 || printed
	case len(work) > 0:
		apart = len(out)+len(work) < room && (last == kindText || last == kindEcho)
	case len(out) == 0:
		apart = m.own.ai() && printed && m.lastKind != kindNote && m.h > 8 // not in a low window
	}
	if apart && len(out) < room {
		out = append(out, "")
	}
	return append(out, work...)
}

// workLines returns what agents do and who has the shell, in at most room lines. q is the open question.
func (m *model) workLines(q *question.Question, room int) []string {
	var work []string
	if q == nil && (m.own.ai() || !m.own.leased) {
		work = m.working()
	}
	if bar := m.leaseBar(); bar != "" {
		work = append(work, bar)
	}
	work = work[:min(len(work), room)]
	for i, l := range work {
		work[i] = cells.Fit(l, m.w)
	}
	return work
}

// unprinted returns what agents say and do that is not printed yet, in at most room lines, and the kind of its last entry.
func (m *model) unprinted(q *question.Question, room int) (out []string, last entryKind) {
	last = m.lastKind
	add := func(kind entryKind, lines []string) {
		if gap(last, kind) && len(out)+len(lines) < room {
			out = append(out, "")
		}
		out, last = append(out, lines...), kind
	}
	if text := m.liveText(min(room, max(3, m.h*2/3))); len(text) > 0 {
		add(kindText, text)
	}
	for i, c := range m.running {
		left := room - len(out)
		if left < 1 {
			break
		}
		if q != nil && q.ExecutionID == c.id {
			continue // it does not run, and the question shows it
		}
		c.Waits = m.waits(i)
		lines := c.Running(&m.th, m.w, max(1, min(left, (m.h-4)/max(1, len(m.running)-i))), m.now())
		add(kindCard, lines)
	}
	return cells.Last(out, room), last
}

// waits reports whether the i-th running card has not begun: an agent's calls of bash run one after the other, and none
// of them while one is asked about.
func (m *model) waits(i int) bool {
	c := m.running[i]
	if c.Tool != "bash" || c.Leased || c.Out.Total > 0 {
		return false
	}
	same := func(o *execution) bool { return o.Agent == c.Agent && o.Tool == "bash" }
	if slices.ContainsFunc(m.running[:i], same) {
		return true
	}
	return slices.ContainsFunc(m.questions, func(q *question.Question) bool { return q.Agent == c.Agent && q.ExecutionID != c.id })
}

// liveText returns the last lines, at most height, of the text that agents are writing.
func (m *model) liveText(height int) (out []string) {
	if m.turn != nil {
		for _, s := range m.turn.agents {
			if strings.TrimSpace(s.text.Rest()) == "" {
				continue
			}
			lines := m.md.Live(s.text.Rest(), m.w-1, height)
			for _, l := range cells.Indent(lines, m.speakerMark(s.name)) {
				out = append(out, cells.Fit(l, m.w))
			}
		}
	}
	return cells.Last(out, height)
}
