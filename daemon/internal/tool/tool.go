// Package tool holds what an agent may call, one file each: bash, jobs, read, write, edit, glob, grep, fetch, task, todo; the
// tools of MCP servers are in package mcp.
// A tool says what a call would do before it does it, so that the agent can ask the policy; it judges nothing itself.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/risk/secret"
)

// Spec is what the model is told.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object
	Example     string          // correct arguments, for who got them wrong
	ReadOnly    bool            // changes nothing by itself, so calls may run side by side
}

// A Tool is safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Plan checks the arguments and says what Run would do with them now. A bad argument is an error that names it and
	// goes back to the model. Plan changes nothing.
	Plan(ctx context.Context, env Env, args json.RawMessage) (Action, error)
	// Run does it. approved is the Action that was judged; a tool whose world changed meanwhile returns ErrChanged and
	// has done nothing, and is planned and judged again. live receives output while it is produced, from one goroutine
	// at a time, and may be nil. Other errors are the tool's failure in words for the model. When ctx ends, Run stops
	// what it began, waits for the proof, and returns.
	Run(ctx context.Context, env Env, args json.RawMessage, approved Action, live func([]byte)) (Result, error)
}

// ErrChanged says that cwd, shell state or file are no longer those that were judged. Nothing was done.
var ErrChanged = errors.New("tool: what was approved is no longer what would run")

// Action is what a call would do, in the policy's terms. At most one of Command, the paths and Server is set; none for
// calls without effects of their own.
type Action struct {
	Command     string // shell text
	Cwd         string
	StateDigest string
	Private     bool     // Command would run in a shell of the daemon's, not in the user's
	AgentShell  bool     // that shell is an agent's alone: see ShellPlace.Agent
	Background  bool     // Command would go on behind the call
	Reach       string   // planned: what the agent asked for, "" = what it needs; approved: what the kernel holds Command to
	ReachWhy    string   // the agent's reason for that
	Reads       []string // absolute, cleaned paths, symlinks resolved as far as they exist
	Writes      []string
	Network     string // a host, for fetch
	Server      string // an MCP server that is called: what that does is not known here
	// ServerPassing says that the server is a client's: no permission outlives the session.
	ServerPassing bool
	Preview       Preview // what the user is shown
	FileDigest    string  // for write and edit: lower-case hex SHA-256 of the file when it was planned, "" = absent
}

// Preview shows what an Action would change.
type Preview struct {
	Type    string // none, diff, text
	Content string
}

// Result is what goes back to the model and to the screen. Content is valid UTF-8, and bounded by the tool
// (MaxWhole), then for the model by Fit.
type Result struct {
	Content       string
	IsError       bool
	Status        string // success, error, cancelled, timeout; "" = success, or error where IsError is set
	ExitCode      *int
	Cwd           string // after it, for bash in the agent's own shell
	FilesModified []string
	TruncatedBy   int64 // bytes left out of Content
	SpoolPath     string
	Images        []*picture.Image // beside Content, which names them
	Duration      time.Duration    // 0: the caller measures
}

// Env is where a tool works. The agent makes one for each turn and sets ExecutionID in a copy for each call.
type Env struct {
	Cwd         string        // for file tools; bash asks Shell
	Spool       string        // folder for results that are too long for the model
	Secrets     secret.Table  // files that grep leaves out, unless it was given one of them
	ExecutionID string        // of this call
	Shell       Shell         // nil: there is none to run commands in
	Private     Shell         // bash's shell for private calls; nil: only Shell
	Held        Held          // runs what looks at changed files; nil: only what needs no program does
	CheckTime   time.Duration // that Held has for one change; 0 = 3 s
	Files       *FileLog      // what this session has read and changed; for "read before edit" and undo
	Delegate    Delegate      // task's way to start another agent; nil where an agent may not
	Todo        *TodoList
	Recall      func(ctx context.Context, query string) (string, error) // searches the conversation; nil: it is not stored
	Jobs        *job.Manager                                            // nil: there are no background jobs
	Session     string                                                  // whose jobs an agent sees
	Agent       string                                                  // of a sub-agent: its name, whose jobs alone it ends
}

