package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/question"
	"sublet/wire"
	"sublet/wire/visible"
)

// handOverAfter is how long no key must have been typed before the keyboard goes over to an agent's program: what the user
// is writing stays where it is.
const handOverAfter = 300 * time.Millisecond

// handOverHead is how many further lines of the command are shown above what it asks.
const handOverHead = 4

// muteAfterSecret is how long what is typed is dropped after a command that asked for the keyboard was ended by force, or ended while
// it asked for a secret: it may be the rest of one.
const muteAfterSecret = 500 * time.Millisecond

// handOverIdle is how long a program keeps the keyboard after it stopped asking and nothing was typed. sudo, for example, asks again
// two seconds after a wrong password, and what is typed until then is for it.
const handOverIdle = 5 * time.Second

// handover is the keyboard lent to a running command of an agent's.
type handover struct {
	id    wire.ExecutionID
	why   string    // password, secret, screen or input; "" = it does not ask now
	who   string    // the program that reads without echo
	asked bool      // the user was asked about it, and said yes
	on    bool      // the program has terminal and keyboard
	since time.Time // when it ceased to ask
}

// onKeyboard handles the event that a command wants the keyboard, or no longer does.
func (m *model) onKeyboard(e lender.LeasedKeyboard) {
	h := m.handover
	mine := h != nil && h.id == e.ExecutionID && h.on
	m.dropLocal(e.ExecutionID)
	if e.Why == "secret" && !(mine && h.asked && (h.who == e.Who || e.Who == "")) {
		m.askSecret(e)
		return
	}
	switch {
	case e.Why == "" && mine:
		if h.why == "password" || h.why == "secret" {
			m.keys.Pause()
		}
		h.why, h.since = "", m.now()
		m.after(handOverIdle, func() { m.endIdleHandOver(h) })
	case e.Why == "":
		m.endHandOver(e.ExecutionID)
	case mine:
		h.why, h.who = e.Why, cmp.Or(e.Who, h.who)
		m.keys.Resume()
	default:
		m.handover = &handover{id: e.ExecutionID, why: e.Why, who: e.Who}
		c := m.card(e.ExecutionID, "", "bash")
		c.Keyboard, c.asked = e.Why, true
		m.tryHandOver()
	}
}

// askSecret asks the user whether a program that is not one of the system's password programs may read without echo: its prompt may claim
// anything. The answer no ends the command, which would otherwise wait for ever.
func (m *model) askSecret(e lender.LeasedKeyboard) {
	m.endHandOver(e.ExecutionID) // it had the keyboard for something else
	c := m.card(e.ExecutionID, "", "bash")
	c.asked = true
	who := visible.Line(cmp.Or(e.Who, "a program"))
	r := &wire.ConfirmationRequest{
		ConfirmationID: wire.ConfirmationID(wire.NewID()), ExecutionID: e.ExecutionID, Agent: c.Agent, Tool: "keyboard", Command: wire.OSString(c.Command),
		Verdict: wire.Verdict{Level: "high", Reasons: []wire.Reason{{
			Text: who + " reads without echo and is not one of the system's programs that ask for passwords: what you type may be sent anywhere",
		}}},
	}
	m.flushText("")
	m.questions = append([]*question.Question{{ConfirmationRequest: r, Local: func(allow bool) {
		if !allow {
			m.endLent("you did not let it read a secret")
			return
		}
		m.handover = &handover{id: e.ExecutionID, why: "secret", who: e.Who, asked: true}
		c.Keyboard = "secret"
		m.tryHandOver()
	}}}, m.questions...)
	m.picker = nil
	m.settleOwner()
}

// tryHandOver gives terminal and keyboard to the command that asked for them. While the command has not begun, a question is on the
// screen or the user types, it does nothing: whatever ends that calls it again.
func (m *model) tryHandOver() {
	h := m.handover
	if h == nil || h.on || !m.own.leased || m.question() != nil {
		return
	}
	if quiet := min(m.now().Sub(m.lastKey), m.now().Sub(m.keys.Last())); quiet < handOverAfter { // Last: also what was not for this program
		m.after(handOverAfter-quiet, m.tryHandOver)
		return
	}
	c := m.card(h.id, "", "bash")
	if !c.Leased {
		return // not begun: something else in the shell reads its terminal
	}
	if !m.own.painting {
		m.settleOwner() // the painter must have the screen to hand it on
	}
	h.on = true
	m.keys.Route(keys.ToProgram)
	m.flushOut()
	var b strings.Builder
	if gap(m.lastKind, kindCard) {
		b.WriteString("\r\n")
	}
	head := c.Header(&m.th, m.w-2, handOverHead)
	head[0] = m.th.Accent.Render("▶") + " " + head[0]
	head = append(head, m.handOverLine(h.why, h.who))
	if h.why != "screen" {
		head = append(head, m.linesBefore(c, m.h-len(head)-1)...)
	}
	for _, l := range head {
		b.WriteString(l + "\r\n")
	}
	m.lastKind = kindShell
	m.paint.Hold(b.String())
	if h.why == "screen" {
		m.paint.Raw(slices.Clone(c.Out.FromAltScreen()))
	} else {
		m.paint.Raw(slices.Clone(c.Out.Unfinished()))
	}
}

// linesBefore returns what the command printed before the line in which it waits, as far as it fits into rows: the packages that
// would be removed, the fingerprint of the host. What it printed until it last had the keyboard is left out: it is in the scrollback.
func (m *model) linesBefore(c *execution, rows int) []string {
	lines := c.Out.Since(c.seen)
	at := len(lines)
	for ; at > 0; at-- {
		if rows -= max(1, (cells.Width(lines[at-1])+m.w-1)/m.w); rows < 0 || rows == 0 && at > 1 { // one for what is left out
			break
		}
	}
	if left := c.Out.Total - c.seen - (len(lines) - at); left > 0 {
		return append([]string{m.th.Dim.Render("… " + english.Plural(left, "more line", "") + " before")}, lines[at:]...)
	}
	return lines
}

// endIdleHandOver takes the keyboard back from a program that has long asked for nothing.
func (m *model) endIdleHandOver(h *handover) {
	if m.handover != h || h.why != "" {
		return
	}
	last := h.since
	if typed := m.keys.Last(); typed.After(last) {
		last = typed
	}
	if left := handOverIdle - m.now().Sub(last); left > 0 {
		m.after(left, func() { m.endIdleHandOver(h) })
		return
	}
	m.endHandOver(h.id)
}

// handOverLine returns the line that names who has the keyboard now.
func (m *model) handOverLine(why, who string) string {
	text, help := "your keyboard is this command's until it ends", "ctrl+c stops it"
	switch why {
	case "password", "secret":
		text, help = "type the secret that "+cmp.Or(visible.Line(who), "it")+" asks for", "not shown, masked everywhere · ctrl+c refuses"
	case "screen":
		text, help = "your screen and keyboard are this command's until it ends", ""
	}
	text = m.th.Level1.Render("⌨ " + text)
	if help != "" {
		text += m.th.Dim.Render(" · " + help)
	}
	return cells.Fit(text, m.w)
}

// endHandOver takes terminal and keyboard back.
func (m *model) endHandOver(id wire.ExecutionID) {
	m.dropLocal(id)
	if m.handover == nil || m.handover.id != id {
		return
	}
	c := m.card(id, "", "bash")
	if m.handover.on {
		m.keys.Route(keys.ToUs)
		m.paint.Release()
		m.disarmQuestions()
		c.seen = c.Out.Total
	}
	m.handover, c.Keyboard = nil, ""
}
