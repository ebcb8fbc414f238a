package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
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
	keyCommandKeep  = 10 * time.Minute // for what it printed, in memory only
	maxModels       = 32               // opened ones kept for what they learned about themselves
)

// models opens models as the settings name them. Keys come from the client that asks, from the daemon's environment or
// from a command; they are kept in memory and never logged.
type models struct {
	conf *settings
	log  *slog.Logger

	mu sync.Mutex
	// below: guarded by mu
	opened map[provider.Config]provider.Model
	keys   map[string]commandKey // by command
}

type commandKey struct {
	key string
	at  time.Time
}

// open returns the model of that name, "" being the configured one, for one turn: with those that take over from it. It
// satisfies hub.Options.
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
	if pc.APIKey = key(p, creds); pc.APIKey == "" && p.APIKeyCommand != "" {
		if pc.APIKey, err = m.runKeyCommand(ctx, pc.Name, p.APIKeyCommand); err != nil {
			return nil, err
		}
	}
	mask.Keep(pc.APIKey)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.opened[pc]; known != nil {
		return known, nil
	}
	model, err := open.Open(pc)
	if err != nil {
		return nil, err
	}
	if m.opened == nil || len(m.opened) >= maxModels {
		m.opened = map[provider.Config]provider.Model{}
	}
	m.opened[pc] = model
	return model, nil
}

// lookUp finds a model in the settings, still without its key.
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
		NoImages: p.Images != nil && !*p.Images, Silence: time.Duration(p.Silence),
	}, p, nil
}

func key(p config.Provider, creds map[string]string) string {
	if p.APIKeyEnv == "" {
		return ""
	}
	if k := creds[p.APIKeyEnv]; k != "" {
		return k
	}
	return os.Getenv(p.APIKeyEnv)
}

// runKeyCommand runs the user's own command for a key: its first line of output.
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
	out, err := cmd.Output() // what it prints on its error stream may hold the key: not shown
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

// describe tells what can be used, the configured model first, without running or asking anything.
func (m *models) describe(creds map[string]string) []wire.ModelInfo {
	c := m.conf.get()
	names := []string{c.Model}
	for _, a := range c.Agents {
		if a.Model != "" && a.Model != c.Model {
			names = append(names, a.Model)
		}
	}
	list := []wire.ModelInfo{}
	for _, name := range names {
		pc, p, err := lookUp(c, name)
		if err != nil {
			continue
		}
		info := wire.ModelInfo{Name: name, Provider: pc.Name, ProviderKind: pc.Kind, ContextWindow: provider.DefaultContextWindow}
		pc.Log, pc.APIKey = m.log, key(p, creds)
		info.Loaded = pc.APIKey != "" || p.APIKeyEnv == ""
		m.mu.Lock()
		model := m.opened[pc]
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

// forget drops opened models and keys, after the settings changed.
func (m *models) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened, m.keys = nil, nil
}
