// Package agent is one turn: ask the model, run the tools it calls, feed the results back, until it is done. It holds
// the roles, the sub-agents that the task tool starts, the conversation derived from stored events, and its compaction.
// Who may do what is the Approver's to say; sessions, storage, shells and leases are left to the hub.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

// Turn is everything one turn needs. Role, Model, Env, Approver and Emit must be set; each other zero value has a
// meaning.
type Turn struct {
	Role         Role
	Name         string // on screen and in events; "" = Role.Name
	Model        provider.Model
	History      Conversation               // History of the session's events before this turn's TurnStarted
	StartSeq     int64                      // number of this turn's TurnStarted, for compactions inside the turn; 0 = unknown
	Prompt       string                     // of the user
	Attachments  []wire.Attachment          // texts and images go with the prompt; others are named
	Images       Images                     // keeps what images were shown; nil: only this turn knows them
	Context      wire.RequestContext        // what the user had in front of them
	Options      wire.RequestOptions        // Tools is the allow-list; Model, Mode, RequireApproval and TimeoutMS are the hub's
	Tools        []tool.Tool                // what exists; role and Options.Tools select from it
	Env          tool.Env                   // Delegate is set by Run; Todo and Files are made where nil; Private from NewPrivateShell
	Shell        string                     // the user's own that Env.Shell runs, such as "zsh 5.9"; "" = a bash
	Project      string                     // root for instruction files and .sublet/agents; "" = found from Env.Cwd upwards (git top level)
	Mode         string                     // the policy's, part of the situation; in plan no tool that writes is offered; "" = left out
	Jobs         func() string              // the background jobs that run, part of the situation; nil = left out
	Trees        *worktree.Trees            // reads the state of the project's git tree for the situation; nil = left out
	Environ      func() map[string]string   // of the shell that Env.Shell runs; nil = not known
	Instructions string                     // the user's own instruction file; "" = none
	Trusted      func(dir string) bool      // the user trusts the folder that dir belongs to: its instruction files count; nil = no
	Roles        map[string]Role            // whom task may start; nil = none
	Approver     Approver                   //
	Emit         func(wire.EventMessage)    // see below
	Steering     func() []*wire.TurnSteered // takes what the user said to the turn since the last call; stored already; nil = nothing
	Threshold    float64                    // share of the context window at which to compact; 0 = 0.8
	MaxSteps     int                        // model calls; 0 = DefaultMaxSteps
	MaxAgents    int                        // sub-agents at once; 0 = DefaultMaxAgents
	Log          *slog.Logger               // nil = discard
	ShowSecrets  func() bool                // the user lets the model see what looks like a secret; nil = no
	Budget       Budget                     // what it may cost; the zero value bounds nothing
	Compactor    provider.Model             // writes summaries; nil = Model

	// NewPrivateShell starts a shell of the daemon's own for the agent of that name; closing it ends whatever runs in it
	// and waits. It is called when the first command needs it. nil: sub-agents and private calls have no shell.
	NewPrivateShell func(ctx context.Context, agent string) (shell tool.Shell, closeShell func(), err error)
	// OpenModel returns the model a role names, "provider/model". nil: all use Model.
	OpenModel func(name string) (provider.Model, error)

	subAgent bool      // runs for another agent, not for the user
	spending *spending // shared by a turn and its sub-agents
	limits   []string  // the user's standing limits, for a sub-agent
}

// Emit numbers, stores and sends one event. Run calls it from several goroutines at once; when it returns, m.Meta() is
// complete. m is not changed by Run afterwards. Emit must work after Run's ctx has ended: the ends of open calls are
// emitted then. Run emits AgentThinking, AgentStreamChunk, CommandResult, CompactionStarted and CompactionComplete; the
// hub emits TurnStarted, ConfirmationRequest, ConfirmationResolved, Error and AgentComplete.

