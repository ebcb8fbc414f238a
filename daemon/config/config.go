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
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Config is the settings in force. Default returns a valid one; the zero value is not. The comment of a field is what Show prints
// above its key.
type Config struct {
	Model      string              `toml:"model" comment:"The model that answers: provider/name. offline is built in and needs no network."`
	Fallback   []string            `toml:"fallback" comment:"Models that replace it, in this order, for the rest of a turn, if it stays overloaded."`
	Thinking   string              `toml:"thinking" comment:"How much it thinks before it answers: off, low, medium, high; empty: the model's default."`
	Models     Models              `toml:"models"`
	Lease      Lease               `toml:"lease"`
	Shell      Shell               `toml:"shell"`
	Policy     Policy              `toml:"policy"`
	Compaction Compaction          `toml:"compaction"`
	Limits     Limits              `toml:"limits"`
	Daemon     Daemon              `toml:"daemon"`
	Providers  map[string]Provider `toml:"provider" comment:"Where models come from. Never write keys here: api_key_env names a variable, api_key_command prints the key."`
	Agents     map[string]Agent    `toml:"agents,omitempty"`
	MCP        map[string]MCP      `toml:"mcp,omitempty" comment:"Servers whose tools agents have beside the built-in ones, as mcp__NAME__TOOL."`
}

// Models are other models than the one that answers, as "provider/name".
type Models struct {
	Small      string `toml:"small" comment:"For quick tasks, such as the explorer's; empty: the model above."`
	Compaction string `toml:"compaction" comment:"Writes the summaries of long conversations; empty: the conversation's own."`
}

// Provider is one source of models. Keys are not stored in the file: APIKeyEnv names a variable, APIKeyCommand a command
// whose first line of output is the key.
type Provider struct {
	Kind          string   `toml:"kind"` // anthropic, openai, google, offline, scripted
	BaseURL       string   `toml:"base_url,omitempty"`
	APIKeyEnv     string   `toml:"api_key_env,omitempty"`
	APIKeyCommand string   `toml:"api_key_command,omitempty"`
	Script        string   `toml:"script,omitempty"`         // scripted: a JSON file
	ContextWindow int      `toml:"context_window,omitempty"` // tokens; 0 = as the provider reports
	Silence       Duration `toml:"silence,omitempty"`        // how long a model may send nothing before the request is given up; 0 = a default by kind of server
	Images        *bool    `toml:"images,omitempty"`         // false: images are never sent to its models; else they are, until one refuses them
	API           string   `toml:"api,omitempty"`            // openai: chat, responses; "" = responses at OpenAI itself, chat elsewhere
	// Headers and Query are added to each request; ${NAME} in a value is that variable of the daemon's environment.
	Headers map[string]string `toml:"headers,omitempty,inline"`
	Query   map[string]string `toml:"query,omitempty,inline"`
	// Prices are US dollars for a million tokens; 0 = what is known of the model.
	PriceInput      float64 `toml:"price_input,omitempty"`
	PriceOutput     float64 `toml:"price_output,omitempty"`
	PriceCacheRead  float64 `toml:"price_cache_read,omitempty"`
	PriceCacheWrite float64 `toml:"price_cache_write,omitempty"`
}

type Lease struct {
	Wait     Duration `toml:"wait" comment:"How long an agent queues for your shell before it gives up."`
	Term     Duration `toml:"term" comment:"How long it may keep the shell without running a command."`
	Patience Duration `toml:"patience" comment:"How long a half-typed line must stay unchanged before an agent may borrow the shell."`
}

