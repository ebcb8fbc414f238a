package risk

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// handlers judge, by their name in the table, the operands of the commands for which a line of it is not enough. The rest of the line is
// judged before.
var handlers map[string]func(*analysis, *call)

func init() { // not in the declaration: they call each other through it
	handlers = map[string]func(*analysis, *call){
		"alias": (*analysis).doAlias, "archive": (*analysis).doArchive, "cd": (*analysis).doCd, "chmod": (*analysis).doChmod,
		"code": (*analysis).doCode, "editor": (*analysis).doEditor, "env": (*analysis).doEnv,
		"filter": (*analysis).doFilter, "find": (*analysis).doFind, "git": (*analysis).doGit,
		"kill": (*analysis).doKill, "ln": (*analysis).doLn, "read": (*analysis).doRead, "remote": (*analysis).doRemote,
		"rsync": (*analysis).doRsync, "set": (*analysis).doSet, "shell": (*analysis).doShell,
		"sql": (*analysis).doSQL, "trap": (*analysis).doTrap, "unset": (*analysis).doUnset,
		"web": (*analysis).doWeb, "xargs": (*analysis).doXargs,
		"shift": func(_ *analysis, c *call) { c.st.ArgsOK = false },
	}
}

// doEnv judges env, which runs a command with other variables or, without a command, prints all variables.
func (a *analysis) doEnv(c *call) {
	if fs := a.runTail(c, c.st.Clone()); fs == 0 && !c.has("-S", "-vS", "--split-string") {
		a.note(Medium, Secret, c.span, bashread.PrintsVariables)
	}
}

// doRemote judges programs that run the command elsewhere: ssh, docker exec, chroot.
func (a *analysis) doRemote(c *call) {
	if len(c.operands) > 0 {
		a.host(&c.operands[0])
	}
	st := c.st.Clone()
	st.Remote, st.Cwd, st.Alts = true, "", nil
	switch fs, sp := c.rest(); {
	case len(fs) > 0 && c.spec.Has(Network):
		a.shellText(bashread.Join(fs, sp), st)
	case len(fs) > 0:
		a.runTail(c, st)
	case c.st.Stdin.Plain() != nil:
		a.fromStdin(c, st)
	}
}

// doXargs judges xargs, which runs its command with words added that it reads, and parallel, which runs its words as shell text as well.
func (a *analysis) doXargs(c *call) {
	if c.spec.Args[0] == programs.Join {
		a.roles(c)
	}
	in := c.st.Stdin
	cmd, sp := c.rest()
	cmd = slices.Clone(cmd)
	more := []field{{S: unknownPart, Many: true, Span: c.span, Flow: in.Flow | bashread.Printed}}
	if text := in.Plain(); text != nil && len(*text) < 4096 && !strings.ContainsAny(*text, "\"'\\") {
		more = nil
		for w := range strings.FieldsSeq(*text) {
			more = append(more, field{S: w, Known: true, Span: c.span, Flow: in.Flow})
		}
	} else if in.List != "" {
		more = []field{{S: in.List, Glob: true, Many: true, Span: c.span, Flow: in.Flow | bashread.Printed}}
	}
	hole := ""
	if o := c.opt("-I", "--replace", "-i"); o != nil {
		if hole = "{}"; o.val != nil {
			hole = o.val.S
		}
	}
	if len(cmd) == 0 {
		return
	}
	found := len(a.findings)
	if hole == "" {
		if len(more) == 1 && !more[0].Known { // there may be nothing to read
			a.guess++
			a.Command(cmd, c.st.Clone(), sp)
			a.guess--
		}
		a.Command(append(cmd, more...), c.st.Clone(), sp)
	} else {
		for i := range more {
			a.Command(a.fill(cmd, hole, &more[i]), c.st.Clone(), sp)
		}
	}
	if root, ok := strings.CutSuffix(in.List, "/*"); ok {
		a.deletesTree(found, &field{S: root, Glob: true, Span: sp}, c.st)
	}
}

// fill puts a word in the place of a hole in a command.
func (a *analysis) fill(cmd []field, hole string, word *field) []field {
	cmd = slices.Clone(cmd)
	for i := range cmd {
		f := &cmd[i]
		if n := strings.Count(f.S, hole); n > 0 {
			a.Spend((len(f.S) + n*len(word.S)) / bashread.BytesCopied)
			f.S = strings.ReplaceAll(f.S, hole, word.S)
			f.Known = f.Known && word.Known
			f.Glob = f.Glob || word.Glob
			f.Flow |= word.Flow
		}
	}
	return cmd
}

