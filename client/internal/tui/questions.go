package tui

import (
	"cmp"
	"slices"
	"time"

	"sublet/client/internal/tui/question"
	"sublet/wire"
)

// question returns the question on the screen, or nil. Several may wait; they are asked one at a time.
func (m *model) question() *question.Question {
	if len(m.questions) == 0 || m.programHasTerminal() || !m.own.painting {
		return nil
	}
	return m.questions[0]
}

// dropQuestions removes the questions for which which returns true.
func (m *model) dropQuestions(which func(q *question.Question) bool) {
	m.questions = slices.DeleteFunc(m.questions, which)
}

func (m *model) onQuestion(r *wire.ConfirmationRequest) {
	if slices.ContainsFunc(m.questions, func(q *question.Question) bool { return q.ConfirmationID == r.ConfirmationID }) {
		return // it waits already
	}
	m.flushText("")
	m.questions = append(m.questions, &question.Question{ConfirmationRequest: r})
	m.picker = nil
}

// onForeign handles an event of another session: a question about a command of an agent of another program is asked here,
// because it would run in this window's shell, and one of an agent that this session has in the background. All else is of a
// session that was left.
func (m *model) onForeign(msg wire.Message) {
	switch e := msg.(type) {
	case *wire.ConfirmationRequest:
		if e.Borrower.Name != "" || e.Parent != "" && e.Parent == m.ID {
			m.onQuestion(e)
		}
	case *wire.ConfirmationResolved:
		m.onResolved(e)
	}
}

// questionKey handles a key while a question is on the screen. A key that was not meant for the question goes into the line: that of
// AI mode or, as pass reports, the shell's. Enter does not submit the line then, since the question hides it: it adds a line break in
// AI mode, and has no effect in command mode. While the question is whether a program may read a secret (q.Local), such a key is
// dropped: it may be part of the secret.
func (m *model) questionKey(q *question.Question, k, text string) (pass bool) {
	answer, typing := q.Key(k, text, m.now(), m.lastKey)
	switch {
	case typing && q.Local != nil:
		return false
	case typing && k == "enter":
		if m.own.ai() && !m.ed.Empty() {
			m.ed.Insert("\n")
		}
		return false
	case typing && !m.own.ai():
		m.typedAhead(k, text)
		return true
	case typing:
		if !m.ed.Key(k) && text != "" {
			m.ed.Insert(text)
		}
		return false
	case answer == nil:
		return false
	}
	m.answerRest.Begin(k, m.now())
	if q.Local != nil {
		m.dropLocal(q.ExecutionID)
		q.Local(answer.Decision == wire.DecisionAllow)
		return false
	}
	m.answer(q, answer)
	return false
}

// answer sends the answer to a question of the daemon's.
func (m *model) answer(q *question.Question, answer *wire.ConfirmationResponse) {
	q.Sent()
	if k := m.cards[q.ExecutionID]; k != nil && answer.Comment != "" {
		k.Why = answer.Comment
	}
	m.notify(answer, func(err error) { m.fail("the answer did not reach the daemon: "+err.Error(), "") })
}

// dropLocal removes the window's own question, whether a program may read without echo, about an execution.
func (m *model) dropLocal(id wire.ExecutionID) {
	m.dropQuestions(func(q *question.Question) bool { return q.Local != nil && q.ExecutionID == id })
}

// replayAge is the age from which an answer counts as one of a replay of the session, not as given just now.
const replayAge = 5 * time.Second

// onResolved closes a question, whoever answered it. A command that waited for the keyboard meanwhile gets it.
func (m *model) onResolved(r *wire.ConfirmationResolved) {
	m.dropQuestions(func(q *question.Question) bool {
		if q.ConfirmationID != r.ConfirmationID {
			return false
		}
		m.flushText("")
		fresh := m.now().Sub(time.UnixMilli(r.AtMS)) < replayAge // only then the outcome names another window that answered
		m.emit(kindCard, q.Outcome(&m.th, r, m.w, fresh))
		if k := m.cards[q.ExecutionID]; k != nil {
			k.Started = time.UnixMilli(r.AtMS) // it did not run while the question was open
			k.Why = cmp.Or(k.Why, r.Comment)
		}
		if q.Tool == wire.ToolPlan && r.Decision == wire.DecisionAllow { // plan mode has ended
			m.readMode()
		}
		return true
	})
	m.tryHandOver()
}

// disarmQuestions disarms the questions, because the shell or a program had the screen, and the keys were for it.
func (m *model) disarmQuestions() {
	m.lastKey = m.keys.Last()
	for _, q := range m.questions {
		q.Disarm()
	}
}