type Shell struct {
	Path           string   `toml:"path" comment:"Your shell; empty: $SHELL where it is one that can be lent, else bash."`
	SwitchKey      string   `toml:"switch_key" comment:"Does on an empty line what Tab does, and leads back: ctrl+g, alt+s, f12; empty: none."` // see Key
	CommandTimeout Duration `toml:"command_timeout" comment:"Of an agent's command that names none; at most 1h."`
	OutputHead     int      `toml:"output_head" comment:"Bytes of a command's output kept from the start; the model is given 24 KiB in all."`
	OutputTail     int      `toml:"output_tail" comment:"And from the end."`
	Pass           []string `toml:"pass" comment:"Variables that look like secrets, given to the agents' private shells all the same."`
}

// MaxCommandTimeout bounds every leased command.
const MaxCommandTimeout = time.Hour

type Policy struct {
	Mode       string   `toml:"mode" comment:"plan: only reading runs; ask: the rest is asked; auto: medium runs too."`
	Allow      []string `toml:"allow" comment:"Rules, as a question offers them."`
	Deny       []string `toml:"deny" comment:"Deny wins."`
	Secrets    []string `toml:"secrets" comment:"Files and folders with secrets, beside the built-in ones: absolute, or below ~."`
	NotSecrets []string `toml:"not_secrets" comment:"And those that have none."`
	Rules      []Rule   `toml:"rules,omitempty" comment:"Rules with examples that they must and must not match; they are checked."`
	// Project is what commands with the reach project may do besides using their project and the caches of build tools.
	Project struct {
		Write []string `toml:"write" comment:"Folders, absolute or below ~, in which commands held to project may write."`
		Hosts []string `toml:"hosts" comment:"Other hosts that such commands reach: proxy.golang.org, *.npmjs.org, example.com:8443."`
	} `toml:"project"`
}

// Rule is a policy rule with examples (commands, paths or hosts, by its kind) that it must and must not match.
type Rule struct {
	Decision string   `toml:"decision"` // allow, ask, deny
	Pattern  string   `toml:"pattern"`
	Match    []string `toml:"match"`
	NoMatch  []string `toml:"no_match"`
}

type Compaction struct {
	Threshold float64 `toml:"threshold" comment:"Share of the context window at which a long conversation is compacted."`
}

type Limits struct {
	RequestsPerSecond int      `toml:"requests_per_second" comment:"Per connection."`
	RunningTurns      int      `toml:"running_turns" comment:"Per connection; queued ones count."`
	Jobs              int      `toml:"jobs" comment:"Background jobs that run at once."`
	MaxAgents         int      `toml:"max_agents" comment:"Agents that one turn may have started, at once."`
	MessageBytes      int      `toml:"message_bytes" comment:"Of one message to sublet serve."`
	CheckTime         Duration `toml:"check_time" comment:"Of the checks of one file that an agent changes: go vet, a language server."`
	CostTurn          float64  `toml:"cost_usd_turn" comment:"US dollars that a turn may cost before you are asked; 0: no bound."`
	CostDay           float64  `toml:"cost_usd_day" comment:"And all turns of a day."`
}

type Daemon struct {
	IdleExit Duration `toml:"idle_exit" comment:"The daemon exits after this time without a client, turn, lease or job; 0s: never."`
	LogLevel string   `toml:"log_level" comment:"debug, info, warn, error."`
	Debug    bool     `toml:"debug" comment:"Profiles at /debug/pprof on debug.sock, beside the daemon's socket."`
}

// Agent is a user-defined role or, with a Command, an agent of another program that is hosted: it speaks the Agent Client Protocol
// on its standard input and output. A value of Env may contain ${NAME}: that variable of the daemon's environment.
type Agent struct {
	Description string `toml:"description,omitempty"`

	Command []string          `toml:"command,omitzero"` // the program, a path or a name on PATH, and its arguments
	Env     map[string]string `toml:"env,omitempty,inline"`
	// Reach is what Command is held to: read, project, free; "" = free. With free its commands run in the user's shell, else in
	// a private one.
	Reach string `toml:"reach,omitempty"`

	Model  string   `toml:"model,omitempty"`
	Prompt string   `toml:"prompt,omitempty"`
	Tools  []string `toml:"tools,omitzero"` // nil = all

	MaxTurns  int      `toml:"max_turns,omitempty"`  // model calls of one turn; 0 = as usual
	MaxTokens int      `toml:"max_tokens,omitempty"` // of one answer; 0 = the model's own bound
	MaxCost   float64  `toml:"max_cost,omitempty"`   // US dollars of one turn; 0 = no bound of its own
	Timeout   Duration `toml:"timeout,omitempty"`    // of one turn; 0 = none
	Mode      string   `toml:"mode,omitempty"`       // plan, ask or auto: the stricter of this and the session's counts; "" = the session's
	Worktree  bool     `toml:"worktree,omitempty"`   // as a sub-agent it works in a git working tree of its own
}