// deletesTree judges the whole tree at root as deleted where a command that gets each file of it deletes: where one of the
// findings from index found on is a deletion.
func (a *analysis) deletesTree(found int, root *field, st *state) {
	for _, f := range a.findings[found:] {
		if f.Effect == Delete && f.Level >= High {
			a.touch(Delete, root, st, touching{tree: true})
			return
		}
	}
}

// doFind judges find: its tests only read, its actions do not.
func (a *analysis) doFind(c *call) {
	roots, tests := findRoots(c)
	name, lists := "", true // name: the pattern of -name that each file matches which the next action gets; "" is any file
	alternatives := expr("find-or").MatchString(bashread.Join(tests, c.span).S)
	for i := 0; i < len(tests); i++ {
		next := min(i+1, len(tests)-1)
		switch s := tests[i].S; s {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := next
			for end < len(tests) && tests[end].S != ";" && !(tests[end].S == "+" && tests[end-1].S == "{}") {
				end++
			}
			a.findRuns(c, tests[next:min(end, len(tests))], roots, name, strings.HasSuffix(s, "dir"))
			i, lists = end, false
		case "-delete":
			for k := range roots {
				f := roots[k].With(findRoot(&roots[k], name))
				f.Glob = true
				a.touch(Delete, f, c.st, touching{tree: name == ""})
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			a.touch(Write, &tests[next], c.st, touching{})
		case "-printf":
			lists = false
		case "-name", "-iname":
			not := i > 0 && (tests[i-1].S == "!" || tests[i-1].S == "-not")
			if f := &tests[next]; !alternatives && !not && narrows(f) {
				name = f.S
			}
			i++
		default:
			if s == "-files0-from" || tests[i].Many && !tests[i].Known {
				a.note(High, Unknown, tests[i].Span, "files or options of find that are not known here")
			}
		}
	}
	if lists {
		c.list = listed(roots, name)
	}
}

// narrows reports whether a pattern of -name is known, and not every file may match it.
func narrows(f *field) bool {
	return f.Known && strings.Trim(f.S, "*") != "" && !strings.Contains(f.S, "/")
}

// listed returns a pattern of the files below roots that find, or a program like it, prints: below the first root that may lie
// outside of the present folder, else below the first. It is "" where that is not known.
func listed(roots []field, name string) string {
	root := roots[0]
	if i := slices.IndexFunc(roots, func(f field) bool {
		return f.Opaque() || path.IsAbs(f.S) || strings.HasPrefix(path.Clean(f.S), ".")
	}); i >= 0 {
		root = roots[i]
	}
	if root.Opaque() {
		return ""
	}
	return strings.TrimRight(root.S, "/") + "/" + cmp.Or(name, "*")
}

// findRoots returns the folders in which find looks, and the words that follow them. Options that consist of the letters below, such as
// -L and -O2, come before the folders; any other word that begins with - is a test or an action.
func findRoots(c *call) (roots, tests []field) {
	args := c.fields[1:]
	for i := range args {
		s := args[i].S
		if option := strings.HasPrefix(s, "-"); option && strings.Trim(s[1:], "EHLPXdsxO0123456789") != "" || s == "(" || s == "!" {
			tests = args[i:]
			break
		} else if !option {
			roots = append(roots, args[i])
		}
	}
	if len(roots) == 0 {
		roots = []field{{S: ".", Known: true, Span: c.span}}
	}
	return roots, tests
}

// findRuns judges the command that find runs for each file that it finds.
func (a *analysis) findRuns(c *call, cmd, roots []field, name string, inFolder bool) {
	a.command().Runs = true
	st := c.st.Clone()
	if inFolder { // -execdir runs in the folder of each file
		st.MayBe("")
	}
	namesFile := slices.ContainsFunc(cmd, func(f field) bool { return strings.Contains(f.S, "{}") })
	for k := range roots {
		root := roots[k].With(findRoot(&roots[k], name))
		word := root.With(root.S)
		if word.Known, word.Glob = false, true; name == "" {
			word.S = strings.TrimRight(root.S, "/") + "/*"
		}
		found := len(a.findings)
		if a.Command(a.fill(cmd, "{}", word), st.Clone(), c.span); name == "" && namesFile {
			a.deletesTree(found, root, st)
		}
	}
}

// findRoot returns the word by which what find finds below a root is judged: root/name, or without a name the root itself.
func findRoot(root *field, name string) string {
	r := strings.TrimRight(root.S, "/")
	switch {
	case name == "":
		return cmp.Or(r, "/")
	case r == "" && root.S != "": // at any depth: the system's folders too
		return "/usr/lib/" + name
	}
	return r + "/" + name
}
