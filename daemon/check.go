package daemon

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/reach"
	"sublet/lease/confine"
)

// AgentCheck describes one agent of another program.
type AgentCheck = hosted.About

// CheckAgents starts the agents of other programs that the settings name, concurrently and as the daemon would in this process's
// environment, opens a session of each in dir, and ends them; unless prompt is empty, each has to answer that first. Those that are only
// found on PATH follow; they are not started. It takes as long as the slowest, which may take wait for its start, and again for its answer.
func CheckAgents(ctx context.Context, c config.Config, version, dir, prompt string, wait time.Duration) []AgentCheck {
	env := lend.PrivateEnv(nil, nil)
	home, _ := os.UserHomeDir() // "" has no ~/ in a command
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Agents)), func(name string) bool { return len(c.Agents[name].Command) == 0 })
	list := make([]AgentCheck, len(names))
	folder, err := os.MkdirTemp("", hosted.Leftover)
	if err != nil {
		for i, name := range names {
			list[i] = AgentCheck{Name: name, Command: c.Agents[name].Command, Configured: true, Err: err}
		}
		return list
	}
	defer os.RemoveAll(folder)
	confiner := sync.OnceValue(func() reach.Confiner { return findConfiner(slog.New(slog.DiscardHandler)) })
	o := hosted.Options{Version: version, Folder: folder, Start: wait, Hold: func(a config.Agent, cwd string) (string, confine.Spec, error) {
		return reach.HoldAgent(confiner(), a, c.Policy, cwd)
	}}
	var started sync.WaitGroup
	for i, name := range names {
		started.Go(func() { list[i] = hosted.Check(ctx, o, name, c.Agents[name], env, home, dir, prompt) })
	}
	started.Wait()
	return append(list, hosted.Found(c.Agents, env, home)...)
}

// ServerCheck is the result of starting one MCP server.
type ServerCheck struct {
	What  string   // its command or address, in one line
	Tools []string // as agents call them
	Left  string   // tools that are left out, and why
	Reach string   // its confinement: read, project, free
	Err   error
}

// CheckServers starts all MCP servers of the settings concurrently, as the daemon would in this process's environment, lists
// their tools and ends them. It takes as long as the slowest, at most wait. The results are sorted by the servers' names.
func CheckServers(ctx context.Context, c config.Config, version string, wait time.Duration) []ServerCheck {
	confiner := findConfiner(slog.New(slog.DiscardHandler))
	hold := func(s mcp.Spec) (string, confine.Spec, error) { return reach.Hold(confiner, s) }
	s := mcp.New(mcp.Options{Version: version, Patience: wait, Start: wait, Hold: hold})
	defer s.Close()
	specs := mcp.FromConfig(c)
	s.Set(specs)
	at := mcp.Place{Env: lend.PrivateEnv(nil, nil)}
	at.Home, _ = os.UserHomeDir()
	tools, notes := s.Ready(ctx, at, nil)
	var checks []ServerCheck
	for _, n := range notes {
		c := ServerCheck{What: n.What, Left: n.LeftOut, Err: n.Err, Reach: "free"}
		for _, spec := range specs {
			if _, to, err := hold(spec); spec.Name == n.Server && err == nil && to.Reach != "" {
				c.Reach = to.Reach
			}
		}
		for _, t := range tools {
			if name := t.Spec().Name; strings.HasPrefix(name, mcp.Prefix+n.Server+"__") {
				c.Tools = append(c.Tools, name)
			}
		}
		checks = append(checks, c)
	}
	return checks
}

// findConfiner probes whether commands can be confined here. If not, the policy decides by the text of a command alone.
func findConfiner(log *slog.Logger) reach.Confiner {
	path, err := confine.Find()
	if err != nil {
		log.Warn("commands are not held to a reach", "err", err)
		return reach.Confiner{Support: confine.Support{Missing: err.Error()}}
	}
	support := confine.Probe(path)
	if support.Missing != "" {
		log.Warn("commands are not held to a reach", "why", support.Missing)
	} else {
		log.Info("commands are held to a reach", "by", support.How)
	}
	return reach.Confiner{Launcher: path, Support: support}
}
