package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	maxSummary = 64 << 10 // bytes of Outcome.Summary
	maxCut     = 3        // how often in a row an answer that was cut off at the output limit is continued
)

// measure is what is known of how large the next request is, and what was used.
type measure struct {
	scale    float64 // the provider's token count divided by our estimate
	used     int64   // tokens of the newest request and answer, as counted or estimated
	cost     float64 // US dollars of this agent's own requests
	estimate int     // of the next request in tokens, before scaling; fit sets it
	futile   int     // tokens below which another compaction would gain nothing
}

// runner is the state of a running turn of one agent.
type runner struct {
	t       Turn
	log     *slog.Logger
	begun   time.Time
	name    string
	allowed map[string]tool.Tool
	order   []string // names of allowed tools, in the order of the request
	exists  map[string]bool
	system  string
	tally   tally
	close   func() // ends what the turn started, and waits for it
	entries []entry
	measure
	steps       int    // requests that the model has answered
	noImages    bool   // the model refused images
	tooLong     int    // how often in a row the provider reported a conversation that is too long
	partial     string // text of the newest answer, also of one that was not completed
	cutText     string // text of the answer that the newest one continues
	instruction string // appended to the next request, but not part of the conversation

	stepFirst int64 // number of the newest answer's first event
	voidFrom  int64 // text from this event on does not belong to a completed answer yet

	circles circles

	mu sync.Mutex
	// guarded by mu
	env tool.Env // Cwd moves with the shell
	seq int64    // of the newest event
}

func newRunner(t Turn) *runner {
	r := &runner{t: t, log: t.Log, begun: time.Now(), name: t.Name, env: t.Env, measure: measure{scale: 1}, close: func() {}}
	if r.name == "" {
		r.name = t.Role.Name
	}
	r.bound()
	r.env.Todo = &tool.TodoList{}
	r.env.Todo.Set(t.History.plan)
	if t.NewPrivateShell != nil {
		r.env.Private, r.close = t.NewPrivateShell(r.name)
		if r.env.Shell == nil && t.Role.Private {
			r.env.Shell = r.env.Private
		}
	}
	if len(t.Roles) > 0 {
		r.env.Delegate = newTeam(r)
	}
	if r.t.Mode == "plan" && t.Propose != nil {
		r.env.Propose = r.propose
	}
	if r.t.spending == nil {
		r.t.spending = newSpending(t.Budget)
	}
	r.selectTools()
	r.entries = slices.Clone(t.History.entries)
	return r
}

// bound gives the turn the bounds and the mode of its role where those are stricter than the request's, and a sub-agent always the role's steps.
func (r *runner) bound() {
	t := r.t
	if r.t.MaxSteps <= 0 {
		r.t.MaxSteps = DefaultMaxSteps
	}
	if most := t.Role.MaxTurns; most > 0 && (t.MaxSteps <= 0 || t.subAgent || most < t.MaxSteps) {
		r.t.MaxSteps = most
	}
	if most := t.Role.MaxTokens; most > 0 && (t.Options.MaxTokens == nil || most < *t.Options.MaxTokens) {
		r.t.Options.MaxTokens = &most
	}
	if mode := t.Role.Mode; mode != "" && slices.Index(modeNames, mode) < slices.Index(modeNames, t.Mode) {
		r.t.Mode = mode
	}
}

// propose is tool.Propose. Once plan mode is over, the tools are those of the new mode. It is called while no other tool runs.
func (r *runner) propose(ctx context.Context, plan tool.Proposed) (tool.Proposal, error) {
	r.thinking(wire.PhaseExecuting, "the plan waits for the user")
	p, err := r.t.Propose(ctx, plan)
	if err == nil && p.Accepted && p.Mode != "plan" {
		r.t.Mode = p.Mode
		r.mu.Lock()
		r.env.Propose = nil
		r.mu.Unlock()
		r.selectTools()
	}
	return p, err
}

