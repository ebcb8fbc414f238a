package hub

import (
	"context"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// host plays a turn of an agent of another program. It is agent.Turn.Host.
func (t *turn) host(ctx context.Context, at agent.Turn) agent.Outcome {
	env := t.environ()
	return t.hub.opts.Hosted.Run(ctx, hosted.Turn{
		Of: at, Env: lend.PrivateEnv(env, nil), Home: lend.Home(env),
		Shell: func(cwd string) tool.Shell { return &lend.Shell{By: t, Cwd: cwd, NoteChanges: true} },
		Ask: func(ctx context.Context, arguments string) (*wire.CommandResult, error) {
			return t.askUser(ctx, at.Role.Name, arguments)
		},
	})
}

// hostedTool runs a tool for the MCP server of a hosted agent. The events are those of that agent's turn; this request is answered
// by the result alone.
func (c *Client) hostedTool(s *session, r *wire.ToolRequest) error {
	t := c.turn(s, r.RequestID)
	t.foreign = &foreign{} // it ends with the connection
	t.bare = func(ctx context.Context) error {
		res, err := c.hub.opts.Hosted.Call(ctx, r)
		if err != nil {
			return err
		}
		t.out()
		res.Event = wire.Event{RequestID: r.RequestID}
		c.Send(res)
		c.Send(&wire.AgentComplete{Event: res.Event, Status: wire.StatusSuccess, ToolsExecuted: []string{}, Refused: []wire.RefusedTool{}})
		return nil
	}
	return c.hub.enqueue(t)
}
