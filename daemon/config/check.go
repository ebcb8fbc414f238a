package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// check returns the first invalid value, as "key: what is wrong and what would be right".
func (c *Config) check() error {
	for _, check := range []func() error{c.checkProviders, c.checkMCP, c.checkModels, c.checkRanges, c.checkShell, c.checkPolicy} {
		if err := check(); err != nil {
			return err
		}
	}
	return oneOf("daemon.log_level", c.Daemon.LogLevel, "debug", "info", "warn", "error")
}

func (c *Config) checkProviders() error {
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if err := c.Providers[name].check("provider." + name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkModels() error {
	for _, m := range []struct{ key, model string }{{"model", c.Model}, {"models.small", c.Models.Small}, {"models.compaction", c.Models.Compaction}} {
		if err := c.checkModel(m.key, m.model); err != nil && (m.model != "" || m.key == "model") {
			return err
		}
	}
	for i, model := range c.Fallback {
		switch err := c.checkModel("fallback", model); {
		case err != nil:
			return err
		case model == c.Model:
			return fmt.Errorf("fallback: %q is the model itself; name others", model)
		case slices.Contains(c.Fallback[:i], model):
			return fmt.Errorf("fallback: %q is listed twice", model)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, key := c.Agents[name], "agents."+name
		if err := cmp.Or(a.checkHosted(key), c.CheckAgent(key+".", a)); err != nil {
			return err
		}
	}
	return oneOf("thinking", cmp.Or(c.Thinking, "off"), "off", "low", "medium", "high")
}

func (c *Config) checkShell() error {
	if c.Shell.Path != "" && !filepath.IsAbs(c.Shell.Path) {
		return fmt.Errorf("shell.path: %q is not an absolute path", c.Shell.Path)
	}
	if _, ok := Key(c.Shell.SwitchKey); !ok {
		return fmt.Errorf("shell.switch_key: %q is none of ctrl+a to ctrl+z, alt+a to alt+z, f1 to f12", c.Shell.SwitchKey)
	}
	return nil
}

func (c *Config) checkPolicy() error {
	// `full` can only be chosen by a flag for one run.
	if err := oneOf("policy.mode", c.Policy.Mode, "plan", "ask", "auto"); err != nil {
		return err
	}
	if err := cmp.Or(paths("policy.secrets", c.Policy.Secrets), paths("policy.not_secrets", c.Policy.NotSecrets), paths("policy.project.write", c.Policy.Project.Write)); err != nil {
		return err
	}
	for _, p := range c.Policy.NotSecrets {
		if slices.Contains(c.Policy.Secrets, p) {
			return fmt.Errorf("policy.not_secrets: %q is also in policy.secrets", p)
		}
	}
	for i, r := range c.Policy.Rules {
		key := fmt.Sprintf("policy.rules[%d]", i)
		if err := oneOf(key+".decision", r.Decision, "allow", "ask", "deny"); err != nil {
			return err
		}
		if r.Pattern == "" {
			return fmt.Errorf("%s.pattern: is missing", key)
		}
	}
	return nil
}

// functionKeys are the sequences that terminals send for F1 to F12, without ESC.
var functionKeys = []string{"OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~", "[23~", "[24~"}

// Key returns the bytes that a terminal sends for a key: ctrl+x, alt+x, f5; "" is not a key. ok is false for unknown names and
// for keys with another meaning (ctrl+c, Tab, Enter, Backspace).
func Key(name string) (sent []byte, ok bool) {
	kind, letter, _ := strings.Cut(name, "+")
	plain := len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z'
	switch {
	case name == "":
		return nil, true
	case kind == "ctrl" && plain && !strings.Contains("chijmqsz", letter):
		return []byte{letter[0] & 0x1f}, true
	case kind == "alt" && plain:
		return []byte("\x1b" + letter), true
	}
	for i, keys := range functionKeys {
		if name == "f"+strconv.Itoa(i+1) {
			return []byte("\x1b" + keys), true
		}
	}
	return nil, false
}

// serverName matches the names of MCP servers. They are part of tool names, mcp__NAME__TOOL, and so must not contain "__".
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9](_?[A-Za-z0-9-]){0,31}$`) })

// checkRanges checks the settings that are an amount, a number or a duration within limits.
func (c *Config) checkRanges() error {
	return cmp.Or(
		dollars("limits.cost_usd_turn", c.Limits.CostTurn),
		dollars("limits.cost_usd_day", c.Limits.CostDay),
		within("compaction.threshold", c.Compaction.Threshold, 0.1, 0.95),
		spans("lease.wait", c.Lease.Wait, time.Second, time.Hour),
		spans("lease.term", c.Lease.Term, time.Second, time.Hour),
		spans("lease.patience", c.Lease.Patience, 10*time.Millisecond, time.Minute),
		spans("shell.command_timeout", c.Shell.CommandTimeout, time.Second, MaxCommandTimeout),
		spans("limits.check_time", c.Limits.CheckTime, 100*time.Millisecond, 10*time.Minute),
		spans("daemon.idle_exit", c.Daemon.IdleExit, 0, 365*24*time.Hour),
		within("shell.output_head", c.Shell.OutputHead, 1<<10, 1<<20),
		within("shell.output_tail", c.Shell.OutputTail, 1<<10, 1<<20),
		within("limits.requests_per_second", c.Limits.RequestsPerSecond, 1, 100_000),
		within("limits.running_turns", c.Limits.RunningTurns, 1, 1000),
		within("limits.jobs", c.Limits.Jobs, 0, 1000),
		within("limits.max_agents", c.Limits.MaxAgents, 1, 64),
		within("limits.message_bytes", c.Limits.MessageBytes, 1<<10, 15<<20), // it must fit in one frame of 16 MiB
	)
}

func within[T cmp.Ordered](key string, got, low, high T) error {
	if got != min(max(got, low), high) { // as NaN is, too
		return fmt.Errorf("%s: %v is outside %v to %v", key, got, low, high)
	}
	return nil
}

func spans(key string, got Duration, low, high time.Duration) error {
	if got == bare {
		return fmt.Errorf("%s: want %s, found a value without a unit", key, aDuration)
	}
	return within(key, got.Duration, low, high)
}

// CheckAgent returns what is wrong with a role. key comes before the name of the setting in the error: "agents.NAME." or "".
func (c *Config) CheckAgent(key string, a Agent) error {
	if a.MaxTokens < 0 {
		return fmt.Errorf("%smax_tokens: %d is less than 0", key, a.MaxTokens)
	}
	if a.Model != "" && a.Command == nil {
		if err := c.checkModel(key+"model", a.Model); err != nil {
			return err
		}
	}
	return cmp.Or(
		within(key+"max_turns", a.MaxTurns, 0, 1000),
		spans(key+"timeout", cmp.Or(a.Timeout, Duration{time.Second}), time.Second, 24*time.Hour),
		oneOf(key+"mode", cmp.Or(a.Mode, "ask"), "plan", "ask", "auto"),
		dollars(key+"max_cost", a.MaxCost),
	)
}

var agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`) })