// selectTools applies the allow-lists of the role and the request.
func (r *runner) selectTools() {
	r.allowed, r.exists, r.order = map[string]tool.Tool{}, map[string]bool{}, nil
	for _, t := range r.t.Tools {
		spec := t.Spec()
		r.exists[spec.Name] = true
		switch {
		case !r.t.Role.Offers(spec.Name),
			r.t.Options.Tools != nil && !listed(r.t.Options.Tools, spec.Name),
			r.t.Mode == "plan" && changes(spec.Name),
			spec.Name == "plan" && r.env.Propose == nil,
			spec.Name == "task" && r.env.Delegate == nil:
			continue
		}
		r.allowed[spec.Name] = t
		r.order = append(r.order, spec.Name)
	}
	if r.allowed["jobs"] == nil { // it could not look after one
		r.env.Jobs = nil
	}
	if r.env.Opened = r.t.Env.Opened; r.allowed["write"] == nil && r.allowed["edit"] == nil { // it changes no file
		r.env.Opened = nil
	}
}

// run is the loop of requests and tool calls: it asks the model, runs the calls of its answer, and ends when an answer has none. A hosted
// agent runs its own loop.
func (r *runner) run(ctx context.Context) Outcome {
	if most := r.t.Role.Timeout; most > 0 {
		bounded, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		ctx = bounded
	}
	if r.t.Role.Hosted != nil {
		r.entries = append(r.entries, promptEntry(r.t.Prompt, nil, r.t.StartSeq)) // so that History is not empty when it is asked further
		return r.t.Host(ctx, r.t)
	}
	r.system = r.systemPrompt()
	r.begin(ctx)
	cut, empty := 0, 0 // answers that the output limit cut, and empty ones, since calls last ran or a prompt came
	for {
		if out := r.prepare(ctx); out != nil {
			return *out
		}
		resp, ids, err := r.ask(ctx)
		if err != nil {
			if err = r.repairRequest(ctx, err); err != nil {
				return r.failed(ctx, err)
			}
			continue
		}
		r.steps++
		r.tooLong, r.instruction = 0, ""
		if resp.StopReason == provider.EndTurn && isEmpty(resp.Message) {
			if empty++; empty > 1 {
				return r.outcome(wire.StatusError, wire.StatusError, errEmpty)
			}
			r.void("the model's answer was empty")
			r.waiting("the model's answer was empty; it is asked once more")
			r.instruction = continueEmpty
			continue
		}
		calls := r.answer(resp, ids)
		if len(calls) == 0 && resp.StopReason == provider.MaxTokens && cut < maxCut && r.t.Options.MaxTokens == nil {
			cut++
			r.cutText, r.instruction = r.partial, continueCut
			continue
		}
		r.cutText = ""
		switch {
		case resp.StopReason == provider.Refusal:
			r.addNotRun(calls, "not run: the model refused to go on")
			return r.outcome(wire.StatusError, string(provider.Refusal), ErrRefused)
		case len(calls) > 0 && resp.StopReason == provider.MaxTokens:
			// The arguments of the last call may be cut off and still be valid JSON, so no call runs.
			if cut++; cut > maxCut {
				r.addNotRun(calls, "not run: the answer was cut off at the output limit")
				return r.outcome(wire.StatusError, string(provider.MaxTokens),
					&workError{fmt.Sprintf("the model's output limit cut %d answers in a row", cut), "ask for less at once, or choose a model with a larger output limit"})
			}
			r.addNotRun(calls, "not run: your answer was cut off at the output limit; send less at once, for example a file in several parts")
		case len(calls) > 0:
			cut, empty = 0, 0
			r.runCalls(ctx, calls)
			if err := r.leaveCircle(ctx, calls); err != nil {
				if ctx.Err() != nil {
					return r.ended(ctx)
				}
				return r.outcome(wire.StatusError, string(provider.ToolUse), err)
			}
			r.steer(ctx)
		case resp.StopReason == provider.MaxTokens:
			r.notice("The answer is cut off at the model's output limit.")
			return r.outcome(wire.StatusSuccess, string(provider.MaxTokens), nil)
		case r.steer(ctx):
			cut, empty = 0, 0
		default:
			return r.outcome(wire.StatusSuccess, string(provider.EndTurn), nil)
		}
	}
}

