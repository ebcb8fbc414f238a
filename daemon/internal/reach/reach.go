// Package reach decides, from the settings, how commands, checkers, language servers and MCP servers are confined on this
// machine: which folders they may write in, which files they cannot read. Package confine describes it to the launcher.
package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/proxy"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/lease/confine"
)

// Confiner is what holds commands to a reach on this machine.
type Confiner struct {
	Launcher string // the program; "" = there is none
	confine.Support
}

// system are the folders of the operating system, below which nothing is a project.
var system = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/lib", "/var/spool", "/Applications", "/Library", "/System", "/private/etc"}

// IsProject reports whether a command may be allowed to write in all of root. It is false for a home, a hidden folder in one such as
// ~/.config, a folder of the system, a link to one of these, and a folder that one of the home's settings is a link to.
func IsProject(root, home string) bool {
	for _, h := range []string{home, Real(home)} {
		for _, at := range []string{root, Real(root)} {
			if !filepath.IsAbs(at) || tooWide(at, h) != "" || strings.HasPrefix(at, h+"/.") {
				return false
			}
		}
	}
	return !slices.ContainsFunc(confine.SettingsLinks(home), func(at string) bool { return secret.Under(Real(root), at) })
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

// CheckSettings returns an error for the first value of the settings that cannot be used.
func CheckSettings(c *config.Config) error {
	lists := map[string][]string{"policy.project.write": c.Policy.Project.Write}
	for _, host := range c.Policy.Project.Hosts {
		if err := proxy.CheckHost(host); err != nil {
			return fmt.Errorf("policy.project.hosts: %q: %w", host, err)
		}
	}
	for name, m := range c.MCP {
		lists["mcp."+name+".write"] = m.Write
	}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		for _, p := range lists[key] {
			if why := unwritable(inHome(p), Home()); why != "" {
				return fmt.Errorf("%s: %q cannot be opened: %s", key, p, why)
			}
		}
	}
	return nil
}

// unwritable returns why the settings may not open a folder for writing, "" if they may: it is too wide, or programs run or obey
// something in it unasked (.git, confine.Protected, and what risk.Starts knows of a home).
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

// Writable returns those of the folders in the settings that exist and in which nothing starts by itself, with links resolved.
// Commands with the reach project may write in them.
func Writable(paths []string) (list []string) {
	for _, p := range paths {
		dir, err := filepath.EvalSymlinks(inHome(p))
		if err != nil || unwritable(dir, Real(Home())) != "" || slices.ContainsFunc(append([]string{".git"}, confine.Protected...), func(name string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err == nil
		}) || slices.ContainsFunc(confine.SettingsLinks(Home()), func(at string) bool { return secret.Under(at, dir) || secret.Under(dir, at) }) {
			continue
		}
		list = append(list, dir)
	}
	return list
}

// inHome is a path of the settings, in which ~ is the home folder.
func inHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(Home(), rest)
	}
	return filepath.Clean(path)
}

// Confinement describes what a command in cwd is held to. Home and caches are those of the daemon's own environment: in the
// shell's, an agent may have set HOME or GOCACHE. proxy is the socket of the proxy through which commands with the reach project
// reach the allowed hosts.
func Confinement(p config.Policy, proxy, reach, cwd string) confine.Spec {
	root := Real(project.Root(cwd)) // a link may be led elsewhere before the command starts
	s := confine.Spec{Reach: reach, Project: root, Hidden: Secrets(p).Hidden(root), Caches: append(confine.Caches(Home(), os.Getenv), Writable(p.Project.Write)...)}
	if reach == confine.Project {
		makeGoCache()
		if len(p.Project.Hosts) > 0 {
			s.Proxy = proxy
		}
	}
	return s
}

// makeGoCache makes the folder in which Go keeps what it built, if Go is installed but was never used, because a folder that does
// not exist cannot be made writable for a command, and without it `go build` and `go test` fail. Other tools do without their
// caches.
func makeGoCache() {
	dir := confine.GoCache(Home(), os.Getenv)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, err := exec.LookPath("go"); err == nil {
		_ = os.MkdirAll(dir, 0o755) // where this fails, go says why
	}
}

// Secrets returns the files that hold secrets, by the settings.
func Secrets(p config.Policy) secret.Table { return secret.New(Home(), p.Secrets, p.NotSecrets) }

// Home returns the user's home folder, by the daemon's own environment.
func Home() string {
	if h, err := os.UserHomeDir(); err == nil {
		return h
	}
	return "/"
}

// Real returns path with its links resolved, or path where it leads nowhere.
func Real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil && path != "" {
		return to
	}
	return path
}
