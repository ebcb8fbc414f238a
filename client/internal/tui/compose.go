package tui

import (
	"slices"
	"strings"

	"sublet/wire/visible"
)

// compose makes the picture of the live part. From the top: what agents say and do now and who has the shell, then the
// question being written or the one that must be answered first, then what belongs to that.
func (m *model) compose() {
	if !m.own.has || m.held() || m.w < 1 || m.h < 1 {
		return
	}
	m.paint.set(m.picture())
}

func (m *model) picture() frame {
	below, row, col := m.input(max(1, m.h-1))
	above := m.above(m.h - 1 - len(below))
	lines := append(above, below...)
	if m.th.ascii {
		for i, l := range lines {
			lines[i] = m.th.spell(l)
		}
	}
	return frame{lines: lines, row: row + len(above), col: col}
}

// input is the lower part: a question of an agent's, a list to choose from, or the line with what hangs on it.
func (m *model) input(room int) (lines []string, row, col int) {
	if q := m.question(); q != nil {
		armed := m.ready(q)
		lines, row, col = q.Render(&m.th, m.w, max(6, room), len(m.questions), armed)
		if m.ed.empty() || !m.own.ai {
			return lines, row, col
		}
		kept := m.th.dim.Render(fit("  your line waits: "+firstLine(visible.Text(m.ed.text)), m.w))
		return append(lines, kept), row, col
	}
	if m.picker != nil {
		return m.picker.Render(&m.th, m.w, room)
	}
	v := &m.view
	v.text, v.pos, v.ghost, v.prompt, v.more = m.ed.text, m.ed.pos, "", "", "  "
	var after []string
	switch {
	case m.own.insert != "":
		v.text, v.pos, v.prompt = m.own.insert, len(m.own.insert), m.th.dim.Render("$ ")
		after = wrap(m.th.dim.Render("ending that command: your line runs when it has ended"), m.w)
	case !m.own.ai: // what the shell gets when it is free
		v.text, v.pos = m.ahead, len(m.ahead)
		if m.ahead == "" && len(m.hint) == 0 {
			return []string{""}, 0, 0
		}
		v.prompt = m.th.dim.Render("typed for your shell: ")
	default:
		mark := ">"
		if m.own.once {
			mark = "?"
		}
		v.prompt = m.th.accent.Render(mark) + " "
		if m.ed.empty() && m.turn == nil && len(m.waiting) == 0 {
			v.ghost = m.th.dim.Render("ask an agent · tab: shell · /help")
		}
		after = m.slashList(room - 2)
	}
	lines, row, col = v.Render(m.w, max(1, room-2))
	lines = append(slices.Clone(lines), after...)
	for _, h := range m.hint {
		lines = append(lines, wrap(h, m.w)...)
	}
	if m.own.ai && len(after) == 0 && m.hint == nil && room > 6 {
		if f := m.footer(); f != "" {
			lines = append(lines, f)
		}
	}
	return lines[:min(len(lines), max(room, row+1))], row, col
}

// footer says in one quiet line what an answer will come from.
func (m *model) footer() string {
	var parts []string
	if m.policy != "" {
		parts = append(parts, m.policy+" mode")
	}
	if m.answers != "" {
		parts = append(parts, visible.Line(m.answers))
	}
	if m.use.Window > 0 && m.use.Used > 0 {
		parts = append(parts, "context "+itoa(int((100*m.use.Used+m.use.Window-1)/m.use.Window))+"%")
	}
	if name := firstOf(m.session.Name, ""); name != "" {
		parts = append(parts, visible.Line(name))
	}
	if m.lost {
		parts = []string{"no daemon: only the shell works"}
	}
	if len(parts) == 0 {
		return ""
	}
	return m.th.dim.Render(fit("  "+strings.Join(parts, " · "), m.w))
}

