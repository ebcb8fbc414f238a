package risk

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
)

// doChmod judges chmod, chown and the like: wide or recursive changes are hard to undo.
func (a *analysis) doChmod(c *call) {
	ops, mode := c.operands, ""
	if len(ops) > 1 && !c.has("--reference") {
		mode, ops = ops[0].S, ops[1:]
	}
	tree := c.has("-R", "-r", "--recursive")
	for i := range ops {
		f := &ops[i]
		a.touch(Write, f, c.st, touching{tree: tree, verb: "changes the rights of"})
		p := bashread.Absolute(c.st.Cwd, f.S)
		if p == "" || f.Opaque() {
			continue
		}
		switch pl, n := a.placeOf(p), len(mode); {
		// At most two slashes: a home folder, as /home/NAME, or what holds them.
		case tree && (pl == root || pl == system || pl == systemKey || pl == homeTop && (p == a.c.Home || strings.Count(p, "/") <= 2)):
			a.note(Critical, Write, f.Span, "changes the rights of everything below "+show(f.S))
		case pl == credential && bashread.Digits(mode) && n >= 3 && mode[n-2:] != "00":
			a.note(Critical, Secret, f.Span, "lets others read "+show(f.S))
		case c.name != "chmod" && pl != temporary:
			a.note(High, Privilege, f.Span, "gives "+show(f.S)+" to another owner")
		}
	}
}

// destination returns what a command writes that copies or links the other operands: the last one, or the value of -t.
func (c *call) destination() (to *field, ops []field) {
	ops = c.operands
	if o := c.opt("-t", "--target-directory"); o != nil && o.val != nil {
		return o.val, ops
	}
	if len(ops) == 0 || len(ops) == 1 && !ops[0].Many {
		return nil, ops
	}
	return &ops[len(ops)-1], ops[:len(ops)-1]
}

// copies judges cp, mv, install, rsync and the like: the last operand, or that of -t, is written.
func (a *analysis) copies(c *call, move bool) {
	rsync := c.spec.Handler == "rsync"
	to, ops := c.destination()
	for i := range ops {
		switch f := &ops[i]; {
		case rsync && remotePath(f.S):
			f.Flow |= flowNet
		case move:
			a.moves(f, c.st)
		default:
			a.touch(Read, f, c.st, touching{verb: "copies", tree: rsync || c.has("-r", "-R", "-a", "--recursive", "--archive")})
		}
	}
	if to == nil || c.lowered() || rsync && remotePath(to.S) {
		return
	}
	if move && to.S == "/dev/null" {
		a.note(High, Delete, to.Span, "moves files to where they are lost")
	}
	a.touch(Write, to, c.st, touching{tree: rsync || len(ops) > 1})
	into := len(ops) > 1 || strings.HasSuffix(to.S, "/") || to.S == "." || to.S == ".." || c.has("-t", "--target-directory")
	for i := range ops { // into a folder: the file keeps its name
		f := &ops[i]
		inside := to.With(strings.TrimSuffix(to.S, "/") + "/" + f.S[strings.LastIndexAny(f.S, "/:")+1:])
		if into && !rsync {
			a.touch(Write, inside, c.st, touching{})
		}
		w := a.Files[bashread.Key(f, c.st)]
		w.Flow |= f.Flow & (flowNet | flowSecret)
		a.Wrote(bashread.Key(to, c.st), w, false)
		a.Wrote(bashread.Key(inside, c.st), w, false)
	}
}

// moves judges what a move takes away. Inside the project it is undone by moving back.
func (a *analysis) moves(f *field, st *state) {
	p := bashread.Path(f, st)
	back := p != "" && slices.Contains([]*place{inProject, built, temporary, project, outside, guarded}, a.placeOf(p))
	a.touch(Delete, f, st, touching{tree: p != "", safe: back, verb: "moves away"})
}

// maxLinked bounds the links of a text that are followed: each later path is compared with all of them.
const maxLinked = 32

