package question

import (
	"cmp"
	"strconv"
	"strings"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
	"sublet/client/marks"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	markedFrom = 14 // least height at which marks are drawn below a command
	editLines  = 6  // at most, of a comment or a command while it is written
)

// Render draws the question in at most height lines. row and col are the cursor's place. of is the number of questions that wait; armed
// reports whether a key answers this one now, and lights up the choice.
func (q *Question) Render(th *style.Theme, width, height, of int, armed bool) (lines []string, row, col int) {
	bar := th.Level1.Render("▌") + " "
	if q.Verdict.Level == "critical" {
		bar = th.Level2.Render("▌") + " "
	}
	foot, frow, fcol := q.foot(th, width-2, max(3, height-4), armed)
	body := q.body(th, width, height >= markedFrom)
	room := max(1, height-1-1-len(foot))
	q.scroll = min(q.scroll, max(0, len(body)-room))
	more := ""
	if all := len(body); all > room {
		body = body[q.scroll : q.scroll+room]
		more = th.Dim.Render(" lines " + strconv.Itoa(q.scroll+1) + "–" + strconv.Itoa(q.scroll+room) + " of " + strconv.Itoa(all) + " · ↑↓ scroll")
	}
	lines = append(append([]string{q.title(th, width-2, of)}, body...), cells.Fit(more, width-2))
	row = len(lines) + frow
	return cells.Indent(append(lines, foot...), bar), row, fcol + 2
}

// title returns the risk, which is first so that it is never cut off, who asks, and for what.
func (q *Question) title(th *style.Theme, width, of int) string {
	s := th.Name(cmp.Or(q.Agent, "the agent")) + th.Bold.Render(" wants to "+q.text(wants))
	if q.Tool != wire.ToolAskUser && q.Tool != wire.ToolPlan && q.Tool != wire.ToolContinue { // no answer to these runs anything
		s = th.Level(q.Verdict.Level) + th.Dim.Render(" risk · ") + s
	}
	if of > 1 {
		s += th.Dim.Render(" · 1 of " + strconv.Itoa(of))
	}
	return cells.Fit(s, width)
}

