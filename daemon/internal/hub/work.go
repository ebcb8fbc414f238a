package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Ask begins a turn of an agent, or gives the question to the turn that runs. It returns an error if the request is refused
// before it began; afterwards the turn's own AgentComplete is the answer.
func (c *Client) Ask(ctx context.Context, r *wire.AgentRequest) error {
	t, role, err := c.newTurn(ctx, r.RequestID, r)
	if err != nil {
		return err
	}
	// What runs in a shell that agents use does not speak as the user in their turn.
	if r.Options.Steer && len(r.Attachments) == 0 && c.mayDecide() == nil {
		t.steers = t.s.running()
	}
	t.work = func(ctx context.Context, t *turn) agent.Outcome { return t.converse(ctx, role, r) }
	return c.hub.enqueue(t)
}

// Show answers what Ask would send to the model first. It waits its turn in the session, as Ask does.
func (c *Client) Show(ctx context.Context, r *wire.ShowRequest) error {
	t, role, err := c.newTurn(ctx, r.RequestID, &r.Request)
	if err != nil {
		return err
	}
	t.serve = func(ctx context.Context) (wire.Message, error) {
		at, err := t.conversation(ctx, role, &r.Request)
		if err != nil {
			return nil, err
		}
		if at.Model == nil {
			return nil, fmt.Errorf("%s is a program that asks its own model", role.Name)
		}
		return &wire.ShowReply{RequestID: r.RequestID, Model: at.Model.Info().Name, Parts: agent.Preview(ctx, at)}, nil
	}
	return c.hub.enqueue(t)
}

// newTurn makes a turn of a question, with the role that answers it. The caller enqueues it: the turn has a hold on its session,
// which newTurn has released if it returns an error.
func (c *Client) newTurn(ctx context.Context, id wire.RequestID, r *wire.AgentRequest) (*turn, agent.Role, error) {
	none := agent.Role{}
	if err := agent.CheckRequest(r); err != nil {
		return nil, none, invalid("%v", err)
	}
	mode, err := policy.ParseMode(r.Options.Mode)
	if err == nil {
		err = c.hub.modeUnavailable(mode)
	}
	if err != nil {
		return nil, none, invalid("options.mode: %v", err)
	}
	if c.lender != nil && !strings.HasPrefix(r.Prompt, agent.WakeHead) {
		c.lender.Typed(time.Now())
	}
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return nil, none, err
	}
	o := r.Options
	wider := o.Mode != "" && judge.Stricter(mode, s.policyMode()) != mode
	if wider || o.System+o.AppendSystem != "" || o.MaxSteps > agent.DefaultMaxSteps {
		if err := c.mayDecide(); err != nil {
			c.hub.release(s)
			return nil, none, err
		}
	}
	if r.Context.Cwd == "" {
		_, r.Context.Cwd = c.environ()
	}
	if len(r.Context.RecentCommands) == 0 {
		r.Context.RecentCommands = s.recentCommands()
	}
	name := cmp.Or(r.Agent, agent.Orchestrator)
	roles, faults := c.hub.roles(project.Root(string(r.Context.Cwd)))
	role, ok := roles[name]
	if !ok {
		c.hub.release(s)
		return nil, none, fmt.Errorf("%w: %q%s", ErrNoAgent, visible.Exact(visible.Cut(name, 64)), agent.Faults(faults))
	}
	t := c.turn(s, id)
	t.agent, t.prompt = role.Name, r.Prompt
	t.model = cmp.Or(r.Options.Model, role.Model, c.hub.opts.Config().Model)
	if role.Hosted != nil {
		t.model = role.Model
	}
	t.mode, t.wider, t.approve = r.Options.Mode, wider, r.Options.RequireApproval
	t.timeout = time.Duration(r.Options.TimeoutMS) * time.Millisecond
	return t, role, nil
}

// converse plays one agent's turn.
func (t *turn) converse(ctx context.Context, role agent.Role, r *wire.AgentRequest) agent.Outcome {
	t.askTrust(ctx, string(r.Context.Cwd))
	at, err := t.conversation(ctx, role, r)
	if err != nil {
		return t.failed(ctx, err)
	}
	return agent.Run(ctx, at)
}

