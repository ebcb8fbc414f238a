package risk

import (
	"strings"
	"sync"
)

// handlers are the functions that look closer at what a line of the table cannot say. A handler has judged the whole
// command when it returns; ends says that what follows the command does not run.
var handlers func() map[string]func(a *analysis, c *cmdCall) (ends bool)

func init() { handlers = sync.OnceValue(allHandlers) } // not in the declaration: they call each other through it

func allHandlers() map[string]func(a *analysis, c *cmdCall) bool {
	usual := func(f func(a *analysis, c *cmdCall)) func(a *analysis, c *cmdCall) bool {
		return func(a *analysis, c *cmdCall) bool { f(a, c); return false }
	}
	return map[string]func(a *analysis, c *cmdCall) bool{
		// wrappers
		"env": usual((*analysis).doEnv), "xargs": usual((*analysis).doXargs), "parallel": usual((*analysis).doXargs), "find": usual((*analysis).doFind),
		"ssh": usual((*analysis).doSSH), "su": usual((*analysis).doSu), "join": usual((*analysis).doJoin), "flock": usual((*analysis).doFlock),
		"remote": usual((*analysis).doRemoteRun), "sudo": usual((*analysis).doSudo), "busybox": usual((*analysis).doBusybox),
		"tmux": usual((*analysis).doTmux), "at": usual((*analysis).doAt), "sublet": usual((*analysis).doSublet), "fd": usual((*analysis).doFd), "anytail": usual((*analysis).doAnyTail),
		// the shell's own
		"shell": usual((*analysis).doShell), "eval": (*analysis).doEval, "source": usual((*analysis).doSource), "exec": (*analysis).doExec,
		"command": (*analysis).doCommand, "trap": usual((*analysis).doTrap), "cd": usual((*analysis).doCd), "exit": (*analysis).doExit,
		"alias": usual((*analysis).doAlias), "unset": usual((*analysis).doUnset), "set": usual((*analysis).doSet), "read": usual((*analysis).doRead),
		"test": usual((*analysis).doTest), "wait": usual((*analysis).doWait), "export": usual((*analysis).doExport), "printf": usual((*analysis).doPrintf), "hash": usual((*analysis).doHash),
		"kill": usual((*analysis).doKill), "jobs": usual((*analysis).doJobs), "bind": usual((*analysis).doBind), "echo": usual((*analysis).doEcho), "tee": usual((*analysis).doTee),
		// programs
		"rm": usual((*analysis).doRm), "chmod": usual((*analysis).doChmod), "ln": usual((*analysis).doLn), "dd": usual((*analysis).doDd),
		"sed": usual((*analysis).doSed), "awk": usual((*analysis).doAwk), "code": usual((*analysis).doCode), "tar": usual((*analysis).doTar), "sort": usual((*analysis).doSort),
		"git": usual((*analysis).doGit), "gitconfig": usual((*analysis).doGitConfig), "gitpush": usual((*analysis).doGitPush), "gitcheckout": usual((*analysis).doGitCheckout), "gitclean": usual((*analysis).doGitClean), "gitadd": usual((*analysis).doGitAdd),
		"curl": usual((*analysis).doCurl), "wget": usual((*analysis).doWget), "rsync": usual((*analysis).doRsync), "scp": usual((*analysis).doScp),
		"docker": usual((*analysis).doDockerRun), "make": usual((*analysis).doMake), "vim": usual((*analysis).doVim), "crontab": usual((*analysis).doCrontab),
		"sql": usual((*analysis).doSQL), "npx": usual((*analysis).doNpx), "gorun": usual((*analysis).doGoRun), "install": usual((*analysis).doInstall), "unzip": usual((*analysis).doUnzip),
		"sysctl": usual((*analysis).doSysctl), "printenv": usual((*analysis).doPrintenv), "query": usual((*analysis).doQuery), "pipask": usual((*analysis).doPipAsk), "ps": usual((*analysis).doPs), "gitbundle": usual((*analysis).doGitBundle), "mktemp": usual((*analysis).doMktemp), "pip": usual((*analysis).doPip), "touchonly": usual((*analysis).doTouchOnly), "api": usual((*analysis).doAPI), "cloud": usual((*analysis).doCloud),
		"pack": usual((*analysis).doPack), "split": usual((*analysis).doSplit), "sshkey": usual((*analysis).doSSHKey), "debugger": usual((*analysis).doDebugger), "openssl": usual((*analysis).doOpenssl),
	}
}