// prepare makes ready for a request to the model; it returns the outcome where there is to be none.
func (r *runner) prepare(ctx context.Context) (out *Outcome) {
	end := func(o Outcome) *Outcome { return &o }
	if ctx.Err() != nil {
		return end(r.ended(ctx))
	}
	if r.steps == r.t.MaxSteps {
		r.notice(fmt.Sprintf("Stopped after %d steps before the work was done. Say \"go on\" to continue.", r.steps))
		return end(r.outcome(wire.StatusError, string(provider.ToolUse), ErrStepLimit))
	}
	if err := r.keepToBudget(ctx); err != nil {
		return end(r.failed(ctx, err))
	}
	if err := r.fit(ctx); err != nil {
		return end(r.ended(ctx))
	}
	phase, doing := wire.PhasePlanning, "reading the results"
	if r.steps == 0 {
		phase, doing = wire.PhaseAnalyzing, "reading the request"
	}
	r.thinking(phase, doing)
	return nil
}

// repairRequest handles an error of the model. It returns nil if the request was changed and should be sent again.
func (r *runner) repairRequest(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if pe, ok := errors.AsType[*provider.Error](err); ok && r.refusedImages(pe) {
		return nil
	}
	again, err := r.shrink(ctx, err)
	if again {
		return nil
	}
	return err
}

// begin adds the prompt and its context to the conversation.
func (r *runner) begin(ctx context.Context) {
	images, attached := r.attachments()
	beside := r.promptContext(ctx, attached)
	r.entries = append(r.entries, promptEntry(r.forModel(r.t.Prompt), images, r.t.StartSeq))
	r.keepImages(r.t.StartSeq, imagesOf(r.entries[len(r.entries)-1:]))
	r.addContext(beside)
}

// steer takes in prompts for the running turn after a step, adds them to the conversation, and reports whether there were any. It
// takes in none if no request follows that would answer them: ctx has ended, or that was the turn's last step.
func (r *runner) steer(ctx context.Context) bool {
	if r.t.Steering == nil || ctx.Err() != nil || r.steps == r.t.MaxSteps {
		return false
	}
	prompts := r.t.Steering()
	for _, m := range prompts {
		r.entries = addSteering(r.entries, r.forModel(m.Prompt), m.Seq)
	}
	return len(prompts) > 0
}

// Texts for the model only.
const (
	continueEmpty = "[Your answer was empty. Say in words what you found or did, or go on with the work.]"
	continueCut   = "[Your answer was cut off at the output limit. Go on exactly where it ended, in the middle of a word if need be, without repeating anything.]"
)

// ended returns the outcome of a turn whose ctx has ended.
func (r *runner) ended(ctx context.Context) Outcome {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return r.outcome(wire.StatusTimeout, wire.StatusTimeout, cause)
	}
	return r.outcome(wire.StatusCancelled, wire.StatusCancelled, cause)
}

func (r *runner) failed(ctx context.Context, err error) Outcome {
	if ctx.Err() != nil {
		return r.ended(ctx)
	}
	return r.outcome(wire.StatusError, wire.StatusError, err)
}

func (r *runner) outcome(status, stop string, err error) Outcome {
	if status == wire.StatusSuccess && !r.t.subAgent {
		if over := r.t.spending.overrun(); over != "" {
			r.notice(over)
		}
	}
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	o := Outcome{Err: err, AgentComplete: wire.AgentComplete{
		Agent: r.name, Status: status, StopReason: stop, Steps: r.steps, DurationMS: time.Since(r.begun).Milliseconds(),
		Summary: visible.Cut(strings.ToValidUTF8(clean(r.partial), "\uFFFD"), maxSummary),
		Usage:   r.tally.usage, ToolsExecuted: r.tally.executed, Refused: r.tally.refused,
	}}
	if r.t.Model != nil {
		i := r.t.Model.Info()
		o.Model = i.Name
		o.Context = wire.ContextUse{Used: r.used, Window: int64(i.ContextWindow)}
	}
	return o
}

func (r *runner) environment() tool.Env {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.env
}

// toolNames lists the allowed tools, for messages to the model.
func (r *runner) toolNames() string { return strings.Join(slices.Sorted(maps.Keys(r.allowed)), ", ") }