// above is the upper part, in at most room lines.
func (m *model) above(room int) []string {
	if room < 1 {
		return nil
	}
	var work []string
	if m.question() == nil && (m.own.ai || !m.own.leased) {
		work = m.working()
	}
	if bar := m.leaseBar(); bar != "" {
		work = append(work, bar)
	}
	for i, l := range work {
		work[i] = fit(l, m.w)
	}
	work = work[:min(len(work), room)]
	room -= len(work)

	var blocks [][]string
	var shownKind entryKind = m.lastKind
	if text := m.liveText(min(room, max(3, m.h*2/3))); len(text) > 0 {
		if gap(shownKind, kindText) && len(text) < room {
			text = append([]string{""}, text...)
		}
		shownKind = kindText
		blocks = append(blocks, text)
	}
	now := m.now()
	q := m.question()
	for i, c := range m.live {
		if q != nil && q.req.ExecutionID == c.id {
			continue // it does not run: the question stands for it
		}
		left := room
		for _, b := range blocks {
			left -= len(b)
		}
		if left < 1 {
			break
		}
		c.waits = m.waits(i)
		lines := c.Render(&m.th, m.w, max(1, min(left, (m.h-4)/max(1, len(m.live)-i))), m.spinAt, now)
		if c.keyboard != "" && len(lines) < left {
			lines = append(lines, m.th.warn.Render(fit("  it waits for the keyboard", m.w)))
		}
		if gap(shownKind, kindCard) && len(lines) < left {
			lines = append([]string{""}, lines...)
		}
		shownKind = kindCard
		blocks = append(blocks, lines)
	}
	var out []string
	for _, b := range blocks {
		out = append(out, b...)
	}
	out = lastLines(out, room)
	if len(work) > 0 && len(out)+len(work) < room && (shownKind == kindText || shownKind == kindEcho) {
		out = append(out, "")
	}
	if m.own.ai && len(work) == 0 && len(out) == 0 && m.question() == nil && m.lastKind != kindNone && m.lastKind != kindShell && m.lastKind != kindNote && m.h > 8 {
		out = append(out, "") // the prompt stands off from what agents said
	}
	if m.question() != nil && room > len(out) && (len(out) > 0 || m.lastKind != kindNone && m.lastKind != kindShell) {
		out = append(out, "")
	}
	return append(out, work...)
}

// waits reports whether the i-th running card has not begun: an agent's calls of bash run one after the other, and none
// of them while one is asked about.
func (m *model) waits(i int) bool {
	c := m.live[i]
	if c.tool != "bash" || c.leased || c.out.total > 0 {
		return false
	}
	same := func(o *card) bool { return o.agent == c.agent && o.tool == "bash" }
	if slices.ContainsFunc(m.live[:i], same) {
		return true
	}
	return slices.ContainsFunc(m.questions, func(q *confirm) bool { return q.req.Agent == c.agent && q.req.ExecutionID != c.id })
}

// liveText is what agents have said and done and is not printed yet.
func (m *model) liveText(height int) []string {
	var out []string
	waiting := m.out[max(0, len(m.out)-height):] // not printed yet, or waiting behind that; at least a line each
	for i, e := range waiting {
		if i > 0 && gap(waiting[i-1].kind, e.kind) {
			out = append(out, "")
		}
		switch {
		case e.ready:
			for l := range strings.SplitSeq(e.text, "\n") {
				out = append(out, fit(l, m.w))
			}
		case e.card != nil:
			for l := range strings.SplitSeq(e.card.Finished(&m.th, m.w), "\n") {
				out = append(out, fit(l, m.w))
			}
		default:
			out = append(out, m.md.Live(e.live, m.w-1, height)...)
		}
	}
	if m.turn != nil {
		for _, name := range m.turn.order {
			s := m.turn.agents[name]
			if strings.TrimSpace(s.text.rest) == "" {
				continue
			}
			lines := m.md.Live(s.text.rest, m.w-1, height)
			if name != "" && name != "orchestrator" {
				prefix := m.th.agent.Render(visible.Line(name)) + m.th.dim.Render(m.th.glyph(" │ ", " | "))
				lines = indent(lines, prefix)
				for i := range lines {
					lines[i] = fit(lines[i], m.w)
				}
			}
			out = append(out, lines...)
		}
	}
	return lastLines(out, height)
}
