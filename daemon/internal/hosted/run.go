package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	maxSummary = 64 << 10 // bytes of Outcome.Summary
	maxCalls   = 1000     // calls that an agent may report in one turn
	maxActive  = 64       // calls and questions that run here at once
)

// errCancelled is why the calls of a turn end that is cancelled.
var errCancelled = errors.New("the turn was cancelled")

// errBusy refuses what an agent asks for beyond its bound.
var errBusy = fmt.Errorf("%d calls and questions run already: wait for some", maxActive)

// run is one turn.
type run struct {
	t          Turn
	name       string
	begun      time.Time
	host       *host           // set by take, with costBefore
	costBefore float64         // of the session, when the turn began
	ctx        context.Context // ends when the turn is cancelled, and at its end
	cancel     context.CancelCauseFunc
	work       sync.WaitGroup              // of calls that run here
	private    func(cwd string) tool.Shell // see Turn.Private; nil: the turn has none
	closer     func()

	sending sync.Mutex  // held while events are sent, so that text that was held back goes before a later event; taken before mu
	kind    string      // guarded by sending: of text, wire.ChunkText or wire.ChunkReasoning
	text    mask.Stream // guarded by sending

	mu sync.Mutex
	// below: guarded by mu
	over      bool   // it has ended: what the agent asks for is refused
	summary   string // the text since the newest call, which becomes Outcome.Summary
	calls     map[sdk.ToolCallId]*call
	granted   map[write]int // how often each may be done without another question
	terminals map[string]*terminal
	active    int                // calls and questions that run here
	heard     time.Time          // when the agent last sent something
	sum       wire.AgentComplete // ToolsExecuted, Refused, Usage and Context
}

// write is the change of a file: its path, without links, and the digests of its content; before is "" where there was none.
type write struct{ path, before, after string }

// newRun returns the run of a turn, which ctx cancels. The caller must call close.
func newRun(ctx context.Context, t Turn) *run {
	r := &run{
		t: t, name: cmp.Or(t.Of.Name, t.Of.Role.Name), begun: time.Now(), heard: time.Now(), calls: map[sdk.ToolCallId]*call{}, granted: map[write]int{},
		terminals: map[string]*terminal{},
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if t.Private != nil {
		r.private, r.closer = t.Private(r.name)
	}
	return r
}

// fresh reports whether the conversation begins with this turn, or was cleared before it.
func (r *run) fresh() bool { return r.t.Of.History.Len() == 0 }

// close ends what runs for the agent and waits for it.
func (r *run) close() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.cancel(errCancelled)
	r.work.Wait()
	if r.closer != nil {
		r.closer()
	}
}

// prompt sends the prompt and waits for the end of the agent's turn. It ends the process of an agent that exceeds a bound.
func (h *host) prompt(r *run) agent.Outcome {
	if !h.awaitServer(r) {
		r.notice(fmt.Sprintf("%s has not connected sublet's tools within %v: if it runs commands, it does so in a shell of its own", r.name, h.agents.o.Connect))
	}
	if cause := context.Cause(r.ctx); cause != nil {
		return r.ended(cause)
	}
	if err := h.useModel(r); err != nil {
		return r.outcome(wire.StatusError, err)
	}
	h.introduce(r)
	type answer struct {
		sdk.PromptResponse
		error
	}
	answered := make(chan answer, 1)
	r.markHeard()
	h.agents.work.Go(func() { // ends with the answer or the connection
		p, err := h.conn.Prompt(h.agents.ctx, sdk.PromptRequest{SessionId: h.session.id, Prompt: r.blocks(h)})
		answered <- answer{p, err}
	})
	done := r.ctx.Done()
	var grace <-chan time.Time                     // after a cancel; nil before it
	tick := time.NewTicker(h.agents.o.Silence / 8) // so an agent is ended an eighth of Silence late at most
	defer tick.Stop()
	for {
		select {
		case a := <-answered:
			h.mu.Lock()
			gone := h.cause // it may have answered although it was given up
			h.mu.Unlock()
			lost := h.lost()
			if gone != nil || a.error != nil && lost {
				h.end()
			}
			r.flushText()
			if cause := context.Cause(r.ctx); cause != nil && grace != nil { // an answer from before the cancel counts
				if h.known.drops {
					h.end() // it has dropped our MCP server: the next turn starts it and resumes its session
				}
				return r.ended(cause)
			}
			if err := cmp.Or(a.error, gone); needsSignIn(err) && !lost {
				return r.outcome(wire.StatusError, err)
			} else if err != nil {
				return r.outcome(wire.StatusError, h.fault(r.ctx, r.name, err, lost))
			}
			return r.stopped(a.PromptResponse)
		case <-done:
			done = nil
			grace = time.After(h.agents.o.Cancel)
			h.agents.work.Go(func() { // a write that blocks ends with the process
				_ = h.conn.Cancel(h.agents.ctx, sdk.CancelNotification{SessionId: h.session.id}) // an agent that does not get it is ended
			})
		case <-grace:
			h.giveUp(errors.New("it did not end its turn when that was cancelled, and was ended"))
			<-answered
			r.flushText()
			r.notice(h.fault(h.agents.ctx, r.name, errCancelled, true).Error())
			return r.ended(context.Cause(r.ctx))
		case <-tick.C:
			if silence := h.agents.o.Silence; r.silentFor(silence) {
				h.giveUp(fmt.Errorf("it has sent nothing for %v, and was ended", silence))
			}
		}
	}
}

