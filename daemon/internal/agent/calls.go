package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/compaction"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// maxSideBySide bounds how many read-only calls of one answer run concurrently.
const maxSideBySide = 8

// finished is a call with its result.
type finished struct {
	call    call
	begun   time.Time // when it began to run, or where it did not, when it was made
	result  tool.Result
	command string
	comment string // of the user, on the question
	answer  string // of the user to the question; see answerText
	reach   string // the confinement that the command ran in
	fact    fact   // once it is emitted
}

// runCalls runs the calls of one answer and adds the results to the conversation. Consecutive read-only calls run
// concurrently, the others one after the other. Every call gets a result, also when ctx has ended. It waits for the
// goroutines it starts.
func (r *runner) runCalls(ctx context.Context, calls []call) {
	done := make([]finished, len(calls))
	for i := 0; i < len(calls); {
		j := i + 1
		if r.readOnly(calls[i]) {
			for j < len(calls) && r.readOnly(calls[j]) {
				j++
			}
		}
		var wg sync.WaitGroup
		places := make(chan struct{}, maxSideBySide)
		for k := i; k < j; k++ {
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				done[k] = r.runCall(ctx, calls[k])
			})
		}
		wg.Wait()
		i = j
	}
	for i := range done {
		r.remind(&done[i])
	}
	r.results(done)
}

func (r *runner) readOnly(c call) bool {
	t, ok := r.allowed[c.name]
	return ok && t.Spec().ReadOnly
}

// addNotRun adds a result with the reason why for calls that are not run.
func (r *runner) addNotRun(calls []call, why string) {
	if len(calls) == 0 {
		return
	}
	done := make([]finished, len(calls))
	for i, c := range calls {
		done[i] = r.finish(finished{call: c, begun: time.Now(), result: failure(why)})
	}
	r.results(done)
}

// results adds the results of calls to the conversation.
func (r *runner) results(done []finished) {
	e := entry{kind: compaction.Results, msg: provider.Message{Role: provider.User}, facts: map[string]fact{}}
	for _, d := range done {
		id := string(d.call.id)
		part := resultPart(id, d.result.Content, d.result.IsError)
		part.ToolResult.Images = d.result.Images
		e.msg.Parts = append(e.msg.Parts, part)
		e.facts[id] = d.fact
		if seq := d.fact.seq; e.first == 0 || seq < e.first {
			e.first = seq
		}
		e.last = max(e.last, d.fact.seq)
	}
	r.entries = append(r.entries, e)
}

// meantTool returns the name of the tool that a call with this name means. Models that know other programs' tools write Bash and
// Read.
func (r *runner) meantTool(name string) string {
	if lower := strings.ToLower(name); !r.exists[name] && r.exists[lower] {
		return lower
	}
	return name
}

// runCall runs one call, from planning to its events. A panic of a tool becomes an error result.
func (r *runner) runCall(ctx context.Context, c call) (f finished) {
	f.begun = time.Now()
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("tool panicked", "tool", c.name, "panic", p, "stack", string(debug.Stack()))
			f.result = failure(fmt.Sprintf("the %s tool broke down; this is a defect of sublet", c.name))
		}
		f.call = c
		f = r.finish(f)
	}()
	if ctx.Err() != nil {
		f.result = notRun(ctx)
		return f
	}
	t, ok := r.allowed[c.name]
	switch {
	case !ok && r.exists[c.name]:
		reason := "not in this agent's allow-list"
		if r.t.Mode == "plan" && changes(c.name) {
			reason = "not available in plan mode"
		}
		r.tally.refuse(c.name, reason)
		f.result = failure(fmt.Sprintf("the tool %s is %s; you have: %s", c.name, reason, r.toolNames()))
		return f
	case !ok:
		f.result = failure(fmt.Sprintf("there is no tool %q; you have: %s", clip(c.name, 100), r.toolNames()))
		return f
	}
	args, err := tool.Arguments(t.Spec(), c.args)
	if err != nil {
		f.result = failure(err.Error())
		return f
	}
	c.args = args // the repaired arguments also go into the events
	return r.planAndRun(ctx, c, t, args, f)
}

