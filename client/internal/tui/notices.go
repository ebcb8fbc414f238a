package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/question"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

func (m *model) onCompaction(e *wire.CompactionComplete) {
	switch e.Status {
	case wire.StatusSuccess:
		m.note(fmt.Sprintf("compacted %s: %s → %s tokens; the session keeps all of it (/compact undo)",
			english.Plural(e.Events, "event", ""), style.Count(e.TokensBefore), style.Count(e.TokensAfter)))
	case "preview":
		m.note(fmt.Sprintf("would compact %s: %s → %s tokens", english.Plural(e.Events, "event", ""), style.Count(e.TokensBefore), style.Count(e.TokensAfter)))
		if strings.TrimSpace(e.Summary) != "" {
			m.emitMarkdown("", e.Summary)
		}
	case "undone":
		m.note("the compaction was undone")
	case "nothing":
		m.note("nothing to compact yet")
	case wire.StatusCancelled:
		m.note("compaction cancelled; nothing changed")
	default:
		m.fail("the conversation could not be compacted; nothing changed", visible.FirstLine(e.Summary))
	}
}

func (m *model) onNotice(n *wire.Notice) {
	text := visible.Text(n.Text)
	if n.SessionID != "" && n.SessionID == m.SessionInfo.ID { // it may announce a mode that another client has set
		m.readMode()
	}
	switch n.Level {
	case "error":
		m.fail(text, n.Hint)
		return
	case "warning":
		m.warn(text)
	default:
		m.note(text)
	}
	if n.Hint != "" {
		m.emit(kindNote, m.marked(" ", visible.Text(n.Hint), true))
	}
}

func (m *model) onError(e *wire.Error) {
	if e.Code == wire.CodeUnknownKind { // one of the two is older; what it is about works without
		m.Log.Info("the daemon does not know a message", "err", e.Message)
		return
	}
	if e.TurnID == "" {
		if a := m.takeWaiting(e.RequestID); a != nil { // its turn never began
			if e.Code == wire.CodeCancelled {
				m.note("not asked any more: " + visible.FirstLine(a.Prompt))
				return
			}
			m.restore(a.Prompt)
		}
	} else {
		m.flushText("")
		t := m.turnOf(e.Meta())
		t.failed = true
		if e.Code == wire.CodeCancelled && t.cancel {
			return // the turn's last line reports it
		}
		if t.toolOnly && t.calls > 0 {
			return // the tool's card shows it
		}
		if t.toolOnly && e.Code == wire.CodeToolFailed { // such as an undo of nothing
			m.note(visible.Text(e.Message))
			return
		}
	}
	text, hint := cmp.Or(e.Message, e.Code), e.Hint
	if one := text + "; " + hint; hint != "" && e.TurnID != "" && cells.Width(one) <= m.w-2 {
		text, hint = one, ""
	}
	m.fail(text, hint)
}

// link is the connection to the daemon.
type link struct {
	up         bool
	linkDetail string   // why it is down, in one line; "" = it was lost a moment ago
	notesForAI []string // to print when AI mode begins
}

// onLink handles a connection that went down or is up again.
func (m *model) onLink(l LinkChanged) {
	was := m.up
	m.up, m.linkDetail = l.Connected, l.Detail
	if l.Connected {
		if !was {
			m.envChanged()
		}
		m.sendWaiting()
		return
	}
	// The daemon's questions cannot be answered now. It sends those that are still open again.
	m.dropQuestions(func(q *question.Question) bool { return q.Local == nil })
	m.queue, m.queued = wire.ShellQueueChanged{}, nil
	m.dropPosted()
}

// noDaemon describes why there is no connection to the daemon; "" = it is up, or the first one is being made.
func (m *model) noDaemon() string {
	switch {
	case m.up:
		return ""
	case m.SessionInfo.ID != "":
		return "the daemon is gone; your shell goes on, agents come back with it" + detail(m.linkDetail)
	case m.linkDetail != "":
		return "no daemon yet" + detail(m.linkDetail)
	}
	return ""
}

func detail(s string) string {
	if s == "" {
		return ""
	}
	return ": " + visible.Line(s)
}

// forget empties everything that belongs to a session, which goes on without this window. What runs in the user's shell stays,
// whoever it is for, and so do the questions about that: the window's own, and those of other programs' agents, which borrow the
// shell outside of the session.
func (m *model) forget() {
	running := map[wire.ExecutionID]*execution{}
	for _, c := range m.running {
		if c.Leased && !c.shellReported {
			running[c.id] = c
		}
	}
	m.flushText("")
	m.turn, m.waiting, m.queued, m.cards, m.reported = nil, nil, nil, running, nil
	m.dropQuestions(func(q *question.Question) bool { return q.Borrower.Name == "" && q.Local == nil })
	m.running = slices.DeleteFunc(m.running, func(c *execution) bool { return running[c.id] == nil })
	m.use = wire.ContextUse{}
}