// Bounds of a turn.
const (
	DefaultMaxSteps  = 100 // model calls of one agent in one turn
	DefaultMaxAgents = 4   // sub-agents of one turn at once
	DefaultThreshold = 0.8 // share of the context window

	maxReplans = 5 // how often a call is planned and judged again because the world changed meanwhile
)

// Errors that end a turn, beside *provider.Error and the causes of its context.
var (
	ErrStepLimit = errors.New("agent: the step limit was reached before the work was done")
	ErrRefused   = errors.New("agent: the model refused to answer")
	ErrEmpty     = errors.New("agent: the model's answer was empty, twice")
)

// An Approver says whether a planned call may run: by rule, by mode, or by asking somebody. The hub implements it.
// It is called from several goroutines at once and holds no shell while it waits.
type Approver interface {
	// Approve returns an error only if no decision could be had: ctx ended (then context.Cause(ctx)), or the question
	// could not be put. Any error counts as no.
	Approve(ctx context.Context, q Question) (Decision, error)
}

// Question is one call that wants to run.
type Question struct {
	Agent       string // the asking agent's name
	Role        string
	ReadOnly    bool // the role may only read: what is not low is to be refused without a question
	Tool        string
	ExecutionID wire.ExecutionID
	Arguments   json.RawMessage // a JSON object
	Action      tool.Action
	GoOn        string // set: no call, but whether the agent may go on, although it has done this
}

// maxSubject bounds a call's arguments in the audit log, in bytes.
const maxSubject = 4 << 10

// Subject returns what a call works on, in one text.
func (q Question) Subject() string {
	act := q.Action
	switch {
	case act.Command != "":
		return act.Command
	case len(act.Writes) > 0:
		return fmt.Sprint("write ", act.Writes)
	case act.Network != "":
		return "fetch " + act.Network
	case act.Server != "":
		return visible.Cut(q.Tool+" "+string(q.Arguments), maxSubject)
	case len(act.Reads) > 0:
		return fmt.Sprint("read ", act.Reads)
	}
	return ""
}

// Decision on a Question.
type Decision struct {
	Allowed bool
	// EditedCommand is what the user wants to run in place of Action.Command; it counts as judged and approved by them
	// for the cwd and state of the question. nil = as it is. Only for bash.
	EditedCommand *string
	Comment       string // the user's, passed on to the model
	Reach         string // what the kernel is to hold the command to: read, project; "" = nothing
	By            string // "client NAME PID", "rule ID", "mode ask", "expiry", "nobody"
	Reason        string // in words, why not; passed on to the model
	About         string // lines for the model: what of the call a no is about, and what of it may be tried without that
}

// Outcome is how a turn ended, for AgentComplete. The hub adds ids.
type Outcome struct {
	Agent         string
	Status        string // success, error, cancelled, timeout
	StopReason    string // end_turn, max_tokens, tool_use (the step limit), refusal, error, cancelled, timeout
	Summary       string // the final answer's text, bounded
	Usage         wire.Usage
	Context       wire.ContextUse
	ToolsExecuted []string // names of the tools that ran, in order of first use, sub-agents' too
	Refused       []wire.RefusedTool
	Model         string
	Duration      time.Duration
	Err           error // why it is no success; nil otherwise
}

// Run plays one turn to its end. It owns every goroutine, sub-agent and private shell it starts and returns after the
// last of them has ended; when ctx ends that is at once for the model and within the shells' own bound (5 s) for running
// commands. It never returns an error beside Outcome.Err. Tools that ran are never run again by a retry (T4f).
func Run(ctx context.Context, t Turn) Outcome {
	r := newRunner(ctx, t)
	defer r.close()
	return r.run(ctx)
}

// RunTool runs one tool without a model, for a person or a script, under the same policy: its tool_call chunk, question,
// CommandResult and end are those of a turn. Outcome.Summary is the tool's result.
func RunTool(ctx context.Context, t Turn, name string, args json.RawMessage) Outcome {
	r := newRunner(ctx, t)
	defer r.close()
	return r.runTool(ctx, name, args)
}
