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
	// offerLife is how long Enter again takes the shell back.
	offerLife = 10 * time.Second
	// maxTyped bounds what is shown of what the user types ahead.
	maxTyped = 200
)

// lease is who has the shell, and what the user does about it.
type lease struct {
	lender.Lending
	queue  wire.ShellQueueChanged // who waits behind whom Lending names, as the daemon last said
	back   bool                   // the user took the shell back from the command that runs
	ahead  line.Line              // what the user typed for the shell while a borrowed command has it
	broken string                 // why it cannot be lent, as last printed
	hand   *handover
	drawn  []chan struct{} // to be closed when what was printed so far is on the screen
}

// lent reports whether a borrower's command runs.
func lent(l lender.Lending) bool { return l.Command != "" && l.Holder != "" && l.Holder != "user" }

// shellKey is a key in command mode while the screen is the program's: the shell gets it when it has the editor again. While a
// borrowed command runs, Enter offers to take the shell back as well, and then does so.
func (m *model) shellKey(k, text string) (pass bool) {
	if !m.own.leased {
		m.own.typed = true
		return true
	}
	m.hint = nil
	offering := m.offering()
	m.again = again{}
	switch {
	case k == "ctrl+c", k == "enter" && offering:
		m.takeBack()
		return false
	case k == "esc":
		if m.turn == nil {
			m.hintLines(m.th.Dim.Render("no agent is at work for you; ctrl+c takes your shell back and ends that command"))
		}
		m.cancelTurn("stopped by the user")
		return false
	case k == "enter":
		m.offer()
		text = "\n"
	case k == "backspace":
		m.ahead.Key(k)
	}
	m.typedAhead(text)
	return true
}

// typedAhead keeps what the user typed for the shell, to be seen.
func (m *model) typedAhead(text string) {
	m.ahead.Insert(text)
	if t := m.ahead.Text; len(t) > maxTyped {
		m.ahead.Set(strings.ToValidUTF8(t[len(t)-maxTyped:], ""))
	}
}

func (m *model) offering() bool { return m.again.armed("enter", m.now()) }

// offer says that Enter again takes the shell back. In command mode what was typed runs in any case once the shell is free.
func (m *model) offer() {
	m.again = again{"enter", m.now().Add(offerLife)}
	waits := "your line runs when it has ended · "
	if m.own.ai {
		waits = ""
	}
	m.hintLines(m.th.Dim.Render(waits + "enter again takes your shell back"))
}

// leaseBar is the one line that stands there whenever somebody has or wants the shell: who, what for, since when, who
// waits, and how to take it back; "" where nobody does. What there is no room for goes: first the purposes, then names.
func (m *model) leaseBar() string {
	l := m.Lending
	name, who := "", "your shell"
	switch {
	case l.Holder != "" && l.Holder != "user":
		name, who = m.th.Name(l.Holder), " has your shell"
		if !l.Since.IsZero() {
			who += ", " + style.Ticking(m.now().Sub(l.Since))
		}
	case len(l.Waiting)+len(m.queue.Waiting)+m.queue.More == 0:
		return ""
	}
	what, help := "", ""
	if lent(l) {
		what = visible.FirstLine(cmp.Or(l.Purpose, l.Command))
		help = "ctrl+c takes it back"
		if m.turn != nil && m.own.ai {
			help = "esc stops it"
		}
	}
	bar := m.th.Accent.Render("▌ ")
	room := m.w - cells.Width(bar+name+who)
	if help != "" && room > cells.Width(help)+3 {
		room -= cells.Width(help) + 3
	} else {
		help = ""
	}
	queue := m.queueWords(room)
	room -= cells.Width(queue)
	const least = 8 // of a purpose, to be worth its place
	if what = cells.Fit(what, min(40, room-2)); cells.Width(what) >= min(least, cells.Width(visible.FirstLine(l.Command))) && what != "" {
		who += ": " + what
	}
	line := bar + name + m.th.Warn.Render(who) + m.th.Dim.Render(queue)

	if help != "" {
		line += m.th.Dim.Render(" · " + help)
	}
	return cells.Fit(line, m.w)
}

// queueWords says who waits, as much of it as there is room for: what for, names, a number.
func (m *model) queueWords(room int) string {
	const purposeWidth = 24
	names := slices.Clone(m.Lending.Waiting)
	purposes := slices.Clone(names)
	for _, w := range m.queue.Waiting {
		name := w.Agent
		names = append(names, name)
		if w.Purpose != "" {
			name += " (" + cells.Fit(visible.FirstLine(w.Purpose), purposeWidth) + ")"
		}
		purposes = append(purposes, name)
	}
	all := len(names) + m.queue.More
	if all == 0 {
		return ""
	}
	some := func(of []string, n int) string {
		s := " · waiting: " + visible.Line(strings.Join(of[:n], ", "))
		if all > n {
			s += " and " + strconv.Itoa(all-n) + " more"
		}
		return s
	}
	var choices []string
	for n := len(purposes); n > 0; n-- {
		choices = append(choices, some(purposes, n))
	}
	if len(names) > 0 {
		choices = append(choices, some(names, 1))
	}
	for _, words := range choices {
		if cells.Width(words) <= room {
			return words
		}
	}
	return cells.Fit(" · waiting: "+strconv.Itoa(all), max(0, room))
}
