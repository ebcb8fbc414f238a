package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/open"
	"sublet/wire"
)

const (
	keyCommandBound = 20 * time.Second // for api_key_command
	keyCommandKeep  = 10 * time.Minute // how long its output is cached, in memory only
	maxModels       = 32               // opened models that are cached
)

// models opens the models that the settings name. Keys come from the client's request, the daemon's environment or a command;
// they are kept in memory and never logged.
type models struct {
	conf *settings
	log  *slog.Logger

	mu sync.Mutex
	// below: guarded by mu
	opened map[string]provider.Model // by identity
	keys   map[string]commandKey     // by command
}

type commandKey struct {
	key string
	at  time.Time
}

// open returns the named model ("" is the configured one) with its fallbacks, for one turn. It is hub.Options.OpenModel.
func (m *models) open(ctx context.Context, name string, creds map[string]string) (provider.Model, error) {
	first, err := m.openOne(ctx, name, creds)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(m.conf.get().Fallback), func(other string) bool { return other == first.Info().Name })
	if len(others) == 0 {
		return first, nil
	}
	return provider.WithFallback(first, others, func(name string) (provider.Model, error) { return m.openOne(ctx, name, creds) }), nil
}

func (m *models) openOne(ctx context.Context, name string, creds map[string]string) (provider.Model, error) {
	c := m.conf.get()
	pc, p, err := lookUp(c, name)
	if err != nil {
		return nil, err
	}
	pc.Log = m.log
	if err := m.authenticate(ctx, &pc, p, creds); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := identity(pc)
	if known := m.opened[at]; known != nil {
		return known, nil
	}
	model, err := open.Open(pc)
	if err != nil {
		return nil, err
	}
	if m.opened == nil || len(m.opened) >= maxModels {
		m.opened = map[string]provider.Model{}
	}
	m.opened[at] = model
	return model, nil
}

// authenticate adds key, headers and query parameters to a provider's configuration.
func (m *models) authenticate(ctx context.Context, pc *provider.Config, p config.Provider, creds map[string]string) (err error) {
	if pc.APIKey = key(p, creds); pc.APIKey == "" && p.APIKeyCommand != "" {
		if pc.APIKey, err = m.runKeyCommand(ctx, pc.Name, p.APIKeyCommand); err != nil {
			return err
		}
	}
	mask.Keep(pc.APIKey)
	pc.Headers, pc.Query, err = expandAll(pc.Name, p)
	return err
}

// lookUp returns the configuration of a model, without its key, and the settings of its provider.
func lookUp(c config.Config, name string) (provider.Config, config.Provider, error) {
	if name == "" {
		name = c.Model
	}
	from, model, _ := strings.Cut(name, "/")
	p, ok := c.Providers[from]
	if !ok {
		return provider.Config{}, p, &provider.Error{
			Kind: provider.ErrNotFound, Provider: from, Message: "no such provider in the settings",
			HintText: "a model is named provider/name; `sublet config show` lists the providers",
		}
	}
	return provider.Config{
		Name: from, Kind: p.Kind, BaseURL: p.BaseURL, Model: model, Script: p.Script, APIKeyEnv: p.APIKeyEnv, ContextWindow: p.ContextWindow,
		NoImages: p.Images != nil && !*p.Images, Silence: p.Silence.Duration, API: p.API,
		Prices: provider.Limit{Input: p.PriceInput, Output: p.PriceOutput, CacheRead: p.PriceCacheRead, CacheWrite: p.PriceCacheWrite},
	}, p, nil
}

// expandAll replaces environment variables in a provider's headers and query parameters.
func expandAll(name string, p config.Provider) (headers, query map[string]string, err error) {
	if headers, err = mask.Expand(p.Headers, true); err == nil {
		query, err = mask.Expand(p.Query, true)
	}
	if err != nil {
		return nil, nil, &provider.Error{Kind: provider.ErrAuth, Provider: name, Message: err.Error(), HintText: "see headers and query under [provider." + name + "]"}
	}
	return headers, query, nil
}

// identity returns a string that is equal for equal configurations. It contains the key and must not be logged or shown.
func identity(c provider.Config) string { return fmt.Sprintf("%v", c) }

func key(p config.Provider, creds map[string]string) string {
	if p.APIKeyEnv == "" {
		return ""
	}
	if k := creds[p.APIKeyEnv]; k != "" {
		return k
	}
	return os.Getenv(p.APIKeyEnv)
}

