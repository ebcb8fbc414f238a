// Package risk turns a command, or a file tool's action, into a verdict: level, reasons with spans, effects, whether it
// can be undone. It is a leaf: text and facts in, verdict out; it runs nothing and reads no file. What a
// verdict allows is left to package policy.
//
// # The pipeline
//
// Analyze works in steps, each of them in a file of its own:
//
//	dialect.go   what zsh and fish take in another way than bash
//	gate.go      length, nesting, control bytes and texts that parser and shell read differently; before the parser
//	walk.go      every node of the syntax tree, with the state that one command leaves to the next (cwd, variables)
//	word.go      what a word is when it can be known: literals, assigned values, $HOME, ~, braces
//	name.go      what a command name means: aliases, functions, ./name, PATH shadowing
//	wrap.go      wrappers (env, sudo, xargs, find -exec …) opened up, so that what they run is judged
//	budget.go    the steps that all of this may take, and what of a node is kept so that it is walked once
//	code.go      code given inline to interpreters (sh -c, python -c, awk, sed …)
//	programs*.go the table of programs: what each does, by sub-command and option
//	paths.go     where a path is: temporary, project, build output, home, credential, system, device …
//	env.go       variables whose value makes a later command do something else
//	combine.go   what only several commands together mean: download and run, secret and network
//
// # Levels
//
// Low reads, locally. Medium changes something inside the project that can be undone, or is everyday development (which
// runs the project's own code), or reads the network without sending anything of the user's. High leaves the project,
// touches the system, needs privilege, sends, runs code that cannot be seen, reads secrets or is hard to undo. Critical
// is irreversible or wide loss, devices, persistence, credentials that leave, download and run, and rewriting shared
// history. What is not understood is never Low.
package risk

import "fmt"

// Level of a verdict. What is not understood is never Low.
type Level int

const (
	Low      Level = 1
	Medium   Level = 2
	High     Level = 3
	Critical Level = 4
)

// String is the level's name on the wire: low, medium, high or critical.
func (l Level) String() string {
	switch l {
	case Low:
		return "low"
	case Medium:
		return "medium"
	case High:
		return "high"
	case Critical:
		return "critical"
	}
	return "unknown"
}

// ParseLevel reads what String writes.
func ParseLevel(s string) (Level, error) {
	for l := Low; l <= Critical; l++ {
		if l.String() == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("risk level %q is none of low, medium, high, critical", s)
}

// Context is what a command would meet.
type Context struct {
	Cwd         string
	Home        string
	ProjectRoot string // git top level or Cwd
	// Tracked tells whether a file of the project is in version control, and so can be had back; nil: the project is in
	// none. It is called for files that a command would delete, overwrite or run, at most MaxTracked times a text.
	Tracked   func(path string) bool
	Dialect   string            // of the shell that the text is for: bash, zsh, fish; "" = bash
	Aliases   map[string]string // of the live shell; nil = a fresh shell
	Functions map[string]string // name to body
	// What hash and enable made of names in the live shell; see the fields of these names in wire.ShellState.
	Hashed   map[string]string
	Disabled []string
	Env      map[string]string // names matter (PATH, GIT_*); values of secrets are not needed
	// Shadow tells which file a program's name runs, where that lies in a folder of PATH in which agents write unasked; ""
	// = it lies elsewhere. nil: PATH has no such folder. It is called at most MaxTracked times a text.
	Shadow func(name string) string
	// Own are the processes of the daemon, of windows and of their shells: what ends one of these ends a lease, and more.
	Own      []int
	Poisoned []string // variables, aliases or functions a lease changed and the user has not accepted
}

// MaxTracked bounds the calls of Context.Tracked, and those of Context.Shadow, during one Analyze.
const MaxTracked = 32

// Verdict is what was found. Reasons are ordered by where they stand in the text.
type Verdict struct {
	Level      Level
	Reasons    []Reason
	Reversible bool
	UndoHint   string
	// Commands are the simple commands found, with argv as far as it is known, for rules to match.
	Commands []Command
	// Rest is the highest level of what belongs to no simple command and so can be covered by no rule on one:
	// redirections, assignments, combinations, a text that could not be read.
	Rest Level
	// Unread says that part of the text was not examined: too long, nested too deeply, too complicated or not understood
	// by the parser.
	// It is asked in every mode.
	Unread bool
	// Reach is the least in which it can do what it is for; see needs in reach.go.
	Reach Reach
	// Targets are the files and hosts that are touched, as far as they are known, for rules on paths and hosts.
	Targets []Target
}

// Target is a file or a host that a text touches.
type Target struct {
	Effect Effect
	Path   string // absolute; "" with an empty Host: not known
	Tree   bool   // all below Path too
	Host   string
}

// Reason is one thing that was found.
type Reason struct {
	Text   string
	Span   *Span // bytes of the text; nil = the whole
	Effect Effect
	Level  Level
}

// Span is a half-open range of bytes of the analyzed text.
type Span struct{ Start, End int }

// Effect is what a command does to the world, as it is written on the wire and in rules.
type Effect string

const (
	Read        Effect = "read"
	Write       Effect = "write"
	Delete      Effect = "delete"
	RunCode     Effect = "run-code"
	Network     Effect = "network"
	Privilege   Effect = "privilege"
	Signal      Effect = "signal"
	ShellState  Effect = "shell-state"
	Persistence Effect = "persistence"
	Secret      Effect = "secret"
	History     Effect = "history"
	Unknown     Effect = "unknown"
)

// Effects lists every effect, in the order of the wire's documentation.
func Effects() []Effect {
	return []Effect{Read, Write, Delete, RunCode, Network, Privilege, Signal, ShellState, Persistence, Secret, History, Unknown}
}

// Command is one simple command of a text after unwrapping. A wrapper and what it runs are two commands.
type Command struct {
	Argv    []string // resolved words; a word that could not be resolved is "" and Opaque is set
	Opaque  bool     // some word, or what would run, is not known
	Level   Level
	Effects []Effect
	Span    Span
	Cwd     string // where it would run; "" when that is not known
	// Name is the program without its folder; "" when it is not known. Rules that deny match it instead of Argv[0].
	Name string
	// Verb is the number of leading words of Argv that say what is done (1: `make`, 2: `git push`, 3: `docker compose up`);
	// 0 when options stand between them.
	Verb int
	// Plain is Argv without the global options before the sub-command (`git -C d push x` is `git push x`), nil when it
	// is Argv itself. Rules that deny or ask match either.
	Plain []string
	// Runs says that the command runs what its arguments name or hold: a wrapper or an interpreter. No rule with a
	// wildcard may allow it.
	Runs bool
}

// FileAction is what a tool would do that is no shell.
type FileAction struct {
	Reads, Writes []string // absolute, symlinks resolved
	Network       string   // host
	Server        string   // an MCP server whose tool is called
}
