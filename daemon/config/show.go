package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// page builds a settings file. It does not use text/template, which finds methods by name and thereby keeps the linker from
// removing unused methods.
type page struct{ strings.Builder }

// table writes a table's header; name is in TOML syntax.
func (p *page) table(name string) { fmt.Fprintf(p, "\n[%s]\n", name) }

// key writes a key with its value and a comment.
func (p *page) key(name string, value any, comment string) {
	switch v := value.(type) {
	case string:
		value = quote(v)
	case time.Duration:
		value = quote(v.String())
	case []string:
		value = quoteList(v)
	case map[string]string:
		value = quoteTable(v)
	}
	fmt.Fprintf(p, "%s = %v", name, value)
	if comment != "" {
		p.WriteString("  # " + comment)
	}
	p.WriteByte('\n')
}

// some writes a key unless its value is zero.
func (p *page) some(name string, value any) {
	if v := reflect.ValueOf(value); !v.IsZero() && (v.Kind() != reflect.Slice && v.Kind() != reflect.Map || v.Len() > 0) {
		p.key(name, reflect.Indirect(v).Interface(), "")
	}
}

// Show returns c as a commented file that Load reads back to the same Config.
func Show(c Config) string {
	var p page
	p.WriteString("# The model that answers: \"provider/name\". \"offline\" is built in and needs no network.\n")
	p.key("model", c.Model, "")
	p.key("fallback", c.Fallback, "models that replace it, in this order, for the rest of a turn, if it stays overloaded")
	p.key("thinking", c.Thinking, `how much it thinks before it answers: off, low, medium, high; "" = the model's default`)

	p.table("models")
	p.key("small", c.Small, `for quick tasks, such as the explorer's; "" = the model above`)
	p.key("compaction", c.Compactor, `writes the summaries of long conversations; "" = the conversation's own`)

	p.table("lease")
	p.key("wait", c.Lease.Wait, "how long an agent queues for your shell before it gives up")
	p.key("term", c.Lease.Term, "how long it may keep the shell without running a command")
	p.key("patience", c.Lease.Patience, "how long a half-typed line must stay unchanged before an agent may borrow the shell")

	p.table("shell")
	p.key("path", c.Shell.Path, `your shell; "" = $SHELL, or bash`)
	p.key("switch_key", c.Shell.SwitchKey, `does on an empty line what Tab does, and leads back: "ctrl+g", "alt+s", "f12"; "" = none`)
	p.key("command_timeout", c.Shell.CommandTimeout, "of an agent's command that names none; at most 1h")
	p.key("output_head", c.Shell.OutputHead, "bytes of a command's output kept from the start; the model is given 24 KiB in all")
	p.key("output_tail", c.Shell.OutputTail, "and from the end")
	p.key("pass", c.Shell.Pass, "variables that look like secrets, given to the agents' private shells all the same")

	p.table("policy")
	p.key("mode", c.Policy.Mode, "plan: only reading runs; ask: the rest is asked; auto: medium runs too")
	p.key("allow", c.Policy.Allow, "rules, as a question offers them")
	p.key("deny", c.Policy.Deny, "deny wins")
	p.key("secrets", c.Policy.Secrets, "files and folders with secrets, beside the built-in ones: absolute, or below ~")
	p.key("not_secrets", c.Policy.NotSecrets, "and those that have none")
	for _, r := range c.Policy.Rules {
		p.WriteString("\n[[policy.rules]]  # a rule with examples that it must and must not match; they are checked\n")
		p.key("decision", r.Decision, "")
		p.key("pattern", r.Pattern, "")
		p.key("match", r.Match, "")
		p.key("no_match", r.NoMatch, "")
	}

	p.table("policy.project")
	p.key("write", c.Policy.ProjectWrite, "folders in which commands held to project may write, beside their project and build caches")

	p.key("hosts", c.Policy.ProjectHosts, `other hosts that such commands reach: "proxy.golang.org", "*.npmjs.org", "example.com:8443"`)

	p.table("compaction")
	p.key("threshold", c.Compaction.Threshold, "share of the context window at which a long conversation is folded")

	p.table("limits")
	p.key("requests_per_second", c.Limits.RequestsPerSecond, "per connection")
	p.key("running_turns", c.Limits.RunningTurns, "per connection; queued ones count")
	p.key("jobs", c.Limits.Jobs, "background jobs that run at once")
	p.key("max_agents", c.Limits.MaxAgents, "agents that one turn may have started, at once")
	p.key("message_bytes", c.Limits.MessageBytes, "of one message to sublet serve")
	p.key("cost_usd_turn", c.Limits.CostTurn, "US dollars that a turn may cost before you are asked; 0 = no bound")
	p.key("cost_usd_day", c.Limits.CostDay, "and all turns of a day")

	p.table("daemon")
	p.key("idle_exit", c.Daemon.IdleExit, `the daemon exits after this time without a client, turn, lease or job; "0s" = never`)
	p.key("log_level", c.Daemon.LogLevel, "debug, info, warn, error")
	p.key("debug", c.Daemon.Debug, "profiles at /debug/pprof on debug.sock, beside the daemon's socket")

	p.WriteString("\n# Where models come from. Never write keys here: api_key_env names a variable, api_key_command prints the key.")
	for _, m := range sorted(c.Providers) {
		p.table("provider." + bareKey(m.Name))
		p.key("kind", m.Item.Kind, "")
		p.some("base_url", m.Item.BaseURL)
		p.some("api_key_env", m.Item.APIKeyEnv)
		p.some("api_key_command", m.Item.APIKeyCommand)
		p.some("script", m.Item.Script)
		p.some("images", m.Item.Images)
		p.some("context_window", m.Item.ContextWindow)
		p.some("api", m.Item.API)
		p.some("headers", m.Item.Headers)
		p.some("query", m.Item.Query)
		p.some("price_input", m.Item.PriceInput)
		p.some("price_output", m.Item.PriceOutput)
		p.some("price_cache_read", m.Item.PriceCacheRead)
		p.some("price_cache_write", m.Item.PriceCacheWrite)
		p.some("silence", time.Duration(m.Item.Silence))
	}
	for _, a := range sorted(c.Agents) {
		p.table("agents." + bareKey(a.Name))
		p.key("description", a.Item.Description, "")
		if p.some("command", a.Item.Command); len(a.Item.Command) > 0 {
			p.some("env", a.Item.Env)
			p.some("reach", a.Item.Reach)
			p.some("timeout", time.Duration(a.Item.Timeout))
			p.some("mode", a.Item.Mode)
			p.some("worktree", a.Item.Worktree)
			continue
		}
		p.key("model", a.Item.Model, "")
		p.key("prompt", a.Item.Prompt, "")
		if a.Item.Tools != nil { // [] has no tools, nil has all
			p.key("tools", a.Item.Tools, "")
		}
		p.some("max_turns", a.Item.MaxTurns)
		p.some("max_tokens", a.Item.MaxTokens)
		p.some("max_cost", a.Item.MaxCost)
		p.some("timeout", time.Duration(a.Item.Timeout))
		p.some("mode", a.Item.Mode)
		p.some("worktree", a.Item.Worktree)
	}

	p.WriteString("\n# Servers whose tools agents have beside the built-in ones, as mcp__NAME__TOOL: command, args, env,\n# reach (read, project or free) and write, or url, headers.")
	for _, s := range sorted(c.MCP) {
		p.table("mcp." + bareKey(s.Name))
		p.some("command", s.Item.Command)
		p.some("args", s.Item.Args)
		p.some("env", s.Item.Env)
		p.some("url", s.Item.URL)
		p.some("headers", s.Item.Headers)
		p.some("reach", s.Item.Reach)
		p.some("write", s.Item.Write)
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

type named[T any] struct {
	Name string
	Item T
}

func sorted[T any](m map[string]T) []named[T] {
	list := make([]named[T], 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, named[T]{name, m[name]})
	}
	return list
}

// bareKey returns a table's name, quoted if TOML requires it.
func bareKey(name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// quote returns s as a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func quoteTable(m map[string]string) string {
	var pairs []string
	for _, v := range sorted(m) {
		pairs = append(pairs, bareKey(v.Name)+" = "+quote(v.Item))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}