// doAnyTail is for wrappers whose options take several values: the command may begin at any word. The first that is a
// program is taken for it, and what is critical from any other counts too.
func (a *analysis) doAnyTail(c *cmdCall) {
	a.runs()
	a.base(c)
	begin, first := 0, 0
	for i := 1; i < len(c.fields) && i <= 64 && begin == 0; i++ {
		f := &c.fields[i]
		name := f.s[strings.LastIndexByte(f.s, '/')+1:]
		switch {
		case f.s == "--" && i+1 < len(c.fields):
			begin = i + 1
		case f.s == "-c" && i+1 < len(c.fields):
			a.shellText(c, &c.fields[i+1], c.st)
			return
		case strings.HasPrefix(f.s, "-") || strings.IndexByte(f.s, '=') > 0:
		case f.opaque() || lookup(name) != nil:
			begin = i
		case first == 0:
			first = i
		}
	}
	if begin == 0 {
		begin = first
	}
	if begin == 0 {
		return
	}
	for i := 1; i < len(c.fields) && i <= 32; i++ {
		if i != begin && !strings.HasPrefix(c.fields[i].s, "-") {
			a.raiseCritical(c.fields[i:], c, c.st)
		}
	}
	c.tail = begin
	a.exec(c.fields[begin:], c.st.clone(), c.tailSpan(), c.prefix)
}

// tailSpan is where the wrapped command stands.
func (c *cmdCall) tailSpan() Span {
	if c.tail == 0 || c.tail >= len(c.fields) {
		return c.span
	}
	return Span{c.fields[c.tail].span.Start, max(c.fields[len(c.fields)-1].span.End, c.fields[c.tail].span.Start)}
}

// runTail judges the command that a wrapper runs.
func (a *analysis) runTail(c *cmdCall, st *state) {
	a.runs()
	if c.tail == 0 || c.tail >= len(c.fields) {
		return
	}
	a.otherTails(c, st)
	a.exec(c.fields[c.tail:], st.clone(), c.tailSpan(), c.prefix)
}

// otherTails guards against an option of a wrapper that is not in the table, or takes a value where the table thinks it
// does not: what runs may then begin elsewhere. What is critical from there counts too.
func (a *analysis) otherTails(c *cmdCall, st *state) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.spec == nil && len(c.fields) > c.tail+1 && c.fields[c.tail-1].span == o.span {
			a.raiseCritical(c.fields[c.tail+1:], c, st)
		}
		if o.word > 0 && lookup(o.val.s) != nil {
			a.raiseCritical(c.fields[o.word:], c, st)
		}
	}
}

// raiseCritical keeps what is critical when words are judged as a command.
func (a *analysis) raiseCritical(fs []field, c *cmdCall, st *state) {
	if a.depth >= maxDepth {
		return
	}
	sub := a.part(a.src, false)
	defer func() { // also when the budget is spent in there
		for i := range sub.findings {
			if f := &sub.findings[i]; f.Level >= Critical {
				a.note(f.Level, f.Effect, *f.Span, f.Text).cannotUndo()
			}
		}
	}()
	sub.exec(fs, st.clone(), c.span, nil)
}

