package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stubModel answers with the next of its steps, for each agent its own sequence: the first Text of the first message
// tells them apart.
type stubModel struct {
	info  provider.Info
	mu    sync.Mutex
	steps map[string][]step // by the prompt a conversation begins with; "" = any other
	asked []provider.Request
}

type step struct {
	text, reasoning string
	signature       string // of the reasoning; "" = sig
	calls           []provider.ToolCall
	stop            provider.StopReason
	usage           provider.Usage
	void            string // shown, and void, before the text
	err             error  // after text was streamed
	before          func(ctx context.Context, req provider.Request) error
}

func newModel(steps ...step) *stubModel {
	return &stubModel{
		info:  provider.Info{Name: "stub/one", Kind: config.KindScripted, Limit: provider.Limit{ContextWindow: 100_000}},
		steps: map[string][]step{"": steps},
	}
}

func (m *stubModel) Info() provider.Info { return m.info }

func (m *stubModel) Stream(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	key := firstText(req.Messages[0])
	if _, ok := m.steps[key]; !ok {
		key = ""
	}
	if len(m.steps[key]) == 0 {
		m.mu.Unlock()
		return provider.Response{}, &provider.Error{Kind: provider.ErrOther, Provider: "stub", Message: "no step left for " + key}
	}
	s := m.steps[key][0]
	m.steps[key] = m.steps[key][1:]
	m.mu.Unlock()
	if s.before != nil {
		if err := s.before(ctx, req); err != nil {
			return provider.Response{}, err
		}
	}
	resp := provider.Response{Message: provider.Message{Role: provider.Assistant}, StopReason: s.stop, Usage: s.usage}
	if s.reasoning != "" {
		onDelta(provider.Delta{Type: provider.DeltaReasoning, Text: s.reasoning})
		resp.Message.Parts = append(resp.Message.Parts, provider.Part{Reasoning: &provider.Reasoning{Text: s.reasoning, Signature: cmp.Or(s.signature, "sig")}})
	}
	if s.void != "" {
		onDelta(provider.Delta{Type: provider.DeltaReasoning, Text: "void thoughts"})
		onDelta(provider.Delta{Type: provider.DeltaText, Text: s.void})
		onDelta(provider.Delta{Type: provider.DeltaToolCall, CallID: "void", Tool: "sh", Text: "{"})
		onDelta(provider.Delta{Type: provider.DeltaVoid, Text: "it broke off"})
	}
	for _, word := range strings.SplitAfter(s.text, " ") {
		onDelta(provider.Delta{Type: provider.DeltaText, Text: word})
	}
	if s.text != "" {
		resp.Message.Parts = append(resp.Message.Parts, provider.Part{Text: s.text})
	}
	if s.err != nil {
		return provider.Response{}, s.err
	}
	for _, c := range s.calls {
		onDelta(provider.Delta{Type: provider.DeltaToolCall, CallID: c.ID, Tool: c.Name, Text: string(c.Arguments)})
		resp.Message.Parts = append(resp.Message.Parts, provider.Part{ToolCall: &c})
	}
	if resp.StopReason == "" {
		resp.StopReason = provider.EndTurn
		if len(s.calls) > 0 {
			resp.StopReason = provider.ToolUse
		}
	}
	if ctx.Err() != nil {
		return provider.Response{}, context.Cause(ctx)
	}
	return resp, nil
}

func (m *stubModel) requests() []provider.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func calling(id, name, args string) provider.ToolCall {
	return provider.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
}

func call1(name, args string) step {
	return step{calls: []provider.ToolCall{calling("c1", name, args)}}
}

// stubTool does what its functions say.
type stubTool struct {
	name     string
	readOnly bool
	plan     func(args json.RawMessage) (tool.Action, error)
	run      func(ctx context.Context, a tool.Action, live func([]byte)) (tool.Result, error)

	mu   sync.Mutex
	runs []tool.Action
}

func (s *stubTool) Spec() tool.Spec {
	return tool.Spec{Name: s.name, Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: s.readOnly}
}

func (s *stubTool) Plan(_ context.Context, env tool.Env, args json.RawMessage) (tool.Action, error) {
	if s.plan != nil {
		return s.plan(args)
	}
	var a struct{ Command string }
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Action{}, err
	}
	return tool.Action{Command: a.Command, Cwd: env.Cwd}, nil
}

func (s *stubTool) Run(ctx context.Context, _ tool.Env, _ json.RawMessage, a tool.Action, live func([]byte)) (tool.Result, error) {
	s.mu.Lock()
	s.runs = append(s.runs, a)
	s.mu.Unlock()
	if s.run != nil {
		return s.run(ctx, a, live)
	}
	return tool.Result{Content: "ran " + a.Command}, nil
}

func (s *stubTool) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, a := range s.runs {
		out = append(out, a.Command)
	}
	return out
}

// approverFunc is an Approver.
type approverFunc func(ctx context.Context, q Question) (Decision, error)

func (f approverFunc) Approve(ctx context.Context, q Question) (Decision, error) { return f(ctx, q) }

func allowAll(context.Context, Question) (Decision, error) { return Decision{Allowed: true}, nil }

// recorder numbers and keeps events like the hub: live chunks are not stored and carry the last stored number.
type recorder struct {
	mu     sync.Mutex
	turn   wire.TurnID
	events []wire.EventMessage // stored
	live   []wire.EventMessage
	watch  func(wire.EventMessage) // may be nil
	images album
}

