package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// question is one ConfirmationRequest that waits for an answer. It is in its session's map until it is resolved, once,
// under the session's lock.
type question struct {
	ask    *wire.ConfirmationRequest // as sent, with the command as it would run
	turn   *turn
	answer chan agent.Decision // holds one
	expiry *time.Timer         // runs while nobody is attached who could answer; a foreign agent's runs from the start

	// Who is asked beside the session's clients: about a foreign agent's command the window whose shell it concerns, about one of
	// an agent in the background the clients of the session that started it.
	lender  *lend.Lender
	windows []*Client // guarded by the session's mu
}

// closedWindow is how long a question waits for a window that could answer it.
const closedWindow = 24 * time.Hour

// ask puts a question to everyone attached who can confirm, and waits for the first answer: without bound while somebody
// is there, closedWindow while nobody is. When ctx ends the question is resolved as a no.
func (s *session) ask(ctx context.Context, t *turn, q agent.Question, v risk.Verdict, d policy.Decision) (agent.Decision, error) {
	req := &wire.ConfirmationRequest{
		ConfirmationID: wire.ConfirmationID(wire.NewID()), ExecutionID: q.ExecutionID, Agent: q.Agent, Tool: q.Tool,
		Command: wire.OSString(q.Action.Command), Arguments: string(q.Arguments), Cwd: wire.OSString(q.Action.Cwd),
		Verdict: judge.Verdict(v), Preview: wire.Preview{Type: q.Action.Preview.Type, Content: q.Action.Preview.Content},
		Grants: []wire.Grant{}, Reach: string(d.Reach), ReachWhy: visible.Exact(q.Action.ReachWhy), Fixed: q.Fixed,
	}
	if req.Preview.Type == "" {
		req.Preview.Type = "none"
	}
	if d.Reach.Confines() && q.Action.Command != "" {
		req.EnforcedBy = s.hub.confiner().How
	}
	for _, g := range d.Grants {
		req.Grants = append(req.Grants, wire.Grant{Scope: g.Scope, Rule: g.Rule, Covers: g.Covers})
	}
	req.Fingerprint = wire.Fingerprint(req.Command, req.Cwd, q.Action.StateDigest)
	req.TurnID, req.RequestID = t.id, t.request
	store.Mask(req)
	qu := &question{ask: req, turn: t, answer: make(chan agent.Decision, 1)}
	if f := t.foreign; f != nil {
		until := time.Now().Add(f.answer).UnixMilli()
		req.Borrower, req.ExpiresAtMS = f.Borrower, &until
		if ln, c := t.window(); c != nil {
			qu.lender, qu.windows = ln, []*Client{c}
		}
	}
	if p := t.parent; p != nil {
		req.Parent = p.id
		p.mu.Lock()
		qu.windows = slices.Collect(maps.Keys(p.clients))
		p.mu.Unlock()
	}
	if t.foreign != nil || t.parent != nil {
		s.hub.mu.Lock()
		s.hub.asked[req.ConfirmationID] = qu
		s.hub.mu.Unlock()
		defer func() {
			s.hub.mu.Lock()
			delete(s.hub.asked, req.ConfirmationID)
			s.hub.mu.Unlock()
		}()
	}

	s.mu.Lock()
	// Registered before it is sent: the answer may be there before this goroutine runs again.
	s.questions[req.ConfirmationID] = qu
	if f := t.foreign; f != nil {
		qu.expiry = time.AfterFunc(f.answer, func() {
			s.resolve(req.ConfirmationID, "expiry", agent.Decision{Reason: "nobody answered within " + f.answer.String()})
		})
		defer qu.expiry.Stop()
	}
	err := s.emitLocked(req)
	if err != nil {
		delete(s.questions, req.ConfirmationID)
	} else {
		s.toWindowLocked(qu, req)
		s.watchQuestionsLocked()
	}
	s.mu.Unlock()
	s.hub.stir() // a stop does not wait for it
	if err != nil {
		return agent.Decision{}, fmt.Errorf("the question could not be stored: %w", err)
	}
	select {
	case d := <-qu.answer:
		return d, nil
	case <-ctx.Done():
	}
	if s.resolve(req.ConfirmationID, "cancel", agent.Decision{By: "cancel"}) {
		return agent.Decision{}, context.Cause(ctx)
	}
	<-qu.answer // somebody was faster, but the turn is over all the same
	return agent.Decision{}, context.Cause(ctx)
}

// resolve ends a question as a no; false if it was ended before.
func (s *session) resolve(id wire.ConfirmationID, by string, d agent.Decision) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	qu := s.questions[id]
	if qu == nil {
		return false
	}
	d.By = by
	s.resolveLocked(qu, wire.DecisionDeny, d)
	return true
}

