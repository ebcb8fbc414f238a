// Package open turns a configuration into a model. It is apart from package provider so that back ends can import the
// types without a cycle; only the daemon's assembly needs it.
package open

import (
	"context"
	"fmt"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/anthropic"
	"sublet/daemon/internal/provider/offline"
	"sublet/daemon/internal/provider/openai"
	"sublet/daemon/internal/provider/scripted"
)

// lister is a model whose provider lists the models that it has. Without a name none of them can be asked.
type lister interface {
	List(ctx context.Context) ([]provider.Offer, error)
}

// List asks the provider that c names which models it has; c.Model does not count. One that cannot be asked is listed itself,
// without a name. Errors are *provider.Error.
func List(ctx context.Context, c provider.Config) ([]provider.Offer, error) {
	m, err := open(c)
	if err != nil {
		return nil, err
	}
	if l, ok := m.(lister); ok {
		return l.List(ctx)
	}
	info, no, yes := m.Info(), false, true
	return []provider.Offer{{Limit: info.Limit, Images: &no, Tools: &yes, Thinking: &no}}, nil
}

// Open makes the model that c names. It does no I/O beyond reading a script, so a model that cannot be reached, or lacks
// its key, is found out by its first Stream. Errors are *provider.Error and carry a hint.
func Open(c provider.Config) (provider.Model, error) {
	m, err := open(c)
	if _, several := m.(lister); several && c.Model == "" {
		return nil, &provider.Error{
			Kind: provider.ErrInvalid, Provider: c.Name, Message: "no model named",
			HintText: fmt.Sprintf("write `model = %q` in the configuration", c.Name+"/NAME"),
		}
	}
	return m, err
}

func open(c provider.Config) (provider.Model, error) {
	switch c.Kind {
	case config.KindAnthropic:
		return anthropic.Open(c), nil
	case config.KindOpenAI, config.KindGoogle:
		return openai.Open(c), nil
	case config.KindOffline:
		return offline.Open(c), nil
	case config.KindScripted:
		m, err := scripted.Open(c)
		if err != nil {
			return nil, err // not a nil *Model in an interface
		}
		return m, nil
	}
	return nil, &provider.Error{
		Kind: provider.ErrInvalid, Provider: c.Name, Message: fmt.Sprintf("unknown kind %q", c.Kind),
		HintText: "kind is one of " + strings.Join(config.ProviderKinds, ", "),
	}
}
