package risk

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// place is where a path is: what effects on it mean.
type place struct {
	read, write, remove, tree Level
	what                      string
	hard                      bool // deleting cannot be undone
	runs                      bool // it runs by itself, or decides what does: writing it is persistence
}

var (
	nowhere    = &place{} // /dev/null and the like
	temporary  = &place{Low, Medium, Medium, Medium, "a temporary file", false, false}
	tempRoot   = &place{Low, Medium, High, High, "the folder of everybody's temporary files", true, false}
	built      = &place{Low, Medium, Medium, Medium, "build output", false, false}
	inProject  = &place{Low, Medium, High, High, "in the project and not known to be in version control", true, false}
	project    = &place{Low, Medium, Critical, Critical, "the whole project", true, false}
	guarded    = &place{Low, High, High, High, "run by others or by itself: CI, hooks, editor or agent settings", true, true}
	gitData    = &place{Low, High, Critical, Critical, "git's own data: the history of the project", true, false}
	gitCode    = &place{Low, Critical, High, High, "code that git runs by itself", true, true}
	outside    = &place{Low, High, High, High, "outside the project", true, false}
	homeTop    = &place{Low, High, High, Critical, "a main folder of the home folder", true, false}
	startup    = &place{Low, Critical, Critical, Critical, "run or heeded by itself in every new shell or login", true, true}
	credential = &place{High, High, Critical, Critical, "keys, passwords or history", true, false}
	system     = &place{Low, High, High, Critical, "of the operating system", true, false}
	systemKey  = &place{Low, Critical, Critical, Critical, "decides what runs or who may do what on this machine", true, true}
	root       = &place{Low, High, Critical, Critical, "the whole machine or a main folder of it", true, false}
	device     = &place{High, Critical, Critical, Critical, "a device or an interface of the kernel", true, false}
	process    = &place{Low, High, High, High, "of running processes", true, false}
	connection = &place{High, High, High, High, "a network connection", false, false}
)

