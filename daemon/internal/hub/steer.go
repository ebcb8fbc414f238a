package hub

import (
	"context"
	"slices"

	"sublet/wire"
)

// steering is a prompt that its session's running turn is to take in.
type steering struct {
	client  *Client
	request *wire.AgentRequest
}

// steer gives r to the turn that runs in the session, and reports whether there is one. If the turn takes nothing in any more, as one
// of a tool never does, passOn makes a turn of r.
func (s *session) steer(c *Client, r *wire.AgentRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 || !s.turns[0].begun || s.turns[0].work == nil {
		return false
	}
	t := s.turns[0]
	c.requests.track(r.RequestID, func(why *stopped) { t.dropSteering(c, r, why) })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steering = append(t.steering, steering{c, r})
	return true
}

// dropSteering answers r as cancelled, unless the turn has taken it in.
func (t *turn) dropSteering(c *Client, r *wire.AgentRequest, why error) {
	t.mu.Lock()
	i := slices.IndexFunc(t.steering, func(st steering) bool { return st.request == r })
	if i >= 0 {
		t.steering = slices.Delete(t.steering, i, i+1)
	}
	t.mu.Unlock()
	if i >= 0 {
		c.requests.untrack(r.RequestID)
		c.neverBegan(t.s, r.RequestID, why)
	}
}

// steered takes what the user said to the turn since the last call, once it is stored and sent. It satisfies agent.Turn.
func (t *turn) steered() []*wire.TurnSteered {
	t.mu.Lock()
	list := t.steering
	t.steering = nil
	t.mu.Unlock()
	var out []*wire.TurnSteered
	for i, st := range list {
		m := &wire.TurnSteered{Event: wire.Event{TurnID: t.id, RequestID: st.request.RequestID}, Prompt: st.request.Prompt}
		if err := t.s.events.Emit(m); err != nil {
			t.storeFailed(err)
			t.mu.Lock()
			t.steering = append(list[i:len(list):len(list)], t.steering...) // as turns of their own, once this one has ended
			t.mu.Unlock()
			break
		}
		st.client.requests.untrack(m.RequestID)
		out = append(out, m)
	}
	return out
}

// passOn makes turns of what the turn has not taken in, in its order.
func (t *turn) passOn() {
	t.s.mu.Lock() // nobody steers the turn any more: it is out of the line
	t.mu.Lock()
	list := t.steering
	t.steering = nil
	t.mu.Unlock()
	t.s.mu.Unlock()
	for _, st := range list {
		r := *st.request
		r.Options.Steer = false
		id := t.s.id
		r.SessionID = &id
		if err := st.client.Ask(context.WithoutCancel(t.ctx), &r); err != nil {
			st.client.requests.untrack(r.RequestID)
			st.client.fail(r.RequestID, failed(err))
		}
	}
}