// planAndRun plans a call, has it approved, and runs it. No lease is held during a question, so what the plan is about may change in
// between: then the call is planned and judged again, up to maxReplans times in all.
func (r *runner) planAndRun(ctx context.Context, c call, t tool.Tool, args json.RawMessage, f finished) finished {
	env := r.environment()
	env.ExecutionID = string(c.id)
	edited := ""
	for range maxReplans {
		if ctx.Err() != nil {
			f.result = notRun(ctx)
			return f
		}
		action, err := t.Plan(ctx, env, args)
		if err != nil {
			f.result = r.toolError(ctx, err)
			return f
		}
		f.command = action.Command
		d, err := r.t.Approver.Approve(ctx, Question{
			Agent: r.name, Role: r.t.Role.Name, Mode: r.t.Role.Mode, ReadOnly: r.t.Role.ReadOnly, Tool: c.name, ExecutionID: c.id,
			Arguments: args, Action: action,
		})
		userEdited := d.EditedCommand != nil && *d.EditedCommand != action.Command && action.Command != ""
		if userEdited {
			f.command, edited = *d.EditedCommand, *d.EditedCommand
		}
		if ctx.Err() != nil {
			f.result = notRun(ctx)
			return f
		}
		if err != nil {
			d = Decision{Reason: "nobody could be asked: " + err.Error()}
		}
		if d.Comment != "" {
			f.comment = d.Comment
		}
		f.answer = answerText(d.By, d.Allowed)
		if !d.Allowed {
			f.result = denied(d)
			f.addUserWords(edited, "")
			r.tally.refuse(c.name, d.why())
			return f
		}
		if userEdited { // the approver has judged the edited command, in action's directory and state of the shell
			next, err := WithCommand(args, edited)
			if err != nil {
				f.result = failure(err.Error())
				return f
			}
			again, err := t.Plan(ctx, env, next)
			if err != nil {
				f.result = r.toolError(ctx, err)
				return f
			}
			args = next
			if again.Cwd != action.Cwd || again.StateDigest != action.StateDigest {
				continue
			}
			action, f.command = again, again.Command
		}
		action.Reach, action.Approval, f.reach = d.Reach, d.Approval, d.Reach
		r.thinking(wire.PhaseExecuting, describe(c.name, action))
		f.begun = time.Now()
		res, err := t.Run(ctx, env, args, action, r.outputSender(c.id))
		if errors.Is(err, tool.ErrChanged) {
			r.log.Debug("call planned again", "tool", c.name, "agent", r.name)
			continue
		}
		r.tally.ran(c.name)
		if err != nil {
			res = r.toolError(ctx, err)
		}
		if res.Cwd != "" && err == nil {
			r.mu.Lock()
			r.env.Cwd = res.Cwd
			r.mu.Unlock()
		}
		f.result = res
		f.addUserWords(edited, d.Comment)
		return f
	}
	f.result = failure(fmt.Sprintf("not run: what it would work on changed %d times while it was being judged; look again", maxReplans))
	return f
}

// addUserWords adds the user's comment and edited command to the result for the model.
func (f *finished) addUserWords(edited, comment string) {
	if edited != "" {
		f.result.Content = "[the user changed the command to: " + edited + "]\n" + f.result.Content
	}
	if comment != "" {
		f.result.Content += "\n[the user says: " + comment + "]"
	}
}

// outputSender returns a function that emits a piece of a call's output, for attached clients only: the stored result has all of it.
func (r *runner) outputSender(id wire.ExecutionID) func([]byte) {
	return func(p []byte) {
		if len(p) > 0 {
			r.chunk(wire.Chunk{Type: wire.ChunkToolOutput, ExecutionID: id, Data: bytes.Clone(p)})
		}
	}
}

