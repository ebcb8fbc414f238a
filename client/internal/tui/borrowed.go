package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// offerLife is how long a second Enter takes the shell back.
	offerLife = 10 * time.Second
	// maxTyped bounds how much of the user's type-ahead is shown.
	maxTyped = 200
)

// lease is the state of the lease on the user's shell as the screen shows it.
type lease struct {
	lender.Lending
	queue     wire.ShellQueueChanged // the waiters, as the daemon reported them last
	userEnded string                 // what the user did that ended the command that runs; "" = nothing
	ahead     line.Line              // what the user has typed for the shell during a borrowed command
	lendFault string                 // why the shell cannot be lent, as printed last
	handover  *handover
}

// lent reports whether a borrower's command runs.
func lent(l lender.Lending) bool { return l.Command != "" && l.Holder != "" && l.Holder != "user" }

// shellKey handles a key in command mode while this program has the screen. The shell gets the key when it has its editor
// again. During a borrowed command, the first Enter also offers to take the shell back, and the second does so.
func (m *model) shellKey(k, text string) (pass bool) {
	if !m.own.leased {
		m.own.typed = true
		return true
	}
	m.hint = ""
	offering := m.offering()
	m.again = again{}
	switch {
	case k == "ctrl+c", k == "enter" && offering:
		m.takeBack()
		return false
	case k == "esc":
		if m.turn == nil {
			m.hint = m.th.Dim.Render("no agent is at work for you; ctrl+c takes your shell back and ends that command")
		}
		m.cancelTurn("stopped by the user")
		return false
	case k == "enter":
		m.offer()
		text = "\n"
	}
	m.typedAhead(k, text)
	return true
}

// typedAhead adds a key, or a paste, to the shown type-ahead for the shell.
func (m *model) typedAhead(k, text string) {
	if k == "backspace" {
		m.ahead.Key(k)
	}
	m.ahead.Insert(text)
	if t := m.ahead.Text; len(t) > maxTyped {
		m.ahead.Set(strings.ToValidUTF8(t[len(t)-maxTyped:], ""))
	}
}

// offering reports whether the next Enter takes the shell back.
func (m *model) offering() bool { return m.again.armed("enter", m.now()) }

// offer shows that a second Enter takes the shell back. In command mode the type-ahead runs in any case when the shell is free.
func (m *model) offer() {
	m.again = again{"enter", m.now().Add(offerLife)}
	waits := "your line runs when it has ended · "
	if m.own.ai() {
		waits = ""
	}
	m.hint = m.th.Dim.Render(waits + "enter again takes your shell back")
}

// leaseBar returns the line that is shown while somebody holds or waits for the shell: the holder, its command, the time, the
// waiters, and how to take the shell back; "" if nobody does. Without room it leaves out the command, then gives only the number of
// waiters, and then leaves out the help.
func (m *model) leaseBar() string {
	l := m.Lending
	var names []string
	if l.Waiting != "" {
		names = []string{l.Waiting}
	}
	for _, w := range m.queue.Waiting {
		names = append(names, w.Agent)
	}
	all := len(names) + m.queue.More
	head := m.th.Warn.Render("your shell")
	switch {
	case l.Holder != "" && l.Holder != "user":
		head = " has your shell"
		if !l.Since.IsZero() {
			head += ", " + style.Ticking(m.now().Sub(l.Since))
		}
		head = m.th.Name(l.Holder) + m.th.Warn.Render(head)
	case all == 0:
		return ""
	}
	what, help, count, waiting := "", "", "", ""
	if lent(l) {
		what = visible.FirstLine(cmp.Or(l.Purpose, l.Command))
		help = " · ctrl+c takes it back"
		if m.turn != nil && m.own.ai() {
			help = " · esc stops it"
		}
	}
	if all > 0 {
		count = " · waiting: " + strconv.Itoa(all)
		waiting = " · waiting: " + visible.Line(strings.Join(names, ", "))
		if m.queue.More > 0 {
			waiting += " and " + strconv.Itoa(m.queue.More) + " more"
		}
	}
	head = m.th.Accent.Render("▌ ") + head
	const least, most = 8, 40 // columns of a command: a shorter piece is left out, and more is not shown
	room := func(tail string) int { return m.w - cells.Width(head+tail) }
	tails := []string{waiting + help, count + help, count}
	tail := tails[max(0, slices.IndexFunc(tails, func(t string) bool { return room(t) >= 0 }))] // where none fits, the line is cut
	if piece := cells.Fit(what, min(most, room(tail)-2)); piece != "" && cells.Width(piece) >= min(least, cells.Width(what)) {
		head += m.th.Warn.Render(": " + piece)
	}
	return cells.Fit(head+m.th.Dim.Render(tail), m.w)
}
