// Package config is the settings file: its keys, defaults and checks, and how it is shown. It is a leaf: it reads one file
// and does not know what the settings are used for.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Config is the settings in force. Default returns a valid one; the zero value is not.
type Config struct {
	Model      string   // "provider/name"; "offline" needs nothing
	Fallback   []string // models that replace one that stays overloaded, for the rest of a turn
	Small      string   // "provider/name" for quick tasks, such as the explorer's; "" = Model
	Compactor  string   // "provider/name" that writes summaries; "" = the conversation's own
	Thinking   string   // how much a model thinks before it answers: off, low, medium, high; "" = the model's default
	Providers  map[string]Provider
	Lease      Lease
	Shell      Shell
	Policy     Policy
	Compaction Compaction
	Limits     Limits
	Daemon     Daemon
	Agents     map[string]Agent
	MCP        map[string]MCP
}

// Provider is one source of models. Keys are not stored in the file: APIKeyEnv names a variable, APIKeyCommand a command
// whose first line of output is the key.
type Provider struct {
	Kind          string `toml:"kind"` // anthropic, openai, google, offline, scripted
	BaseURL       string `toml:"base_url"`
	APIKeyEnv     string `toml:"api_key_env"`
	APIKeyCommand string `toml:"api_key_command"`
	Script        string `toml:"script"`         // scripted: a JSON file
	ContextWindow int    `toml:"context_window"` // tokens; 0 = as the provider reports
	Silence       span   `toml:"silence"`        // how long a model may send nothing before the request is given up; 0 = a default by kind of server
	Images        *bool  `toml:"images"`         // false: images are never sent to its models; else they are, until one refuses them
	API           string `toml:"api"`            // openai: chat, responses; "" = responses at OpenAI itself, chat elsewhere
	// Headers and Query are added to each request; ${NAME} in a value is that variable of the daemon's environment.
	Headers map[string]string `toml:"headers"`
	Query   map[string]string `toml:"query"`
	// Prices are US dollars for a million tokens; 0 = what is known of the model.
	PriceInput      float64 `toml:"price_input"`
	PriceOutput     float64 `toml:"price_output"`
	PriceCacheRead  float64 `toml:"price_cache_read"`
	PriceCacheWrite float64 `toml:"price_cache_write"`
}

type Lease struct {
	Wait time.Duration // how long an agent queues for the shell
	Term time.Duration // how long it may hold the shell without a running command
	// Patience is how long a non-empty input line of the user must be unchanged before an agent may borrow the shell.
	Patience time.Duration
}

type Shell struct {
	Path           string        // the user's shell; "" = $SHELL where it is one that can be lent, else bash
	SwitchKey      string        // switches between the shell and AI mode, beside Tab on an empty line; see Key
	CommandTimeout time.Duration // of a leased command without one of its own; at most MaxCommandTimeout
	OutputHead     int           // bytes of rendered output kept from the start
	OutputTail     int           // bytes kept from the end
	Pass           []string      // variables that look like secrets and are passed to private shells nevertheless
}

// MaxCommandTimeout bounds every leased command.
const MaxCommandTimeout = time.Hour

type Policy struct {
	Mode       string // plan, ask, auto
	Allow      []string
	Deny       []string
	Secrets    []string // secret files and folders, absolute or below ~, beside those of the built-in table
	NotSecrets []string // files and folders of the built-in table that are not secret
	Rules      []Rule
	// ProjectWrite are folders, absolute or below ~, in which commands with the reach project may write, beside their
	// project and the caches of build tools.
	ProjectWrite []string
	// ProjectHosts are the other hosts that such commands may reach: NAME, or *.NAME for all below it, either with :PORT.
	ProjectHosts []string
}

// Rule is a policy rule with examples (commands, paths or hosts, by its kind) that it must and must not match.
type Rule struct {
	Decision string   `toml:"decision"` // allow, ask, deny
	Pattern  string   `toml:"pattern"`
	Match    []string `toml:"match"`
	NoMatch  []string `toml:"no_match"`
}

type Compaction struct {
	Threshold float64 // share of the context window at which a conversation is compacted
}

type Limits struct {
	RequestsPerSecond int // per connection
	RunningTurns      int // per connection, queued ones count
	Jobs              int // background jobs that run at once
	MaxAgents         int // sub-agents of one turn at once
	MessageBytes      int // of one message of a foreign protocol
	// CostTurn and CostDay are US dollars that a turn, and all turns of a day, may cost before the user is asked; 0 = no bound.
	CostTurn, CostDay float64
}

