// Package tool contains the tools of agents, one file each: bash, jobs, read, write, edit, glob, grep, fetch, plan, recall,
// task, todo; those of MCP servers are in package mcp.
// A tool describes the effects of a call before it runs, so that the agent can ask the policy; it judges nothing itself.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/lease/shell"
)

// Spec describes a tool to the model.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object
	Example     string          // correct arguments, for error messages
	Closed      bool            // the names in Schema are all there are, and its integers are not negative
	ReadOnly    bool            // has no effects of its own, so calls may run concurrently
}

// A Tool is safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Plan validates the arguments and returns what Run would do now. An invalid argument is an error that names it and goes to
	// the model. Plan changes nothing.
	Plan(ctx context.Context, env Env, args json.RawMessage) (Action, error)
	// Run executes the call. approved is the Action that was judged; if something it depends on changed since, Run does
	// nothing and returns ErrChanged, and the call is planned and judged again. live receives output as it is produced, never
	// concurrently, and may be nil. Other errors are failures in words for the model. When ctx ends, Run stops what it
	// started, waits for its end, and returns.
	Run(ctx context.Context, env Env, args json.RawMessage, approved Action, live func([]byte)) (Result, error)
}

// ErrChanged reports that cwd, shell state or file are not those that were judged. Nothing was done.
var ErrChanged = errors.New("tool: what was approved is no longer what would run")

// Action is the effects of a call, in the policy's terms. At most one of Command, the paths and Server is set; none for
// calls without effects of their own.
type Action struct {
	Command     string // shell text
	Cwd         string
	StateDigest string
	Private     bool     // Command would run in a private shell, not in the user's
	AgentShell  bool     // that shell belongs to one agent: see ShellPlace.Agent
	Facts       Facts    // of that shell; nil: no shell that is lent would run Command
	Background  bool     // Command would run as a background job
	Reach       string   // planned: what the agent asked for, "" = what it needs; approved: what the kernel holds Command to
	ReachWhy    string   // the agent's reason for that
	Approval    Approval // approved: what is remembered of the decision about Command
	Reads       []string // absolute, clean paths, with symbolic links resolved as far as they exist
	Writes      []string
	Network     string // a host, for fetch
	Server      string // the MCP server that is called, with unknown effects
	// ServerOfClient reports that the server is a client's: no permission outlives the session.
	ServerOfClient bool
	Preview        Preview // for the user
	FileDigest     string  // for write and edit: lower-case hex SHA-256 of the file when it was planned, "" = absent
}

// An Approval is what is remembered of the decision that a command may run.
type Approval struct {
	Person  bool        // a person allowed it, having seen what it does
	Literal bool        // it changes the shell by what can be read in its text, and starts nothing
	Holds   func() bool // reports whether the files that it was judged by still are what they were; nil: there are none
}

// Preview shows what an Action would change.
type Preview struct {
	Type        string // none, diff, text
	Content     string
	plus, minus int // lines of a diff, those included that Content leaves out
}

// Result is the result for the model and the screen. Content is valid UTF-8, bounded by the tool (MaxWhole) and then for
// the model by Fit.
type Result struct {
	Content       string
	IsError       bool
	Status        string // success, error, cancelled, timeout; "" = success, or error where IsError is set
	ExitCode      *int
	Cwd           string // afterwards, for bash in the agent's own shell
	FilesModified []string
	TruncatedBy   int64 // bytes left out of Content
	SpoolPath     string
	Images        []*picture.Image // in addition to Content, which contains their names
	Duration      time.Duration    // 0: the caller measures
}

// Env is the environment of a call. The agent makes one for each turn and sets ExecutionID in a copy for each call.
type Env struct {
	Cwd         string                         // for file tools; bash uses the shell's
	Spool       string                         // folder for results that are too long for the model
	MaxResult   int                            // bytes of a result for the model; 0 = the constant of that name
	Secrets     secret.Table                   // secret files, which grep leaves out unless one is its path
	ExecutionID string                         // of this call
	Shell       Shell                          // nil: there is no shell for commands
	Private     Shell                          // bash's shell for private calls; nil: only Shell
	Held        Held                           // runs checkers of changed files; nil: only checks without a program
	Languages   Languages                      // check changed files beyond that; nil: none
	Opened      func(path string, text []byte) // prepares Languages for changes of a file that was read; it does not block; nil: none
	CheckTime   time.Duration                  // bound for the checks of one change
	Files       *FileLog                       // what this session has read and changed; for "read before edit" and undo
	Delegate    Delegate                       // starts other agents; nil if the agent may not
	Todo        *TodoList
	Recall      func(ctx context.Context, query string) (string, error) // searches the conversation; nil: it is not stored
	Propose     Propose                                                 // asks the user about a plan; nil: this is not plan mode
	Jobs        *job.Manager                                            // nil: the agent has no background jobs
	Session     string                                                  // whose jobs the agent sees
	Agent       string                                                  // name of a sub-agent or foreign agent, which can end only its own jobs; "" = may end all
	NoKill      error                                                   // why no job may be ended; nil: it may
}

