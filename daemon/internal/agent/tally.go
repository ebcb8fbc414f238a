package agent

import (
	"slices"
	"sync"

	"sublet/wire"
)

// tally is the sums over a turn and its sub-agents.
type tally struct {
	mu sync.Mutex
	// guarded by mu
	usage    wire.Usage
	executed []string
	refused  []wire.RefusedTool
}

// add adds the usage u of a request. The cost stays nil until a request has one.
func (t *tally) add(u wire.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.Input += u.Input
	t.usage.Output += u.Output
	t.usage.CacheRead += u.CacheRead
	t.usage.CacheWrite += u.CacheWrite
	t.usage.Total = t.usage.Input + t.usage.Output + t.usage.CacheRead + t.usage.CacheWrite
	if u.CostUSD != nil {
		sum := *u.CostUSD
		if t.usage.CostUSD != nil {
			sum += *t.usage.CostUSD
		}
		t.usage.CostUSD = &sum
	}
}

func (t *tally) ran(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.executed, name) {
		t.executed = append(t.executed, name)
	}
}

func (t *tally) refuse(name, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = append(t.refused, wire.RefusedTool{Tool: name, Reason: reason})
}

// merge adds a sub-agent's outcome.
func (t *tally) merge(o Outcome) {
	t.add(o.Usage)
	for _, name := range o.ToolsExecuted {
		t.ran(name)
	}
	for _, tool := range o.Refused {
		t.refuse(tool.Tool, tool.Reason)
	}
}