// doLn judges ln. Later commands are judged by what the link leads to.
func (a *analysis) doLn(c *call) {
	to, ops := c.destination()
	if len(ops) == 0 {
		return
	}
	if to == nil {
		to = ops[0].With("./" + ops[0].Base())
	}
	a.touch(Write, to, c.st, touching{verb: "links"})
	src, dst := bashread.Path(&ops[0], c.st), bashread.Path(to, c.st)
	if c.has("-s", "--symbolic") && dst != "" {
		src = bashread.Absolute(path.Dir(dst), ops[0].S)
	}
	if src != "" && dst != "" && src != dst && len(a.links) < maxLinked {
		a.links = append(a.links, link{from: dst, to: src})
		if a.placeOf(src) == credential { // a later command reads it by another name
			a.effect(Secret)
			a.note(High, Privilege, ops[0].Span, "links to "+show(ops[0].S)+", keys or passwords").hard = true
		}
	}
}

// unbundle gives the letters in the first word of tar the dashes of options: tar xzf a.tgz. The words after that are their values, in
// the order of the letters.
func (c *call) unbundle() {
	if c.spec.Handler != "archive" || len(c.fields) < 2 || c.spec.Opts["--file"] == nil || strings.Trim(c.fields[1].S, "abcdefghijklmnopqrstuvwxyzACFHIJKNOPSTUVWXZ") != "" {
		return
	}
	fs, rest := c.fields[:1:1], c.fields[2:]
	for _, letter := range strings.Split(c.fields[1].S, "") {
		fs = append(fs, *c.fields[1].With("-" + letter))
		if o := c.spec.Option("-" + letter); o != nil && o.Role != "" && len(rest) > 0 {
			fs, rest = append(fs, rest[0]), rest[1:]
		}
	}
	c.fields = append(fs, rest...)
}

// doArchive judges tar, unzip and the like: what they pack or list, and where they unpack.
func (a *analysis) doArchive(c *call) {
	archives, packs, toStdout := c.operands, false, false
	if c.spec.Opts["--file"] != nil { // tar
		archives, packs, toStdout = nil, !c.has("-x", "--extract", "--get") && !c.lowered(), c.has("-O", "--to-stdout")
	}
	dir := &field{S: ".", Known: true, Span: c.span}
	for i := range c.opts {
		switch o := &c.opts[i]; {
		case o.val == nil:
		case o.is("-f", "--file"):
			archives = append(archives, *o.val)
		case o.is("-C", "--directory", "-d", "-o", "-output-directory"):
			dir = o.val
		}
	}
	for i := range archives {
		switch f := &archives[i]; {
		case !packs:
			a.touch(Read, f, c.st, touching{})
		case remotePath(f.S):
			a.note(High, Network, f.Span, "writes the archive on another machine")
		default:
			a.touch(Write, f, c.st, touching{})
		}
	}
	switch {
	case packs:
		st, opts := c.st, c.opts
		for i := range c.operands {
			for ; len(opts) > 0 && opts[0].behind <= i; opts = opts[1:] { // -C counts for the operands behind it
				if opts[0].val != nil && opts[0].is("-C", "--directory") {
					a.touch(Read, opts[0].val, st, touching{})
					cwd := bashread.Path(opts[0].val, st)
					st = st.Clone()
					st.Cwd, st.Alts = cwd, nil
				}
			}
			if a.touch(Read, &c.operands[i], st, touching{verb: "packs", tree: true}); c.has("--remove-files") {
				a.touch(Delete, &c.operands[i], st, touching{tree: true})
			}
		}
	case !c.lowered() && !toStdout:
		if (a.Seen|c.st.Stdin.Flow)&flowNet != 0 {
			a.fetched(bashread.Path(dir, c.st))
		}
		a.touch(Write, dir.With(strings.TrimSuffix(dir.S, "/")+"/_"), c.st, touching{tree: true, verb: "unpacks into"})
	}
}

// doWeb judges programs that fetch addresses to files.
func (a *analysis) doWeb(c *call) {
	a.roles(c)
	o := c.opt("--url")
	urls := c.operands
	if o != nil && o.val != nil {
		urls = append(slices.Clip(urls), *o.val)
	}
	// saves: to a file of the address's last name, as wget does without an option.
	saves := !c.has("-O", "--output-document", "--spider", "-o", "--out")
	if c.spec.Opts["--data"] != nil { // curl and its like
		saves = c.has("-O", "--remote-name", "-J", "--remote-name-all")
	}
	for i := range urls {
		f := &urls[i]
		a.host(f)
		if rest, ok := strings.CutPrefix(f.S, "file://"); ok {
			a.touch(Read, f.With("/"+strings.TrimLeft(strings.TrimPrefix(rest, "localhost"), "/")), c.st, touching{})
		}
		if f.Flow&(bashread.Printed|flowSecret) != 0 {
			a.note(High, Network, f.Span, "puts what another program prints into an address")
		}
		if u, _, _ := strings.Cut(f.S, "?"); saves && strings.Contains(u, "/") && path.Base(u) != "" {
			file := f.With(u[strings.LastIndexByte(u, '/')+1:])
			a.touch(Write, file, c.st, touching{})
			a.Wrote(bashread.Key(file, c.st), bashread.Output{Flow: flowNet}, false)
		}
	}
}

