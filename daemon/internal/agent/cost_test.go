package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// priced is a call that cost so much.
func priced(usd float64) step {
	s := call1("sh", `{"command":"a"}`)
	s.usage = provider.Usage{Input: 10, Output: 1, CostUSD: &usd}
	return s
}

// Somebody is asked before a turn costs more than it may, and a yes allows as much again.
func TestCostIsAskedBefore(t *testing.T) {
	for _, tt := range []struct {
		name     string
		budget   Budget
		answers  []bool
		want     int // requests that were made
		question string
	}{
		{"stopped", Budget{Turn: 1}, []bool{false}, 2, "this turn has cost $0.80 of the $1.00 that it may, and the next request may cost $0.40"},
		{"goes on once", Budget{Turn: 1}, []bool{true, false}, 5, "this turn has cost $0.80 of the $1.00"},
		{"the day", Budget{Turn: 9, Day: 10.5}, []bool{false}, 1, "today's turns have cost $10.40 of the $10.50 that they may"},
		{"woken by a job", Budget{Turn: 1, Before: 0.5}, []bool{false}, 1, "this turn has cost $0.90 of the $1.00"},
		{"no bound", Budget{}, nil, 7, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			today, asked := 10.0, []string{}
			if tt.budget.Turn > 0 {
				tt.budget.Spend = func(usd float64) (float64, error) { today += usd; return today, nil }
			}
			steps := []step{}
			for i := range 6 {
				s := priced(0.40)
				s.calls[0].Arguments = []byte(`{"command":"` + strings.Repeat("a", i+1) + `"}`)
				steps = append(steps, s)
			}
			model := newModel(append(steps, step{text: "done"})...)
			o := (&recorder{}).play(t.Context(), Turn{
				Model: model, Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Bounds: Bounds{Budget: tt.budget},
				Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
					if q.Continue == "" {
						return Decision{Allowed: true}, nil
					}
					asked = append(asked, q.Continue)
					yes := tt.answers[0]
					tt.answers = tt.answers[1:]
					return Decision{Allowed: yes}, nil
				}),
			})
			if n := len(model.requests()); n != tt.want || len(tt.answers) > 0 {
				t.Errorf("%d requests were made, want %d; asked %q", n, tt.want, asked)
			}
			_, stopped := errors.AsType[*workError](o.Err)
			if stopped != (tt.question != "") || stopped && (o.Failure().Hint == "" || !strings.Contains(asked[0], tt.question)) {
				t.Errorf("ended with %v, asked %q", o.Err, asked)
			}
		})
	}
}

// Where a price is not known, one notice says that a bound does not hold.
func TestCostIsNotKnown(t *testing.T) {
	one, two := call1("sh", `{"command":"a"}`), step{text: "ok"}
	one.usage, two.usage = provider.Usage{Input: 1}, provider.Usage{Input: 1}
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: newModel(one, two), Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Bounds: Bounds{Budget: Budget{Turn: 1, Spend: func(float64) (float64, error) { return 0, nil }}}})
	notices := slices.DeleteFunc(rec.chunks(wire.ChunkNotice, ""), func(c wire.Chunk) bool { return !strings.Contains(c.Text, "price of stub/one is not known") })
	if len(notices) != 1 {
		t.Errorf("told %d times", len(notices))
	}
}

// The first request of a turn is estimated by its size and the model's prices, and asked about before it is made.
func TestCostOfTheFirstRequestIsAskedBefore(t *testing.T) {
	for _, tt := range []struct {
		name     string
		budget   Budget
		price    float64 // of a million tokens, both ways
		question string  // "" = the request is made without one
	}{
		{"over the turn's", Budget{Turn: 0.1}, 100, "this turn has cost $0.00 of the $0.10 that it may, and the next request may cost $0."},
		{"over the day's", Budget{Day: 10.1}, 100, "today's turns have cost $10.00 of the $10.10 that they may, and the next request may cost $0."},
		{"within both", Budget{Turn: 1, Day: 11}, 100, ""},
		{"price not known", Budget{Turn: 0.000001}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := newModel(step{text: "ok"})
			model.info.Input, model.info.Output = tt.price, tt.price
			tt.budget.Spend = func(usd float64) (float64, error) { return 10 + usd, nil }
			asked := ""
			o := (&recorder{}).play(t.Context(), Turn{
				Model: model, Prompt: strings.Repeat("word ", 1000), Bounds: Bounds{Budget: tt.budget},
				Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
					asked = q.Continue
					return Decision{}, nil
				}),
			})
			want := 1
			if tt.question != "" {
				want = 0
			}
			if n := len(model.requests()); n != want || !strings.HasPrefix(asked, tt.question) || (asked == "") != (tt.question == "") {
				t.Errorf("%d requests were made, want %d; asked %q, want %q; ended with %v", n, want, asked, tt.question, o.Err)
			}
		})
	}
}