// body returns the question without its answers: what would run and where, why that is risky, and what it would change.
func (q *Question) body(th *style.Theme, width int, marked bool) []string {
	inner := width - 2
	var out []string
	list, numbers := marks.Of(string(q.Command), q.Verdict.Reasons)
	if !marked {
		list, numbers = nil, make([]int, len(numbers))
	}
	for i, m := range list { // where it stands in what is drawn
		list[i].Start, list[i].End = len(th.Mark(string(q.Command[:m.Start]))), len(th.Mark(string(q.Command[:m.End])))
	}
	if subject := q.subject(); subject != "" {
		for _, row := range marks.Draw(th.Mark(subject), list, inner-2) {
			out = append(out, "  "+row.Text)
			for _, under := range row.Marks {
				out = append(out, "  "+th.Bad.Render(under))
			}
		}
	}
	if q.Cwd != "" {
		out = append(out, th.Dim.Render("  in ")+th.Path.Render(cells.Fit(th.Line(string(q.Cwd)), inner-5)))
	}
	if from := q.Borrower; from.Name != "" && from.PID != 0 {
		who := "asked by " + th.Line(string(from.Executable)) + ", pid " + strconv.Itoa(from.PID)
		out = append(out, th.Dim.Render("  "+cells.Fit(who, inner-2)))
	}
	if line := q.reach(); line != "" {
		out = append(out, cells.Indent(cells.Wrap(line, inner-2), "  ")...)
	}
	out = append(out, "")
	wide := len(strconv.Itoa(len(list)))
	for i, reason := range q.Verdict.Reasons {
		lead := strings.Repeat(" ", wide-1) + th.Dim.Render("• ")
		if n := numbers[i]; n > 0 {
			lead = strings.Repeat(" ", wide-len(strconv.Itoa(n))) + th.Bad.Render(strconv.Itoa(n)) + " "
		}
		out = append(out, cells.Hanging(lead, cells.Wrap(visible.Line(reason.Text), inner-1-wide))...)
	}
	switch {
	case q.Verdict.UndoHint != "":
		hint := th.Dim.Render("undo: " + visible.Line(q.Verdict.UndoHint))
		out = append(out, cells.Hanging(th.Dim.Render("↶ "), cells.Wrap(hint, inner-2))...)
	case !q.Verdict.Reversible && len(q.Verdict.Reasons) > 0:
		out = append(out, th.Dim.Render("  cannot be undone"))
	}
	if q.Preview.Content != "" && q.Preview.Type != "none" && q.Tool != wire.ToolPlan {
		preview := strings.TrimRight(th.Mark(visible.Text(q.Preview.Content)), "\n")
		if q.Preview.Type == "diff" {
			preview = strings.Join(card.Diff(th, q.Preview.Content, 0), "\n")
		}
		out = append(append(out, ""), cells.Hardwrap(preview, inner)...)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// reach describes what a command could do and what confines it; "" if that was not judged.
func (q *Question) reach() (line string) {
	switch {
	case q.Reach == "" || q.Command == "":
		return ""
	case q.EnforcedBy != "":
		line = "reach " + visible.Line(q.Reach) + ", held by " + visible.Line(q.EnforcedBy)
	case q.Reach == "shell":
		line = "reach shell: it changes your shell itself"
	default:
		line = "reach " + visible.Line(q.Reach) + ": nothing holds it, it can do what you can"
	}
	if q.ReachWhy != "" {
		line += "; the agent says: " + visible.Line(q.ReachWhy)
	}
	return line
}

// foot returns what is below the body: the answers, what is being written, or the standing permissions in at most height lines.
func (q *Question) foot(th *style.Theme, width, height int, armed bool) (lines []string, row, col int) {
	if q.step == stepGrant {
		return q.grants(th, width, height)
	}
	if q.writing() {
		before, below := q.text(label), q.text(help)
		if q.step == stepEdit {
			before, below = q.text(editLabel), q.text(editHelp)
		}
		q.edit.Show = th.Line
		lines, row, col = q.edit.Render(th.Dim.Render(before), "", width, editLines)
		return append(lines, th.Dim.Render(cells.Fit(below, width))), row, col
	}
	line := ""
	for i, o := range q.options() {
		s := " [" + o.key + "] " + o.label + " "
		if line != "" && cells.Width(line)+1+cells.Width(s) > width {
			lines = append(lines, line)
			line = ""
		} else if line != "" {
			line += " "
		}
		if i == q.choice {
			row, col = len(lines), cells.Width(line)
		}
		switch {
		case !armed:
			s = th.Dim.Render(s)
		case i == q.choice:
			s = th.Chosen.Render(s)
		}
		line += s
	}
	lines = append(lines, line)
	if q.sent {
		lines = append(lines, th.Dim.Render("answering…"))
	}
	return lines, row, col
}

// grants lists the standing permissions on offer by what they cover: the chosen one in full, with its rule below, the others in a line
// each. Without room for all, it lists those around the chosen one.
func (q *Question) grants(th *style.Theme, width, height int) (lines []string, row, col int) {
	lines = []string{th.Dim.Render(cells.Fit("allow from now on:", width))}
	for i, g := range q.Grants {
		label := visible.Line(g.Scope) + ": " + th.Line(g.Covers)
		if i != q.choice {
			lines = append(lines, "  "+cells.Fit(label, width-2))
			continue
		}
		row = len(lines)
		covers := cells.Wrap(label, width-2)
		for i, l := range covers {
			covers[i] = th.Bold.Render(l)
		}
		lines = append(lines, cells.Hanging(th.Accent.Render("▸ "), covers)...)
		lines = append(lines, th.Dim.Render("    "+cells.Fit(th.Line(g.Rule), width-4)))
	}
	if over := len(lines) - (height - 1); over > 0 {
		from := min(max(0, row-1), over)
		lines, row = lines[from:from+height-1], row-from
	}
	return append(lines, th.Dim.Render(cells.Fit("enter allows it · esc goes back", width))), row, 0
}

// Outcome returns the line that is printed when a question is settled. fresh is false in a replay.
func (q *Question) Outcome(th *style.Theme, r *wire.ConfirmationResolved, width int, fresh bool) string {
	ink, word := th.Warn, q.text(notAllowed)
	switch {
	case r.Decision == wire.DecisionAllow:
		ink, word = th.Good, q.text(allowed)
	case r.Decision == wire.DecisionAllowAlways:
		ink, word = th.Good, "allowed from now on"
	case q.Tool == wire.ToolContinue && r.Comment != "": // "go on, but…"
		word = q.text(allowed)
	}
	switch {
	case strings.HasPrefix(r.By, "rule"):
		word += " by " + visible.Line(r.By)
	case r.By == "expiry":
		word += ": no answer in time"
	case r.By == "cancel":
		word += ": cancelled"
	case r.By == "nobody":
		word += ": nobody was there to answer"
	case !q.sent && fresh:
		word += " in another window"
	}
	s := ink.Render("●") + " " + word
	if q.Tool != wire.ToolPlan {
		subject := q.subject()
		if q.step == stepEdit && q.sent {
			subject = q.edit.Text
		}
		subject = th.Line(visible.FirstLine(subject))
		if _, known := kinds[q.Tool]; q.Command == "" && (!known || q.Tool == "edit" || q.Tool == "write") {
			subject = visible.Line(q.Tool) + " " + subject
		}
		if subject != "" {
			s += th.Dim.Render(": " + subject)
		}
	}
	if r.Comment != "" {
		s += th.Dim.Render(" – ") + visible.Line(r.Comment)
	}
	return cells.Fit(s, width)
}
