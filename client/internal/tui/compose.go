package tui

import (
	"slices"
	"strings"
)

// compose makes the picture of the live part. From the top: what agents say and do now, then the line being written or
// the question that must be answered first, then what belongs to that line.
func (m *model) compose() {
	if m.held() || m.w < 1 || m.h < 1 {
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

// input is the lower part: question, list to choose from, or the line with what hangs on it.
func (m *model) input(room int) (lines []string, row, col int) {
	if r := m.userRun; r != nil { // which waits: no key is for anything else
		v := &m.view
		v.text, v.pos, v.ghost, v.prompt, v.more = r.text, len(r.text), "", m.shellPrompt(), m.th.dim.Render("> ")
		lines, row, col = v.Render(m.w, max(1, room-2))
		lines = append(slices.Clone(lines), wrap(m.th.dim.Render("ending that command: your line runs when it has ended"), m.w)...)
		return lines[:min(len(lines), max(room, row+1))], row, col
	}
	if q := m.question(); q != nil {
		armed := m.ready(q)
		lines, row, col = q.Render(&m.th, m.w, max(6, room), len(m.questions), armed)
		if m.ed.empty() {
			return lines, row, col
		}
		kept := m.th.dim.Render(fit("  your line waits: "+firstLine(visible(m.ed.text)), m.w))
		return append(lines, kept), row, col
	}
	if m.picker != nil {
		return m.picker.Render(&m.th, m.w, room)
	}
	v := &m.view
	v.text, v.pos, v.ghost = m.ed.text, m.ed.pos, ""
	v.more = m.th.dim.Render("> ")
	switch {
	case m.search != nil:
		s := m.search
		label := "search: "
		if s.failed {
			label = "not found: "
		}
		v.prompt = m.th.dim.Render("("+label) + visibleLine(s.query) + m.th.dim.Render(") ")
	case m.ai:
		v.prompt = m.th.accent.Render(">") + " "
		v.more = "  "
		if m.ed.empty() && m.turn == nil && len(m.waiting) == 0 {
			v.ghost = m.th.dim.Render("ask an agent · tab: shell · /help")
		}
	default:
		v.prompt = m.shellPrompt()
	}
	lines, row, col = v.Render(m.w, max(1, room-2))
	lines = slices.Clone(lines)
	if m.comp != nil {
		// Under the part of the word that is shown: of a path, its last.
		word := m.ed.text[:min(m.comp.from, len(m.ed.text))] + m.comp.before[:strings.LastIndexByte(m.comp.before, '/')+1]
		start := cells(firstLineOf(word))
		lead := 0
		if !strings.Contains(m.ed.text, "\n") {
			lead = cells(v.prompt[strings.LastIndexByte(v.prompt, '\n')+1:])
		}
		lines = append(lines, m.comp.Render(&m.th, m.w, room-len(lines), (lead+start)%max(1, m.w))...)
	}
	for _, h := range m.hint {
		lines = append(lines, wrap(h, m.w)...)
	}
	if m.ai && m.comp == nil && m.hint == nil && room > 6 {
		if f := m.footer(); f != "" {
			lines = append(lines, f)
		}
	}
	return lines[:min(len(lines), max(room, row+1))], row, col
}

// firstLineOf is the last line of s: where the cursor's word stands.
func firstLineOf(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// footer says in one quiet line what an answer will come from.
func (m *model) footer() string {
	var parts []string
	if m.policy != "" {
		parts = append(parts, m.policy+" mode")
	}
	if len(m.models) > 0 {
		parts = append(parts, visibleLine(m.models[0].Name))
	}
	if m.use.Window > 0 && m.use.Used > 0 {
		parts = append(parts, "context "+itoa(int((100*m.use.Used+m.use.Window-1)/m.use.Window))+"%")
	}
	if name := firstOf(m.session.Name, ""); name != "" {
		parts = append(parts, visibleLine(name))
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
	if m.question() == nil {
		work = m.working()
	}
	if line := m.shellLine(); line != "" {
		work = append(work, line)
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
	if len(work) == 0 && len(out) == 0 && m.question() == nil && m.lastKind != kindNone && m.lastKind != kindShell && m.lastKind != kindNote && m.h > 8 {
		out = append(out, "") // the prompt stands off from what agents said
	}
	if m.question() != nil && room > len(out) && (len(out) > 0 || m.lastKind != kindNone && m.lastKind != kindShell) {
		out = append(out, "")
	}
	return append(out, work...)
}

// waits tells that the i-th running card has not begun: an agent's calls of bash run one after the other, and while one of
// them is asked about nothing does.
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

// shellLine says who has the shell and for how long, and who waits for it and for what: "" while nobody waits. What the
// holder runs stands in its card.
func (m *model) shellLine() string {
	const purposeWidth = 24
	var names, full []string
	for _, name := range m.lending.Waiting {
		names, full = append(names, visibleLine(name)), append(full, visibleLine(name))
	}
	for _, w := range m.queue.Waiting {
		name := visibleLine(w.Agent)
		names = append(names, name)
		if w.Purpose != "" {
			name += " (" + fit(visibleLine(firstLine(w.Purpose)), purposeWidth) + ")"
		}
		full = append(full, name)
	}
	if len(names) == 0 {
		return ""
	}
	line := "  " + visibleLine(firstOf(m.lending.Holder, "nobody")) + " has your shell"
	if !m.lending.Since.IsZero() {
		line += ", " + ticking(m.now().Sub(m.lending.Since))
	}
	waiting := line + " · waiting: "
	room := m.w - cells(waiting)
	some := func(of []string, n int) string {
		s := strings.Join(of[:n], ", ")
		if rest := m.queue.More + len(of) - n; rest > 0 {
			s += " and " + itoa(rest) + " more"
		}
		return s
	}
	for n := len(full); n > 0; n-- { // as many as there is room for
		if s := some(full, n); cells(s) <= room {
			return m.th.dim.Render(waiting + s)
		}
	}
	if s := some(names, 1); cells(s) <= room {
		return m.th.dim.Render(waiting + s)
	}
	return m.th.dim.Render(fit(line+" · waiting: "+itoa(len(names)+m.queue.More), m.w))
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
			out = append(out, liveMarkdown(&m.th, e.live, m.w-1, height)...)
		}
	}
	if m.turn != nil {
		for _, name := range m.turn.order {
			s := m.turn.agents[name]
			if strings.TrimSpace(s.text.rest) == "" {
				continue
			}
			lines := liveMarkdown(&m.th, s.text.rest, m.w-1, height)
			if name != "" && name != "orchestrator" {
				prefix := m.th.agent.Render(visibleLine(name)) + m.th.dim.Render(m.th.glyph(" │ ", " | "))
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