type Daemon struct {
	IdleExit time.Duration // how long without client, turn and lease before the daemon exits; 0 = never
	LogLevel string        // debug, info, warn, error
	Debug    bool          // serve /debug/pprof on debug.sock in the runtime folder
}

// Agent is a user-defined role or, with a Command, an agent of another program that is hosted: it speaks the Agent Client Protocol
// on its standard input and output. A value of Env may contain ${NAME}: that variable of the daemon's environment.
type Agent struct {
	Description string `toml:"description"`

	Command []string          `toml:"command"` // the program, a path or a name on PATH, and its arguments
	Env     map[string]string `toml:"env"`
	// Reach is what Command is held to: read, project, free; "" = free. With free its commands run in the user's shell, else in
	// a private one.
	Reach string `toml:"reach"`

	Model  string   `toml:"model"`
	Prompt string   `toml:"prompt"`
	Tools  []string `toml:"tools"`

	MaxTurns  int     `toml:"max_turns"`  // model calls of one turn; 0 = as usual
	MaxTokens int     `toml:"max_tokens"` // of one answer; 0 = the model's own bound
	MaxCost   float64 `toml:"max_cost"`   // US dollars of one turn; 0 = no bound of its own
	Timeout   span    `toml:"timeout"`    // of one turn; 0 = none
	Mode      string  `toml:"mode"`       // plan, ask or auto: the stricter of this and the session's counts; "" = the session's
	Worktree  bool    `toml:"worktree"`   // as a sub-agent it works in a git working tree of its own
}

// MCP is a tool server. Command, Args and Env start one that speaks on its standard input and output; URL and Headers are
// for one that runs. A value of Env and Headers may contain ${NAME}: that variable of the daemon's environment.
type MCP struct {
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     map[string]string `toml:"env"`
	URL     string            `toml:"url"`
	Headers map[string]string `toml:"headers"`
	Reach   string            `toml:"reach"` // what Command is held to: read, project, free; "" = project where the kernel can
	Write   []string          `toml:"write"` // folders, absolute or below ~, in which it may write with the reach project
}

// Default returns the settings that apply without a file.
func Default() Config {
	return Config{
		Model: "offline",
		Providers: map[string]Provider{
			"anthropic": {Kind: "anthropic", APIKeyEnv: "ANTHROPIC_API_KEY"},
			"openai":    {Kind: "openai", APIKeyEnv: "OPENAI_API_KEY"},
			"google":    {Kind: "google", APIKeyEnv: "GEMINI_API_KEY"},
			"ollama":    {Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1"},
			"offline":   {Kind: "offline"},
		},
		Lease:      Lease{Wait: time.Minute, Term: 30 * time.Second, Patience: time.Second},
		Shell:      Shell{CommandTimeout: 2 * time.Minute, OutputHead: 32 << 10, OutputTail: 32 << 10},
		Policy:     Policy{Mode: "ask"},
		Compaction: Compaction{Threshold: 0.8},
		Limits:     Limits{RequestsPerSecond: 100, RunningTurns: 3, Jobs: 16, MaxAgents: 4, MessageBytes: 10 << 20},
		Daemon:     Daemon{IdleExit: 30 * time.Minute, LogLevel: "info"},
		Agents:     map[string]Agent{},
		MCP:        map[string]MCP{},
	}
}

// file is the file's structure; nil means the default.
type file struct {
	Model    *string `toml:"model"`
	Thinking *string `toml:"thinking"`
	Models   struct {
		Default    *string `toml:"default"`
		Small      *string `toml:"small"`
		Compaction *string `toml:"compaction"`
	} `toml:"models"`
	Fallback []string            `toml:"fallback"`
	Provider map[string]Provider `toml:"provider"`
	Lease    struct {
		Wait     *span `toml:"wait"`
		Term     *span `toml:"term"`
		Patience *span `toml:"patience"`
	} `toml:"lease"`
	Shell struct {
		Path           *string  `toml:"path"`
		SwitchKey      *string  `toml:"switch_key"`
		CommandTimeout *span    `toml:"command_timeout"`
		OutputHead     *int     `toml:"output_head"`
		OutputTail     *int     `toml:"output_tail"`
		Pass           []string `toml:"pass"`
	} `toml:"shell"`
	Policy struct {
		Mode       *string  `toml:"mode"`
		Allow      []string `toml:"allow"`
		Deny       []string `toml:"deny"`
		Secrets    []string `toml:"secrets"`
		NotSecrets []string `toml:"not_secrets"`
		Rules      []Rule   `toml:"rules"`
		Project    struct {
			Write []string `toml:"write"`
			Hosts []string `toml:"hosts"`
		} `toml:"project"`
	} `toml:"policy"`
	Compaction struct {
		Threshold *float64 `toml:"threshold"`
	} `toml:"compaction"`
	Limits struct {
		RequestsPerSecond *int     `toml:"requests_per_second"`
		RunningTurns      *int     `toml:"running_turns"`
		Jobs              *int     `toml:"jobs"`
		MaxAgents         *int     `toml:"max_agents"`
		MessageBytes      *int     `toml:"message_bytes"`
		CostTurn          *float64 `toml:"cost_usd_turn"`
		CostDay           *float64 `toml:"cost_usd_day"`
	} `toml:"limits"`
	Daemon struct {
		IdleExit *span   `toml:"idle_exit"`
		LogLevel *string `toml:"log_level"`
		Debug    *bool   `toml:"debug"`
	} `toml:"daemon"`
	Agents map[string]Agent `toml:"agents"`
	Agent  map[string]Agent `toml:"agent"` // the same
	MCP    map[string]MCP   `toml:"mcp"`
}

// span is a duration written as text, such as "30s".
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"30s\" or \"2m\"", text)
	}
	*s = span(d)
	return nil
}

