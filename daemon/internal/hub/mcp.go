package hub

import (
	"context"
	"slices"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// setServers takes over the MCP servers that a client brought along; nil changes nothing. They are started when one of
// its turns needs them, and end with its connection and its last turn. Neither they nor what is wrong with them is stored
// or logged with its values.
func (c *Client) setServers(list []wire.MCPServer, cwd wire.OSString) {
	if list == nil {
		return
	}
	specs, faults := mcp.FromClient(list, string(cwd))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers == nil {
		c.servers = mcp.New(mcp.Options{Version: c.hub.opts.Version, Log: c.hub.log}) // Detach retires it
	}
	c.servers.Set(specs)
	c.faults = faults
}

// ownServers returns the MCP servers that the client brought along, nil for none, and what is wrong with others that it brought.
func (c *Client) ownServers() (servers *mcp.Servers, faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers, c.faults
}

// serverTools are the tools of MCP servers that a role may have in this turn, of the settings' servers and of the
// client's. It starts the servers that are needed, and leaves out those that are not ready in time. Faults become notices in
// the turn, once in a session. only, if it is not nil, is the request's own allow-list.
func (t *turn) serverTools(ctx context.Context, role agent.Role, only []string) []tool.Tool {
	remote := func(name string) bool { return strings.HasPrefix(name, mcp.Prefix) }
	if !role.OffersServers() || only != nil && !slices.ContainsFunc(only, remote) {
		return nil
	}
	settings := t.hub.opts.Config().MCP
	own, faults := t.origin.ownServers()
	if len(settings) == 0 && own == nil {
		return nil
	}
	for _, f := range faults {
		t.notify(f, f)
	}
	env, _ := t.origin.environ()
	return mcp.Offer{
		Settings: t.hub.opts.MCP, Client: own, Only: only, At: mcp.Place{Env: lend.PrivateEnv(env, nil), Home: lend.Home(env)}, Held: t.cleanup, Notify: t.notify,
		Taken: func(name string) bool { _, taken := settings[name]; return taken },
	}.Tools(ctx)
}

// notify emits a notice in the turn, once in the session for each key.
func (t *turn) notify(key, text string) {
	if t.s.firstTime(key) {
		t.emitFromAgent(&wire.AgentStreamChunk{Agent: t.agent, Chunk: wire.Chunk{Type: wire.ChunkNotice, Text: text}})
	}
}

// firstTime reports whether it is called for the first time with this key. It forgets the keys after a thousand.
func (s *session) firstTime(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noticed[key] {
		return false
	}
	if s.noticed == nil || len(s.noticed) > 1000 {
		s.noticed = map[string]bool{}
	}
	s.noticed[key] = true
	return true
}
