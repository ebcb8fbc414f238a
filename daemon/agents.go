package daemon

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/reach"
	"sublet/lease/confine"
)

// AgentCheck describes one agent of another program.
type AgentCheck = hosted.About

// CheckAgents starts the agents of other programs that the settings name, concurrently and as the daemon would in this process's
// environment, opens a session of each in dir, and ends them. Those that are only found on PATH follow; they are not started. It
// takes as long as the slowest, at most wait.
func CheckAgents(ctx context.Context, c config.Config, version, dir string, wait time.Duration) []AgentCheck {
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
		started.Go(func() { list[i] = hosted.Check(ctx, o, name, c.Agents[name], env, home, dir) })
	}
	started.Wait()
	return append(list, hosted.Found(c.Agents, env, home)...)
}