// Propose asks the user about the steps of a plan. If they accept it, plan mode is over. An error means that there is no answer.
type Propose func(ctx context.Context, p Proposed) (Proposal, error)

// Proposed is a plan.
type Proposed struct {
	ExecutionID string
	Arguments   json.RawMessage // of the call
	Steps       []string
}

// Shell is what the bash tool needs of a shell: the user's, through a lease, or a private one. The hub implements it.
type Shell interface {
	// Where returns where a command would run now. It acquires no lease.
	Where(ctx context.Context) (ShellPlace, error)
	// Run acquires the shell, checks that cwd and digest are those of approved (else it returns ErrChanged), runs the command
	// and releases the shell. Errors are those of acquiring it (ErrNoShell, *BusyError, the end of ctx); the command's own
	// failures are in the CommandResult. live is for a private shell only: the output of a user's shell is on its screen.
	Run(ctx context.Context, c Command, live func([]byte)) (CommandResult, error)
}

// ShellPlace describes a shell and its directory.
type ShellPlace struct {
	Cwd         string
	StateDigest string
	Private     bool // a private shell, whose output is visible only if it is streamed
	Agent       bool // a private shell of one agent, which is confined; not one that replaces the user's
	Facts       Facts
}

// Facts fills in what judging a command needs to know of the shell that it was planned in. It returns false if the shell's aliases and
// functions are not known, as when it has changed since.
type Facts func(ctx context.Context, c *risk.Context) (known bool)

// Command is one command for a Shell.
type Command struct {
	ExecutionID string
	Text        string
	Cwd         string // "" = the shell's own
	Approved    ShellPlace
	Approval    Approval
	Timeout     time.Duration // of the command, from its start
	Reach       string        // the confinement: read, project; otherwise it runs in the shell itself
	Background  bool          // it becomes a background job
	Continue    bool          // it becomes one when Timeout is over, where it can
	Wake        string        // when the job wakes its agent: see wire.Job
	Agent       string        // whose it is; "" = the turn's own
	Purpose     string        // shown to the user while the shell is lent
}

// CommandResult is the result of a command.
type CommandResult struct {
	shell.Result
	Job       *job.Info // the background job; nil: none
	Continued bool      // it began in the foreground and continues as Job; Dir is that of a private shell's successor, with the state before
}

// ErrNoShell reports that no client lends a shell.
var ErrNoShell = errors.New("no shell to borrow: the user's window is closed")

// A BrokenError reports that the user's shell cannot be lent until they repair it.
type BrokenError struct{ Why string }

func (e *BrokenError) Error() string { return "the user's shell was not lent: " + e.Why }

// A BusyError reports who uses the shell after a wait that ended without a lease.
type BusyError struct {
	Holder string
	Held   time.Duration // zero if it is not known
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
	case e.Why != "" && e.Held == 0: // the user is typing
		held = e.Why
	case e.Why != "":
		held += " (" + e.Why + ")"
	}
	return fmt.Sprintf("the shell is taken: %s; waited %s for it", held, e.Waited.Round(time.Second))
}

// Delegate starts other agents. The agent package implements it.
type Delegate interface {
	// Delegate runs one agent to its end and returns its report; it may wait for a free place first. If there is no answer,
	// the error is the reason (no such role, cancelled, the agent failed), and the Report contains what is known. With
	// a.Background it returns once the agent has begun.
	Delegate(ctx context.Context, a Assignment) (Report, error)
	// Report returns the newest report of an agent that has ended, or one that says for how long the agent has worked.
	Report(ctx context.Context, agent string) (Report, error)
	// Stop starts to end an agent that works.
	Stop(agent string) error
}

// Assignment is work for another agent.
type Assignment struct {
	Agent      string // an earlier agent that is asked further; "" = a new one
	Role       string // of a new one: engineer, reviewer or a user's own
	Title      string // a few words for the screen
	Prompt     string // the only text that the agent gets
	Background bool   // it outlives the turn
}

// Report is the result of an Assignment.
type Report struct {
	Agent  string // the agent's name, such as engineer-1
	Answer string
}
