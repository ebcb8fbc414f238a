package tui

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/style"
	"sublet/client/marks"
	"sublet/wire"
	"sublet/wire/visible"
)

// armDelay is how long a question must have been on the screen, and no key been typed, before a key can answer it: what
// was typed towards something else is no answer.
const armDelay = 300 * time.Millisecond

// confirm is one question. The answer is no until the user chooses otherwise.
type confirm struct {
	req     *wire.ConfirmationRequest
	shown   time.Time // since when it has been on the screen; zero: not yet
	step    confirmStep
	choice  int  // of options(), or of the grants
	scroll  int  // first line of the body that is shown
	live    bool // a key was taken while armed: from then on the user is in it
	sent    bool
	problem string // why the last answer did not get through

	edit line.Line // of the command, or of the comment

	local func(allow bool) // it is the window's own, and this takes the answer

	key   confirmKey // what lines was rendered for
	lines []string
}

type confirmStep int

const (
	stepAsk confirmStep = iota
	stepGrant
	stepComment
	stepEdit
)

type confirmKey struct {
	width  int
	marked bool
}

// markedFrom is the height from which there is room for marks below a command.
const markedFrom = 14

// option is one possible answer.
type option struct {
	key, label string
}

const (
	optAllow   = "y"
	optAlways  = "a"
	optDeny    = "n"
	optComment = "c"
	optEdit    = "e"
)

// options are the answers this question takes. Deny stands first and is chosen until the user moves.
func (c *confirm) options() []option {
	o := []option{{optDeny, "no"}, {optAllow, "yes, once"}}
	switch c.req.Tool {
	case wire.ToolTrust:
		o[1].label = "yes, from now on"
	case wire.ToolContinue:
		o[0].label, o[1].label = "stop", "go on"
		return append(o, option{optComment, "go on, but…"})
	case wire.ToolAskUser:
		o = []option{{optDeny, "no answer"}}
		for i, choice := range c.userQuestion().Choices {
			o = append(o, option{strconv.Itoa(i + 1), visible.Line(choice)})
		}
		return append(o, option{optComment, "in my own words…"})
	case wire.ToolPlan:
		return []option{{optDeny, "no"}, {optAllow, "yes, carry it out"}, {optComment, "no, change…"}, {optEdit, "edit"}}
	}
	if len(c.req.Grants) > 0 {
		o = append(o, option{optAlways, "always…"})
	}
	if c.local != nil {
		return o
	}
	o = append(o, option{optComment, "no, because…"})
	if c.req.Command != "" {
		o = append(o, option{optEdit, "edit"})
	}
	return o
}

// userQuestion is what an agent of another program asks, with the answers on offer.
func (c *confirm) userQuestion() wire.UserQuestion {
	q, err := wire.ParseUserQuestion(c.req.Arguments)
	if err != nil {
		return wire.UserQuestion{Question: c.req.Arguments}
	}
	return q
}

// armed reports whether a key typed now is an answer, the last one before it having been typed at lastKey.
func (c *confirm) armed(now, lastKey time.Time) bool {
	return c.live || !c.shown.IsZero() && now.Sub(c.shown) >= armDelay && now.Sub(lastKey) >= armDelay
}

