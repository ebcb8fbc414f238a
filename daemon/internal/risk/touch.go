package risk

import (
	"slices"
	"strings"

	"sublet/daemon/internal/text"
)

// touchOptions says how a path is touched.
type touchOptions struct {
	tree    bool   // and all below it
	appends bool   // what was there stays
	safe    bool   // what was there is kept elsewhere, or the command asks itself
	verb    string // instead of the usual word
}

// grade is what an effect on a zone means.
type grade struct {
	read, write, remove, tree Level
	what                      string
	hard                      bool // deleting cannot be undone
}

// grades is the table of levels by place. Deleting inside the project is Medium when the file is known to be in version
// control, see touchPath.
var grades = map[zone]grade{
	zoneNone:       {Low, Low, Low, Low, "", false},
	zoneTemp:       {Low, Medium, Medium, Medium, "a temporary file", false},
	zoneTempRoot:   {Low, Medium, High, High, "the folder of everybody's temporary files", true},
	zoneBuild:      {Low, Medium, Medium, Medium, "build output", false},
	zoneProject:    {Low, Medium, High, High, "in the project", true},
	zoneProjectTop: {Low, Medium, Critical, Critical, "the whole project", true},
	zoneGuarded:    {Low, High, High, High, "run by others or by itself: CI, hooks, editor or agent settings", true},
	zoneGit:        {Low, High, Critical, Critical, "git's own data: the history of the project", true},
	zoneGitCode:    {Low, Critical, High, High, "code that git runs by itself", true},
	zoneOutside:    {Low, High, High, High, "outside the project", true},
	zoneHomeFile:   {Low, High, High, High, "in the home folder, outside the project", true},
	zoneHomeTop:    {Low, High, High, Critical, "a main folder of the home folder", true},
	zoneDot:        {Low, High, High, High, "settings in the home folder", true},
	zoneStartup:    {Low, Critical, Critical, Critical, "run or heeded by itself in every new shell or login", true},
	zoneCredential: {High, High, Critical, Critical, "keys, passwords or history", true},
	zoneSystem:     {Low, High, High, Critical, "of the operating system", true},
	zoneSystemKey:  {Low, Critical, Critical, Critical, "decides what runs or who may do what on this machine", true},
	zoneRoot:       {Low, High, Critical, Critical, "the whole machine or a main folder of it", true},
	zoneDevice:     {High, Critical, Critical, Critical, "a device or an interface of the kernel", true},
	zoneProc:       {Low, High, High, High, "of running processes", true},
	zoneNet:        {High, High, High, High, "a network connection", false},
}

// touch judges an effect (Read, Write or Delete) on the path that a field names, in every folder the command may run in.
func (a *analysis) touch(e Effect, f *field, st *state, o touchOptions) {
	if f.s == "" && f.known {
		return
	}
	if st.remote {
		a.touchRemote(e, f, o)
		return
	}
	if strings.IndexByte(f.s, unknownPart) >= 0 {
		a.touchUnknown(e, f, st, o)
		return
	}
	p := strings.ReplaceAll(f.s, string(tamePart), "_")
	if strings.HasPrefix(p, "/") {
		a.touchPath(e, cleanPath(p), f, o, "")
		return
	}
	if p == "." || p == ".." || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..") {
		o.tree = o.tree || e == Delete
	}
	done := ""
	if st.cwd != "" {
		done = joinPath(st.cwd, p)
		a.touchPath(e, done, f, o, "")
	}
	for _, alt := range st.alts {
		if alt == "" {
			continue
		}
		if q := joinPath(alt, p); q != done {
			a.touchPath(e, q, f, o, ", if the cd before it fails: then in "+show(alt))
		}
	}
	if st.cwd == "" || slices.Contains(st.alts, "") {
		switch e {
		case Read:
			if credentialBase(p[strings.LastIndexByte(p, '/')+1:]) {
				a.target(Secret, "", false)
				a.seen |= flowSecret
				a.note(High, Secret, f.span, "reads "+show(f.s)+": keys, passwords or history")
				a.facts.secret = true
				return
			}
			if st.cwd == "" && len(st.alts) == 0 {
				a.note(Low, Read, f.span, "reads "+show(f.s))
			}
		case Write:
			a.target(e, "", o.tree)
			l, eff := High, Write
			if runsByName(p) {
				l, eff = Critical, Persistence
			}
			a.note(l, eff, f.span, "writes "+show(f.s)+" in a folder that is not known here")
		default:
			a.target(e, "", o.tree)
			a.note(High, Delete, f.span, "deletes "+show(f.s)+" in a folder that is not known here").cannotUndo()
		}
	}
}