// MCP is a tool server. Command, Args and Env start one that speaks on its standard input and output; URL and Headers are
// for one that runs. A value of Env and Headers may contain ${NAME}: that variable of the daemon's environment.
type MCP struct {
	Command string            `toml:"command,omitempty"`
	Args    []string          `toml:"args,omitempty"`
	Env     map[string]string `toml:"env,omitempty,inline"`
	URL     string            `toml:"url,omitempty"`
	Headers map[string]string `toml:"headers,omitempty,inline"`
	Reach   string            `toml:"reach,omitempty"` // what Command is held to: read, project, free; "" = project where the kernel can
	Write   []string          `toml:"write,omitempty"` // folders, absolute or below ~, in which it may write with the reach project
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
		Lease:      Lease{Wait: Duration{time.Minute}, Term: Duration{30 * time.Second}, Patience: Duration{time.Second}},
		Shell:      Shell{CommandTimeout: Duration{2 * time.Minute}, OutputHead: 32 << 10, OutputTail: 32 << 10},
		Policy:     Policy{Mode: "ask"},
		Compaction: Compaction{Threshold: 0.8},
		Limits:     Limits{RequestsPerSecond: 100, RunningTurns: 3, Jobs: 16, MaxAgents: 4, MessageBytes: 10 << 20, CheckTime: Duration{3 * time.Second}},
		Daemon:     Daemon{IdleExit: Duration{30 * time.Minute}, LogLevel: "info"},
		Agents:     map[string]Agent{},
		MCP:        map[string]MCP{},
	}
}

// aDuration is what a Duration is in the file, in words.
const aDuration = `a duration such as "30s" or "2m"`

// Duration is written as text, such as "30s".
type Duration struct{ time.Duration }

// bare is what a number, or true or false, is read as: spans refuses it, since the decoder knows no place for an error here.
var bare = Duration{-1}

func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	_, notNumber := strconv.ParseFloat(string(text), 64)
	_, notBool := strconv.ParseBool(string(text))
	switch {
	case err == nil:
		d.Duration = parsed
	case notNumber == nil || notBool == nil:
		*d = bare
	default:
		return fmt.Errorf("want %s, found %q", aDuration, text)
	}
	return nil
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

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
	return cmp.Or(e.remedy, "`sublet config edit` opens the file")
}

// maxFile bounds the size of the file in bytes.
const maxFile = 1 << 20

// Load reads path; if there is no file it returns Default. It returns an *Error, and no Config, for a file that is invalid or
// that others may write. checks are run after those of this package, and return the first invalid value as
// "key: what is wrong". Load never writes the file.
func Load(path string, checks ...func(*Config) error) (Config, error) {
	text, err := read(path, maxFile, func(info fs.FileInfo) error {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return checkOwner(path, info.Mode(), int(st.Uid), os.Geteuid())
		}
		return nil
	})
	bad, refused := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Default(), nil
	case refused:
		return Config{}, bad
	case err != nil:
		return Config{}, &Error{Path: path, Message: err.Error()}
	}
	return Parse(path, text, checks...)
}

