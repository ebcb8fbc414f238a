// Package agent runs one turn: it asks the model, runs the tools that the model calls and returns the results to it, until
// the model is done. It contains the roles, the sub-agents of the task tool, the conversation as derived from stored events,
// and its compaction. The Approver decides what may run; sessions, storage, shells and leases are left to the hub.
package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Turn is the input of one turn. What does not say what its zero value means must be set; Run needs all, RunTool not the model, the prompt,
// the place and the team.
type Turn struct {
	Role        Role
	Name        string // on screen and in events; "" = Role.Name
	Model       provider.Model
	History     Conversation               // History of the session's events before this turn's TurnStarted
	StartSeq    int64                      // number of this turn's TurnStarted, for compactions inside the turn; 0 = unknown
	Prompt      string                     // of the user
	Attachments []wire.Attachment          // texts and images go with the prompt; of others only the name
	Images      Images                     // stores the images that the model saw; nil: they are lost after this turn, as those of a sub-agent are, whose conversation is in memory
	Context     wire.RequestContext        // what the user saw when asking
	Options     wire.RequestOptions        // Tools is the allow-list; Model, Mode, RequireApproval and TimeoutMS are the hub's
	Tools       []tool.Tool                // all tools; role and Options.Tools select from them
	Env         tool.Env                   // Delegate and Todo are set by Run; Private comes from NewPrivateShell
	Emit        func(wire.EventMessage)    // see below
	Approver    Approver                   //
	Steering    func() []*wire.TurnSteered // returns the stored prompts that were added to the turn since the last call; nil = none
	Log         *slog.Logger
	ShowSecrets func() bool // reports whether the user lets the model see text that looks like a secret; nil = no

	Place
	Bounds
	Team

	delegation
}

// Place is where a turn works, as far as its model is given that.
type Place struct {
	Shell        string                   // the user's own that Env.Shell runs, such as "zsh 5.9"; "" = a bash
	Project      string                   // root for instruction files and .sublet/agents
	Mode         string                   // the policy's; in plan no tool that writes is offered; "" = left out
	Propose      tool.Propose             // asks the user about the plan that ends plan mode; nil: it cannot be ended so
	Jobs         func() string            // describes the running background jobs; nil = left out
	GitTime      time.Duration            // bound for reading the state of the project's git tree; 0: it is left out
	Environ      func() map[string]string // the exported variables of the user's shell or client; empty = not known
	Instructions string                   // the user's own instruction file; "" = none
	Trusted      func(dir string) bool    // reports whether the user trusts the folder of dir, so that its instruction files are followed
}

// Bounds are the limits of a turn, and what compacts its conversation.
type Bounds struct {
	MaxSteps  int            // model calls; 0 = DefaultMaxSteps
	MaxAgents int            // sub-agents at once
	Budget    Budget         // cost limits; the zero value sets none
	Threshold float64        // share of the context window at which to compact
	Compactor provider.Model // writes summaries; nil = Model
}

// Team is what a turn's sub-agents need.
type Team struct {
	Roles   map[string]Role // the roles that task may start; nil = none
	Agents  *Agents         // the session's sub-agents that ended with their turns
	Crew    Crew            // its agents in the background
	Reports bool            // Outcome.Summary gets the record of the calls: it goes to another agent
	// Host plays the turn of a role that is Hosted.
	Host func(ctx context.Context, t Turn) Outcome
	// NewPrivateShell returns a private shell for the named agent, which starts with its first command. closeShell ends what runs
	// in it, and waits. nil: sub-agents and private calls have no shell.
	NewPrivateShell func(agent string) (shell tool.Shell, closeShell func())
	// OpenModel returns the model "provider/model" of a role.
	OpenModel func(name string) (provider.Model, error)
}

// delegation is what a sub-agent has from the agent that started it.
type delegation struct {
	subAgent bool      // runs for another agent, not for the user
	spending *spending // shared by a turn and its sub-agents
	limits   []string  // of a sub-agent: the user's standing limits
}

// Emit numbers, stores and sends one event. Run calls it from several goroutines at once; when it returns, m.Meta() is
// complete. Run does not change m afterwards. Emit must also work after Run's ctx has ended, for the results of open calls.
// Run emits AgentThinking, AgentStreamChunk, CommandResult, CompactionStarted and CompactionComplete; the
// hub emits TurnStarted, ConfirmationRequest, ConfirmationResolved, Error and AgentComplete.