// conversation returns the agent's turn that answers r, with the conversation of the session before it.
func (t *turn) conversation(ctx context.Context, role agent.Role, r *wire.AgentRequest) (at agent.Turn, err error) {
	h := t.hub
	at = t.agentTurn(role, string(r.Context.Cwd))
	at.Prompt, at.Attachments, at.Context, at.Options = r.Prompt, r.Attachments, r.Context, r.Options
	if at.History, at.StartSeq, err = t.s.history(ctx, t.id); err != nil || role.Hosted != nil { // which has its own model and memory
		return at, err
	}
	if at.History, err = t.s.withImages(ctx, at.History); err != nil {
		return at, err
	}
	if at.Model, err = h.opts.OpenModel(ctx, t.model, t.origin.creds); err != nil {
		return at, err
	}
	at.Role.System = cmp.Or(r.Options.System, role.System)
	if r.Options.AppendSystem != "" {
		at.Role.System += "\n\n" + r.Options.AppendSystem
	}
	at.MaxSteps, at.Agents, at.Crew = r.Options.MaxSteps, &t.s.memory.Agents, t.hub.crew.For(host{t.s, t})
	if t.parent != nil { // as a sub-agent in a turn
		at.Name, at.Env.Agent, at.Roles, at.Reports, at.MaxSteps = t.agent, t.agent, nil, true, agent.MaxSubSteps
	}
	at.Budget.Before = t.s.spentBefore(strings.HasPrefix(r.Prompt, agent.WakeHead))
	if most := r.Options.MaxCostUSD; most > 0 && (at.Budget.Turn == 0 || most < at.Budget.Turn) {
		at.Budget.Turn = most
	}
	if at.Model.Info().Kind != "offline" { // which knows only its own tools
		at.Tools = append(at.Tools, t.serverTools(ctx, role, r.Options.Tools)...)
	}
	at.Env.Recall = func(ctx context.Context, query string) (string, error) {
		events, err := t.hub.opts.Store.AllEvents(ctx, t.s.id)
		if err != nil {
			return "", err
		}
		return agent.Recall(events, query), nil
	}
	at.Images, at.Steering = store.TurnImages{Store: h.opts.Store, Session: t.s.id, Turn: t.id}, t.takeSteering
	at.Mode = string(t.policy(ctx, agent.Question{Mode: role.Mode, Action: tool.Action{Cwd: string(r.Context.Cwd)}}).Mode)
	if t.parent == nil { // else plan mode is that of another session, which a sub-agent cannot end
		at.Propose = t.propose(role, string(r.Context.Cwd))
	}
	at.Options.Thinking = cmp.Or(r.Options.Thinking, h.opts.Config().Thinking)
	if name := h.opts.Config().Models.Compaction; name != "" {
		if at.Compactor, err = h.opts.OpenModel(ctx, name, t.origin.creds); err != nil {
			t.hub.log.Warn("the model for summaries cannot be used; the conversation's own writes them", "model", name, "err", err)
		}
	}
	at.OpenModel = func(name string) (provider.Model, error) { return h.opts.OpenModel(ctx, name, t.origin.creds) }
	return at, nil
}

// gitTime bounds the look at a project's git tree at the start of a turn, which must not wait for a huge tree.
const gitTime = 500 * time.Millisecond

// agentTurn returns an agent.Turn with what every turn of the role in the folder has in common.
func (t *turn) agentTurn(role agent.Role, cwd string) agent.Turn {
	cfg := t.hub.opts.Config()
	root := project.Root(cwd)
	roles, faults := t.hub.roles(root)
	for _, err := range faults {
		text := visible.Exact(err.Error())
		t.notify("role "+text, "A role is not valid: "+text)
	}
	at := agent.Turn{
		Role: role, Tools: agent.Tools(cfg, roles), Approver: t, Emit: t.emitFromAgent,
		Log: t.hub.log, ShowSecrets: t.policySession().policy.ShowSecrets.Load, Team: agent.Team{Roles: roles, NewPrivateShell: t.newPrivateShell, Host: t.playHosted},
		Env:   tool.Env{Cwd: cwd, Spool: t.hub.opts.Spool, CheckTime: cfg.Limits.CheckTime.Duration, Secrets: reach.Secrets(cfg.Policy), Files: &t.s.files, Jobs: t.hub.jobs, Session: string(t.s.id)},
		Place: agent.Place{Project: root, Environ: t.exported, Trusted: t.hub.trusts, Jobs: func() string { return t.hub.jobs.Summary(string(t.s.id)) }, GitTime: gitTime, Instructions: t.hub.opts.Instructions},
		Bounds: agent.Bounds{
			Threshold: cfg.Compaction.Threshold, MaxAgents: cfg.Limits.MaxAgents,
			Budget: agent.Budget{Turn: cfg.Limits.CostTurn, Day: cfg.Limits.CostDay, Spend: t.spend},
		},
	}
	t.setCheckers(&at.Env)
	if !role.Private {
		sh := &lend.Shell{By: t}
		at.Env.Shell, at.Shell = sh, sh.Name()
	}
	return at
}

