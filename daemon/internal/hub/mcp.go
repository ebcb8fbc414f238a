package hub

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxServers bounds the MCP servers of one client, maxServerTools the tools of all servers that one turn has.
const (
	maxServers     = 32
	maxServerTools = 128
)

// bring takes over the MCP servers that a client brought along; nil: it says nothing of them. They are started when one of
// its turns needs them, and end with its connection and its last turn. Neither they nor what is wrong with them is stored
// or logged with its values.
func (c *Client) bring(list []wire.MCPServer, cwd wire.OSString) {
	if list == nil {
		return
	}
	var specs []mcp.Spec
	var faults []string
	for i, m := range list {
		spec, err := specOf(m, string(cwd))
		switch {
		case err == nil && slices.ContainsFunc(specs, func(s mcp.Spec) bool { return s.Name == spec.Name }):
			err = fmt.Errorf("another one is called %s", spec.Name)
		case err == nil && i >= maxServers:
			err = fmt.Errorf("more than %d", maxServers)
		}
		if err != nil {
			if len(faults) < 4 {
				faults = append(faults, fmt.Sprintf("The MCP server %q of the client is not used: %v.", visible.Exact(visible.Cut(m.Name, 64)), err))
			}
			continue
		}
		specs = append(specs, spec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.detached {
		return
	}
	if c.servers == nil {
		c.servers = mcp.New(mcp.Options{Version: c.hub.opts.Version, Log: c.hub.log}) // Detach retires it
	}
	c.servers.Set(specs)
	c.faults = faults
}

// specOf checks one server of a client's.
func specOf(m wire.MCPServer, cwd string) (mcp.Spec, error) {
	s := mcp.Spec{
		Name: mcp.Name(m.Name), Command: string(m.Command), URL: m.URL, Headers: m.Headers, Dir: cwd, Passing: true, Reach: string(risk.ReachFree),
		Env: make(map[string]string, len(m.Env)),
	}
	for _, a := range m.Args {
		s.Args = append(s.Args, string(a))
	}
	for name, value := range m.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(string(value), 0) {
			return s, fmt.Errorf("%q cannot be a variable", visible.Exact(visible.Cut(name, 64)))
		}
		s.Env[name] = string(value)
	}
	switch {
	case s.Name == "":
		return s, fmt.Errorf("its name has no letter and no digit")
	case (s.Command == "") == (s.URL == ""):
		return s, fmt.Errorf("it needs either a command or a url")
	case s.URL != "" && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://"):
		return s, fmt.Errorf("its url is not an http or https address")
	case strings.ContainsRune(s.Command+strings.Join(s.Args, ""), 0):
		return s, fmt.Errorf("its command holds a NUL")
	}
	return s, nil
}

// fetched are the folders of a home in which programs that fetch servers put them.
var fetched = map[string][]string{"npx": {".npm/_cacache", ".npm/_npx"}, "uvx": {".cache/uv", ".local/share/uv"}}

// elsewhere are programs that have others run a server, and need a socket for that which nothing held has.
var elsewhere = []string{"docker", "podman"}

// Hold returns the launcher that c starts a server with, and what it holds the server to; "" for one that runs free, by its
// settings or, where they say nothing, because nothing can hold it. It has the network, without which few are of use.
func Hold(c Confiner, s mcp.Spec) (launcher string, to confine.Spec, err error) {
	program := filepath.Base(s.Command)
	switch {
	case s.Reach == string(risk.ReachFree), s.Reach == "" && (!c.Holds(confine.Project) || slices.Contains(elsewhere, program)):
		return "", to, nil
	case !c.Holds(confine.Project):
		return "", to, fmt.Errorf("it is to be held to %s, and nothing does that here: %s", s.Reach, c.Missing)
	}
	user := lend.Home(nil)
	to = confine.Spec{
		Reach: cmp.Or(s.Reach, confine.Project), Network: true, Hidden: secret.New(user, s.Secrets, s.NotSecrets).Hidden(""),
		Caches: append(confine.Caches(user, os.Getenv), writable(s.Write)...), Kept: confine.KeptHome(user),
	}
	for _, name := range fetched[program] {
		dir := filepath.Join(user, name)
		if err := os.MkdirAll(dir, 0o755); err != nil { // what is not there cannot be made writable
			return "", to, err
		}
		to.Caches = append(to.Caches, dir)
	}
	slices.Sort(to.Caches)
	to.Caches = slices.Compact(to.Caches)
	return c.Launcher, to, nil
}

// brought is what bring took.
func (c *Client) brought() (servers *mcp.Servers, faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers, c.faults
}

// serverTools are the tools of MCP servers that a role may have in this turn, of the settings' servers and of the
// client's. Servers that are needed are started, as far as they are ready in time; what the user should know of that is
// told in the turn, once. only, if it is not nil, is the request's own allow-list.
func (t *turn) serverTools(ctx context.Context, role agent.Role, only []string) []tool.Tool {
	remote := func(name string) bool { return strings.HasPrefix(name, mcp.Prefix) }
	if !role.OffersServers() || only != nil && !slices.ContainsFunc(only, remote) {
		return nil
	}
	settings := t.hub.opts.Config().MCP
	own, faults := t.origin.brought()
	if len(settings) == 0 && own == nil {
		return nil
	}
	for _, f := range faults {
		t.tell(f, f)
	}
	env := t.environ()
	at := mcp.Place{Env: lend.PrivateEnv(env, nil), Home: lend.Home(env)}
	var tools []tool.Tool
	for _, from := range []*mcp.Servers{t.hub.opts.MCP, own} {
		if from == nil || from.Empty() {
			continue
		}
		t.later(from.Hold())
		list, notes := from.Ready(ctx, at, func(name string) bool {
			if _, taken := settings[name]; taken && from == own {
				t.tell(name, fmt.Sprintf("The MCP server %s of the client is not used: the settings have one of that name.", name))
				return true
			}
			return only != nil && !slices.ContainsFunc(only, func(entry string) bool { return mayName(entry, name) })
		})
		tools = append(tools, list...)
		for _, n := range notes {
			t.tellServer(n, from == own)
		}
	}
	if len(tools) > maxServerTools {
		t.tell("tools", fmt.Sprintf("MCP servers have %d tools together; agents have the first %d.", len(tools), maxServerTools))
		tools = tools[:maxServerTools]
	}
	return tools
}

// mayName tells whether an entry of an allow-list can name a tool of a server.
func mayName(entry, server string) bool {
	head, wild := strings.CutSuffix(entry, "*")
	begin := mcp.Prefix + server + "__"
	return strings.HasPrefix(entry, begin) || wild && strings.HasPrefix(begin, head)
}

// usesServers reports whether a model calls tools that it is told of: the built-in one knows its own only.
func usesServers(m provider.Model) bool { return m.Info().Kind != "offline" }

// tellServer tells what became of a server, in the turn.
func (t *turn) tellServer(n mcp.Note, clients bool) {
	whose := "MCP server " + n.Server
	if clients {
		whose = "client's " + whose
	}
	key := fmt.Sprint(whose, n.Number, n.Err)
	switch {
	case n.Err != nil:
		t.tell(key, fmt.Sprintf("The %s cannot be used (%s): %v. The turn goes on without its tools.", whose, n.What, n.Err))
	case clients:
		t.tell(key, fmt.Sprintf("The %s is in use: %s", whose, n.What))
	}
	if n.Left != "" {
		t.tell(key+n.Left, fmt.Sprintf("Tools of the %s that are left out: %s.", whose, n.Left))
	}
}

// tell puts a notice into the turn, once in the session for each key.
func (t *turn) tell(key, text string) {
	s := t.s
	s.mu.Lock()
	told := s.told[key]
	if !told {
		if s.told == nil || len(s.told) > 1000 {
			s.told = map[string]bool{}
		}
		s.told[key] = true
	}
	s.mu.Unlock()
	if !told {
		t.fromAgent(&wire.AgentStreamChunk{Agent: t.agent, Chunk: wire.Chunk{Type: wire.ChunkNotice, Text: text}})
	}
}
