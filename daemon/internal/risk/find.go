package risk

import "strings"

// doFind judges find: its tests only read, its actions do not.
func (a *analysis) doFind(c *cmdCall) {
	args := c.fields[1:]
	var roots []field
	i := 0
	for ; i < len(args); i++ {
		s := args[i].s
		if s == "-H" || s == "-L" || s == "-P" || strings.HasPrefix(s, "-O") && len(s) > 2 || s == "-D" {
			if s == "-D" {
				i++
			}
			continue
		}
		if strings.HasPrefix(s, "-") || s == "(" || s == "!" || s == ")" || s == "," {
			break
		}
		roots = append(roots, args[i])
	}
	if len(roots) == 0 {
		roots = []field{{s: ".", known: true, span: c.span}}
	}
	a.note(Low, Read, c.span, "looks for files")
	var picks findNames
	for ; i < len(args); i++ {
		switch s := args[i].s; s {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end].s != ";" && !(args[end].s == "+" && args[end-1].s == "{}") {
				end++
			}
			a.runs()
			sp := Span{args[i].span.Start, max(args[i].span.Start, args[min(end, len(args)-1)].span.End)}
			st := c.st
			if strings.HasSuffix(s, "dir") {
				st = c.st.clone()
				st.mayBe("")
			}
			for _, found := range picks.found(roots) {
				a.spend(len(found) / bytesCopied)
				if len(picks.names) == 0 {
					found = strings.TrimRight(found, "/") + "/*"
				}
				cmd := append([]field(nil), args[i+1:min(end, len(args))]...)
				told := false
				for k := range cmd {
					if strings.Contains(cmd[k].s, "{}") {
						told = true
						cmd[k].s = a.replace(cmd[k].s, "{}", found, -1)
						cmd[k].known, cmd[k].glob = false, true
					}
				}
				known := len(a.findings)
				a.exec(cmd, st.clone(), sp, nil)
				for _, f := range a.findings[min(known, len(a.findings)):] {
					if told && len(picks.names) == 0 && f.Effect == Delete && f.Level >= High { // it is told every file of the tree
						root := field{s: found, glob: true, span: sp}
						a.touch(Delete, &root, st, touchOptions{tree: true})
						break
					}
				}
			}
			i = end
		case "-delete":
			for _, found := range picks.found(roots) {
				f := field{s: found, glob: true, span: args[i].span}
				a.touch(Delete, &f, c.st, touchOptions{tree: len(picks.names) == 0})
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				i++
				a.touch(Write, &args[i], c.st, touchOptions{})
			}
		case "-name", "-iname":
			if i+1 < len(args) {
				i++
				picks.name(args[i].s, args[i].known)
			}
		case "(":
			picks.open()
		case ")":
			picks.end()
		case "-o", "-or", ",":
			picks.or()
		case "!", "-not":
			picks.not = true
			continue
		case "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-type", "-size", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-newer", "-user", "-group", "-perm", "-maxdepth", "-mindepth", "-fstype", "-links", "-inum", "-uid", "-gid", "-samefile", "-xtype", "-used", "-printf", "-context", "-regextype", "-newermt", "-anewer", "-cnewer", "-files0-from":
			i++
		default:
			if args[i].many {
				a.note(High, Unknown, args[i].span, "options of find that are not known here")
			}
		}
		picks.not = false
	}
}

// findNames follows which names a find expression lets through to an action.
type findNames struct {
	names []string
	not   bool // the next test is negated
	group []findGroup
}

type findGroup struct {
	names []string // of its alternatives
	any   bool     // an alternative lets every name through
	has   bool     // this alternative has a name
	not   bool
}

func (p *findNames) name(s string, known bool) {
	switch {
	case p.not || !known || strings.Contains(s, "/") || strings.Trim(s, "*") == "":
	case len(p.group) > 0:
		g := &p.group[len(p.group)-1]
		g.names, g.has = append(g.names, s), true
	default:
		p.names = []string{s}
	}
}

func (p *findNames) open() { p.group = append(p.group, findGroup{not: p.not}) }

func (p *findNames) or() {
	if len(p.group) == 0 {
		p.names = nil
		return
	}
	g := &p.group[len(p.group)-1]
	g.any, g.has = g.any || !g.has, false
}

func (p *findNames) end() {
	if len(p.group) == 0 {
		return
	}
	g := p.group[len(p.group)-1]
	p.group = p.group[:len(p.group)-1]
	if g.any || !g.has || g.not || len(g.names) > 8 {
		return
	}
	if len(p.group) > 0 {
		up := &p.group[len(p.group)-1]
		up.names, up.has = append(up.names, g.names...), true
		return
	}
	p.names = g.names
}

// found are the words that stand for what find found: root/name, or the root with all below it.
func (p *findNames) found(roots []field) (list []string) {
	for _, r := range roots {
		root := strings.TrimRight(r.s, "/")
		for _, n := range p.names {
			list = append(list, root+"/"+n)
			if root == "" {
				list = append(list, "/usr/lib/"+n) // at any depth: the system's folders too
			}
		}
		if len(p.names) == 0 {
			if root == "" {
				root = "/"
			}
			list = append(list, root)
		}
		if len(list) > 16 {
			return append(list, string(unknownPart))
		}
	}
	return list
}

// doFd judges fd: -x and -X run a command.
func (a *analysis) doFd(c *cmdCall) {
	a.note(Low, Read, c.span, "looks for files")
	for i := 1; i < len(c.fields); i++ {
		switch s := c.fields[i].s; {
		case s == "-x" || s == "-X" || s == "--exec" || s == "--exec-batch":
			a.runs()
			cmd := append([]field(nil), c.fields[i+1:]...)
			if len(cmd) > 0 {
				cmd = append(cmd, field{s: "\x00", many: true, span: c.span})
				a.exec(cmd, c.st.clone(), c.span, nil)
			}
			return
		case strings.HasPrefix(s, "--exec"):
			a.note(High, RunCode, c.fields[i].span, "runs a command for every file")
			return
		}
	}
}
