package hub

import (
	"context"
	"fmt"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// playHosted plays a turn of an agent of another program. It is agent.Turn.Host.
func (t *turn) playHosted(ctx context.Context, at agent.Turn) agent.Outcome {
	return t.hub.opts.Hosted.Run(ctx, t.hostedTurn(at))
}

// hostedTurn returns what package hosted needs of a turn: its private environment, its shell and its user.
func (t *turn) hostedTurn(at agent.Turn) hosted.Turn {
	env, _ := t.origin.environ()
	return hosted.Turn{
		Of: at, Env: lend.PrivateEnv(env, nil), Home: lend.Home(env),
		Shell: func(cwd string, watch func([]byte)) tool.Shell {
			return &lend.Shell{By: t, Cwd: cwd, Watch: watch}
		},
		Private: t.privateShell,
		Ask: func(ctx context.Context, arguments string) (*wire.CommandResult, error) {
			return t.askUser(ctx, at.Role.Name, arguments)
		},
	}
}

// hostedModels answers with the models and modes of an agent of another program, after setting r.Mode. If it does not run in the
// connection's session, it is started there, after the session's turns. answerLater and enqueue release the session.
func (c *Client) hostedModels(r *wire.ModelsRequest) error {
	reply := &wire.ModelsReply{RequestID: r.RequestID, Models: []wire.Model{}, Faults: []wire.ModelFault{}, Modes: []string{}}
	_, cwd := c.environ()
	roles, faults := c.hub.roles(project.Root(string(cwd)))
	role, ok := roles[r.Agent]
	if !ok {
		return fmt.Errorf("%w: %q%s", ErrNoAgent, visible.Exact(visible.Cut(r.Agent, 64)), agent.Faults(faults))
	}
	if role.Hosted == nil {
		c.Send(reply)
		return nil
	}
	if r.Mode != "" {
		if err := c.mayDecide(); err != nil {
			return err
		}
	}
	s, agents := c.held(), c.hub.opts.Hosted
	offers := func(ctx context.Context) (wire.Message, error) {
		o, err := agents.Offer(ctx, string(s.id), role.Name, r.Mode)
		if err != nil {
			return nil, err
		}
		for _, id := range o.Models {
			reply.Models = append(reply.Models, wire.Model{Name: id})
		}
		reply.Agent, reply.Model, reply.Mode, reply.Modes = role.Name, o.Model, o.Mode, o.Modes
		return reply, nil
	}
	if agents.Runs(string(s.id), role.Name) {
		return c.answerLater(&operation{request: r.RequestID}, s, offers)
	}
	t := c.turn(s, r.RequestID)
	t.agent, t.model = role.Name, role.Model
	t.serve = func(ctx context.Context) (_ wire.Message, err error) {
		at := t.agentTurn(role, string(cwd))
		if at.History, at.StartSeq, err = s.history(ctx, t.id); err != nil {
			return nil, err
		}
		if err := agents.Begin(ctx, t.hostedTurn(at)); err != nil {
			return nil, err
		}
		return offers(ctx)
	}
	return c.hub.enqueue(t)
}

// hostedTool runs a tool for the MCP server of a hosted agent. Hosted.Call has it judged, and emits its events, in the turn of that
// agent. A CommandResult and an AgentComplete, both without a turn, answer this request.
func (c *Client) hostedTool(s *session, r *wire.ToolRequest) error {
	t := c.turn(s, r.RequestID)
	t.attached = true
	t.serve = func(ctx context.Context) (wire.Message, error) {
		res, err := c.hub.opts.Hosted.Call(ctx, r)
		if err != nil {
			return nil, err
		}
		res.Event = wire.Event{RequestID: r.RequestID}
		c.Send(res)
		return &wire.AgentComplete{Event: res.Event, Status: wire.StatusSuccess, ToolsExecuted: []string{}, Refused: []wire.RefusedTool{}}, nil
	}
	return c.hub.enqueue(t)
}