// taskName matches the names of agents that others started, such as claude-1.
var taskName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-[0-9]+$`) })

// checkHosted checks what concerns a program that is hosted.
func (a Agent) checkHosted(key string) error {
	if len(a.Command) == 0 {
		switch {
		case a.Command != nil:
			return fmt.Errorf("%s.command: is empty; write the program and its arguments, such as [\"claude-agent-acp\"]", key)
		case len(a.Env) > 0:
			return fmt.Errorf("%s.env: is for a command", key)
		case a.Reach != "":
			return fmt.Errorf("%s.reach: is for a command", key)
		}
		return nil
	}
	_, name, _ := strings.Cut(key, ".")
	switch {
	case !agentName().MatchString(name):
		return fmt.Errorf("%s: the name of an agent with a command is 1 to 32 small letters, digits, - and _, a letter first", key)
	case slices.Contains([]string{"orchestrator", "engineer", "reviewer", "explorer", "user", "you"}, name):
		return fmt.Errorf("%s.command: %s is a name of sublet's own; give the agent another one", key, name)
	case taskName().MatchString(name):
		return fmt.Errorf("%s.command: a name that ends in - and a number is that of an agent's task; give the agent another one", key)
	case a.Command[0] == "":
		return fmt.Errorf("%s.command: has no program", key)
	case strings.ContainsRune(strings.Join(a.Command, ""), 0):
		return fmt.Errorf("%s.command: holds a NUL", key)
	}
	for _, own := range []struct {
		key string
		set bool
	}{{"prompt", a.Prompt != ""}, {"model", a.Model != ""}, {"tools", a.Tools != nil}, {"max_turns", a.MaxTurns != 0}, {"max_tokens", a.MaxTokens != 0}, {"max_cost", a.MaxCost != 0}} {
		if own.set {
			return fmt.Errorf("%s.%s: an agent with a command has its own; set it there", key, own.key)
		}
	}
	return cmp.Or(oneOf(key+".reach", cmp.Or(a.Reach, "free"), "read", "project", "free"), variables(key+".env", a.Env))
}

// variables checks the names of environment variables.
func variables(key string, env map[string]string) error {
	for name := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("%s: %q cannot be a variable", key, name)
		}
	}
	return nil
}

// Kinds of providers, the values of kind under [provider.NAME].
const (
	KindAnthropic = "anthropic"
	KindOpenAI    = "openai" // and every server that speaks its chat completions
	KindGoogle    = "google" // through its OpenAI-compatible endpoint
	KindOffline   = "offline"
	KindScripted  = "scripted"
)

// ProviderKinds are all of them.
var ProviderKinds = []string{KindAnthropic, KindOpenAI, KindGoogle, KindOffline, KindScripted}

func (p Provider) check(key string) error {
	if err := oneOf(key+".kind", p.Kind, ProviderKinds...); err != nil {
		return err
	}
	if p.BaseURL != "" {
		if err := address(key+".base_url", p.BaseURL, "api_key_env"); err != nil {
			return err
		}
	}
	if p.Kind == KindScripted && p.Script == "" {
		return fmt.Errorf("%s.script: a scripted provider needs a file", key)
	}
	if p.ContextWindow < 0 {
		return fmt.Errorf("%s.context_window: %d tokens is less than 0", key, p.ContextWindow)
	}
	if err := spans(key+".silence", cmp.Or(p.Silence, Duration{time.Second}), time.Second, 24*time.Hour); err != nil {
		return err
	}
	if p.API != "" {
		if p.Kind != KindOpenAI {
			return fmt.Errorf("%s.api: is for the kind openai, and this is %s", key, p.Kind)
		}
		if err := oneOf(key+".api", p.API, "chat", "responses"); err != nil {
			return err
		}
	}
	for name, value := range p.Headers {
		if !headerName().MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%s.headers: %q cannot be a header of a request", key, name)
		}
	}
	return cmp.Or(dollars(key+".price_input", p.PriceInput), dollars(key+".price_output", p.PriceOutput),
		dollars(key+".price_cache_read", p.PriceCacheRead), dollars(key+".price_cache_write", p.PriceCacheWrite))
}

var headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]+$`) })