// shellText judges a word that a command gives to a shell.
func (a *analysis) shellText(c *cmdCall, f *field, st *state) {
	a.runs()
	switch {
	case f.flow&flowNet != 0:
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
	case f.opaque() && f.flow&flowOutput != 0:
		a.opaque()
		a.note(High, RunCode, f.span, "runs what another program prints")
	case f.opaque():
		a.opaque()
		a.note(High, RunCode, f.span, "runs text that is not known here")
	}
	if strings.TrimSpace(strings.Trim(f.s, "\x00\x01")) == "" {
		return
	}
	a.inline(f.s, f.span, st.clone())
}

// fromStdin judges a program that runs what it reads.
func (a *analysis) fromStdin(c *cmdCall, what string) {
	in := c.st.stdin
	a.runs()
	switch {
	case in.flow&flowNet != 0:
		a.note(Critical, RunCode, c.span, what+" runs what was just fetched from the network").cannotUndo()
	case in.text != nil && what != "":
		// judged by the caller
	case in.any:
		a.opaque()
		a.note(High, RunCode, c.span, what+" runs what it is given, and that is not known here")
	default:
		a.note(High, RunCode, c.span, what+" runs what is typed into it")
	}
}

func (a *analysis) doEnv(c *cmdCall) {
	a.runs()
	a.note(Low, Read, c.span, "runs a command in an environment of its own")
	st := c.st.clone()
	prefix := c.prefix
	i := 1
	for ; i < len(c.fields); i++ {
		f := &c.fields[i]
		s := f.s
		switch {
		case s == "-S" || s == "--split-string" || strings.HasPrefix(s, "--split-string=") || strings.HasPrefix(s, "-S") || strings.HasPrefix(s, "-vS"):
			text := *f
			if s == "-S" || s == "--split-string" || s == "-vS" {
				if i+1 >= len(c.fields) {
					return
				}
				i++
				text = c.fields[i]
			} else if _, v, ok := strings.Cut(s, "="); ok && strings.HasPrefix(s, "--") {
				text.s = v
			} else {
				text.s = s[strings.IndexByte(s, 'S')+1:]
			}
			a.shellText(c, &text, st)
			if i+1 < len(c.fields) {
				a.note(Medium, RunCode, c.span, "gives further words to what env -S runs")
			}
			return
		case s == "--":
			continue
		case s == "-u" || s == "--unset" || s == "-C" || s == "--chdir" || s == "-a" || s == "--argv0":
			if (s == "-C" || s == "--chdir") && i+1 < len(c.fields) {
				st.cwd, st.alts = a.pathOf(&c.fields[i+1], st), nil
			}
			i++
			continue
		case strings.HasPrefix(s, "--chdir="):
			st.cwd, st.alts = joinPath(st.cwd, s[len("--chdir="):]), nil
			continue
		case s == "-" || strings.HasPrefix(s, "-") && len(s) > 1:
			continue
		case strings.IndexByte(s, '=') > 0 && !strings.HasPrefix(s, "="):
			name, val, _ := strings.Cut(s, "=")
			v := *f
			v.s = val
			a.poison(name, &v, st, assignPrefix, f.span)
			prefix = append(prefix, name)
			st.set(name, value{words: []string{val}, flow: f.flow}) // the words are expanded already: a shell below sees it
			continue
		}
		break
	}
	if i >= len(c.fields) {
		// It prints the environment, which holds secrets.
		a.seen |= flowSecret
		a.facts.secret = true
		a.note(Medium, Secret, c.span, "prints all variables, with the secrets among them")
		return
	}
	if c.fields[i].opaque() && !c.fields[i].known && i+1 < len(c.fields) && strings.Contains(c.fields[i].s, "=") {
		a.note(High, Unknown, c.fields[i].span, "sets a variable that is not known here")
	}
	c.tail, c.prefix = i, prefix
	a.runTail(c, st)
}