func (r *recorder) emit(m wire.EventMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.Meta().TurnID = r.turn
	if r.watch != nil {
		r.watch(m)
	}
	if c, ok := m.(*wire.AgentStreamChunk); ok && (c.Chunk.Type == wire.ChunkToolOutput || c.Chunk.Type == wire.ChunkToolCallDelta) {
		m.Meta().Seq = int64(len(r.events))
		r.live = append(r.live, m)
		return
	}
	r.events = append(r.events, m)
	m.Meta().Seq = int64(len(r.events))
}

// play runs a turn as the hub does, with its first and last event.
func (r *recorder) play(ctx context.Context, t Turn) Outcome {
	history := History(r.events).WithImages(r.images.kept)
	r.turn = wire.TurnID(fmt.Sprintf("t%d", len(r.events)))
	begun := &wire.TurnStarted{Agent: Orchestrator, Prompt: t.Prompt, Model: "stub/one"}
	r.emit(begun)
	t.History, t.StartSeq, t.Emit, t.Images = history, begun.Seq, r.emit, &r.images
	o := Run(ctx, complete(t))
	if f := o.Failure(); f != nil {
		r.emit(f)
	}
	r.emit(&wire.AgentComplete{Agent: o.Agent, Status: o.Status, StopReason: o.StopReason, Summary: o.Summary})
	return o
}

// complete returns a turn in which what must be set and is not has a value.
func complete(t Turn) Turn {
	if t.Role.Name == "" {
		t.Role = Role{Name: Orchestrator, System: "be good"}
	}
	if t.Approver == nil {
		t.Approver = approverFunc(allowAll)
	}
	if t.Environ == nil {
		t.Environ = func() map[string]string { return nil }
	}
	if t.Trusted == nil {
		t.Trusted = func(string) bool { return false }
	}
	if t.OpenModel == nil {
		t.OpenModel = func(string) (provider.Model, error) { return t.Model, nil }
	}
	if t.Budget.Spend == nil {
		t.Budget.Spend = func(usd float64) (float64, error) { return usd, nil }
	}
	t.Log, t.Env.Files = slog.New(slog.DiscardHandler), cmp.Or(t.Env.Files, &tool.FileLog{})
	t.Agents, t.Crew = cmp.Or(t.Agents, &Agents{}), noCrew{}
	t.MaxAgents, t.Threshold, t.Project = cmp.Or(t.MaxAgents, 4), cmp.Or(t.Threshold, 0.8), cmp.Or(t.Project, project.Root(t.Env.Cwd))
	return t
}

// noCrew has no agents in the background, and starts none.
type noCrew struct{ Crew }

func (noCrew) Find(string) (wire.SubAgent, bool) { return wire.SubAgent{}, false }

func (r *recorder) results() []*wire.CommandResult {
	var out []*wire.CommandResult
	for _, ev := range r.events {
		if m, ok := ev.(*wire.CommandResult); ok {
			out = append(out, m)
		}
	}
	return out
}

func (r *recorder) chunks(kind, agent string) []wire.Chunk {
	var out []wire.Chunk
	for _, ev := range slices.Concat(r.events, r.live) {
		if m, ok := ev.(*wire.AgentStreamChunk); ok && m.Chunk.Type == kind && (agent == "" || m.Agent == agent) {
			out = append(out, m.Chunk)
		}
	}
	return out
}

// mustBeValid fails where a provider would refuse the conversation.
func mustBeValid(t *testing.T, messages []provider.Message) {
	t.Helper()
	if err := validate(messages); err != nil {
		t.Errorf("%v in\n%s", err, show(messages))
	}
}

func validate(messages []provider.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if messages[0].Role != provider.User {
		return errors.New("does not begin with the user")
	}
	open := map[string]bool{}
	for i, m := range messages {
		if i > 0 && m.Role == messages[i-1].Role {
			return fmt.Errorf("message %d: %s twice in a row", i, m.Role)
		}
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d: empty", i)
		}
		results := 0
		for _, p := range m.Parts {
			switch {
			case p.ToolResult != nil:
				if !open[p.ToolResult.CallID] {
					return fmt.Errorf("message %d: result without a call", i)
				}
				delete(open, p.ToolResult.CallID)
				results++
				if p.ToolResult.Content == "" {
					return fmt.Errorf("message %d: empty result", i)
				}
			case p.ToolCall != nil:
				if open[p.ToolCall.ID] {
					return fmt.Errorf("message %d: id twice", i)
				}
				open[p.ToolCall.ID] = true
				var object map[string]any
				if json.Unmarshal(p.ToolCall.Arguments, &object) != nil {
					return fmt.Errorf("message %d: arguments are no object", i)
				}
			case p.Reasoning == nil && p.Image == nil && p.Text == "":
				return fmt.Errorf("message %d: empty text", i)
			}
		}
		if m.Role == provider.User && len(open) > 0 {
			return fmt.Errorf("message %d: %d calls without a result", i, len(open))
		}
	}
	return nil
}

func show(messages []provider.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s:", m.Role)
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				fmt.Fprintf(&b, " call(%s %s)", p.ToolCall.Name, p.ToolCall.Arguments)
			case p.ToolResult != nil:
				fmt.Fprintf(&b, " result(%.80s)", p.ToolResult.Content)
			case p.Reasoning != nil:
				fmt.Fprintf(&b, " reasoning(%s)", p.Reasoning.Text)
			default:
				fmt.Fprintf(&b, " %.160q", p.Text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// compact calls Compact with observers where c has none.
func compact(t *testing.T, c Compaction) (*wire.CompactionComplete, error) {
	c.Log = slog.New(slog.DiscardHandler)
	if c.Waiting == nil {
		c.Waiting = func(string) {}
	}
	if c.Started == nil {
		c.Started = func(*wire.CompactionStarted) {}
	}
	if c.Used == nil {
		c.Used = func(provider.Usage) {}
	}
	return Compact(t.Context(), c)
}
