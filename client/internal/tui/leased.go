package tui

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/lender"
	"sublet/wire"
)

// handQuiet is how long no key must have been typed before the keyboard goes over to an agent's program: what the user
// is writing stays in the editor (T2g).
const handQuiet = 300 * time.Millisecond

// handLinger is how long a program that asked for nothing more, and was typed nothing, keeps the keyboard: one that asks
// again (a wrong password takes sudo two seconds) finds it its own, and what is typed for it goes nowhere else.
const handLinger = 5 * time.Second

// handover is the keyboard lent to a running command of an agent's.
type handover struct {
	id    wire.ExecutionID
	why   string    // "": it does not ask now
	on    bool      // the program has terminal and keyboard
	since time.Time // when it ceased to ask
}

type (
	handRetry struct{}
	handOver  struct{ h *handover } // it may have lingered long enough
)

// card is the card of an execution, made when it is first heard of.
func (m *model) card(id wire.ExecutionID, agent, tool string) *card {
	c := m.cards[id]
	if c == nil {
		c = &card{id: id, agent: agent, tool: tool}
		m.cards[id] = c
	}
	if c.tool == "" {
		c.tool = tool
	}
	if c.agent == "" {
		c.agent = agent
	}
	return c
}

// show puts a card among the running ones.
func (m *model) show(c *card) {
	if !c.done && !slices.Contains(m.live, c) {
		m.live = append(m.live, c)
	}
}

// onLeased deals with an agent's command in the user's shell.
func (m *model) onLeased(event any) {
	switch e := event.(type) {
	case lender.LeasedStarted:
		m.flushText("") // what was said before comes first
		c := m.card(e.ExecutionID, e.Agent, "bash")
		c.command, c.leased, c.started, c.turn = e.Command, true, m.now(), e.TurnID
		m.show(c)
		m.tryHand()
	case lender.LeasedOutput:
		c := m.card(e.ExecutionID, "", "bash")
		c.out.write(e.Data)
		if m.hand != nil && m.hand.on && m.hand.id == e.ExecutionID {
			m.paint.rawLater(e.Data)
		}
	case lender.LeasedKeyboard:
		h := m.hand
		mine := h != nil && h.id == e.ExecutionID && h.on
		switch {
		case e.Why == "" && mine:
			if h.why == "password" {
				m.keys.pause()
			}
			h.why, h.since = "", m.now()
			m.after(handLinger, handOver{h})
			return
		case e.Why == "":
			m.endHand(e.ExecutionID)
			return
		case mine:
			h.why = e.Why
			m.keys.begin()
			return
		}
		m.hand = &handover{id: e.ExecutionID, why: e.Why}
		m.card(e.ExecutionID, "", "bash").keyboard = e.Why
		m.tryHand()
	case lender.LeasedEnded:
		m.endHand(e.ExecutionID)
		m.leasedEnded(e)
	}
}

// tryHand gives the keyboard to the command that asked for it, unless it has not begun, a question is on the screen, a command of the
// user's runs, or the user is in the middle of typing.
func (m *model) tryHand() {
	h := m.hand
	if h == nil || h.on || m.userRun != nil || m.question() != nil {
		return
	}
	if quiet := m.now().Sub(m.lastKey); quiet < handQuiet {
		m.after(handQuiet-quiet, handRetry{})
		return
	}
	c := m.card(h.id, "", "bash")
	if !c.leased {
		return // not begun: something else in the shell reads its terminal
	}
	h.on = true
	m.keys.route(true)
	m.keys.begin()
	m.flushOut()
	var b strings.Builder
	if gap(m.lastKind, kindCard) {
		b.WriteString("\r\n")
	}
	head := c.header(&m.th, m.w-2, 4)
	head[0] = m.th.accent.Render(m.th.glyph("▶", ">")) + " " + head[0]
	head = append(head, m.handSign(h.why))
	if h.why != "screen" {
		head = append(head, m.asksAbout(c, m.h-len(head)-1)...)
	}
	for _, l := range head {
		b.WriteString(l + "\r\n")
	}
	m.lastKind = kindShell
	m.paint.hold(b.String())
	if h.why == "screen" {
		m.paint.rawLater(slices.Clone(c.out.fromAltScreen()))
	} else {
		m.paint.rawLater(slices.Clone(c.out.unfinished()))
	}
}

// asksAbout is what the command printed before the line it waits in, as far as it fits into rows: the packages that would
// be removed, the fingerprint of the host. What was there when it last had the keyboard is in the scrollback.
func (m *model) asksAbout(c *card, rows int) []string {
	lines := c.out.since(c.handed)
	at := len(lines)
	for ; at > 0; at-- {
		if rows -= max(1, (cells(lines[at-1])+m.w-1)/m.w); rows < 0 || rows == 0 && at > 1 { // one for what is left out
			break
		}
	}
	if left := c.out.total - c.handed - (len(lines) - at); left > 0 {
		return append([]string{m.th.dim.Render("… " + plural(left, "more line", "more lines") + " before")}, lines[at:]...)
	}
	return lines
}