// An Error reports what is wrong in the file and where. Row and Column count from 1; 0 = the file as a whole.
type Error struct {
	Path        string
	Row, Column int
	Message     string
	remedy      string // "" = the general one
}

func (e *Error) Error() string {
	if e.Row == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Row, e.Column, e.Message)
}

// Hint returns what to do next.
func (e *Error) Hint() string {
	return cmp.Or(e.remedy, "`sublet config show` lists every key with its default")
}

// maxFile bounds the size of the file in bytes.
const maxFile = 1 << 20

// Load reads path; if there is no file it returns Default. It returns an *Error, and no Config, for a file that is invalid or
// that others may write. checks are run after those of this package, and return the first invalid value as
// "key: what is wrong". Load never writes the file.
func Load(path string, checks ...func(*Config) error) (Config, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, &Error{Path: path, Message: err.Error()}
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file, in case path is replaced meanwhile
	if err != nil {
		return Config{}, &Error{Path: path, Message: err.Error()}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := checkOwner(path, info.Mode(), int(st.Uid), os.Geteuid()); err != nil {
			return Config{}, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Config{}, &Error{Path: path, Message: err.Error()}
	}
	if len(text) > maxFile {
		return Config{}, &Error{Path: path, Message: fmt.Sprintf("it is longer than the limit of %d bytes", maxFile)}
	}
	return Parse(path, text, checks...)
}

// checkOwner refuses a file that a user other than me (a user id) may write: settings name commands to run and rules that
// allow. Root does not count as another user, since system configuration managers write as root.
func checkOwner(path string, mode fs.FileMode, owner, me int) error {
	switch {
	case owner != me && owner != 0:
		return &Error{
			Path: path, Message: fmt.Sprintf("belongs to user %d, not to you", owner),
			remedy: "copy it and move the copy there, or set SUBLET_CONFIG to a file of yours",
		}
	case mode.Perm()&0o022 != 0:
		return &Error{
			Path: path, Message: fmt.Sprintf("others may write to it (mode %04o)", mode.Perm()), remedy: "run `chmod go-w " + path + "`",
		}
	}
	return nil
}

// Parse is Load for text that was already read; path is only for errors.
func Parse(path string, text []byte, checks ...func(*Config) error) (Config, error) {
	var f file
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Config{}, located(path, err)
	}
	if f.Model != nil && f.Models.Default != nil {
		return Config{}, &Error{Path: path, Row: rowOf(text, "models.default"), Column: 1, Message: "models.default: there is `model` already; write one of the two"}
	}
	for name := range f.Agent {
		if _, ok := f.Agents[name]; ok {
			return Config{}, &Error{Path: path, Message: "agent." + name + ": there is agents." + name + " already; write one of the two"}
		}
	}
	c := f.merge(Default())
	for _, check := range append([]func(*Config) error{(*Config).check}, checks...) {
		if err := check(&c); err != nil {
			key, message, _ := strings.Cut(err.Error(), ": ")
			return Config{}, &Error{Path: path, Row: rowOf(text, key), Column: 1, Message: key + ": " + message}
		}
	}
	return c, nil
}