// read reads a file of at most most bytes, unless check refuses it; it does not block on a pipe.
func read(path string, most int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file, in case path is replaced meanwhile
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it is longer than the limit of %d bytes", most)
	}
	return text, err
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

// file is the file's structure: Config, with other names for some keys.
type file struct {
	Config
	Models struct {
		Models
		Default string `toml:"default"` // Model
	} `toml:"models"`
	Agent map[string]Agent `toml:"agent"` // Agents
}

// Parse is Load for text that was already read; path is only for errors.
func Parse(path string, text []byte, checks ...func(*Config) error) (Config, error) {
	c := Default()
	standard := c.Providers
	f := file{Config: c}
	f.Model, f.Providers = "", map[string]Provider{}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		return Config{}, located(path, err)
	}
	if f.Model != "" && f.Models.Default != "" {
		return Config{}, &Error{Path: path, Row: rowOf(text, "models.default"), Column: 1, Message: "models.default: there is `model` already; write one of the two"}
	}
	for name, a := range f.Agent {
		if _, ok := f.Agents[name]; ok {
			return Config{}, &Error{Path: path, Message: "agent." + name + ": there is agents." + name + " already; write one of the two"}
		}
		f.Agents[name] = a
	}
	f.Config.Model, f.Config.Models = cmp.Or(f.Model, f.Models.Default, c.Model), f.Models.Models
	// A [provider.NAME] replaces the default one of that name, but takes over a kind that it does not name and, for the same
	// kind, the variable of the key: [provider.openai] with a base_url is enough.
	for name, known := range standard {
		p, named := f.Providers[name]
		if !named {
			p = known
		}
		p.Kind = cmp.Or(p.Kind, known.Kind)
		if p.APIKeyEnv == "" && p.APIKeyCommand == "" && p.Kind == known.Kind {
			p.APIKeyEnv = known.APIKeyEnv
		}
		f.Providers[name] = p
	}
	c = f.Config
	for _, check := range append([]func(*Config) error{(*Config).check}, checks...) {
		if err := check(&c); err != nil {
			key, message, _ := strings.Cut(err.Error(), ": ")
			return Config{}, &Error{Path: path, Row: rowOf(text, key), Column: 1, Message: key + ": " + message}
		}
	}
	return c, nil
}

// Show returns c as a commented file that Load reads back to the same Config.
func Show(c Config) (string, error) {
	text, err := toml.Marshal(c)
	return string(text), err
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
		message := inWords(strings.TrimPrefix(bad.Error(), "toml: "))
		if len(bad.Key()) > 0 {
			message = strings.Join(bad.Key(), ".") + ": " + message
		}
		return &Error{Path: path, Row: row, Column: col, Message: message}
	}
	return &Error{Path: path, Message: err.Error()}
}

// wrongType matches the decoder's message for a value of another type: the name of its type in TOML, and of the wanted one in Go.
var wrongType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^cannot decode TOML ([\w ]+) into (?:struct field .* of type )?(.+)$`)
})

// inWords replaces names of types in a message of the decoder by what a user writes in the file.
func inWords(message string) string {
	m := wrongType().FindStringSubmatch(message)
	if m == nil {
		return message
	}
	found, ok := map[string]string{
		"string": "a text", "integer": "a whole number", "float": "a number with a point", "boolean": "true or false", "array": "a list", "table": "a table", "inline table": "a table",
	}[m[1]]
	if !ok {
		found = "a date or time"
	}
	wanted, ok := map[string]string{
		"string": `a text such as "x"`, "int": "a whole number", "float64": "a number", "bool": "true or false", "config.Duration": aDuration,
	}[m[2]]
	switch {
	case ok:
	case strings.HasPrefix(m[2], "[]string"):
		wanted = `a list such as ["x", "y"]`
	case strings.HasPrefix(m[2], "[]"):
		wanted = "tables in [[ ]]"
	default:
		wanted = "a table with keys of its own"
	}
	return "want " + wanted + ", found " + found
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
