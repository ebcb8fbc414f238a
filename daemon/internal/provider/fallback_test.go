package provider_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sublet/daemon/internal/provider"
)

// saying is a model that says its name, and then fails where err is set.
type saying struct {
	name     string
	err      error
	asked    int
	replaced bool // the newest request said that another model would take over
}

func (s *saying) Info() provider.Info {
	return provider.Info{Name: s.name, Loaded: s.name != "keyless"}
}

func (s *saying) Stream(_ context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	s.asked++
	s.replaced = req.Replaceable
	onDelta(provider.Delta{Type: provider.DeltaText, Text: s.name})
	return provider.Response{}, s.err
}

func TestFallback(t *testing.T) {
	down, up := &saying{name: "down", err: busy(0)}, &saying{name: "up"}
	models := map[string]*saying{"up": up, "keyless": {name: "keyless"}, "down too": {name: "down too", err: &provider.Error{Kind: provider.ErrUnreachable, Provider: "x", Message: "gone"}}}
	var deltas []string
	ask := func(m provider.Model) error {
		deltas = nil
		_, err := m.Stream(t.Context(), provider.Request{}, func(d provider.Delta) { deltas = append(deltas, string(d.Type)+":"+d.Text) })
		return err
	}
	open := func(name string) (provider.Model, error) {
		if m := models[name]; m != nil {
			return m, nil
		}
		return nil, errors.New("unknown")
	}
	m := provider.WithFallback(down, []string{"nobody", "keyless", "down too", "up"}, open)
	if err := ask(m); err != nil || m.Info().Name != "up" {
		t.Fatalf("got %v, %v", err, m.Info())
	}
	// Only a model that nobody can replace waits longer for a provider that asks for it.
	if !down.replaced || !models["down too"].replaced || up.replaced {
		t.Errorf("replaceable: got %v, %v, %v, want true, true, false", down.replaced, models["down too"].replaced, up.replaced)
	}
	want := []string{
		"text:down", "notice:the fallback nobody cannot be used: unknown", "notice:the fallback keyless cannot be used: no API key",
		"void:", "notice:down too takes over for this turn: : ", "text:down too", "void:gone", "notice:up takes over for this turn: x: gone", "text:up",
	}
	if !slices.Equal(deltas, want) {
		t.Errorf("got  %q\nwant %q", deltas, want)
	}
	// It stays with the one that answers.
	if err := ask(m); err != nil || down.asked != 1 || up.asked != 2 {
		t.Errorf("got %v, asked %d and %d times", err, down.asked, up.asked)
	}
	// Without anybody left, the error is that of the last one; a request that is wrong stays wrong with every model.
	m = provider.WithFallback(down, []string{"down too"}, open)
	if err := ask(m); !errors.Is(err, models["down too"].err) {
		t.Errorf("got %v", err)
	}
	wrong := &saying{name: "wrong", err: &provider.Error{Kind: provider.ErrInvalid}}
	if err := ask(provider.WithFallback(wrong, []string{"up"}, open)); !errors.Is(err, wrong.err) || up.asked != 2 {
		t.Errorf("got %v, and the fallback was asked", err)
	}
}
