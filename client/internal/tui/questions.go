package tui

import (
	"context"
	"slices"
	"time"

	"sublet/wire"
	"sublet/wire/visible"
)

// answerTail bounds how long keys may belong to an answer.
const answerTail = 1500 * time.Millisecond

// question is the one on the screen, or nil: several wait in line, one at a time is asked.
func (m *model) question() *confirm {
	if len(m.questions) == 0 || m.held() || !m.own.has {
		return nil
	}
	return m.questions[0]
}

func (m *model) onQuestion(r *wire.ConfirmationRequest) {
	for _, q := range m.questions {
		if q.req.ConfirmationID == r.ConfirmationID { // asked again after a reconnect
			q.req, q.lines, q.sent, q.problem = r, nil, false, ""
			return
		}
	}
	m.flushText("")
	m.questions = append(m.questions, &confirm{req: r})
	m.picker = nil
}

// onForeign deals with an event of another session: a question about a command of an agent of another program is asked here,
// because it would run in this window's shell. All else is of a session that was left.
func (m *model) onForeign(msg wire.Message) {
	switch e := msg.(type) {
	case *wire.ConfirmationRequest:
		if e.Borrower.Name != "" {
			m.onQuestion(e)
		}
	case *wire.ConfirmationResolved:
		m.onResolved(e)
	}
}

// questionKey is a key while a question is on the screen. Until it is armed, keys are what the user was typing before
// it came: they go into the line (pass: of the shell), and Enter, Tab and Esc are swallowed. A key that means nothing to the
// question is typing, too: it is to be armed anew.
func (m *model) questionKey(q *confirm, k, text string) (pass bool) {
	var answer *wire.ConfirmationResponse
	meant := false
	if q.step == stepComment || q.step == stepEdit || q.armed(m.now(), m.lastKey) {
		answer, meant = q.press(k, text)
		q.live = k != optAlways // what is for good is not a key away from that one
	}
	if !meant {
		return m.besideQuestion(q, k, text)
	}
	if answer == nil {
		return false
	}
	m.answered, m.answerRest = m.now(), map[string]string{"y": "es", "n": "o"}[k]
	m.awaitRest()
	if q.local != nil {
		m.dropLocal(q.req.ExecutionID)
		q.local(answer.Decision == wire.DecisionAllow)
		return false
	}
	q.sent, q.problem = true, ""
	if k := m.cards[q.req.ExecutionID]; k != nil && answer.Comment != "" {
		k.Why = answer.Comment
	}
	daemon := m.daemon
	m.task(func(ctx context.Context) then {
		if err := daemon.Confirm(ctx, answer); err != nil {
			return func() { m.onAnswerFailed(answer.ConfirmationID, err) }
		}
		return nil
	})
	return false
}

// dropLocal takes the window's own question about an execution away.
func (m *model) dropLocal(id wire.ExecutionID) {
	m.questions = slices.DeleteFunc(m.questions, func(q *confirm) bool { return q.local != nil && q.req.ExecutionID == id })
}

// besideQuestion is a key that is no answer.
func (m *model) besideQuestion(q *confirm, k, text string) (pass bool) {
	switch k {
	case "up", "down", "tab", "shift+tab", "esc":
		if q.step == stepGrant { // no sentence has these in it
			q.live = true
			q.press(k, text)
		}
	case "enter", "ctrl+d":
	default: // a sentence may have any of the answers in it
		q.step, q.choice, q.live = stepAsk, 0, false
		if !m.own.ai {
			return true
		}
		if !m.ed.Key(k) && text != "" {
			m.ed.Insert(text)
		}
	}
	return false
}

// expectsRest reports whether the rest of an answer may still be typed: the screen is kept for it, or it would be a command.
func (m *model) expectsRest() bool { return !m.answered.IsZero() && m.now().Sub(m.lastKey) < armDelay }

// awaitRest has the screen given back once no rest is expected any more.
func (m *model) awaitRest() {
	m.after(armDelay, func() {
		if m.expectsRest() {
			m.awaitRest()
		}
	})
}

// restOfAnswer reports whether a key belongs to the answer before it: the es and Enter of a typed yes, the o and Enter of a
// no. They must not end up in the line. Any other key, a pause, or answerTail ends it: what else is typed right after an
// answer is the next question already, and nothing of it may be lost.
func (m *model) restOfAnswer(k string) bool {
	if m.answered.IsZero() {
		return false
	}
	now := m.now()
	late := now.Sub(m.lastKey) >= armDelay || now.Sub(m.answered) > answerTail
	rest := m.answerRest
	switch {
	case !late && rest != "" && k == rest[:1]:
		m.answerRest = rest[1:]
		return true
	case !late && k == "enter":
		m.answered = time.Time{}
		return true
	}
	m.answered = time.Time{}
	return false
}

// onAnswerFailed asks again what was answered, but did not reach the daemon.
func (m *model) onAnswerFailed(id wire.ConfirmationID, err error) {
	for _, q := range m.questions {
		if q.req.ConfirmationID == id {
			q.sent, q.live, q.step, q.choice, q.shown = false, false, stepAsk, 0, time.Time{}
			q.problem = "the answer did not reach the daemon: " + visible.Line(err.Error())
		}
	}
}

// onResolved closes a question, whoever answered it.
func (m *model) onResolved(r *wire.ConfirmationResolved) {
	for _, q := range m.questions {
		if q.req.ConfirmationID != r.ConfirmationID {
			continue
		}
		m.flushText("")
		m.emit(kindCard, q.outcome(&m.th, r, m.w, m.now().Sub(m.at(r.Meta())) < 5*time.Second))
		if k := m.cards[q.req.ExecutionID]; k != nil && k.Why == "" {
			k.Why = r.Comment
		}
		if q.req.Tool == wire.ToolPlan && r.Decision == wire.DecisionAllow { // plan mode is over
			m.policyOp("plan", &wire.PolicyRequest{Op: "get"}, func(p *wire.PolicyReply) { m.policy = p.Mode })
		}
	}
	m.questions = slices.DeleteFunc(m.questions, func(q *confirm) bool { return q.req.ConfirmationID == r.ConfirmationID })
	m.tryHand()
}

// unshow has the questions armed anew: somebody else had the screen, and what was typed was for them.
func (m *model) unshow() {
	m.lastKey = m.keys.Last()
	for _, q := range m.questions {
		q.shown, q.live = time.Time{}, false
	}
}

// ready reports whether the question on the screen takes an answer now, and has the screen drawn again when it does.
func (m *model) ready(q *confirm) bool {
	now := m.now()
	if q.shown.IsZero() {
		q.shown = now
	}
	if q.armed(now, m.lastKey) {
		return true
	}
	if !m.armTimer {
		m.armTimer = true
		wait := max(armDelay-now.Sub(q.shown), armDelay-now.Sub(m.lastKey), time.Millisecond)
		m.after(wait, func() { m.armTimer = false })
	}
	return false
}