// under reports whether a cleaned path is dir or below it.
func under(p, dir string) bool {
	return dir == "/" || dir != "" && strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// below returns what a path has behind dir.
func below(p, dir string) string { return strings.TrimPrefix(p[len(dir):], "/") }

// everything reports whether a relative path stands for all of its folder: "", *, .*, *.*
func everything(rest string) bool { return strings.Trim(rest, "*.?[!]/") == "" }

// placeOf finds where an absolute cleaned path is. The path may hold patterns.
func (a *analysis) placeOf(p string) *place {
	base := path.Base(p)
	first, rest, deep := strings.Cut(p[1:], "/")
	temp := a.c.Env["TMPDIR"]
	switch {
	case p == "/":
		return root
	case strings.ContainsAny(first, "*?["): // /*, /e?c/…: any of the system's folders
		if matchAny(p, programs.Places("system-secrets")) {
			return credential
		}
		return root
	case first == "dev":
		return deviceOf(p, base)
	case first == "proc" && (base == "environ" || base == "mem" || base == "maps"):
		return credential
	case first == "sys", first == "proc" && (strings.HasPrefix(rest, "sys") || rest == "kcore" || rest == "kmem"):
		return device
	case first == "proc":
		return process
	case under(p, "/tmp"):
		return a.inTemp("/tmp", p)
	case under(p, "/var/tmp"):
		return a.inTemp("/var/tmp", p)
	case a.c.ProjectRoot != "" && under(p, a.c.ProjectRoot):
		return projectPlace(below(p, a.c.ProjectRoot))
	case temp != "" && under(p, path.Clean(temp)):
		return a.inTemp(path.Clean(temp), p)
	}
	if home := a.homeOf(p); home != "" {
		return homePlace(below(p, home))
	}
	switch {
	case matchAny(p, programs.Places("system-secrets")), secretName(base):
		return credential
	case matchAny(p, programs.Places("system-keys")):
		return systemKey
	}
	return systemPlace(first, rest, deep)
}

// systemPlace returns the place of a path outside projects, home folders and secrets.
func systemPlace(first, rest string, deep bool) *place {
	switch {
	case programs.Place("system")[first] && deep && strings.Trim(rest, "*.?") != "":
		return system
	case programs.Place("system")[first], !deep && slices.Contains([]string{"home", "Users", "mnt", "media", "data"}, first):
		return root
	}
	return outside
}

// inTemp returns the place of a path in a folder of temporary files. What lies there is temporary, but for a project in
// version control and for what is run by itself or secret in a home that was put there.
func (a *analysis) inTemp(temp, p string) *place {
	if a.c.Tracked != nil && a.c.ProjectRoot != temp && under(p, a.c.ProjectRoot) {
		return projectPlace(below(p, a.c.ProjectRoot))
	}
	if h := a.c.Home; h != temp && under(h, temp) && under(p, h) {
		if pl := homePlace(below(p, h)); pl == startup || pl == credential || p == h {
			return pl
		}
	}
	if everything(below(p, temp)) {
		return tempRoot
	}
	return temporary
}

func deviceOf(p, base string) *place {
	switch {
	case programs.Place("devices")[base], strings.HasPrefix(p, "/dev/fd/"):
		return nowhere
	case strings.HasPrefix(p, "/dev/shm/"), strings.HasPrefix(p, "/dev/mqueue/"):
		return temporary
	case strings.HasPrefix(p, "/dev/tcp/"), strings.HasPrefix(p, "/dev/udp/"):
		return connection
	}
	return device
}

func projectPlace(rest string) *place {
	if everything(rest) {
		return project
	}
	if _, git, ok := strings.Cut("/"+rest+"/", "/.git/"); ok {
		if strings.HasPrefix(git, "hooks") || strings.HasPrefix(git, "config") || strings.HasPrefix(git, "info/attributes") || strings.HasPrefix(git, "modules/") && strings.Contains(git, "/hooks") {
			return gitCode
		}
		return gitData
	}
	first, _, _ := strings.Cut(rest, "/")
	base := path.Base(rest)
	switch {
	case secretName(base):
		return credential
	case programs.Place("guarded")[first], programs.Place("guarded")[base]:
		return guarded
	case programs.Ends("build-ends", base):
		return built
	}
	for seg := range strings.SplitSeq(rest, "/") {
		if programs.Place("build")[seg] {
			return built
		}
	}
	return inProject
}

// homeOf returns the home folder that a path is in.
func (a *analysis) homeOf(p string) string {
	if h := a.c.Home; h != "" && under(p, h) {
		return h
	}
	for _, top := range []string{"/home/", "/Users/"} {
		if r, ok := strings.CutPrefix(p, top); ok {
			name, _, _ := strings.Cut(r, "/")
			return top + name
		}
	}
	if under(p, "/root") {
		return "/root"
	}
	return ""
}

func homePlace(rest string) *place {
	if everything(rest) {
		return homeTop
	}
	first, inner, deep := strings.Cut(rest, "/")
	base := path.Base(rest)
	switch {
	case slices.Contains([]string{".ssh/authorized_keys", ".ssh/config", ".ssh/rc", ".ssh/environment"}, rest):
		return startup
	case !public(base) && matchAny(rest, programs.Places("credential-dirs")), secretName(base):
		return credential
	case matchAny(first, programs.Places("startup")), matchAny(rest, programs.Places("startup-dirs")):
		return startup
	case first[0] != '.' && (!deep || everything(inner)):
		return homeTop
	}
	return outside
}

// matchAny reports whether p is one of the list or below one; segments of p may be patterns.
func matchAny(p string, list []string) bool {
	pattern := strings.ContainsAny(p, "*?[")
	ps := strings.Split(p, "/")
	for _, d := range list {
		if under(p, d) {
			return true
		}
		if ds := strings.Split(d, "/"); pattern && len(ps) >= len(ds) && slices.EqualFunc(ps[:len(ds)], ds, func(p, d string) bool {
			return p == d || strings.ContainsAny(p, "*?[") && bashread.GlobMatch(p, d) && (p[0] == '.' || d == "" || d[0] != '.')
		}) {
			return true
		}
	}
	return false
}

func public(base string) bool {
	return programs.Place("public")[base] || programs.Ends("public-ends", base)
}

// secretName reports whether files of a name hold keys, tokens or passwords, wherever they are.
func secretName(base string) bool {
	switch {
	case programs.Place("credential")[base]:
		return true
	case public(base), base == ".env":
		return false
	case strings.HasPrefix(base, ".env."), strings.HasSuffix(base, ".env") && len(base) > 4:
		return true
	case programs.Ends("credential-ends", base):
		return !strings.HasPrefix(base, "*.asc")
	}
	return strings.ContainsAny(base, "*?[") && strings.Trim(base, "*?") != "" && (strings.HasPrefix(base, "id_") || base[0] == '.' && matchAny(base, programs.Places("credential")))
}

// SecretPaths returns the files and folders that hold keys, passwords and the like, whether they exist or not: of the
// system, of a home, and of a project's folder.
func SecretPaths(home, project string) []string {
	list := slices.Clone(programs.Places("system-secrets"))
	add := func(dir, name string) {
		if dir != "" && dir != "/" {
			list = append(list, path.Join(dir, name))
		}
	}
	for _, name := range programs.Places("credential-dirs") {
		add(home, name)
	}
	for _, name := range programs.Places("credential") {
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "id_") {
			add(home, name)
		}
		add(project, name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
