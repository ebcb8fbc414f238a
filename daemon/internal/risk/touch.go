package risk

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
	"sublet/daemon/internal/risk/secret"
)

// touching is how a path is touched.
type touching struct {
	tree bool   // and all below it
	safe bool   // nothing is lost: only an empty folder is deleted, or what was moved away can be moved back
	verb string // in what is said; "" = that of verbs
}

var verbs = map[Effect]string{Read: "reads", Write: "writes", Delete: "deletes"}

// touch judges an effect (Read, Write or Delete) on the path that a field names, in every folder the command may run in.
func (a *analysis) touch(e Effect, f *field, st *state, t touching) {
	if t.verb == "" {
		t.verb = verbs[e]
	}
	switch {
	case f.S == "" && f.Known, f.S == "-":
		return
	case st.Remote:
		a.touchRemote(e, f, t)
		return
	case f.Opaque():
		a.touchUnknown(e, f, st, t)
		return
	}
	p := strings.ReplaceAll(f.S, tamePart, "_")
	if path.IsAbs(p) {
		a.touchPath(e, path.Clean(p), f, t, "")
		return
	}
	t.tree = t.tree || e == Delete && (path.Base(p) == "." || path.Base(p) == "..")
	if st.Cwd != "" {
		a.touchPath(e, path.Join(st.Cwd, p), f, t, "")
	}
	for _, alt := range st.Alts {
		if alt != "" {
			a.touchPath(e, path.Join(alt, p), f, t, ", if the cd before it fails: then in "+show(alt))
		}
	}
	if st.Cwd != "" && !slices.Contains(st.Alts, "") {
		return
	}
	base := path.Base(p)
	switch {
	case e == Read && secret.Named(base):
		a.target(Secret, "", false)
		a.note(High, Secret, f.Span, "reads "+show(f.S)+", keys, passwords or history")
	case e == Read:
		a.note(Low, Read, f.Span, t.verb+" "+show(f.S))
	case e == Write && (projectPlace(path.Clean(p), false) == gitCode || strings.Contains("/"+p, "/.ssh/") || programs.In("startup", base)):
		a.target(e, "", t.tree)
		a.note(Critical, Persistence, f.Span, t.verb+" "+show(f.S)+", which runs by itself, in a folder that is not known here")
	default:
		a.target(e, "", t.tree)
		a.note(High, e, f.Span, t.verb+" "+show(f.S)+" in a folder that is not known here")
	}
}

// touchRemote judges an effect on another machine, whose files are not known. Deleting its main folders, or a home's, is critical.
func (a *analysis) touchRemote(e Effect, f *field, t touching) {
	l, p := High, path.Clean(f.S)
	switch {
	case e == Read:
		l = Low
	case e == Delete && t.tree && (f.Opaque() || path.IsAbs(p) && (strings.Count(p, "/") == 1 || a.placeOf(p).tree == Critical)):
		l = Critical
	}
	a.note(l, e, f.Span, t.verb+" "+show(f.S)+" on another machine")
}

// touchUnknown judges a path of which some part is not known, also by the folder before that part.
func (a *analysis) touchUnknown(e Effect, f *field, st *state, t touching) {
	i := strings.IndexByte(f.S, bashread.UnknownPart)
	dir := f.S[:strings.LastIndexByte(f.S[:i], '/')+1]
	rest := strings.TrimLeft(f.S[i:], unknownPart)
	inDir := bashread.Absolute(st.Cwd, dir+"_") // stands for any file of the folder
	a.target(e, "", t.tree)
	switch {
	case e != Read:
		a.note(High, e, f.Span, t.verb+" files whose names are not known here")
	case f.Flow&flowSecret == 0:
		a.note(Medium, Read, f.Span, "reads a file whose name is not known here")
	}
	wide := e == Delete && t.tree
	switch {
	case wide && (dir == "/" || dir == "" && strings.HasPrefix(rest, "/") && !f.Guarded && everything(rest)): // "$dir"/* with an empty $dir
		a.note(Critical, Delete, f.Span, "deletes a main folder of the machine, or everything if the variable is empty")
	case dir == "" || inDir == "":
	case slices.Contains([]*place{startup, systemKey, device, gitCode, credential}, a.placeOf(inDir)):
		a.touchPath(e, inDir, f, t, "")
	case wide && slices.Contains([]*place{homeTop, root}, a.placeOf(path.Dir(inDir))):
		a.touchPath(e, path.Dir(inDir), f, t, " (or all of it, if the variable is empty)")
	}
}

// touched is placeOf for an effect: reading a folder reads what is below it, and some files are of two
// kinds.
func (a *analysis) touched(e Effect, p string, t touching) *place {
	pl := a.placeOf(p)
	_, open := a.c.Secrets.Override(p)
	switch {
	case pl == temporary && e == Read && a.c.Secrets.Named(p): // a copy of a secret, by its name
		return credential
	case e == Read && t.tree && (a.placeOf(path.Join(p, "_")) == credential || p == a.c.Home || p == "/"):
		return credential // a folder of secrets, or one that has such folders
	case pl == startup && e == Read && !open && secret.InHome(below(p, a.homeOf(p))):
		return credential // ~/.ssh/config, which names hosts and keys
	case pl == credential && e != Read && secret.Match(p, programs.Places("system-keys")): // /etc/shadow also decides who may log in
		return systemKey
	}
	return pl
}