// runsByName tells that a relative path is run by itself in whatever folder it is likely to be: git's hooks and
// settings, a shell's start-up files.
func runsByName(p string) bool {
	p = "/" + cleanPath(p)
	return strings.Contains(p, "/.git/hooks") || strings.HasSuffix(p, "/.git/config") || strings.Contains(p, "/.ssh/") || startupNames()[p[strings.LastIndexByte(p, '/')+1:]]
}

func (a *analysis) touchRemote(e Effect, f *field, o touchOptions) {
	p := cleanPath(f.s)
	switch e {
	case Read:
		a.note(Low, Read, f.span, "reads "+show(f.s)+" on another machine")
	case Delete:
		l := High
		if o.tree && (strings.Count(p, "/") <= 1 && strings.HasPrefix(p, "/") || p == "~" || f.opaque() || strings.HasPrefix(p, "/home/\x01") && strings.Count(p, "/") <= 3) {
			l = Critical
		}
		if z := a.zoneOf(p); o.tree && strings.HasPrefix(p, "/") && (z == zoneSystem || z == zoneSystemKey || z == zoneRoot) {
			l = Critical // the system's folders are the same everywhere
		}
		a.note(l, Delete, f.span, "deletes "+show(f.s)+" on another machine").cannotUndo()
	default:
		a.note(High, Write, f.span, "writes "+show(f.s)+" on another machine")
	}
}

// touchUnknown judges a path of which some part is not known.
func (a *analysis) touchUnknown(e Effect, f *field, st *state, o touchOptions) {
	i := strings.IndexByte(f.s, unknownPart)
	head, tail := f.s[:i], f.s[i+1:]
	switch e {
	case Read:
		a.target(Read, "", o.tree)
		if f.flow&flowSecret == 0 {
			a.note(Medium, Read, f.span, "reads a file whose name is not known here")
		}
		// /home/x/.ssh/$y is credentials whatever y is.
		if dir := head[:strings.LastIndexByte(head, '/')+1]; len(dir) > 1 {
			g := *f
			g.s, g.known = dir+"_", false
			if p := joinPath(st.cwd, g.s); p != "" && a.zoneOf(p) == zoneCredential {
				a.touchPath(Read, p, f, o, "")
			}
		}
	case Write:
		a.target(Write, "", o.tree)
		a.note(High, Write, f.span, "writes a file whose name is not known here")
		a.knownHead(e, head, f, st, o)
	default:
		a.target(Delete, "", o.tree)
		rest := strings.TrimLeft(tail, "\x00")
		// "$dir"/* or "$dir"/ with an empty $dir is the root.
		if head == "" && o.tree && strings.HasPrefix(rest, "/") && !f.guarded && strings.Trim(rest, "/*.") == "" {
			a.note(Critical, Delete, f.span, "deletes everything from / on if the variable is empty").cannotUndo()
			return
		}
		what := "deletes files whose names are not known here"
		if o.tree {
			what = "deletes whole folders whose names are not known here"
		}
		a.note(High, Delete, f.span, what).cannotUndo()
		a.knownHead(e, head, f, st, o)
	}
}

// knownHead judges the folder that stands before the unknown part, where it is worse than the unknown alone.
func (a *analysis) knownHead(e Effect, head string, f *field, st *state, o touchOptions) {
	dir := head[:strings.LastIndexByte(head, '/')+1]
	if dir == "" {
		return
	}
	p := joinPath(st.cwd, dir+"_")
	if p == "" {
		return
	}
	if dir == "/" && e == Delete && o.tree {
		a.note(Critical, Delete, f.span, "deletes a main folder of the machine, or everything if the variable is empty").cannotUndo()
		return
	}
	if z := a.zoneOf(p); z == zoneStartup || z == zoneSystemKey || z == zoneDevice || z == zoneGitCode || z == zoneCredential {
		a.touchPath(e, p, f, o, "")
	} else if e == Delete && o.tree {
		if z := a.zoneOf(cleanPath(dir)); z == zoneHomeTop || z == zoneRoot {
			a.touchPath(e, cleanPath(dir), f, o, " (or all of it, if the variable is empty)")
		}
	}
}

