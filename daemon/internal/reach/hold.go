package reach

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sublet/daemon/config"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/lease/confine"
)

// fetched are the folders of a home in which programs that fetch servers put them.
var fetched = map[string][]string{"npx": {".npm/_cacache", ".npm/_npx"}, "uvx": {".cache/uv", ".local/share/uv"}}

// elsewhere are programs that have another process run the server, through a socket that a confined process cannot reach.
var elsewhere = []string{"docker", "podman"}

// Hold returns the launcher that c starts a server with, and what it holds the server to. The launcher is "" for a server that runs
// free: by its settings or, if they name no reach, because nothing can confine it. A confined server has the network, without which
// few are of use.
func Hold(c Confiner, s mcp.Spec) (launcher string, to confine.Spec, err error) {
	program := filepath.Base(s.Command)
	switch {
	case s.Reach == string(risk.ReachFree), s.Reach == "" && (!c.Holds() || slices.Contains(elsewhere, program)):
		return "", to, nil
	case !c.Holds():
		return "", to, notHeld(c, s.Reach)
	}
	home := Home()
	to = confine.Spec{
		Reach: cmp.Or(s.Reach, confine.Project), Network: true, Hidden: secret.New(home, s.Secrets, s.NotSecrets).Hidden(""),
		Caches: append(confine.Caches(home, os.Getenv), Writable(s.Write)...), Kept: confine.KeptHome(home, ""),
	}
	for _, name := range fetched[program] {
		dir := filepath.Join(home, name)
		if err := os.MkdirAll(dir, 0o755); err != nil { // what is not there cannot be made writable
			return "", to, err
		}
		to.Caches = append(to.Caches, dir)
	}
	slices.Sort(to.Caches)
	to.Caches = slices.Compact(to.Caches)
	return c.Launcher, to, nil
}

func notHeld(c Confiner, reach string) error {
	return fmt.Errorf("it must be confined to %s, and this machine cannot do that: %s", reach, c.Missing)
}

// HoldAgent is Hold for an agent of another program that works in cwd. With the reach project it writes in its project, which
// must be one (IsProject). It has the network.
func HoldAgent(c Confiner, a config.Agent, p config.Policy, cwd string) (launcher string, to confine.Spec, err error) {
	switch {
	case a.Reach == "", a.Reach == string(risk.ReachFree):
		return "", to, nil
	case !c.Holds():
		return "", to, notHeld(c, a.Reach)
	}
	to = Confinement(p, "", a.Reach, cwd)
	if a.Reach == confine.Project && !IsProject(to.Project, Home()) {
		return "", to, fmt.Errorf("it must be confined to a project, and %s is too wide to be one", to.Project)
	}
	to.Network, to.Kept, to.Inert = true, confine.KeptHome(Home(), to.Project), confine.Inert(Home())
	return c.Launcher, to, nil
}