// maxDollars bounds amounts of money; a larger one is a typing error.
const maxDollars = 1e6

func dollars(key string, amount float64) error {
	if !(amount >= 0 && amount <= maxDollars) { // also false for NaN
		return fmt.Errorf("%s: %v is outside 0 to %v US dollars", key, amount, maxDollars)
	}
	return nil
}

// checkModel checks a model's name, "provider/name".
func (c *Config) checkModel(key, model string) error {
	provider, name, _ := strings.Cut(model, "/")
	switch kind := c.Providers[provider].Kind; {
	case kind == "":
		return fmt.Errorf("%s: no provider %q; there is %s", key, provider, strings.Join(slices.Sorted(maps.Keys(c.Providers)), ", "))
	case name == "" && kind != "offline":
		return fmt.Errorf("%s: %q names a provider but no model; write %q", key, model, provider+"/NAME")
	}
	return nil
}

const maxServerName = 32 // bytes

func (c *Config) checkMCP() error {
	for _, name := range slices.Sorted(maps.Keys(c.MCP)) {
		m, key := c.MCP[name], "mcp."+name
		switch {
		case len(name) > maxServerName || !serverName().MatchString(name):
			return fmt.Errorf("%s: a server's name is 1 to 32 letters, digits, - and single _ between them", key)
		case m.Command == "" && m.URL == "":
			return fmt.Errorf("%s: needs a command or a url", key)
		case m.Command != "" && m.URL != "":
			return fmt.Errorf("%s.url: there is a command already; a server has one or the other", key)
		case m.URL != "" && (len(m.Args)+len(m.Env)+len(m.Write) > 0 || m.Reach != ""):
			return fmt.Errorf("%s.url: args, env, reach and write are for a command", key)
		case m.Reach != "" && m.Reach != "project" && len(m.Write) > 0:
			return fmt.Errorf("%s.write: is for the reach project, and this is %s", key, m.Reach)
		case m.Command != "" && len(m.Headers) > 0:
			return fmt.Errorf("%s.headers: are for a url", key)
		}
		if m.URL != "" {
			if err := address(key+".url", m.URL, "headers"); err != nil {
				return err
			}
		}
		if err := cmp.Or(oneOf(key+".reach", cmp.Or(m.Reach, "project"), "read", "project", "free"), paths(key+".write", m.Write), variables(key+".env", m.Env)); err != nil {
			return err
		}
	}
	return nil
}

// paths checks a list of files and folders: absolute, or below ~.
func paths(key string, list []string) error {
	for _, p := range list {
		switch rest, inHome := strings.CutPrefix(p, "~/"); {
		case p == "":
			return fmt.Errorf("%s: has an empty path", key)
		case strings.ContainsRune(p, 0):
			return fmt.Errorf("%s: %q holds a NUL byte", key, p)
		case filepath.Clean(p) == "/", p == "~", inHome && (filepath.Clean(rest) == "." || !filepath.IsLocal(rest)):
			return fmt.Errorf("%s: %q is too wide; name what lies in it", key, p)
		case !filepath.IsAbs(p) && !inHome:
			return fmt.Errorf("%s: %q is neither an absolute path nor one that begins with ~/", key, p)
		}
	}
	return nil
}

// address checks an http or https URL; instead names the key for content that must not be in it, such as a password.
func address(key, text, instead string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s: %q is not an http or https address", key, text)
	}
	if u.User != nil {
		return fmt.Errorf("%s: a password does not belong in the file; use %s", key, instead)
	}
	return nil
}

func oneOf(key, got string, allowed ...string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return fmt.Errorf("%s: %q is none of %s", key, got, strings.Join(allowed, ", "))
}
