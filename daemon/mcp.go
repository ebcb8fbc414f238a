package daemon

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/reach"
	"sublet/lease/confine"
)

// ServerCheck is the result of starting one MCP server.
type ServerCheck struct {
	What  string   // its command or address, in one line
	Tools []string // as agents call them
	Left  string   // tools that are left out, and why
	Reach string   // its confinement: read, project, free
	Err   error
}

// CheckServers starts all MCP servers of the settings concurrently, as the daemon would in this process's environment, lists
// their tools and ends them. It takes as long as the slowest, at most wait.
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
		c := ServerCheck{What: n.What, Left: n.Left, Err: n.Err, Reach: "free"}
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