// located converts an error of the TOML decoder, with its position, into an *Error.
func located(path string, err error) *Error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		row, col := unknown.Errors[0].Position()
		key := unknown.Errors[0].Key()
		message := "no such key: " + strings.Join(key, ".")
		if key[len(key)-1] == "api_key" {
			message += "; keys are not written here: api_key_env names the variable that holds one, api_key_command a command that prints it"
		}
		return &Error{Path: path, Row: row, Column: col, Message: message}
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, col := bad.Position()
		return &Error{Path: path, Row: row, Column: col, Message: strings.TrimPrefix(bad.Error(), "toml: ")}
	}
	return &Error{Path: path, Message: err.Error()}
}

// rowOf returns the line that sets a dotted key, 0 if it is not found.
func rowOf(text []byte, key string) int {
	table, entries := "", map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.ReplaceAll(strings.TrimSpace(line), `"`, "")
		name, _, sets := strings.Cut(line, "=")
		if header, ok := strings.CutPrefix(line, "["); ok {
			table, _, _ = strings.Cut(strings.TrimPrefix(header, "["), "]")
			if name, ok := strings.CutPrefix(table, "agent."); ok {
				table = "agents." + name
			}
			if strings.HasPrefix(header, "[") { // one of an array of tables
				table, entries[table] = fmt.Sprintf("%s[%d]", table, entries[table]), entries[table]+1
			}
		} else if sets && strings.TrimPrefix(table+"."+strings.TrimSpace(name), ".") == key {
			return i + 1
		}
	}
	return 0
}

// merge returns c with what the file sets.
func (f *file) merge(c Config) Config {
	set(&c.Model, f.Models.Default)
	set(&c.Model, f.Model)
	set(&c.Small, f.Models.Small)
	set(&c.Compactor, f.Models.Compaction)
	set(&c.Thinking, f.Thinking)
	c.Fallback = f.Fallback
	// A [provider.NAME] replaces the default one of that name, but takes over a kind that it does not name and, for the same
	// kind, the variable of the key: [provider.openai] with a base_url is enough.
	for name, p := range f.Provider {
		if known, ok := c.Providers[name]; ok && p.Kind == "" {
			p.Kind = known.Kind
		}
		if known, ok := c.Providers[name]; ok && p.APIKeyEnv == "" && p.APIKeyCommand == "" && p.Kind == known.Kind {
			p.APIKeyEnv = known.APIKeyEnv
		}
		c.Providers[name] = p
	}
	set((*span)(&c.Lease.Wait), f.Lease.Wait)
	set((*span)(&c.Lease.Term), f.Lease.Term)
	set((*span)(&c.Lease.Patience), f.Lease.Patience)
	set(&c.Shell.Path, f.Shell.Path)
	set(&c.Shell.SwitchKey, f.Shell.SwitchKey)
	set((*span)(&c.Shell.CommandTimeout), f.Shell.CommandTimeout)
	set(&c.Shell.OutputHead, f.Shell.OutputHead)
	set(&c.Shell.OutputTail, f.Shell.OutputTail)
	c.Shell.Pass = f.Shell.Pass
	set(&c.Policy.Mode, f.Policy.Mode)
	c.Policy.Allow, c.Policy.Deny, c.Policy.Rules = f.Policy.Allow, f.Policy.Deny, f.Policy.Rules
	c.Policy.Secrets, c.Policy.NotSecrets = f.Policy.Secrets, f.Policy.NotSecrets
	c.Policy.ProjectWrite, c.Policy.ProjectHosts = f.Policy.Project.Write, f.Policy.Project.Hosts
	set(&c.Compaction.Threshold, f.Compaction.Threshold)
	set(&c.Limits.RequestsPerSecond, f.Limits.RequestsPerSecond)
	set(&c.Limits.RunningTurns, f.Limits.RunningTurns)
	set(&c.Limits.Jobs, f.Limits.Jobs)
	set(&c.Limits.MaxAgents, f.Limits.MaxAgents)
	set(&c.Limits.MessageBytes, f.Limits.MessageBytes)
	set(&c.Limits.CostTurn, f.Limits.CostTurn)
	set(&c.Limits.CostDay, f.Limits.CostDay)
	set((*span)(&c.Daemon.IdleExit), f.Daemon.IdleExit)
	set(&c.Daemon.LogLevel, f.Daemon.LogLevel)
	set(&c.Daemon.Debug, f.Daemon.Debug)
	maps.Copy(c.Agents, f.Agents)
	maps.Copy(c.Agents, f.Agent)
	for name, m := range f.MCP {
		c.MCP[name] = m
	}
	return c
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