// finish completes a result, masks secrets in it, and emits it: a CommandResult, which is stored, and a ChunkToolResult, by which
// clients see the end of the call in the answer's stream.
func (r *runner) finish(f finished) finished {
	c, res := f.call, &f.result
	if res.Status == "" {
		res.Status = wire.StatusSuccess
		if res.IsError {
			res.Status = wire.StatusError
		}
	}
	res.IsError = res.Status != wire.StatusSuccess
	res.Content = r.forModel(strings.ToValidUTF8(res.Content, "\uFFFD"))
	env := r.environment()
	if err := res.Fit(cmp.Or(env.MaxResult, tool.MaxResult), env.Spool, r.forModel); err != nil { // Fit may add lines of the tool's own file, not masked yet
		r.log.Warn("the file of a result that is cut cannot be written or read", "tool", c.name, "err", err)
	}
	if res.Duration == 0 {
		res.Duration = time.Since(f.begun)
	}
	m := &wire.CommandResult{
		Agent: r.name, ExecutionID: c.id, Tool: strings.ToValidUTF8(c.name, "\uFFFD"), Command: wire.OSString(f.command),
		Status: res.Status, Output: []byte(res.Content), ExitCode: res.ExitCode, Cwd: wire.OSString(res.Cwd),
		FilesModified: []wire.OSString{}, StartedAtMS: f.begun.UnixMilli(), DurationMS: res.Duration.Milliseconds(), Reach: f.reach,
	}
	for _, p := range res.FilesModified {
		m.FilesModified = append(m.FilesModified, wire.OSString(p))
	}
	if res.TruncatedBy > 0 {
		m.Truncated = &wire.Truncation{Bytes: res.TruncatedBy, SpoolPath: wire.OSString(res.SpoolPath)}
	}
	r.keepImages(r.emit(m), res.Images)
	f.fact = factOf(m, f.comment, f.answer)
	r.chunk(wire.Chunk{Type: wire.ChunkToolResult, ExecutionID: c.id, Tool: m.Tool, Status: res.Status})
	return f
}

// toolError converts an error of a tool to a result.
func (r *runner) toolError(ctx context.Context, err error) tool.Result {
	if ctx.Err() != nil {
		return notRun(ctx)
	}
	if errors.Is(err, tool.ErrChanged) {
		return failure("not run: what it would work on changed meanwhile; look again")
	}
	return failure(err.Error())
}

func failure(text string) tool.Result { return tool.Result{Content: text, IsError: true} }

// notRun returns the result of a call that did not run because the turn ended.
func notRun(ctx context.Context) tool.Result {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return tool.Result{Content: "stopped: the turn ran out of time", IsError: true, Status: wire.StatusTimeout}
	}
	return tool.Result{Content: "stopped: the turn was cancelled", IsError: true, Status: wire.StatusCancelled}
}

// denied returns the result of a refused call, with advice for the model.
func denied(d Decision) tool.Result {
	text := "Denied: " + d.why() + "."
	if d.Comment != "" {
		text += " The user says: " + d.Comment
	}
	return tool.Result{
		Content: text + " It did not run. Do not try the same in another way; go on without it, or say what you would need." + d.About,
		IsError: true, Status: wire.StatusDenied,
	}
}

func (d Decision) why() string {
	switch {
	case d.Reason != "":
		return d.Reason
	case d.By != "":
		return "refused by " + d.By
	}
	return "refused"
}

// WithCommand replaces the command in a call's arguments.
func WithCommand(args json.RawMessage, command string) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(args, &m); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("edited command: %w", err)
	}
	m["command"] = text
	return json.Marshal(m)
}

// describe returns one line about an action, for the screen.
func describe(name string, a tool.Action) string {
	what := a.Command
	for _, s := range slices.Concat(a.Writes, a.Reads, []string{a.Network, a.Server}) {
		if what == "" {
			what = s
		}
	}
	what, _, _ = strings.Cut(strings.TrimSpace(what), "\n")
	if what == "" {
		return name
	}
	return name + ": " + clip(clean(what), 120)
}
