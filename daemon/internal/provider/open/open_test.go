package open_test

import (
	"errors"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/open"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		config provider.Config
		name   string
		loaded bool
		window int
	}{
		{provider.Config{Name: "offline", Kind: "offline"}, "offline", true, provider.DefaultContextWindow},
		{provider.Config{Name: "anthropic", Kind: "anthropic", Model: "claude-sonnet-4-5", APIKey: "k"}, "anthropic/claude-sonnet-4-5", true, 200_000},
		{provider.Config{Name: "openai", Kind: "openai", Model: "gpt-4o"}, "openai/gpt-4o", false, 128_000},
		{provider.Config{Name: "ollama", Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3"}, "ollama/qwen3", true, provider.DefaultContextWindow},
		{provider.Config{Name: "ollama", Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3", ContextWindow: 8192}, "ollama/qwen3", true, 8192},
		{provider.Config{Name: "google", Kind: "google", Model: "gemini-2.5-pro", APIKey: "k"}, "google/gemini-2.5-pro", true, 1_048_576},
		{provider.Config{Name: "test", Kind: "scripted", Script: "/nonexistent.json"}, "test", true, provider.DefaultContextWindow},
	} {
		m, err := open.Open(c.config)
		if err != nil {
			t.Errorf("%+v: %v", c.config, err)
			continue
		}
		if i := m.Info(); i.Name != c.name || i.Loaded != c.loaded || i.ContextWindow != c.window || i.Kind != c.config.Kind {
			t.Errorf("got %+v, want %s, %v, %d", i, c.name, c.loaded, c.window)
		}
	}
}

// Each kind that the settings accept is opened.
func TestOpenKnowsEachKind(t *testing.T) {
	for _, kind := range config.ProviderKinds {
		if _, err := open.Open(provider.Config{Name: "x", Kind: kind, Model: "m", Script: "/nonexistent.json"}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []provider.Config{{Name: "x"}, {Name: "x", Kind: "nonsense"}, {Name: "anthropic", Kind: "anthropic"}, {Name: "openai", Kind: "openai"}, {Name: "t", Kind: "scripted"}} {
		m, err := open.Open(c)
		if pe, ok := errors.AsType[*provider.Error](err); !ok || pe.Kind != provider.ErrInvalid || pe.Hint() == "" || m != nil {
			t.Errorf("%+v: got %v, %v, want an error with a hint and no model", c, m, err)
		}
	}
}
