package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// Budget bounds the cost in US dollars above which the user is asked.
type Budget struct {
	Turn, Day float64 // of one turn with its sub-agents, and of all turns of the day; 0 = no bound
	Before    float64 // the part of Turn that was spent already
	// Spend records the cost of a request and returns the day's total. It may be called with 0, and from several goroutines.
	Spend func(usd float64) (today float64, err error)
}

// spending is the cost of a turn and its sub-agents.
type spending struct {
	budget Budget

	asking sync.Mutex // held during a question, so that concurrent agents ask once

	mu sync.Mutex
	// guarded by mu
	turn, today float64
	next        float64 // what the next request is expected to cost: the cost of the newest, or an estimate of the first
	unknown     bool    // the day's total could not be read
	unpriced    bool    // the user was notified that a request's price is not known
}

func newSpending(b Budget) *spending {
	s := &spending{budget: b, turn: b.Before}
	if b.Day > 0 {
		var err error
		s.today, err = b.Spend(0)
		s.unknown = err != nil
	}
	return s
}

// spend adds the usage of a request, and its cost.
func (r *runner) spend(u provider.Usage) {
	r.tally.add(wire.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CostUSD: u.CostUSD})
	s := r.t.spending
	if u.CostUSD != nil {
		r.cost += *u.CostUSD
	}
	s.mu.Lock()
	notify := u.CostUSD == nil && u != (provider.Usage{}) && s.budget.Turn+s.budget.Day > 0 && !s.unpriced && r.t.Model.Info().Kind != config.KindOffline
	s.unpriced = s.unpriced || notify
	if u.CostUSD != nil {
		s.turn += *u.CostUSD
		s.next = *u.CostUSD
		if today, err := s.budget.Spend(*u.CostUSD); err == nil {
			s.today = today
		} else {
			s.today += *u.CostUSD
		}
	}
	s.mu.Unlock()
	if notify {
		r.notice("The price of " + clean(r.t.Model.Info().Name) + " is not known, so that no limit of cost holds: set price_input and price_output of its provider.")
	}
}

// expect sets what the next request is expected to cost if there is a bound and no request has been made yet.
func (s *spending) expect(estimate func() *float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 && s.budget.Turn+s.budget.Day > 0 {
		if usd := estimate(); usd != nil {
			s.next = *usd
		}
	}
}

// exceeded returns the bound that another request would exceed, "" for none.
func (s *spending) exceeded() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := ""
	if s.next > 0 {
		next = fmt.Sprintf(", and the next request may cost $%.2f", s.next)
	}
	switch b := s.budget; {
	case b.Turn > 0 && s.turn+s.next > b.Turn:
		return fmt.Sprintf("this turn has cost $%.2f of the $%.2f that it may%s", s.turn, b.Turn, next)
	case b.Day > 0 && s.unknown:
		return fmt.Sprintf("what today's turns have cost of the $%.2f that they may could not be read", b.Day)
	case b.Day > 0 && s.today+s.next > b.Day:
		return fmt.Sprintf("today's turns have cost $%.2f of the $%.2f that they may%s", s.today, b.Day, next)
	}
	return ""
}

// overrun returns the bound that the requests so far have exceeded, for the end of a turn; "" for none.
func (s *spending) overrun() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b := s.budget; {
	case b.Turn > 0 && s.turn > b.Turn:
		return fmt.Sprintf("This turn has cost $%.2f, more than the $%.2f that it may.", s.turn, b.Turn)
	case b.Day > 0 && s.today > b.Day:
		return fmt.Sprintf("Today's turns have cost $%.2f, more than the $%.2f that they may.", s.today, b.Day)
	}
	return ""
}

// raise increases a bound that another request would exceed to what that request would make of the cost, in USD, plus b. A cost of today
// that could not be read no longer counts.
func (s *spending) raise(b Budget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Turn > 0 && s.turn+s.next > s.budget.Turn {
		s.budget.Turn = s.turn + s.next + b.Turn
	}
	s.unknown = false
	if b.Day > 0 && s.today+s.next > s.budget.Day {
		s.budget.Day = s.today + s.next + b.Day
	}
}

// keepToBudget asks the user before a request that would exceed the budget. It returns a costError on no, or the error of ctx. A
// yes raises the bounds.
func (r *runner) keepToBudget(ctx context.Context) error {
	if most := r.t.Role.MaxCost; most > 0 && r.cost >= most {
		return costError(fmt.Sprintf("the role %s may cost $%.2f a turn, and has cost $%.2f", r.t.Role.Name, most, r.cost))
	}
	s := r.t.spending
	s.expect(r.estimateCost)
	if s.exceeded() == "" {
		return nil
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	what := s.exceeded()
	if what == "" {
		return nil // another agent got the answer meanwhile
	}
	d, err := r.t.Approver.Approve(ctx, Question{
		Agent: r.name, Role: r.t.Role.Name, Tool: wire.ToolContinue, ExecutionID: wire.ExecutionID(wire.NewID()), Arguments: []byte("{}"), Continue: what,
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !d.Allowed {
		return costError(what)
	}
	s.raise(r.t.Budget)
	return nil
}

// firstOutput is how many tokens a first answer is expected to have: a few sentences, or a call.
const firstOutput = 500

// cacheKept is how long a provider keeps what it has cached; some keep it longer.
const cacheKept = 5 * time.Minute

// estimateCost returns the list price of a turn's first request by its estimated size; nil if the model's price is not known. Nothing of
// it counts as cached unless the turn before it, of the same model, read the cache and has just ended.
func (r *runner) estimateCost() *float64 {
	u, model := provider.Usage{Input: int64(float64(r.size()) * r.scale), Output: firstOutput}, r.t.Model.Info()
	if end := r.t.History.end; end != nil && end.Model == model.Name && end.Usage.CacheRead > 0 && time.Since(time.UnixMilli(end.AtMS)) < cacheKept {
		u.CacheRead = min(u.Input, end.Context.Used)
		u.Input -= u.CacheRead
	}
	return model.Cost(u)
}

// costError returns the error of a turn that ended because of its cost.
func costError(what string) error {
	return &workError{"stopped: " + what, "say `go on`, or raise --max-cost of `sublet ask`, or cost_usd_turn or cost_usd_day under [limits]"}
}