// Bounds of a turn.
const (
	DefaultMaxSteps = 100 // model calls of one agent in one turn

	maxReplans = 5 // how often a call is planned and judged again because something changed meanwhile
)

// Errors that end a turn, besides *provider.Error and the causes of its context.
var (
	ErrStepLimit error = &workError{"the step limit was reached before the work was done", "say `go on` to continue where it stopped"}
	ErrRefused   error = &workError{"the model refused to answer", "word the request differently, or use another model"}
	errEmpty     error = &workError{"the model's answer was empty, twice", "ask again, in other words, or choose another model"}
)

// A workError reports why the model's work ended, apart from failures of its provider.
type workError struct {
	text string
	hint string // what the user can do
}

func (e *workError) Error() string { return "agent: " + e.text }
func (e *workError) Hint() string  { return e.hint }

// An Approver decides whether a planned call may run: by rule, by mode, or by asking the user. The hub implements it. It is
// called from several goroutines at once, and no lease is held meanwhile.
type Approver interface {
	// Approve returns an error only if there is no decision: ctx ended (context.Cause(ctx)), or the user could not be asked.
	// The caller treats any error as no.
	Approve(ctx context.Context, q Question) (Decision, error)
}

// Question is a call that needs a decision.
type Question struct {
	Agent       string // name of the agent
	Role        string
	ReadOnly    bool // the role may only read: refuse what is not low without asking
	Tool        string
	ExecutionID wire.ExecutionID
	Arguments   json.RawMessage // a JSON object
	Action      tool.Action
	Mode        string // the role's: the stricter of this and the turn's counts; "" = the turn's
	Fixed       bool   // the call cannot be changed, since another program makes it: an edited command is refused
	Continue    string // if set, the question is not a call but whether the agent may continue; this is what it has done
}

// maxSubject bounds a Subject that has the arguments of an MCP server's tool, in bytes.
const maxSubject = 4 << 10

// Subject returns what a call works on (a command, path or the arguments), for the audit log. A command is not cut.
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
	// EditedCommand is the command that the user wants to run instead of Action.Command; it counts as judged and approved
	// for the cwd and state of the question. nil = unchanged. Only for bash.
	EditedCommand *string
	Comment       string // of the user, for the model
	Reach         string // what the kernel is to hold the command to: read, project; "" = nothing
	Approval      tool.Approval
	By            string // "client NAME PID", "rule ID", "mode ask", "expiry", "nobody"
	Reason        string // why it was refused, for the model
	About         string // lines for the model: which part of the call was refused, and which part it may try alone
}

// Outcome is the result of a turn: its AgentComplete, to which the hub adds the ids.
type Outcome struct {
	wire.AgentComplete
	Err error // why the turn failed; nil = success
}

// Run runs one turn to its end. It owns every goroutine, sub-agent and private shell it starts and returns after the last of
// them has ended: when ctx ends, at once for the model and within 5 s for running commands. Errors are in Outcome.Err. A
// repeated request to the model never repeats tools that ran.
func Run(ctx context.Context, t Turn) Outcome {
	r := newRunner(t)
	defer r.close()
	o := r.run(ctx)
	if t.Reports {
		o.Summary += r.workRecord()
	}
	return o
}

// RunTool runs one tool without a model, for a person or a script, under the same policy and with the events of a call in a
// turn. Outcome.Summary is the tool's result.
func RunTool(ctx context.Context, t Turn, name string, args json.RawMessage) Outcome {
	r := newRunner(t)
	defer r.close()
	c := call{id: wire.ExecutionID(wire.NewID()), name: name, args: args}
	r.chunk(wire.Chunk{
		Type: wire.ChunkToolCall, ExecutionID: c.id, Tool: strings.ToValidUTF8(name, "\uFFFD"),
		Arguments: strings.ToValidUTF8(string(args), "\uFFFD"),
	})
	res := r.runCall(ctx, c).result
	r.partial = res.Content
	if res.Status == wire.StatusSuccess {
		return r.outcome(wire.StatusSuccess, string(provider.EndTurn), nil)
	}
	return r.failed(ctx, &ToolError{Tool: name, Status: res.Status, Message: clip(res.Content, 500)})
}
