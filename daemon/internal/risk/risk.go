// Package risk turns a command, or a file tool's action, into a verdict: a level, reasons with spans, effects, the reach
// that it needs, and whether it can be undone. It runs nothing and reads no file. What a verdict allows is left to package
// policy; how the shell reads a text is in bashread, and what is known of programs, variables and places in programs.
//
// # Levels
//
// Low reads, locally. Medium changes something in the project that can be undone, or is everyday development, or reads the
// network. High leaves the project, touches the system, needs privilege, sends, runs code that cannot be seen, reads
// secrets or is hard to undo. Critical is irreversible or wide loss, devices, persistence, credentials that leave, download
// and run, and rewriting shared history. What is not understood is never Low.
package risk

import (
	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
	"sublet/daemon/internal/risk/secret"
)

// The levels, effects and spans of a verdict.
type (
	Level  = programs.Level
	Effect = programs.Effect
	Span   = bashread.Span
)

const (
	Low      = programs.Low
	Medium   = programs.Medium
	High     = programs.High
	Critical = programs.Critical

	Read        = programs.Read
	Write       = programs.Write
	Delete      = programs.Delete
	RunCode     = programs.RunCode
	Network     = programs.Network
	Privilege   = programs.Privilege
	Signal      = programs.Signal
	ShellState  = programs.ShellState
	Persistence = programs.Persistence
	Secret      = programs.Secret
	History     = programs.History
	Unknown     = programs.Unknown
)

// Context is what a command would meet.
type Context struct {
	Cwd         string
	Home        string
	ProjectRoot string // git top level or Cwd
	// Tracked reports whether a file of the project is in version control, and so can be had back; nil: the project is in
	// none. It is called for files that a command would delete, overwrite or run, at most MaxTracked times a text.
	Tracked   func(path string) bool
	Dialect   string            // the name of the shell that the text is for; "" = bash
	Aliases   map[string]string // of the live shell; nil = a fresh shell
	Functions map[string]string // name to body
	// What hash and enable made of names in the live shell; see the fields of these names in wire.ShellState.
	Hashed   map[string]string
	Disabled []string
	Env      map[string]string // names matter (PATH, GIT_*); values of secrets are not needed
	// Shadow returns the file that a program's name runs, where that lies in a folder of PATH in which agents write unasked, or in
	// one that is relative; "" = it lies elsewhere. nil: PATH has no such folder.
	Shadow func(name string) string
	// Own are the processes of the daemon, of windows and of their shells: what ends one of these ends a lease, and more.
	Own []int
	// Venv reports whether a file is the unchanged activate script of a virtual environment of the project; nil: none is.
	Venv func(path string) bool
	// Written returns the text of a shell script that an agent wrote and nobody changed since; nil: there are none. It is called
	// at most maxScripts times a text.
	Written func(path string) (text string, ok bool)
	// Made reports whether an agent made a file and nobody else changed it since; nil: none did. It is called as Tracked is.
	Made     func(path string) bool
	Writable []string     // folders outside the project in which a command with the reach project may write too
	Hosts    []string     // that such a command reaches, as the settings have them
	Secrets  secret.Table // the zero value: what the user said nothing of
	Poisoned []string     // variables, aliases or functions a lease changed and the user has not accepted
}

// MaxTracked bounds the calls of Context.Tracked during one Analyze.
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
	// Unread reports that part of the text was not examined: too long, nested too deeply, too complicated or not understood
	// by the parser. It runs unasked only where the kernel holds it to reading.
	Unread bool
	// Reach is the least in which it can do what it is for; see needs in reach.go.
	Reach Reach
	// Scripts are the files that were judged by their text.
	Scripts []Script
	// Targets are the files and hosts that are touched, as far as they are known, for rules on paths and hosts.
	Targets []Target
}

// Target is a file or a host that a text touches.
type Target struct {
	Effect Effect
	Path   string // absolute; "" with an empty Host: not known
	Tree   bool   // all below Path too
	Host   string
	by     int // index into Verdict.Commands; -1: no command
}

// Reason is one thing that was found.
type Reason struct {
	Text   string
	Span   *Span // bytes of the text; nil = the whole
	Effect Effect
	Level  Level
}

// Command is one simple command of a text after unwrapping. A wrapper and what it runs are two commands.
type Command struct {
	Argv    []string // resolved words; a word that could not be resolved is "" and Opaque is set
	Opaque  bool     // some word, or what would run, is not known
	Level   Level
	Effects []Effect
	Cwd     string // where it would run; "" when that is not known
	// Name is the program without its folder; "" when it is not known. Rules that deny match it instead of Argv[0].
	Name string
	// Verb is the number of leading words of Argv that say what is done (1: `make`, 2: `git push`, 3: `docker compose up`);
	// 0 when options stand between them.
	Verb int
	// Plain is Argv without the global options before the sub-command (`git -C d push x` is `git push x`), nil when it
	// is Argv itself. Rules that deny or ask match either.
	Plain []string
	// Runs reports that the command runs what its arguments name or hold: a wrapper or an interpreter. No rule with a
	// wildcard may allow it.
	Runs bool
	// Beyond reports that it needs what no confined command has, such as a network, even if its level is low.
	Beyond bool
}

// FileAction is what a tool other than a shell would do.
type FileAction struct {
	Reads, Writes []string // absolute, symlinks resolved
	Network       string   // host
	Server        string   // an MCP server whose tool is called
}