// awaitServer waits until the agent has listed the tools of our MCP server. It returns false only if that took too long.
func (h *host) awaitServer(r *run) bool {
	if len(h.agents.o.Server) == 0 {
		return true
	}
	timer := time.NewTimer(h.agents.o.Connect)
	defer timer.Stop()
	select {
	case <-h.lists:
		return true
	case <-timer.C:
		h.markListed() // later turns of the process do not wait
		return false
	case <-r.ctx.Done():
	case <-h.conn.Done():
	}
	return true
}

// introduce sends, once for each process, a notice with the program's name, mode and model as far as they are known. Before it goes
// newSessionNotice, if the agent's session is new but the conversation is not.
func (h *host) introduce(r *run) {
	h.mu.Lock()
	again := h.prompted
	h.prompted = true
	var parts []string
	if i := h.about.AgentInfo; i != nil {
		parts = append(parts, strings.TrimSpace(cmp.Or(deref(i.Title), i.Name)+" "+i.Version))
	}
	if mode := h.session.mode.Current; mode != "" {
		parts = append(parts, "mode "+mode)
	}
	if model := h.session.model.Current; model != "" {
		parts = append(parts, "model "+model)
	}
	h.mu.Unlock()
	if again {
		return
	}
	if h.newSessionNotice != "" && !r.fresh() {
		r.notice(h.newSessionNotice)
	}
	if len(parts) > 0 {
		r.notice(visible.Exact(shown(strings.Join(parts, ", "), 300)))
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// blocks returns the prompt for the protocol: the text, with the turn's folder if that is not the session's, and links to the attached
// files.
func (r *run) blocks(h *host) []sdk.ContentBlock {
	text := r.t.Of.Prompt
	if cwd := r.t.Of.Env.Cwd; cwd != h.session.cwd && cwd != "" {
		text += "\n\n[the user's shell is in " + cwd + " now]"
	}
	blocks := []sdk.ContentBlock{sdk.TextBlock(text)}
	for _, a := range r.t.Of.Attachments {
		blocks = append(blocks, sdk.ResourceLinkBlock(string(a.Path), (&url.URL{Scheme: "file", Path: string(a.Path)}).String()))
	}
	return blocks
}

// markHeard records the time at which the agent sent something.
func (r *run) markHeard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = time.Now()
}

// begin counts a call or question as running here until the caller calls done. joined ends with ctx, the turn or done. The error is
// errNoTurn after the turn, errBusy beyond maxActive; then done is nil.
func (r *run) begin(ctx context.Context) (joined context.Context, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.ctx.Err() != nil {
		return ctx, nil, errNoTurn
	}
	if r.active >= maxActive {
		return ctx, nil, errBusy
	}
	r.active++
	r.work.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
		r.mu.Lock()
		r.active--
		r.heard = time.Now()
		r.mu.Unlock()
		r.work.Done()
	}, nil
}