// resolveLocked removes a question, sends its end to the clients, and passes the decision to the call that waits.
func (s *session) resolveLocked(qu *question, decision string, d agent.Decision) {
	delete(s.questions, qu.ask.ConfirmationID)
	if qu.expiry != nil {
		qu.expiry.Stop()
	}
	m := &wire.ConfirmationResolved{ConfirmationID: qu.ask.ConfirmationID, Decision: decision, By: d.By, Comment: d.Comment}
	m.TurnID, m.RequestID = qu.turn.id, qu.turn.request
	store.Mask(m)
	if err := s.emitLocked(m); err != nil {
		s.hub.log.Error("the end of a question could not be stored", "confirmation", m.ConfirmationID, "err", err)
		d.Allowed, d.EditedCommand, d.Reason = false, nil, "the decision could not be stored"
	}
	s.toWindowLocked(qu, m)
	qu.answer <- d
}

// toWindowLocked sends m, which the session's clients were sent, to the others who are asked.
func (s *session) toWindowLocked(qu *question, m wire.Message) {
	for _, c := range qu.windows {
		if _, attached := s.clients[c]; !attached && c.confirm {
			c.Send(m)
		}
	}
}

// watchQuestionsLocked lets questions run out while nobody is attached who could answer them.
func (s *session) watchQuestionsLocked() {
	attended := false
	for c := range s.clients {
		attended = attended || c.confirm
	}
	for id, qu := range s.questions {
		switch {
		case qu.turn.foreign != nil:
		case attended && qu.expiry != nil:
			qu.expiry.Stop()
			qu.expiry = nil
		case !attended && qu.expiry == nil:
			qu.expiry = time.AfterFunc(closedWindow, func() {
				s.resolve(id, "expiry", agent.Decision{Reason: "nobody answered within " + closedWindow.String()})
			})
		}
	}
}

// questionsLocked returns the open questions, the oldest first.
func (s *session) questionsLocked() []*question {
	return slices.SortedFunc(maps.Values(s.questions), func(a, b *question) int { return cmp.Compare(a.ask.Seq, b.ask.Seq) })
}

// openQuestionLocked is a stored event as it goes to a client that comes back: a question that is still open shows the
// command as it would run, which is not what is kept.
func (s *session) openQuestionLocked(m wire.EventMessage) wire.EventMessage {
	if q, ok := m.(*wire.ConfirmationRequest); ok {
		if qu := s.questions[q.ConfirmationID]; qu != nil {
			return qu.ask
		}
	}
	return m
}

// Confirm answers a question. The first answer counts; a later one is ignored, since its client was sent a ConfirmationResolved
// before. An answer that is not valid leaves the question open.
func (c *Client) Confirm(ctx context.Context, r *wire.ConfirmationResponse) error {
	if err := c.mayDecide(); err != nil {
		return err
	}
	if !c.confirm {
		return fmt.Errorf("%w: it did not announce that it can confirm", ErrNotYours)
	}
	s := c.questioned(r.ConfirmationID)
	defer c.hub.release(s)
	added := false
	defer func() { // behind the lock
		if added {
			c.announce("rule added: %s %s (%s)", strings.TrimSuffix(r.Decision, "_always"), r.Grant.Rule, r.Grant.Scope)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	qu := s.questions[r.ConfirmationID]
	if qu == nil {
		return ErrNoQuestion
	}
	d, err := agent.Answered(qu.ask, r)
	if err != nil {
		return invalid("%v", err)
	}
	d.By = c.who()
	if r.Decision == wire.DecisionAllowAlways || r.Decision == wire.DecisionDenyAlways {
		if err := s.addGrantLocked(ctx, qu, *r.Grant, r.Decision == wire.DecisionAllowAlways, c.who()); err != nil {
			return err
		}
		added = true
	}
	s.resolveLocked(qu, r.Decision, d)
	return nil
}

// addGrantLocked makes a rule of a grant that was offered.
func (s *session) addGrantLocked(ctx context.Context, qu *question, g wire.Grant, allow bool, who string) error {
	rule := judge.GrantedRule(g, allow, s.id, project.Root(string(qu.ask.Cwd)))
	if g.Scope == policy.ScopeSession {
		s.policy.Add(rule)
	} else if err := s.hub.opts.Store.AddRule(ctx, rule); err != nil {
		return err
	}
	s.hub.log.Info("rule added", "rule", rule.ID, "decision", rule.Decision, "scope", rule.Scope, "by", who)
	return nil
}
