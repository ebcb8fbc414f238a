package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"
)

// page is every key with its comment; Show fills in the values, and a test parses the result back.
var page = template.Must(template.New("config").Funcs(template.FuncMap{
	"q": quote, "list": quoteList, "table": quoteTable, "d": func(d time.Duration) string { return quote(d.String()) },
}).Parse(`# The model that answers: "provider/name". "offline" is built in and needs no network.
model = {{q .Model}}

[lease]
wait = {{d .Lease.Wait}}  # how long an agent queues for your shell before it is told who has it
term = {{d .Lease.Term}}  # how long it may keep the shell without running a command

[shell]
command_timeout = {{d .Shell.CommandTimeout}}  # of an agent's command that names none; at most 1h
output_head = {{.Shell.OutputHead}}  # bytes of a command's output kept for the model from the start
output_tail = {{.Shell.OutputTail}}  # and from the end
pass = {{list .Shell.Pass}}  # variables that look like secrets, given to the agents' private shells all the same

[policy]
mode = {{q .Policy.Mode}}  # plan: only reading runs; ask: the rest is asked; auto: medium runs too
allow = {{list .Policy.Allow}}  # rules, as a question offers them
deny = {{list .Policy.Deny}}  # deny wins
{{range .Policy.Rules}}
[[policy.rules]]  # one with examples, which are checked: what it must and must not be about
decision = {{q .Decision}}
pattern = {{q .Pattern}}
match = {{list .Match}}
no_match = {{list .NoMatch}}
{{end}}
[compaction]
threshold = {{.Compaction.Threshold}}  # share of the context window at which a long conversation is folded

[limits]
requests_per_second = {{.Limits.RequestsPerSecond}}  # per connection
running_turns = {{.Limits.RunningTurns}}  # per connection; queued ones count
max_agents = {{.Limits.MaxAgents}}  # engineers and reviewers of one turn at once
message_bytes = {{.Limits.MessageBytes}}  # of one message to sublet serve

[daemon]
idle_exit = {{d .Daemon.IdleExit}}  # without client, turn or lease; "0s" = never
log_level = {{q .Daemon.LogLevel}}  # debug, info, warn, error
debug = {{.Daemon.Debug}}  # profiles at /debug/pprof on debug.sock, beside the daemon's socket

# Where models come from. Keys never stand here: api_key_env names a variable, api_key_command prints the key.
{{range .Provider}}[provider.{{.Name}}]
kind = {{q .Kind}}
{{if .BaseURL}}base_url = {{q .BaseURL}}
{{end}}{{if .APIKeyEnv}}api_key_env = {{q .APIKeyEnv}}
{{end}}{{if .APIKeyCommand}}api_key_command = {{q .APIKeyCommand}}
{{end}}{{if .Script}}script = {{q .Script}}
{{end}}{{with .Images}}images = {{.}}
{{end}}{{if .ContextWindow}}context_window = {{.ContextWindow}}
{{end}}
{{end}}{{range .Agent}}[agents.{{.Name}}]
description = {{q .Description}}
model = {{q .Model}}
prompt = {{q .Prompt}}
tools = {{list .Tools}}

{{end}}# Servers whose tools agents have beside the built-in ones, as mcp__NAME__TOOL: command, args, env or url, headers.
{{range .Server}}[mcp.{{.Name}}]
{{if .Command}}command = {{q .Command}}
{{end}}{{if .Args}}args = {{list .Args}}
{{end}}{{if .Env}}env = {{table .Env}}
{{end}}{{if .URL}}url = {{q .URL}}
{{end}}{{if .Headers}}headers = {{table .Headers}}
{{end}}
{{end}}`))

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

// Show writes c as a commented file that Load reads back to the same Config.
func Show(c Config) string {
	type provider struct {
		Name string
		Provider
	}
	type agent struct {
		Name string
		Agent
	}
	type server struct {
		Name string
		MCP
	}
	data := struct {
		Config
		Provider []provider
		Agent    []agent
		Server   []server
	}{Config: c}
	for _, p := range sorted(c.Providers) {
		data.Provider = append(data.Provider, provider{bareKey(p.Name), p.Item})
	}
	for _, a := range sorted(c.Agents) {
		data.Agent = append(data.Agent, agent{bareKey(a.Name), a.Item})
	}
	for _, m := range sorted(c.MCP) {
		data.Server = append(data.Server, server{bareKey(m.Name), m.Item})
	}
	var out strings.Builder
	if err := page.Execute(&out, data); err != nil {
		panic(fmt.Sprintf("config page: %v", err)) // the template and its data are constant in shape: TestShowReadsBack
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// bareKey quotes a table's name where TOML needs it.
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

// quote writes a TOML basic string.
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