// silentFor reports whether the agent has sent nothing for so long, while none of its calls ran here.
func (r *run) silentFor(bound time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active == 0 && time.Since(r.heard) > bound
}

// emit sends an event after those before it.
func (r *run) emit(m wire.EventMessage) {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.sendText(r.text.Flush())
	r.t.Of.Emit(m)
}

func (r *run) chunk(c wire.Chunk) { r.emit(&wire.AgentStreamChunk{Agent: r.name, Chunk: c}) }

func (r *run) notice(text string) { r.chunk(wire.Chunk{Type: wire.ChunkNotice, Text: text}) }

// addText sends text of a kind. What may be the beginning of a secret is held back until the next piece, or flushText. After the turn it
// does nothing.
func (r *run) addText(kind, text string) {
	r.mu.Lock()
	over := r.over
	if !over && kind == wire.ChunkText && len(r.summary) < maxSummary {
		r.summary += text
	}
	r.mu.Unlock()
	if over {
		return
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	if kind != r.kind {
		r.sendText(r.text.Flush())
		r.kind = kind
	}
	r.sendText(r.text.Add(visible.Clean(text)))
}

// flushText sends the text that was held back.
func (r *run) flushText() {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.sendText(r.text.Flush())
}

// sendText sends text of the newest kind as an event. The caller holds sending.
func (r *run) sendText(text string) {
	if text != "" {
		r.t.Of.Emit(&wire.AgentStreamChunk{Agent: r.name, Chunk: wire.Chunk{Type: r.kind, Text: text}})
	}
}

// stopped returns the outcome of a turn that the agent ended.
func (r *run) stopped(p sdk.PromptResponse) agent.Outcome {
	if u := p.Usage; u != nil {
		r.mu.Lock()
		r.sum.Usage.Input, r.sum.Usage.Output, r.sum.Usage.Total = int64(u.InputTokens), int64(u.OutputTokens), int64(u.TotalTokens)
		r.mu.Unlock()
	}
	switch p.StopReason {
	case sdk.StopReasonEndTurn:
		return r.outcome(wire.StatusSuccess, nil)
	case sdk.StopReasonRefusal:
		return r.outcome(wire.StatusError, agent.ErrRefused)
	case sdk.StopReasonMaxTurnRequests:
		return r.outcome(wire.StatusError, agent.ErrStepLimit)
	case sdk.StopReasonMaxTokens:
		return r.outcome(wire.StatusError, &FaultError{r.name, "its answer was cut off at its model's limit", "say `go on`"})
	case sdk.StopReasonCancelled:
		return r.outcome(wire.StatusCancelled, &FaultError{r.name, "it ended its turn as cancelled", ""})
	}
	return r.outcome(wire.StatusError, &FaultError{r.name, "it ended its turn for a reason that is not known: " + shown(string(p.StopReason), 60), ""})
}

// ended returns the outcome of a turn whose context ended.
func (r *run) ended(cause error) agent.Outcome {
	if errors.Is(cause, context.DeadlineExceeded) {
		return r.outcome(wire.StatusTimeout, cause)
	}
	return r.outcome(wire.StatusCancelled, cause)
}

// outcome returns the outcome of a turn that ended with status and err: the text, tools and refusals so far. Its StopReason is in the terms
// of a provider where there is one for err, else the status.
func (r *run) outcome(status string, err error) agent.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := agent.Outcome{Err: err, AgentComplete: r.sum}
	o.Agent, o.Status, o.StopReason, o.Summary = r.name, status, status, visible.Cut(strings.TrimSpace(r.summary), maxSummary)
	o.Model, o.DurationMS = r.t.Of.Role.Model, time.Since(r.begun).Milliseconds()
	switch {
	case status == wire.StatusSuccess:
		o.StopReason = string(provider.EndTurn)
	case errors.Is(err, agent.ErrRefused):
		o.StopReason = "refusal"
	case errors.Is(err, agent.ErrStepLimit):
		o.StopReason = "tool_use"
	}
	if r.host != nil {
		if model := r.host.offer().Model; model != "" {
			o.Model = r.t.Of.Role.Model + "/" + model
		}
	}
	if o.Summary == "" && err != nil {
		o.Summary = err.Error()
	}
	return o
}