func remotePath(s string) bool {
	host, _, ok := strings.Cut(s, ":")
	return ok && host != "" && !strings.Contains(host, "/")
}

// doRsync judges rsync and scp: what they copy where, and what is deleted at either end.
func (a *analysis) doRsync(c *call) {
	a.copies(c, false)
	takes := c.has("--remove-source-files") && !c.lowered()
	drops := slices.ContainsFunc(c.opts, func(o option) bool { return strings.HasPrefix(o.name, "--del") }) && !c.lowered()
	for i := range c.operands {
		f, last := &c.operands[i], i == len(c.operands)-1
		switch {
		case remotePath(f.S):
			a.note(High, Network, c.span, "copies files from or to another machine")
			if a.host(f); last && drops {
				a.note(Critical, Delete, c.span, "deletes files on another machine")
			}
		case !last && takes:
			a.touch(Delete, f, c.st, touching{tree: true})
		case last && drops:
			a.touch(Delete, f, c.st, touching{tree: true, verb: "deletes what is not in the source from"})
		}
	}
}

// doGit judges git: options set what it runs, and addresses can be commands.
func (a *analysis) doGit(c *call) {
	for i := range c.opts {
		if o := &c.opts[i]; o.val != nil && (o.name == "-c" || o.name == "--config") {
			key, val, _ := strings.Cut(o.val.S, "=")
			a.gitSetting(c, key, o.val.With(val))
		}
	}
	switch c.sub() {
	case "config", "config set", "config unset", "config edit", "config rename-section", "config remove-section":
		a.gitConfig(c)
		return
	case "init":
		if len(c.operands) == 0 || c.operands[0].S == "." {
			a.note(Medium, Persistence, c.span, "makes the project a repository")
		}
	case "clone":
		if n := len(c.operands); n > 0 && c.operands[n-1].Known {
			name := strings.TrimSuffix(strings.TrimRight(c.operands[n-1].S, "/"), ".git")
			if n == 1 {
				name = name[strings.LastIndexAny(name, "/:")+1:]
			}
			a.fetched(bashread.Absolute(c.st.Cwd, name))
			if n > 1 {
				a.touch(Write, &c.operands[1], c.st, touching{tree: true, verb: "clones into"})
			}
		}
	}
	a.roles(c)
}

// gitSetting judges a setting of git that decides what it runs.
func (a *analysis) gitSetting(c *call, key string, val *field) {
	key = strings.ToLower(key)
	if !expr("git-runs").MatchString(key) || expr("git-plain").MatchString(key+"="+val.S) {
		return
	}
	a.command().Runs = true
	a.note(High, RunCode, val.Span, "sets git's "+show(key)+", which decides what git runs or trusts")
	a.Maybe(strings.TrimPrefix(val.S, "!"), val.Span, c.st)
}

// gitConfig judges git config.
func (a *analysis) gitConfig(c *call) {
	ops := c.operands
	change := c.has("--unset", "--unset-all", "--remove-section", "--edit", "-e", "--rename-section", "--add", "--replace-all") || len(ops) > 1 || len(c.subs) > 1
	if c.has("--get", "--get-all", "--get-regexp", "--list", "-l") || !change {
		return
	}
	level := Medium
	switch {
	case c.has("--system"):
		level = Critical
	case c.has("--global"):
		level = High
	}
	for i := range c.opts {
		if o := &c.opts[i]; o.is("-f", "--file") && o.val != nil {
			a.touch(Write, o.val, c.st, touching{})
		}
	}
	if len(ops) > 0 && expr("git-runs").MatchString(strings.ToLower(ops[0].S)) {
		a.note(min(Critical, level+1), Persistence, c.span, "changes a setting that decides what git runs or trusts")
		a.Maybe(strings.TrimPrefix(bashread.Join(ops[1:], c.span).S, "!"), c.span, c.st)
	}
	a.note(level, Persistence, c.span, "changes git's settings")
}