// touchPath judges an effect on one absolute path that f names. where is added to the reason: when f names that path, "" = always.
func (a *analysis) touchPath(e Effect, p string, f *field, t touching, where string) {
	a.Spend(2 + len(p)/bashread.BytesParsed)
	p = a.followLinks(p)
	pl := a.touched(e, p, t)
	says := t.verb + " " + show(f.S)
	switch {
	case pl == nowhere:
	case e != Read && !t.tree && pl == inProject && a.isTracked(p):
		a.target(e, p, t.tree)
		a.note(Medium, e, f.Span, says+", which is in version control"+where).undo = "git checkout -- " + ShellWord(f.S)
	case pl == connection:
		a.target(Network, "", false)
		a.note(High, Network, f.Span, "opens a network connection through "+show(f.S))
	case e == Read && pl == credential:
		a.target(Secret, p, t.tree)
		a.note(High, Secret, f.Span, "reads "+show(f.S)+", "+pl.what+where)
	case e == Read:
		a.Seen |= a.flowOf(p)
		a.target(e, p, t.tree)
		a.note(pl.read, Read, f.Span, says)
	case e == Write:
		a.target(e, p, t.tree)
		if pl.runs {
			e = Persistence
		}
		a.note(pl.write, e, f.Span, says+", "+pl.what+where)
	default:
		a.deletePath(p, pl, f, t, where)
	}
}

// deletePath is touchPath for Delete, of a path in the place pl. The level is that of the place; it is lower for one file that an
// agent made and where nothing is lost (t.safe).
func (a *analysis) deletePath(p string, pl *place, f *field, t touching, where string) {
	a.target(Delete, p, t.tree)
	says := t.verb + " " + show(f.S)
	if pl == inProject && !t.tree && a.asks(a.c.Made, p) {
		a.note(Medium, Delete, f.Span, says+", which an agent made"+where)
		return
	}
	l := pl.remove
	if t.tree {
		l = pl.tree
	}
	switch {
	case t.safe && (pl == inProject || pl == built || pl == temporary), pl == gitData && where == "" && strings.HasSuffix(p, ".lock"): // git's own advice
		l = Medium
	case t.safe:
		l = min(l, High)
	}
	fnd := a.note(l, Delete, f.Span, says+", "+pl.what+where)
	if fnd.hard = fnd.hard && !t.safe; pl == built {
		fnd.undo = "build it again"
	}
}

func (a *analysis) isTracked(p string) bool { return a.asks(a.c.Tracked, p) }

// asks calls a function of the context about a path, MaxTracked times for one text; then, and for a pattern, it returns false.
func (a *analysis) asks(about func(path string) bool, p string) bool {
	if about == nil || a.tracked >= MaxTracked || strings.ContainsAny(p, "*?[") {
		return false
	}
	a.tracked++
	return about(p)
}

func (a *analysis) target(e Effect, p string, tree bool) {
	a.v.Targets = append(a.v.Targets, Target{Effect: e, Path: p, Tree: tree || strings.ContainsAny(p, "*?["), by: a.cmd})
}

// host notes the host of a URL, of user@host:path or of a plain host.
func (a *analysis) host(f *field) {
	m := expr("host").FindStringSubmatch(f.S)
	if m == nil {
		return
	}
	h := strings.ToLower(m[1])
	a.v.Targets = append(a.v.Targets, Target{Effect: Network, Host: h, by: a.cmd})
	if h == "169.254.169.254" || h == "metadata.google.internal" || h == "100.100.100.200" {
		a.note(High, Secret, f.Span, "reads credentials of this machine from the cloud's service")
	}
}

// flowOf returns where the data in a file came from, as far as this text put it there.
func (a *analysis) flowOf(p string) bashread.Flow {
	fl := a.Files[p].Flow
	for _, dir := range a.trees {
		if under(p, dir) {
			fl |= flowNet
		}
	}
	return fl
}

// fetched notes that any file below a folder may come from the network: a clone, an unpacked archive.
func (a *analysis) fetched(dir string) {
	if dir != "" && len(a.trees) < 32 {
		a.trees = append(a.trees, dir)
	}
}

// followLinks replaces a leading symbolic link that this text made (ln -s / x; rm -rf x/), and one in the result, up to 4 times, since
// links may form a loop.
func (a *analysis) followLinks(p string) string {
	for range 4 {
		i := slices.IndexFunc(a.links, func(l link) bool { return under(p, l.from) })
		if i < 0 {
			break
		}
		p = path.Join(a.links[i].to, p[len(a.links[i].from):])
	}
	return p
}

// secretWord reports whether a word names keys, passwords or history.
func (a *analysis) secretWord(f *field, st *state) bool {
	if f.Opaque() || f.S == "" {
		return false
	}
	if p := bashread.Absolute(st.Cwd, strings.ReplaceAll(f.S, tamePart, "_")); p != "" && !st.Remote {
		return a.placeOf(p) == credential
	}
	return secret.Named(path.Base(f.S))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ShellWord returns s as a word of the shell, in quotes only where they are needed.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%^") == "" {
		return s
	}
	return shellQuote(s)
}