// lingered takes the keyboard back from a program that has long asked for nothing.
func (m *model) lingered(h *handover) {
	if m.hand != h || h.why != "" {
		return
	}
	last := h.since
	if typed := m.keys.last(); typed.After(last) {
		last = typed
	}
	if left := handLinger - m.now().Sub(last); left > 0 {
		m.after(left, handOver{h})
		return
	}
	m.endHand(h.id)
}

// handSign is the line that says whose the keyboard is now.
func (m *model) handSign(why string) string {
	sign, help := "your keyboard is this command's until it ends", "ctrl+c stops it"
	switch why {
	case "password":
		sign, help = "type the secret that it asks for", "not shown, kept or sent · ctrl+c refuses"
	case "screen":
		sign, help = "your screen and keyboard are this command's until it ends", ""
	}
	sign = m.th.level1.Render(m.th.glyph("⌨ ", "* ") + sign)
	if help != "" {
		sign += m.th.dim.Render(" · " + help)
	}
	return fit(sign, m.w)
}

// endHand takes terminal and keyboard back.
func (m *model) endHand(id wire.ExecutionID) {
	if m.hand == nil || m.hand.id != id {
		return
	}
	if m.hand.on {
		m.keys.route(false)
		m.paint.release()
		m.unshow()
	}
	c := m.card(id, "", "bash")
	if m.hand.on {
		c.handed = c.out.total
	}
	m.hand, c.keyboard = nil, ""
}

// leasedEnded is the shell's word on how a command ended; the daemon's CommandResult may come before or after.
func (m *model) leasedEnded(e lender.LeasedEnded) {
	c := m.card(e.ExecutionID, "", "bash")
	c.shellSaid = true
	c.exit, c.signal, c.took = e.Result.ExitCode, e.Result.Signal, e.Result.Duration
	if c.status == "" {
		c.status = firstOf(e.Status, e.Result.Status)
	}
	if len(c.output) == 0 {
		c.output, c.cut, c.spool = e.Result.Output, e.Result.Truncated, e.Result.SpoolPath
	}
	if c.started.IsZero() {
		c.started = m.now().Add(-e.Result.Duration)
	}
	var after []string
	for _, p := range e.Result.Leftovers {
		after = append(after, "still running: "+p.String())
	}
	if e.Changed != "" {
		after = append(after, "changed in your shell: "+e.Changed+" (/undo-shell puts it back)")
	}
	if c.printed {
		for _, line := range after {
			m.emit(kindCard, "    "+m.th.dim.Render(fit(visibleLine(line), m.w-4)))
		}
	} else {
		c.notes = append(c.notes, after...)
		m.finish(c)
	}
	m.readPrompt() // cwd and more may be others now
}

// finish prints a card that ended.
func (m *model) finish(c *card) {
	c.done = true
	m.live = slices.DeleteFunc(m.live, func(o *card) bool { return o == c })
	if c.printed {
		return
	}
	c.printed = true
	if e := c.place; e != nil {
		e.text, e.ready = c.Finished(&m.th, m.w), true
		c.place = nil
	} else {
		m.emit(kindCard, c.Finished(&m.th, m.w))
	}
	c.out = tail{}
	if len(m.cards) > 200 { // those whose other half never came
		maps.DeleteFunc(m.cards, func(_ wire.ExecutionID, o *card) bool { return o.printed && o != c })
	}
	m.kept = append(m.kept, c)
	if len(m.kept) > 50 {
		m.kept = append(m.kept[:0:0], m.kept[len(m.kept)-50:]...)
	}
	m.openAt = 0
}

// shellWord bounds how long a finished card waits for the shell's word on what changed in it, which comes after the
// result (design.md 5); what is printed after the card waits with it, below.
const shellWord = 700 * time.Millisecond

// overdue says that a card has waited long enough.
type overdue struct{ c *card }

// reserve keeps a finished card's place in the scrollback until the shell has said what changed.
func (m *model) reserve(c *card) {
	if c.place != nil || c.printed {
		return
	}
	m.live = slices.DeleteFunc(m.live, func(o *card) bool { return o == c })
	c.place = &entry{kind: kindCard, card: c}
	m.out = append(m.out, c.place)
	m.after(shellWord, overdue{c})
}

// onLease is told who has the shell.
func (m *model) onLease(l lender.Lending) {
	free := m.lending.Command != "" && l.Command == ""
	if l.Holder == "" && m.lending.Holder != "" && m.lending.Holder != "user" {
		m.readPrompt() // an agent may have left it elsewhere
	}
	m.lending = l
	if free && m.offer && m.userRun == nil {
		m.offer = false
		m.hintLines(m.th.dim.Render("your shell is free again: enter runs the line"))
	}
}