// What the provider has in its cache from the turn before costs little: a long conversation was asked about at each turn.
func TestCostOfACachedConversation(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name  string
		end   wire.AgentComplete
		asked bool
	}{
		{"just ended", wire.AgentComplete{Event: wire.Event{AtMS: now.UnixMilli()}, Model: "stub/one", Usage: wire.Usage{CacheRead: 1}}, false},
		{"long ago", wire.AgentComplete{Event: wire.Event{AtMS: now.Add(-6 * time.Minute).UnixMilli()}, Model: "stub/one", Usage: wire.Usage{CacheRead: 1}}, true},
		{"another model", wire.AgentComplete{Event: wire.Event{AtMS: now.UnixMilli()}, Model: "stub/two", Usage: wire.Usage{CacheRead: 1}}, true},
		{"no cache", wire.AgentComplete{Event: wire.Event{AtMS: now.UnixMilli()}, Model: "stub/one"}, true},
	} {
		rec := &recorder{}
		rec.turn = "t0"
		rec.emit(&wire.TurnStarted{Agent: Orchestrator, Prompt: strings.Repeat("word ", 10_000), Model: "stub/one"})
		tt.end.Context.Used = 12_000
		rec.emit(&tt.end)
		model, asked := newModel(step{text: "ok"}), false
		model.info.Limit = provider.Limit{ContextWindow: 100_000, Input: 10, Output: 10, CacheRead: 1}
		rec.play(t.Context(), Turn{
			Model: model, Prompt: "go on", Bounds: Bounds{Budget: Budget{Turn: 0.05}},
			Approver: approverFunc(func(context.Context, Question) (Decision, error) { asked = true; return Decision{}, nil }),
		})
		if asked != tt.asked {
			t.Errorf("%s: asked %t, want %t", tt.name, asked, tt.asked)
		}
	}
}

// A turn whose only request costs more than it may, or than the day may, ends with a notice: no request followed that could be asked about.
func TestCostOfOneRequestIsOver(t *testing.T) {
	for _, tt := range []struct {
		budget Budget
		want   string
	}{
		{Budget{Turn: 0.2}, "This turn has cost $1.05, more than the $0.20 that it may."},
		{Budget{Day: 11}, "Today's turns have cost $11.05, more than the $11.00 that they may."},
		{Budget{Turn: 2, Day: 12}, ""},
	} {
		cost, today, rec := 1.05, 10.0, &recorder{}
		tt.budget.Spend = func(usd float64) (float64, error) { today += usd; return today, nil }
		o := rec.play(t.Context(), Turn{
			Model: newModel(step{text: "ok", usage: provider.Usage{Input: 10, CostUSD: &cost}}), Prompt: "go", Bounds: Bounds{Budget: tt.budget},
		})
		if got := notices(rec); got != tt.want || o.Status != wire.StatusSuccess {
			t.Errorf("%+v: got %s, notices %q, want %q", tt.budget, o.Status, got, tt.want)
		}
	}
}

// Where the store fails, what a day has cost is asked about, and counted all the same.
func TestCostOfADayThatCannotBeRead(t *testing.T) {
	fails := func(float64) (float64, error) { return 0, errors.New("the disk is full") }
	s := newSpending(Budget{Day: 1, Spend: fails})
	if s.exceeded() == "" {
		t.Error("nothing is asked")
	}
	s.raise(s.budget)
	if got := s.exceeded(); got != "" {
		t.Errorf("asked again at once: %s", got)
	}
	cost := 1.5
	r := &runner{t: Turn{delegation: delegation{spending: s}, Model: newModel()}}
	r.spend(provider.Usage{Input: 1, CostUSD: &cost})
	if s.exceeded() == "" {
		t.Error("what was spent since is not counted")
	}
}