// toolTurn returns the agent.Turn of one tool without a model, with the conversation of the session, in which the tool todo reads the plan.
func (t *turn) toolTurn(ctx context.Context, role agent.Role, cwd string) (at agent.Turn, err error) {
	at = t.agentTurn(role, cwd)
	at.Roles = nil
	at.History, _, err = t.s.history(ctx, t.id)
	return at, err
}

// roles are those that exist in the project at root, its own among them where it is trusted.
func (h *Hub) roles(root string) (map[string]agent.Role, []error) {
	if !h.trusts(root) {
		root = ""
	}
	return agent.Roles(h.opts.Config(), root)
}

// spend adds what a request cost to the day's, which it returns.
func (t *turn) spend(usd float64) (today float64, err error) {
	t.s.mu.Lock()
	t.s.spent += usd
	t.s.mu.Unlock()
	if today, err = t.hub.opts.Store.Spend(context.WithoutCancel(t.ctx), time.Now().Format(time.DateOnly), usd); err != nil {
		t.hub.log.Warn("what a request cost is not recorded", "usd", usd, "err", err)
	}
	return today, err
}

// spentBefore returns what the session has cost since its last prompt of a person. A turn that a job woke goes on with that: an
// agent that has itself woken spends no fresh budget.
func (s *session) spentBefore(woken bool) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !woken {
		s.spent = 0
	}
	return s.spent
}

// history is the conversation before the turn, and the number of the turn's first event. It is called by the turn that runs.
func (s *session) history(ctx context.Context, id wire.TurnID) (agent.Conversation, int64, error) {
	return s.memory.Thread.History(id, func(after int64) ([]wire.EventMessage, bool, error) {
		return s.hub.opts.Store.Events(ctx, s.id, after, eventlog.Page)
	})
}

// recentCommands returns the user's own last commands in the session, for a request that names none.
func (s *session) recentCommands() []wire.RecentCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]wire.RecentCommand{}, s.recent...)
}

// Tool runs one tool for a person or a script, under the same policy: a turn without a model.
func (c *Client) Tool(ctx context.Context, r *wire.ToolRequest) error {
	role := agent.Role{Name: "you"}
	if r.Hosted != "" {
		return c.hostedTool(c.held(), r)
	}
	known := strings.HasPrefix(r.Tool, mcp.Prefix) || r.Tool == wire.ToolAskUser && r.Borrower.Name != ""
	for _, t := range agent.Tools(c.hub.opts.Config(), nil) {
		known = known || t.Spec().Name == r.Tool && r.Tool != "task"
	}
	if !known {
		return fmt.Errorf("%w: %q", ErrNoTool, visible.Exact(visible.Cut(r.Tool, 64)))
	}
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return err
	}
	cwd := string(r.Cwd)
	if cwd == "" {
		_, own := c.environ()
		cwd = string(own)
	}
	t := c.turn(s, r.RequestID)
	if r.Borrower.Name != "" {
		if t.foreign, err = c.foreign(r); err != nil {
			c.hub.release(s)
			return err
		}
		t.attached, t.agent, t.work = true, t.foreign.Name, t.foreign.work(r, cwd)
		return c.hub.enqueue(t)
	}
	t.agent = role.Name
	inside := c.person()
	t.work = func(ctx context.Context, t *turn) agent.Outcome {
		at, err := t.toolTurn(ctx, role, cwd)
		if err != nil {
			return t.failed(ctx, err)
		}
		at.Env.NoKill = inside
		if strings.HasPrefix(r.Tool, mcp.Prefix) {
			at.Tools = append(at.Tools, t.serverTools(ctx, role, []string{r.Tool})...)
		}
		return agent.RunTool(ctx, at, r.Tool, json.RawMessage(r.Arguments))
	}
	return c.hub.enqueue(t)
}

// failed is the outcome of a turn that ends before its agent runs.
func (t *turn) failed(ctx context.Context, err error) agent.Outcome {
	out := failed(ctx, err)
	out.Agent, out.Model = t.agent, t.model
	return out
}

// withImages returns a conversation of the session with the images that were kept with its events.
func (s *session) withImages(ctx context.Context, c agent.Conversation) (agent.Conversation, error) {
	images, err := s.hub.opts.Store.Images(ctx, s.id, picture.MaxRequest)
	return c.WithImages(images), err
}