// touchPath judges an effect on one absolute path.
func (a *analysis) touchPath(e Effect, p string, f *field, o touchOptions, where string) {
	a.spend(2 + len(p)/bytesParsed)
	p = a.followLinks(p)
	z := a.zoneOf(p)
	switch {
	case z == zoneTemp && e == Read && credentialBase(p[strings.LastIndexByte(p, '/')+1:]):
		z = zoneCredential
	case z == zoneCredential && e != Read && matchAny(p, systemKeys):
		z = zoneSystemKey
	case e == Read && o.tree && (a.zoneOf(cleanPath(p+"/_")) == zoneCredential || p == a.c.Home || p == "/"):
		z = zoneCredential // a copy of the whole folder holds what is in it
	}
	g := grades[z]
	if z == zoneNone {
		return
	}
	name := show(f.s)
	if z == zoneNet {
		a.target(Network, "", false)
		a.facts.send = true
		a.seen |= flowNet
		a.note(High, Network, f.span, "opens a network connection through "+name)
		return
	}
	switch e {
	case Read:
		eff, verb := Read, "reads "
		if o.verb != "" {
			verb = o.verb + " "
		}
		if z == zoneCredential {
			eff = Secret
			a.facts.secret = true
			a.seen |= flowSecret
		}
		a.seen |= a.facts.fileFlow(p)
		a.target(eff, p, o.tree)
		if g.read == Low {
			a.note(Low, eff, f.span, verb+name+where)
			return
		}
		a.note(g.read, eff, f.span, verb+name+", "+g.what+where)
	case Delete:
		a.target(e, p, o.tree)
		l, what, hard := g.remove, g.what, g.hard
		if o.tree {
			l = g.tree
		}
		verb := "deletes "
		if o.verb != "" {
			verb = o.verb + " "
		}
		if z == zoneProject && !o.tree && a.isTracked(p) {
			a.note(Medium, Delete, f.span, verb+name+", which is in version control"+where).canUndo("git checkout -- " + shellWord(f.s))
			return
		}
		if o.safe {
			l, hard = min(l, High), false
			if z == zoneProject || z == zoneBuild || z == zoneTemp {
				l = Medium
			}
		}
		if z == zoneGit && where == "" && strings.HasSuffix(p, ".lock") {
			l = Medium // git's own advice after a crash
		}
		eff := Delete
		if z == zoneStartup || z == zoneSystemKey {
			eff = Persistence
		}
		if z == zoneProject {
			what = "in the project and not known to be in version control"
		}
		if o.tree && (z == zoneOutside || z == zoneHomeFile || z == zoneDot) {
			what += ", with everything below it"
		}
		fnd := a.note(l, eff, f.span, verb+name+", "+what+where)
		if hard {
			fnd.cannotUndo()
		} else if z == zoneBuild {
			fnd.canUndo("build it again")
		}
	default:
		a.target(e, p, o.tree)
		eff, verb := Write, "writes "
		if o.appends {
			verb = "appends to "
		}
		if o.verb != "" {
			verb = o.verb + " "
		}
		switch z {
		case zoneStartup, zoneGitCode, zoneSystemKey, zoneGuarded:
			eff = Persistence
		}
		fnd := a.note(g.write, eff, f.span, verb+name+", "+g.what+where)
		switch {
		case g.write >= Critical:
			fnd.cannotUndo()
		case z == zoneProject && a.c.Tracked != nil && a.isTracked(p):
			fnd.canUndo("git checkout -- " + shellWord(f.s))
		}
	}
}

func (a *analysis) isTracked(p string) bool {
	if a.c.Tracked == nil || a.tracked >= MaxTracked || strings.ContainsAny(p, "*?[") {
		return false
	}
	a.tracked++
	return a.c.Tracked(p)
}

func (a *analysis) target(e Effect, p string, tree bool) {
	if len(a.v.Targets) < maxTargets {
		a.v.Targets = append(a.v.Targets, Target{Effect: e, Path: p, Tree: tree || strings.ContainsAny(p, "*?[")})
	} else if len(a.v.Targets) == maxTargets {
		a.v.Targets = append(a.v.Targets, Target{Effect: e}) // and others
	}
}

func (a *analysis) host(h string) {
	if len(a.v.Targets) < maxTargets {
		a.v.Targets = append(a.v.Targets, Target{Effect: Network, Host: h})
	}
}

// show writes a word for a reason: unknown parts as …, nothing invisible, not too long.
func show(s string) string {
	if strings.ContainsAny(s, "\x00\x01") {
		s = strings.NewReplacer("\x00", "…", "\x01", "…").Replace(s)
	}
	s = text.Visible(s)
	if strings.ContainsAny(s, "\n\t") {
		s = strings.NewReplacer("\n", "⏎", "\t", " ").Replace(s)
	}
	if len(s) > 80 {
		cut := 77
		for cut > 0 && s[cut]&0xc0 == 0x80 {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}

// secretWord tells that a word names keys, passwords or history, also where the folder is not known.
func (a *analysis) secretWord(f *field, st *state) bool {
	if f.opaque() || f.s == "" {
		return false
	}
	if p := joinPath(st.cwd, f.s); p != "" {
		return a.zoneOf(p) == zoneCredential
	}
	return credentialBase(f.s[strings.LastIndexByte(f.s, '/')+1:])
}
