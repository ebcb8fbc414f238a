package risk

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/programs"
	"sublet/daemon/internal/risk/secret"
)

// place is where a path is: what effects on it mean.
type place struct {
	read, write, remove, tree Level
	what                      string
	runs                      bool // it runs by itself, or decides what does: writing it is persistence
}

var (
	nowhere    = &place{} // /dev/null and the like
	temporary  = &place{Low, Medium, Medium, Medium, "a temporary file", false}
	tempRoot   = &place{Low, Medium, High, High, "the folder of everybody's temporary files", false}
	built      = &place{Low, Medium, Medium, Medium, "build output", false}
	inProject  = &place{Low, Medium, High, High, "in the project and not known to be in version control", false}
	project    = &place{Low, Medium, Critical, Critical, "the whole project", false}
	guarded    = &place{Low, High, High, High, "run by others or by itself: CI, hooks, editor or agent settings", true}
	gitData    = &place{Low, High, Critical, Critical, "git's own data: the history of the project", false}
	gitCode    = &place{Low, Critical, High, High, "code that git runs by itself", true}
	outside    = &place{Low, High, High, High, "outside the project", false}
	homeTop    = &place{Low, High, High, Critical, "a main folder of the home folder", false}
	startup    = &place{Low, Critical, Critical, Critical, "run or heeded by itself in every new shell or login", true}
	credential = &place{High, High, Critical, Critical, "keys, passwords or history", false}
	system     = &place{Low, High, High, Critical, "of the operating system", false}
	systemKey  = &place{Low, Critical, Critical, Critical, "decides what runs or who may do what on this machine", true}
	root       = &place{Low, High, Critical, Critical, "the whole machine or a main folder of it", false}
	device     = &place{High, Critical, Critical, Critical, "a device or an interface of the kernel", false}
	process    = &place{Low, High, High, High, "of running processes", false}
	connection = &place{High, High, High, High, "a network connection", false}
)

func under(p, dir string) bool { return secret.Under(p, dir) }

// below returns what a path has behind dir.
func below(p, dir string) string { return strings.TrimPrefix(p[len(dir):], "/") }

// everything reports whether a relative path stands for all of its folder: "", *, .*, *.*
func everything(rest string) bool { return strings.Trim(rest, "*.?[!]/") == "" }

// placeOf finds where an absolute cleaned path is. The path may hold patterns.
func (a *analysis) placeOf(p string) *place {
	base := path.Base(p)
	first, rest, deep := strings.Cut(p[1:], "/")
	closed, open := a.c.Secrets.Override(p)
	switch {
	case closed:
		return credential
	case p == "/":
		return root
	case strings.ContainsAny(first, "*?["): // /*, /e?c/…: any of the system's folders
		if secret.InSystem(p) {
			return credential
		}
		return root
	}
	for _, temp := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		if under(p, temp) {
			return a.inTemp(temp, p, open)
		}
	}
	switch temp := a.c.Env["TMPDIR"]; {
	case first == "dev", first == "proc", first == "sys":
		return kernelPlace(p)
	case under(p, a.c.ProjectRoot):
		return projectPlace(below(p, a.c.ProjectRoot), open)
	case temp != "" && under(p, path.Clean(temp)):
		return a.inTemp(path.Clean(temp), p, open)
	}
	if home := a.homeOf(p); home != "" {
		return homePlace(below(p, home), open)
	}
	switch {
	case !open && (secret.InSystem(p) || secret.Named(base)):
		return credential
	case secret.Match(p, programs.Places("system-keys")):
		return systemKey
	}
	return systemPlace(first, rest, deep)
}

// kernelPlace returns the place of a path below /dev, /proc or /sys.
func kernelPlace(p string) *place {
	lies := func(section string) bool {
		return slices.ContainsFunc(programs.Places(section), func(top string) bool { return under(p, top) })
	}
	base := path.Base(p)
	switch {
	case under(p, "/proc") && (base == "environ" || base == "mem" || base == "maps"):
		return credential
	case lies("no-devices"):
		return nowhere
	case lies("connections"):
		return connection
	case lies("devices"):
		return device
	}
	return process
}

// systemPlace returns the place of a path outside projects, home folders and secrets.
func systemPlace(first, rest string, deep bool) *place {
	switch {
	case programs.In("system", first) && deep && strings.Trim(rest, "*.?") != "":
		return system
	case programs.In("system", first), !deep && slices.Contains([]string{"home", "Users", "mnt", "media", "data"}, first):
		return root
	}
	return outside
}

// inTemp returns the place of a path in a folder of temporary files. What lies there is temporary, but for a project in
// version control and for what is run by itself or secret in a home that was put there. open: it is not secret.
func (a *analysis) inTemp(temp, p string, open bool) *place {
	h, root := a.c.Home, a.c.ProjectRoot
	switch {
	case a.c.Tracked != nil && root != temp && under(p, root):
		return projectPlace(below(p, root), open)
	case h != temp && under(h, temp) && under(p, h) && (root == h || !under(p, root)):
		return homePlace(below(p, h), open)
	}
	if everything(below(p, temp)) {
		return tempRoot
	}
	return temporary
}

// Starts reports whether the folder named rest in a home holds, or lies in, what starts by itself or is secret there.
func Starts(rest string) bool {
	return slices.ContainsFunc(slices.Concat(programs.Places("startup"), programs.Places("startup-dirs")), func(p string) bool { return under(p, rest) || under(rest, p) }) ||
		secret.InHome(rest) || secret.Named(path.Base(rest))
}

// projectPlace returns the place of what is named rest in a project. open: it is not secret.
func projectPlace(rest string, open bool) *place {
	if everything(rest) {
		return project
	}
	if _, git, ok := strings.Cut("/"+rest+"/", "/.git/"); ok {
		if strings.HasPrefix(git, "hooks") || strings.HasPrefix(git, "config") || strings.HasPrefix(git, "info/attributes") || strings.HasPrefix(git, "modules/") && strings.Contains(git, "/hooks") {
			return gitCode
		}
		return gitData
	}
	base := path.Base(rest)
	switch {
	case !open && secret.Named(base):
		return credential
	case slices.ContainsFunc(programs.Places("guarded"), func(name string) bool { return strings.Contains("/"+rest+"/", "/"+name+"/") }):
		return guarded
	case programs.Ends(base, programs.Places("build-ends")):
		return built
	}
	for seg := range strings.SplitSeq(rest, "/") {
		if programs.In("build", seg) {
			return built
		}
	}
	return inProject
}

// homeOf returns the home folder that a path is in, "" where it is in none.
func (a *analysis) homeOf(p string) string {
	if h := a.c.Home; under(p, h) {
		return h
	}
	return expr("home").FindString(p)
}

// homePlace returns the place of what is named rest in a home. open: it is not secret.
func homePlace(rest string, open bool) *place {
	if everything(rest) {
		return homeTop
	}
	first, inner, deep := strings.Cut(rest, "/")
	base := path.Base(rest)
	switch {
	case slices.Contains([]string{".ssh/authorized_keys", ".ssh/config", ".ssh/rc", ".ssh/environment"}, rest):
		return startup
	case !open && (secret.InHome(rest) || secret.Named(base)):
		return credential
	case secret.Match(first, programs.Places("startup")), secret.Match(rest, programs.Places("startup-dirs")):
		return startup
	case first[0] != '.' && (!deep || everything(inner)):
		return homeTop
	}
	return outside
}