// Shell is what the bash tool needs of a shell: the user's, through a lease, or a private one. The hub implements it.
type Shell interface {
	// Where tells, without taking the shell, where a command would run now.
	Where(ctx context.Context) (ShellPlace, error)
	// Run takes the shell, checks that cwd and digest are those of approved (else ErrChanged, shell given back), runs the
	// command and gives the shell back. Errors are those of taking it (ErrNoShell, *BusyError, context ends); whatever
	// the command itself did is in the CommandResult. live is for a private shell; whoever shows a user's own shell has its
	// output already.
	Run(ctx context.Context, c Command, live func([]byte)) (CommandResult, error)
}

// ShellPlace is where a shell stands.
type ShellPlace struct {
	Cwd         string
	StateDigest string
	Private     bool // a shell of the daemon's: nobody sees its output unless it is streamed to them
	Agent       bool // a private shell of one agent, which is held to a bound; not one in the place of the user's
}

// Command is one command for a Shell.
type Command struct {
	ExecutionID string
	Text        string
	Cwd         string // "" = the shell's own
	Approved    ShellPlace
	Timeout     time.Duration // of the command itself, from its start
	Reach       string        // what the kernel is to hold it to: read, project; else it runs in the shell itself
	Background  bool          // it becomes a job, which nobody waits for
	Wake        string        // when that wakes its agent: see job.Spec
	Agent       string        // whose it is; "" = the turn's own
	Purpose     string        // shown to the user while the shell is lent
}

// CommandResult is what a command did.
type CommandResult struct {
	Output    []byte // rendered as a person would have read it, bounded
	Truncated int64  // bytes
	SpoolPath string
	ExitCode  *int
	Signal    string
	Status    string // ok, cancelled, timeout, shell_exited, refused
	Cwd       string
	Duration  time.Duration
	Leftovers []string // "pid command"
	Notes     []string
	Job       *job.Info // that it became; nil: none
	Continued bool      // it began in the foreground, in a private shell, and goes on as Job; Cwd is of a new shell, in the state before
}

// ErrNoShell says that no client lends a shell any more.
var ErrNoShell = errors.New("no shell to borrow: the user's window is closed")

// A BrokenError reports that the user's shell cannot be lent, until they mend it.
type BrokenError struct{ Why string }

func (e *BrokenError) Error() string { return "the user's shell was not lent: " + e.Why }

// A BusyError reports who has the shell, after waiting for it in vain.
type BusyError struct {
	Holder string
	Held   time.Duration // zero where that is not known
	Waited time.Duration
	Why    string // what the user does with it; "" = not known
}

func (e *BusyError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "the user"
	}
	held := fmt.Sprintf("%s has held it for %s", holder, e.Held.Round(time.Second))
	switch {
	case e.Why != "" && e.Held == 0: // of the last key nobody knows since when
		held = e.Why
	case e.Why != "":
		held += " (" + e.Why + ")"
	}
	return fmt.Sprintf("the shell is taken: %s; waited %s for it", held, e.Waited.Round(time.Second))
}

// Delegate starts other agents. The agent package implements it.
type Delegate interface {
	// Delegate runs one agent to its end and returns what it answered; it may wait for a free place first. The error
	// says why there is no answer (no such role, cancelled, the agent failed); the Report then holds what there is.
	Delegate(ctx context.Context, a Assignment) (Report, error)
}

// Assignment is work for another agent.
type Assignment struct {
	Role   string // engineer, reviewer or a user's own
	Title  string // a few words for the screen
	Prompt string // all the agent will know
}

// Report is what an agent handed back.
type Report struct {
	Agent  string // the name it ran under, such as engineer-1
	Answer string
}
