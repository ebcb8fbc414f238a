package hub

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/proxy"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/lease/confine"
	"sublet/wire"
)

// Confiner is what holds commands to a reach on this machine.
type Confiner struct {
	Launcher string // the program; "" = there is none
	confine.Support
}

// confiner returns what holds commands here; the zero value where nothing does.
func (h *Hub) confiner() Confiner {
	if h.opts.Confine == nil {
		return Confiner{}
	}
	return h.opts.Confine()
}

// reach returns what a call would run with, by what it needs and what the agent asked for; "" where nothing can hold it, and
// the words decide alone.
func (a *approver) reach(q agent.Question, v risk.Verdict) risk.Reach {
	if !a.t.hub.confiner().Holds(confine.Project) {
		return ""
	}
	if q.Action.Command != "" && !q.Action.Private {
		ln, err := a.t.Lent()
		if err != nil || ln != nil && !ln.Confines() {
			return ""
		}
	}
	asked, known := risk.ParseReach(q.Action.Reach)
	if !known {
		asked = risk.ReachFree
	}
	if v.Reach == risk.ReachShell && asked.Confines() {
		return v.Reach // it changes the shell harmlessly, and in a child would do nothing
	}
	reach := risk.Wider(v.Reach, asked)
	_, cwd := a.t.origin.environ()
	if q.Action.Cwd != "" {
		cwd = wire.OSString(q.Action.Cwd)
	}
	if reach == risk.ReachProject && !isProject(project.Root(string(cwd)), lend.Home(nil)) {
		return risk.ReachFree
	}
	return reach
}

// system are the folders of the operating system, below which nothing is a project.
var system = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/lib", "/var/spool"}

// isProject reports whether a command may be allowed to write in the whole of root: not in a home, nor in a folder of settings in
// one, as ~/.config, nor in the system's.
func isProject(root, home string) bool {
	return filepath.IsAbs(root) && tooWide(root, home) == "" && !strings.HasPrefix(root, home+"/.")
}

// tooWide returns why a folder may not be written in as a whole, "" where it may.
func tooWide(dir, home string) string {
	switch {
	case secret.Under(home, dir):
		return "your home folder lies in it"
	case slices.ContainsFunc(system, func(s string) bool { return secret.Under(dir, s) || secret.Under(s, dir) }):
		return "it belongs to the operating system"
	}
	return ""
}

// CheckSettings returns the first value of the settings that this package cannot use.
func CheckSettings(c *config.Config) error {
	lists := map[string][]string{"policy.project.write": c.Policy.ProjectWrite}
	for _, host := range c.Policy.ProjectHosts {
		if err := proxy.CheckHost(host); err != nil {
			return fmt.Errorf("policy.project.hosts: %q: %w", host, err)
		}
	}
	for name, m := range c.MCP {
		lists["mcp."+name+".write"] = m.Write
	}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		for _, p := range lists[key] {
			if why := unwritable(inHome(p), lend.Home(nil)); why != "" {
				return fmt.Errorf("%s: %q cannot be opened: %s", key, p, why)
			}
		}
	}
	return nil
}

// unwritable is tooWide for a folder that is no project, with what starts by itself in projects and homes.
func unwritable(dir, home string) string {
	if why := tooWide(dir, home); why != "" {
		return why
	}
	for name := range strings.SplitSeq(dir, "/") {
		if name == ".git" || slices.Contains(confine.Protected, name) {
			return "what lies in " + name + " starts by itself, or decides what does"
		}
	}
	if rest, ok := strings.CutPrefix(dir, home+"/"); ok && risk.Starts(rest) {
		return "something in it starts by itself, or is secret"
	}
	return ""
}

// writable returns, of folders that the settings open to what is held to project, those that there are and in which nothing
// starts by itself, with their links resolved.
func writable(paths []string) (list []string) {
	for _, p := range paths {
		dir, err := filepath.EvalSymlinks(inHome(p))
		if err != nil || unwritable(dir, real(lend.Home(nil))) != "" || slices.ContainsFunc(append([]string{".git"}, confine.Protected...), func(name string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err == nil
		}) {
			continue
		}
		list = append(list, dir)
	}
	return list
}

// inHome is a path of the settings, in which ~ is the home folder.
func inHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(lend.Home(nil), rest)
	}
	return filepath.Clean(path)
}

// offered returns why a mode cannot be had here, nil where it can: what auto runs without a question must be held by the
// kernel.
func (h *Hub) offered(m policy.Mode) error {
	if m != policy.ModeAuto || h.opts.Confine == nil || h.confiner().Holds(confine.Project) {
		return nil
	}
	return fmt.Errorf("auto is offered only where the kernel holds what runs, and here it does not: %s", h.confiner().Missing)
}

// confinement describes what a command in cwd is held to. Home and caches are those of the daemon's own environment: in the
// shell's, an agent may have set HOME or GOCACHE.
func (h *Hub) confinement(reach, cwd string) confine.Spec {
	root := project.Root(cwd)
	s := confine.Spec{Reach: reach, Project: root, Hidden: h.secrets().Hidden(root), Caches: append(confine.Caches(lend.Home(nil), os.Getenv), writable(h.opts.Config().Policy.ProjectWrite)...)}
	if reach == confine.Project && len(h.opts.Config().Policy.ProjectHosts) > 0 {
		s.Proxy = h.opts.Proxy
	}
	return s
}

// secrets returns the files that hold secrets, by the settings in force.
func (h *Hub) secrets() secret.Table {
	p := h.opts.Config().Policy
	return secret.New(lend.Home(nil), p.Secrets, p.NotSecrets)
}