func (a *analysis) doSudo(c *cmdCall) {
	a.runs()
	if c.has("-l", "--list", "-v", "--validate", "-k", "--reset-timestamp", "-K", "-V") && c.tail == 0 {
		a.note(Medium, Privilege, c.span, "asks what may be run as another user")
		return
	}
	a.note(High, Privilege, c.span, "runs as another user, usually as root, with "+show(c.name))
	if c.has("-e", "--edit") {
		for i := range c.operands {
			a.touch(Write, &c.operands[i], c.st, touchOptions{})
		}
		return
	}
	st := c.st.clone()
	i := c.tail
	if i == 0 {
		if c.has("-i", "--login", "-s", "--shell") {
			a.fromStdin(c, "a root shell")
		}
		return
	}
	for i < len(c.fields) {
		name, val, ok := strings.Cut(c.fields[i].s, "=")
		if !ok || !nameLike(name) {
			break
		}
		v := c.fields[i]
		v.s = val
		a.poison(name, &v, st, assignPrefix, v.span)
		i++
	}
	if i >= len(c.fields) {
		return
	}
	c.tail = i
	if c.has("-s", "--shell", "-i", "--login") {
		f := field{s: joinFields(c.fields[i:]), known: true, span: c.tailSpan()}
		for k := range c.fields[i:] {
			f.known = f.known && c.fields[i+k].known
			f.flow |= c.fields[i+k].flow
		}
		a.shellText(c, &f, st)
		return
	}
	a.runTail(c, st)
}

func (a *analysis) doSu(c *cmdCall) {
	a.runs()
	a.note(High, Privilege, c.span, "runs as another user")
	if o := c.opt("-c", "--command", "--session-command"); o != nil && o.val != nil {
		a.shellText(c, o.val, c.st)
		return
	}
	if c.name == "runuser" && c.has("-u", "--user") && len(c.operands) > 0 {
		a.exec(c.operands, c.st.clone(), c.span, c.prefix)
		return
	}
	a.fromStdin(c, "a shell of another user")
}

// doJoin is for wrappers that join their words to one shell text, as watch and hyperfine do.
func (a *analysis) doJoin(c *cmdCall) {
	a.runs()
	a.base(c)
	a.optionRoles(c)
	if c.tail == 0 {
		return
	}
	tail := c.fields[c.tail:]
	if c.name == "watch" && c.has("-x", "--exec") {
		a.runTail(c, c.st)
		return
	}
	if c.name == "hyperfine" {
		for i := range tail {
			a.shellText(c, &tail[i], c.st)
		}
		return
	}
	f := field{s: joinFields(tail), known: true, span: c.tailSpan()}
	for i := range tail {
		f.known = f.known && tail[i].known
		f.flow |= tail[i].flow
	}
	a.shellText(c, &f, c.st)
}

func (a *analysis) optionRoles(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val != nil && o.spec != nil {
			a.role(c, o.spec.value, o.val)
		}
	}
}

func (a *analysis) doFlock(c *cmdCall) {
	a.runs()
	a.base(c)
	if o := c.opt("-c", "--command"); o != nil && o.val != nil {
		a.shellText(c, o.val, c.st)
		return
	}
	if c.tail > 0 && c.tail+1 < len(c.fields) && c.fields[c.tail].s == "-c" {
		a.shellText(c, &c.fields[c.tail+1], c.st)
		return
	}
	if len(c.operands) > 0 && !isDigits(c.operands[0].s) {
		a.touch(Write, &c.operands[0], c.st, touchOptions{appends: true, verb: "locks"})
	}
	a.runTail(c, c.st)
}

func (a *analysis) doBusybox(c *cmdCall) {
	a.runs()
	a.note(Low, Read, c.span, "runs a program of "+show(c.name))
	if len(c.fields) < 2 || c.fields[1].s == "--list" {
		return
	}
	if c.fields[1].s == "--install" {
		a.note(High, Write, c.span, "installs links for its programs")
		return
	}
	c.tail = 1
	a.runTail(c, c.st)
}
