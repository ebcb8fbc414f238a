package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// WithFallback returns a model that uses first until it stays overloaded, is unreachable, or repeatedly breaks off, and then the
// models that open returns for names, in order. It does not return to an earlier model, so make a new one for each turn. A
// DeltaNotice names the model that replaces another.
func WithFallback(first Model, names []string, open func(name string) (Model, error)) Model {
	return &fallback{now: first, names: names, open: open}
}

type fallback struct {
	open func(name string) (Model, error)

	mu sync.Mutex
	// guarded by mu:
	now   Model
	names []string // not tried yet
}

func (f *fallback) current() Model {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// more reports whether there are models that were not tried yet.
func (f *fallback) more() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.names) > 0
}

func (f *fallback) Info() Info { return f.current().Info() }

// Stream implements Model. Sending the request to the next model is safe, because no tool has run on an incomplete answer.
func (f *fallback) Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error) {
	for {
		m, shown := f.current(), false
		req.Replaceable = f.more()
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

// after returns the model that replaces failed, nil if there is none. unusable has a line for the user about each that was passed
// over, with the reason.
func (f *fallback) after(failed Model) (next Model, unusable []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != failed {
		return f.now, nil // a concurrent request has replaced it already
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