// runKeyCommand runs the user's api_key_command and returns the first line of its output.
func (m *models) runKeyCommand(ctx context.Context, name, command string) (string, error) {
	m.mu.Lock()
	kept, ok := m.keys[command]
	m.mu.Unlock()
	if ok && time.Since(kept.at) < keyCommandKeep {
		return kept.key, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyCommandBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output() // standard error may contain the key and is not shown
	line, _, _ := bytes.Cut(out, []byte("\n"))
	got := strings.TrimSpace(string(line))
	if err != nil || got == "" {
		why := "api_key_command printed nothing"
		if err != nil {
			why = fmt.Sprintf("api_key_command failed: %v", err)
		}
		return "", &provider.Error{
			Kind: provider.ErrAuth, Provider: name, Message: why, HintText: "run it by hand: its first line must be the key",
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil || len(m.keys) >= maxModels {
		m.keys = map[string]commandKey{}
	}
	m.keys[command] = commandKey{got, time.Now()}
	return got, nil
}

// describe returns the models of the settings, each once: the configured one, then those of roles, sorted. It neither runs commands nor
// contacts providers.
func (m *models) describe(creds map[string]string) []wire.ModelInfo {
	c := m.conf.get()
	var others []string
	for _, a := range c.Agents {
		if a.Model != "" && a.Model != c.Model {
			others = append(others, a.Model)
		}
	}
	slices.Sort(others)
	list := []wire.ModelInfo{}
	for _, name := range append([]string{c.Model}, slices.Compact(others)...) {
		pc, p, err := lookUp(c, name)
		if err != nil {
			continue
		}
		info := wire.ModelInfo{Name: name, Provider: pc.Name, ProviderKind: pc.Kind, ContextWindow: provider.DefaultContextWindow}
		pc.Log, pc.APIKey = m.log, key(p, creds)
		if pc.Headers, pc.Query, err = expandAll(pc.Name, p); err != nil {
			list = append(list, info)
			continue
		}
		info.Loaded = pc.APIKey != "" || p.APIKeyEnv == "" || p.APIKeyCommand != "" // the command is not run to find out
		m.mu.Lock()
		model := m.opened[identity(pc)]
		m.mu.Unlock()
		if model == nil && p.APIKeyCommand == "" {
			model, err = open.Open(pc)
			info.Loaded = info.Loaded && err == nil
		}
		if model != nil {
			known := model.Info()
			info.Loaded, info.ContextWindow = known.Loaded || p.APIKeyCommand != "", known.ContextWindow
		}
		list = append(list, info)
	}
	return list
}

// listBound bounds the requests to providers for their models.
const listBound = 10 * time.Second

// find returns the model of that name, or with "" those of all providers. It is hub.Options.FindModels.
func (m *models) find(ctx context.Context, name string, creds map[string]string) (*wire.ModelsReply, error) {
	if name == "" {
		return m.list(ctx, creds), nil
	}
	model, err := m.open(ctx, name, creds)
	if err != nil {
		return nil, err
	}
	info := model.Info()
	if !info.Loaded { // it refuses at once, without a request, and says what is missing
		if _, err := model.Stream(ctx, provider.Request{}, func(provider.Delta) {}); err != nil {
			return nil, err
		}
		return nil, errors.New("it cannot be used")
	}
	return &wire.ModelsReply{
		Models: []wire.Model{{Name: info.Name, ContextWindow: info.ContextWindow, MaxOutput: info.MaxOutput}}, Faults: []wire.ModelFault{},
	}, nil
}

// list asks every provider concurrently which models it has.
func (m *models) list(ctx context.Context, creds map[string]string) *wire.ModelsReply {
	ctx, cancel := context.WithTimeoutCause(ctx, listBound, errors.New("it did not answer in time"))
	defer cancel()
	c := m.conf.get()
	reply := &wire.ModelsReply{Models: []wire.Model{}, Faults: []wire.ModelFault{}}
	var mu sync.Mutex // guards reply
	var asked sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		asked.Go(func() {
			offers, err := m.offers(ctx, c, name, creds)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fault := wire.ModelFault{Provider: name, Message: err.Error()}
				if pe, ok := errors.AsType[*provider.Error](err); ok {
					fault.Message, fault.Hint = pe.Message, pe.Hint()
				}
				reply.Faults = append(reply.Faults, fault)
				return
			}
			for _, o := range offers {
				reply.Models = append(reply.Models, offered(c.Providers[name], name, o))
			}
		})
	}
	asked.Wait()
	slices.SortFunc(reply.Models, func(a, b wire.Model) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(reply.Faults, func(a, b wire.ModelFault) int { return cmp.Compare(a.Provider, b.Provider) })
	return reply
}

// offers returns the models that the provider of that name offers. creds are the client's API keys, by the name of the variable.
func (m *models) offers(ctx context.Context, c config.Config, name string, creds map[string]string) (_ []provider.Offer, err error) {
	defer func() { // a panic in a provider's library must not end the daemon
		if r := recover(); r != nil {
			m.log.Error("listing models panicked", "provider", name, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal fault: %v", r)
		}
	}()
	pc, p, err := lookUp(c, name)
	if err != nil {
		return nil, err
	}
	if err := m.authenticate(ctx, &pc, p, creds); err != nil {
		return nil, err
	}
	return open.List(ctx, pc)
}

// offered converts an offer for the reply. The settings take precedence over the provider.
func offered(p config.Provider, name string, o provider.Offer) wire.Model {
	full := provider.Config{Name: name, Model: o.Name}.FullName()
	w := wire.Model{
		Name: full, ContextWindow: cmp.Or(p.ContextWindow, o.Limit.ContextWindow), MaxOutput: o.Limit.MaxOutput,
		Images: o.Images, Tools: o.Tools, Thinking: o.Thinking,
	}
	if p.Images != nil {
		w.Images = p.Images
	}
	if in, out := cmp.Or(p.PriceInput, o.Limit.Input), cmp.Or(p.PriceOutput, o.Limit.Output); in > 0 && out > 0 {
		w.PriceInput, w.PriceOutput = &in, &out
	}
	return w
}

// forget drops opened models and cached keys, after the settings changed.
func (m *models) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened, m.keys = nil, nil
}
