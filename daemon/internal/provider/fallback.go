package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// WithFallback returns a model that is first until first stays overloaded, cannot be reached, or keeps breaking off, and then
// the first of names that open opens, and so on. It does not go back, so it is to be made anew for each turn. A DeltaNotice
// says who takes over.
func WithFallback(first Model, names []string, open func(name string) (Model, error)) Model {
	return &fallback{now: first, names: names, open: open}
}

type fallback struct {
	open func(name string) (Model, error)

	mu sync.Mutex
	// guarded by mu:
	now   Model
	names []string // that have not been tried
}

func (f *fallback) current() Model {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fallback) Info() Info { return f.current().Info() }

// Stream implements Model. No tool has run on an answer that failed, so the next model may be asked the same.
func (f *fallback) Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error) {
	for {
		m, shown := f.current(), false
		resp, err := m.Stream(ctx, req, func(d Delta) {
			switch d.Type {
			case DeltaVoid:
				shown = false
			case DeltaText, DeltaReasoning, DeltaToolCall:
				shown = true
			}
			onDelta(d)
		})
		failed, ok := errors.AsType[*Error](err)
		if !ok || !failed.temporary() || ctx.Err() != nil {
			return resp, err
		}
		next, unusable := f.after(m)
		for _, why := range unusable {
			onDelta(Delta{Type: DeltaNotice, Text: why})
		}
		if next == nil {
			return resp, err
		}
		if shown {
			onDelta(Delta{Type: DeltaVoid, Text: failed.Message})
		}
		onDelta(Delta{Type: DeltaNotice, Text: fmt.Sprintf("%s takes over for this turn: %v", next.Info().Name, failed)})
	}
}

// after returns the model that takes over from failed, nil where there is none, and which could not be used.
func (f *fallback) after(failed Model) (next Model, unusable []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != failed {
		return f.now, nil // another agent's request was faster
	}
	for len(f.names) > 0 {
		name := f.names[0]
		f.names = f.names[1:]
		m, err := f.open(name)
		if err == nil && !m.Info().Loaded {
			err = errors.New("no API key")
		}
		if err != nil {
			unusable = append(unusable, fmt.Sprintf("the fallback %s cannot be used: %v", name, err))
			continue
		}
		f.now = m
		return m, unusable
	}
	return nil, unusable
}