// body is the question without its answers: what would run, where, why that is risky, what it would change.
func (c *confirm) body(th *style.Theme, width int, marked bool) []string {
	if c.lines != nil && c.key == (confirmKey{width, marked}) {
		return c.lines
	}
	c.key = confirmKey{width, marked}
	r := c.req
	inner := width - 2
	var out []string
	list, numbers := marks.Of(string(r.Command), r.Verdict.Reasons)
	if !marked {
		list, numbers = nil, make([]int, len(numbers))
	}
	for _, row := range marks.Draw(c.subject(), list, inner-2) {
		out = append(out, "  "+row.Text)
		for _, under := range row.Marks {
			out = append(out, "  "+th.Bad.Render(under))
		}
	}
	if r.Cwd != "" {
		out = append(out, th.Dim.Render("  in ")+th.Path.Render(cells.Fit(visible.Line(string(r.Cwd)), inner-5)))
	}
	if from := r.Borrower; from.Name != "" && from.PID != 0 {
		who := "asked by " + visible.Line(string(from.Executable)) + ", pid " + strconv.Itoa(from.PID)
		out = append(out, th.Dim.Render("  "+cells.Fit(who, inner-2)))
	}
	if line := reachLine(r); line != "" {
		out = append(out, cells.Indent(cells.Wrap(line, inner-2), "  ")...)
	}
	out = append(out, "")
	wide := len(strconv.Itoa(len(list)))
	for i, reason := range r.Verdict.Reasons {
		lead := strings.Repeat(" ", wide-1) + th.Dim.Render("• ")
		if n := numbers[i]; n > 0 {
			lead = strings.Repeat(" ", wide-len(strconv.Itoa(n))) + th.Bad.Render(strconv.Itoa(n)) + " "
		}
		out = append(out, cells.Hanging(lead, cells.Wrap(visible.Line(reason.Text), inner-1-wide))...)
	}
	switch {
	case r.Verdict.UndoHint != "":
		hint := th.Dim.Render("undo: " + visible.Line(r.Verdict.UndoHint))
		out = append(out, cells.Hanging(th.Dim.Render("↶ "), cells.Wrap(hint, inner-2))...)
	case !r.Verdict.Reversible && len(r.Verdict.Reasons) > 0:
		out = append(out, th.Dim.Render("  cannot be undone"))
	}
	if r.Preview.Content != "" && r.Preview.Type != "none" && r.Tool != wire.ToolPlan {
		preview := strings.TrimRight(visible.Text(r.Preview.Content), "\n")
		if r.Preview.Type == "diff" {
			preview = strings.Join(card.Diff(th, r.Preview.Content, 0, 0), "\n")
		}
		out = append(append(out, ""), cells.Hardwrap(preview, inner)...)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	c.lines = out
	return out
}

// subject is what would run: the command, or what another tool is called with.
func (c *confirm) subject() string {
	switch c.req.Tool {
	case wire.ToolAskUser:
		return c.userQuestion().Question
	case wire.ToolPlan:
		return c.req.Preview.Content
	}
	return cmp.Or(string(c.req.Command), (&card.Card{Tool: c.req.Tool, Args: c.req.Arguments}).Subject(), c.req.Arguments)
}

// reachLine is what a command could do, and what holds it to that; "" where it was not judged.
func reachLine(r *wire.ConfirmationRequest) (line string) {
	switch {
	case r.Reach == "" || r.Command == "":
		return ""
	case r.EnforcedBy != "":
		line = "reach " + visible.Line(r.Reach) + ", held by " + visible.Line(r.EnforcedBy)
	case r.Reach == "shell":
		line = "reach shell: it changes your shell itself"
	default:
		line = "reach " + visible.Line(r.Reach) + ": nothing holds it, it can do what you can"
	}
	if r.ReachWhy != "" {
		line += "; the agent says: " + visible.Line(r.ReachWhy)
	}
	return line
}

// title says how risky it is, first and so never cut off, and who asks for what.
func (c *confirm) title(th *style.Theme, width, of int) string {
	what := "run this"
	if c.req.Command == "" {
		what = "use " + visible.Line(c.req.Tool)
	}
	switch c.req.Tool {
	case wire.ToolTrust:
		what = "read this folder's instructions"
	case wire.ToolContinue:
		what = "go on"
	case wire.ToolAskUser:
		what = "know something"
	case wire.ToolPlan:
		what = "carry out this plan"
	}
	if c.local != nil {
		what = "read what you type, unseen"
	}
	who := visible.Line(cmp.Or(c.req.Agent, "the agent"))
	if c.req.Tool == "edit" || c.req.Tool == "write" {
		what = "change a file"
	}
	s := th.Bold.Render(who + " wants to " + what)
	if c.req.Tool != wire.ToolAskUser && c.req.Tool != wire.ToolPlan { // an answer runs nothing
		s = th.Level(c.req.Verdict.Level) + th.Dim.Render(" risk · ") + s
	}
	if of > 1 {
		s += th.Dim.Render(" · 1 of " + strconv.Itoa(of))
	}
	return cells.Fit(s, width)
}

// Render draws the question in at most height lines; row and col are the cursor's place. of is how many wait.
func (c *confirm) Render(th *style.Theme, width, height, of int, armed bool) (lines []string, row, col int) {
	bar := th.Level1.Render("▌") + " "
	if c.req.Verdict.Level == "critical" {
		bar = th.Level2.Render("▌") + " "
	}
	foot, frow, fcol := c.foot(th, width-2, max(3, height-4), armed)
	body := c.body(th, width, height >= markedFrom)
	room := max(1, height-1-1-len(foot))
	c.scroll = min(c.scroll, max(0, len(body)-room))
	more := ""
	if len(body) > room {
		more = th.Dim.Render(" lines " + strconv.Itoa(c.scroll+1) + "–" + strconv.Itoa(min(len(body), c.scroll+room)) + " of " + strconv.Itoa(len(body)) + " · ↑↓ scroll")
		body = body[c.scroll : c.scroll+room]
	}
	lines = append(lines, bar+c.title(th, width-2, of))
	lines = append(lines, cells.Indent(body, bar)...)
	lines = append(lines, cells.Fit(bar+strings.TrimPrefix(more, " "), width))
	row = len(lines) + frow
	lines = append(lines, cells.Indent(foot, bar)...)
	return lines, row, fcol + 2
}

// foot is the part with the answers, in at most height lines.
func (c *confirm) foot(th *style.Theme, width, height int, armed bool) (lines []string, row, col int) {
	switch c.step {
	case stepComment, stepEdit:
		label := "why not? "
		help := "enter says no with this · esc goes back"
		if c.req.Tool == wire.ToolAskUser {
			label, help = "your answer: ", "enter answers · esc goes back"
		}
		if c.step == stepEdit {
			label, help = "run instead: ", "enter runs this instead, judged anew · esc goes back"
			if c.req.Tool == wire.ToolPlan {
				label, help = "", "a step a line · alt+enter new line · enter accepts · esc goes back"
			}
		}
		lines, row, col = c.edit.Render(th.Dim.Render(label), "", width, 6)
		lines = append(lines, th.Dim.Render(cells.Fit(help, width)))
		return lines, row, col
	case stepGrant:
		return c.grants(th, width, height)
	}
	line := ""
	for i, o := range c.options() {
		s := " [" + o.key + "] " + o.label + " "
		if line != "" && cells.Width(line)+1+cells.Width(s) > width {
			lines = append(lines, line)
			line = ""
		} else if line != "" {
			line += " "
		}
		if i == c.choice {
			row, col = len(lines), cells.Width(line)
		}
		switch {
		case !armed:
			s = th.Dim.Render(s)
		case i == c.choice:
			s = th.Chosen.Render(s)
		}
		line += s
	}
	lines = append(lines, line)
	switch {
	case c.problem != "":
		lines = append(lines, th.Bad.Render(cells.Fit(c.problem, width)))
	case c.sent:
		lines = append(lines, th.Dim.Render("answering…"))
	}
	return lines, row, col
}

// grants lists what can be allowed from now on. The chosen one says in full what it covers; the others do in a line where
// there is room for that, and where there is not even room for all of them, those around it are shown.
func (c *confirm) grants(th *style.Theme, width, height int) (lines []string, row, col int) {
	offers, from, room := c.req.Grants, 0, height-2
	covers := cells.Wrap(visible.Line(offers[c.choice].Covers), width-3)
	all := 2*len(offers)-1+len(covers) <= room
	if !all {
		covers = covers[:min(len(covers), max(1, room-min(len(offers), 2)))]
		if most := max(1, room-len(covers)); len(offers) > most {
			from = min(max(0, c.choice-most/2), len(offers)-most)
			offers = offers[from : from+most]
		}
	}
	head := "allow from now on:"
	if len(offers) < len(c.req.Grants) {
		head = "allow from now on (" + strconv.Itoa(c.choice+1) + " of " + strconv.Itoa(len(c.req.Grants)) + "):"
	}
	lines = append(lines, th.Dim.Render(cells.Fit(head, width)))
	for i, g := range offers {
		label := visible.Line(g.Scope) + ": " + visible.Line(g.Rule)
		switch {
		case from+i == c.choice:
			row = len(lines)
			lines = append(lines, th.Accent.Render("▸ ")+th.Bold.Render(cells.Fit(label, width-2)))
			for _, l := range covers {
				lines = append(lines, th.Dim.Render("   "+l))
			}
		case all:
			lines = append(lines, "  "+cells.Fit(label, width-2), th.Dim.Render("   "+cells.Fit(visible.Line(g.Covers), width-3)))
		default:
			lines = append(lines, "  "+cells.Fit(label, width-2))
		}
	}
	return append(lines, th.Dim.Render(cells.Fit("enter allows it · esc goes back", width))), row, 0
}

// press takes a key and returns an answer, or nil while there is none, and whether the key means anything to it. It must only be
// called when the question is armed, or while its text is being edited.
func (c *confirm) press(k, text string) (answer *wire.ConfirmationResponse, meant bool) {
	if c.sent {
		return nil, false
	}
	switch c.step {
	case stepComment, stepEdit:
		return c.pressEditor(k, text), true
	case stepGrant:
		n := len(c.req.Grants)
		switch k {
		case "up", "ctrl+p", "shift+tab":
			c.choice = (c.choice + n - 1) % n
		case "down", "ctrl+n", "tab":
			c.choice = (c.choice + 1) % n
		case "esc", "n":
			c.step, c.choice = stepAsk, 0
		case "enter":
			g := c.req.Grants[c.choice]
			return c.answer(wire.DecisionAllowAlways, &g), true
		default:
			return nil, false
		}
		return nil, true
	}
	opts := c.options()
	switch k {
	case "left", "shift+tab", "ctrl+b":
		c.choice = (c.choice + len(opts) - 1) % len(opts)
	case "right", "tab", "ctrl+f":
		c.choice = (c.choice + 1) % len(opts)
	case "up", "ctrl+p":
		c.scroll = max(0, c.scroll-1)
	case "down", "ctrl+n":
		c.scroll++
	case "pgup":
		c.scroll = max(0, c.scroll-8)
	case "pgdown":
		c.scroll += 8
	case "esc":
		return c.take(optDeny), true
	case "enter":
		return c.take(opts[c.choice].key), true
	default:
		for _, o := range opts {
			if k == o.key {
				return c.take(o.key), true
			}
		}
		return nil, false
	}
	return nil, true
}

func (c *confirm) take(key string) *wire.ConfirmationResponse {
	switch key {
	case optAllow:
		return c.answer(wire.DecisionAllow, nil)
	case optDeny:
		return c.answer(wire.DecisionDeny, nil)
	case optAlways:
		c.step, c.choice = stepGrant, 0
	case optComment:
		c.step = stepComment
		c.edit.Set("")
	case optEdit:
		c.step = stepEdit
		c.edit.Set(c.subject())
	default: // a choice of an agent's question
		r := c.answer(wire.DecisionAllow, nil)
		if i, q := int(key[0]-'1'), c.userQuestion(); i >= 0 && i < len(q.Choices) {
			r.Comment = q.Choices[i]
			return r
		}
	}
	return nil
}

func (c *confirm) pressEditor(k, text string) *wire.ConfirmationResponse {
	switch k {
	case "esc", "ctrl+g":
		c.step, c.choice = stepAsk, 0
		return nil
	case "alt+enter", "ctrl+j":
		c.edit.Insert("\n")
		return nil
	case "enter":
		r := c.answer(wire.DecisionDeny, nil)
		if c.step == stepEdit {
			if strings.TrimSpace(c.edit.Text) == "" {
				return nil
			}
			r.Decision = wire.DecisionAllow
			if c.edit.Text != c.subject() {
				edited := wire.OSString(c.edit.Text)
				r.EditedCommand = &edited
			}
			return r
		}
		if r.Comment = strings.TrimSpace(c.edit.Text); c.req.Tool == wire.ToolAskUser && r.Comment != "" {
			r.Decision = wire.DecisionAllow
		}
		return r
	}
	if !c.edit.Key(k) && text != "" {
		c.edit.Insert(text)
	}
	return nil
}

func (c *confirm) answer(decision string, grant *wire.Grant) *wire.ConfirmationResponse {
	return &wire.ConfirmationResponse{ConfirmationID: c.req.ConfirmationID, Decision: decision, Grant: grant}
}

// outcome is the line that stays in the scrollback once a question is settled; now: it happens just now, and
// not in a replay.
func (c *confirm) outcome(th *style.Theme, r *wire.ConfirmationResolved, width int, now bool) string {
	subject := visible.FirstLine(string(c.req.Command))
	if subject == "" {
		subject = visible.Line(c.req.Tool) + " " + visible.FirstLine((&card.Card{Tool: c.req.Tool, Args: c.req.Arguments}).Subject())
	}
	var mark, word string
	switch r.Decision {
	case wire.DecisionAllow:
		mark, word = th.Good.Render("●"), "allowed once"
	case wire.DecisionAllowAlways:
		mark, word = th.Good.Render("●"), "allowed from now on"
	default:
		mark, word = th.Warn.Render("●"), "not allowed"
	}
	if c.req.Tool == wire.ToolAskUser {
		subject = visible.FirstLine(c.userQuestion().Question)
		if word = "not answered"; r.Decision == wire.DecisionAllow {
			word = "answered"
		}
	}
	if c.req.Tool == wire.ToolPlan {
		if word, subject = "plan not accepted", "plan mode stays on"; r.Decision == wire.DecisionAllow {
			word, subject = "plan accepted", "plan mode is over"
		}
	}
	if c.req.Tool == wire.ToolContinue {
		subject = visible.FirstLine(c.req.Arguments)
		if word = "stopped"; r.Decision == wire.DecisionAllow || r.Comment != "" {
			word = "goes on"
		}
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
	case !c.sent && now:
		word += " in another window"
	}
	s := mark + " " + word + th.Dim.Render(": ") + th.Dim.Render(subject)
	if r.Comment != "" {
		s += th.Dim.Render(" – ") + visible.Line(r.Comment)
	}
	return cells.Fit(s, width)
}
