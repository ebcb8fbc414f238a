package risk

import "strings"

// doGit judges git before its sub-command: -c and --config-env set what git runs, --exec-path where it finds it. The
// sub-command's line is looked up by then; one that is not in the table may be an alias or a program of its own.
func (a *analysis) doGit(c *cmdCall) {
	if len(c.operands) == 0 {
		a.note(Low, Read, c.span, "asks git for help")
		return
	}
	a.runs()
	f := &c.operands[0]
	if f.opaque() {
		a.opaque()
		a.note(High, Unknown, f.span, "a sub-command of git that is not known here")
		return
	}
	a.note(High, RunCode, f.span, "git "+show(f.s)+" is not known here: it may be an alias that runs anything")
}

// gitGlobals judges the options before the sub-command, for every sub-command.
func (a *analysis) gitGlobals(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil {
			continue
		}
		switch o.name {
		case "-c":
			a.gitSetting(c, o.val)
		case "--config-env":
			a.note(High, RunCode, o.span, "changes git's settings by a variable")
		case "--exec-path":
			a.runs()
			a.note(High, RunCode, o.span, "decides which programs git runs")
		case "-C", "--git-dir", "--work-tree":
			if o.val.opaque() {
				continue
			}
			st := c.st.clone()
			if o.name == "-C" || o.name == "--work-tree" {
				st.cwd, st.alts = a.pathOf(o.val, c.st), nil
				c.st = st
			}
		case "--upload-pack", "--receive-pack", "-u", "--exec", "-x", "--extcmd", "--open-files-in-pager", "-O":
			if o.name == "-u" && c.sub() != "clone" || o.name == "-x" && c.sub() != "rebase" && c.sub() != "difftool" || o.name == "-O" && c.sub() != "grep" {
				continue
			}
			a.runs()
			a.note(High, RunCode, o.span, "git runs a program that is named here")
			a.shellText(c, o.val, c.st)
		case "--output", "-o":
			if sub := c.sub(); o.name == "--output" || sub == "archive" || sub == "format-patch" {
				a.touch(Write, o.val, c.st, touchOptions{})
			}
		}
	}
	switch sub := c.sub(); sub {
	case "clone":
		if len(c.operands) > 1 {
			a.touch(Write, &c.operands[1], c.st, touchOptions{tree: true, verb: "clones into"})
			a.facts.fetchedTree(a.pathOf(&c.operands[1], c.st))
		} else if len(c.operands) == 1 && c.operands[0].known {
			name := strings.TrimSuffix(strings.TrimRight(c.operands[0].s, "/"), ".git")
			a.facts.fetchedTree(joinPath(c.st.cwd, name[strings.LastIndexAny(name, "/:")+1:]))
		}
		for i := range c.opts {
			if o := &c.opts[i]; o.name == "--config" && o.val != nil {
				a.gitSetting(c, o.val)
			}
		}
	case "worktree":
		if len(c.operands) > 0 && c.spec.level == Medium {
			a.touch(Write, &c.operands[0], c.st, touchOptions{tree: true, verb: "makes"})
		}
	case "diff", "grep", "show", "blame", "cat-file", "log", "hash-object":
		for i := range c.operands {
			f := c.operands[i]
			if _, file, ok := strings.Cut(f.s, ":"); ok {
				f.s = file // HEAD:.env
			}
			if (i > 0 || sub != "grep") && a.secretWord(&f, c.st) {
				a.touch(Read, &f, c.st, touchOptions{})
			}
		}
	}
	for i := range c.operands {
		if s := c.operands[i].s; strings.HasPrefix(s, "ext::") || strings.HasPrefix(s, "fd::") {
			a.runs()
			v := c.operands[i]
			v.s = strings.TrimPrefix(s, "ext::")
			a.note(Critical, RunCode, v.span, "git runs the command in this address")
			a.shellText(c, &v, c.st)
		}
	}
}

// sub is the sub-command that was found.
func (c *cmdCall) sub() string {
	if len(c.plain) > 1 {
		return c.plain[1]
	}
	if c.verb > 1 && len(c.fields) > 1 {
		return c.fields[1].s
	}
	return ""
}

// gitCode are settings whose value git runs, or which make it run what the repository holds; a name that ends in . is a
// whole section.
var gitCode = []string{"core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.hookspath", "core.askpass", "core.gitproxy", "core.alternaterefscommand", "core.attributesfile", "core.worktree", "sequence.editor", "diff.external", "credential.", "alias.", "filter.", "pager.", "gpg.", "merge.", "mergetool.", "difftool.", "diff.", "uploadpack.", "remote.", "url.", "http.proxy", "protocol.", "include.", "includeif.", "interactive.difffilter", "sendemail.", "trailer.", "receive.", "browser.", "man.", "web.browser", "instaweb.", "init.templatedir", "submodule.", "transfer.", "safe.directory", "http.sslverify", "http.sslcainfo", "tar.", "guitool.", "log.showsignature", "user.signingkey", "extensions."}

// gitHarmless are exceptions that are everyday.
var gitHarmless = lazySet(`core.quotepath core.autocrlf core.filemode core.ignorecase core.abbrev core.commentchar core.longpaths core.eol core.safecrlf core.whitespace
	merge.conflictstyle merge.ff diff.algorithm diff.renames diff.noprefix diff.mnemonicprefix diff.colormoved merge.renamelimit diff.renamelimit diff.context submodule.recurse remote.pushdefault`)

func gitRuns(key string) bool {
	key = strings.ToLower(key)
	if gitHarmless()[key] {
		return false
	}
	for _, k := range gitCode {
		if key == k || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k) {
			return true
		}
	}
	return false
}

// gitSetting judges -c key=value.
func (a *analysis) gitSetting(c *cmdCall, f *field) {
	key, val, _ := strings.Cut(f.s, "=")
	if strings.ContainsAny(key, "\x00") {
		a.note(High, Unknown, f.span, "a setting of git that is not known here")
		return
	}
	if !gitRuns(key) {
		return
	}
	switch val {
	case "cat", "", "less", "true", "false", ":", "always", "never":
		if strings.HasSuffix(strings.ToLower(key), "pager") || strings.HasSuffix(strings.ToLower(key), "editor") || strings.HasPrefix(strings.ToLower(key), "pager.") || val == "false" || strings.ToLower(key) == "core.fsmonitor" && val == "" {
			return
		}
	}
	a.runs()
	a.note(High, RunCode, f.span, "sets git's "+show(key)+", which decides what git runs or trusts")
	v := *f
	v.s = strings.TrimPrefix(val, "!")
	if strings.TrimSpace(v.s) != "" && !strings.HasPrefix(strings.ToLower(key), "remote.") && !strings.HasPrefix(strings.ToLower(key), "url.") {
		a.raiseBy(v.s, f.span, c.st)
	}
}

// doGitAdd judges git add: what is noted now is pushed later.
func (a *analysis) doGitAdd(c *cmdCall) {
	a.usual(c)
	for i := range c.operands {
		if o := &c.operands[i]; a.secretWord(o, c.st) && !c.has("-n", "--dry-run") {
			a.facts.secret = true
			a.note(High, Secret, o.span, "puts "+show(o.s)+", keys or passwords, into version control")
		}
	}
}

// doGitConfig judges git config and remote settings.
func (a *analysis) doGitConfig(c *cmdCall) {
	read := c.has("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--get-color", "--show-origin") || len(c.operands) > 0 && (c.operands[0].s == "get" || c.operands[0].s == "list")
	ops := c.operands
	if len(ops) > 0 && (ops[0].s == "set" || ops[0].s == "unset" || ops[0].s == "edit") {
		ops = ops[1:]
	}
	if read || len(ops) == 1 && !c.has("--unset", "--unset-all", "--remove-section", "--edit", "-e", "--rename-section") && c.operands[0].s == ops[0].s {
		a.note(Low, Read, c.span, "reads git's settings")
		return
	}
	if len(ops) == 0 {
		a.note(Medium, Write, c.span, "changes git's settings")
		return
	}
	level, eff, says := Medium, Write, "changes a setting of this repository"
	if c.has("--global") {
		level, says = High, "changes git's settings for all repositories"
	}
	if c.has("--system") {
		level, says = Critical, "changes git's settings for everybody"
	}
	if o := c.opt("-f", "--file"); o != nil && o.val != nil {
		a.touch(Write, o.val, c.st, touchOptions{})
	}
	if gitRuns(ops[0].s) || ops[0].opaque() {
		eff = Persistence
		level = max(level, High)
		if c.has("--global") {
			level = Critical
		}
		says += ", which decides what git runs or trusts"
		if len(ops) > 1 {
			v := strings.TrimPrefix(ops[1].s, "!")
			a.raiseBy(v, ops[1].span, c.st)
		}
	}
	a.note(level, eff, c.span, says).canUndo("git config --unset " + show(ops[0].s))
}

// doGitPush judges git push: forcing and deleting rewrite what others have.
func (a *analysis) doGitPush(c *cmdCall) {
	a.facts.send = true
	a.seen |= flowNet
	if c.has("-n", "--dry-run") {
		a.note(Medium, Network, c.span, "asks the remote what a push would do")
		return
	}
	a.note(High, Network, c.span, "sends commits to a remote, where others see them")
	for i := range c.opts {
		switch o := &c.opts[i]; {
		case o.name == "-f" || strings.HasPrefix(o.name, "--forc") && len(o.name) > 5:
			a.note(Critical, History, o.span, "rewrites the history that others share").cannotUndo()
		case o.name == "-d" || strings.HasPrefix(o.name, "--del"):
			a.note(Critical, History, o.span, "deletes branches or tags that others share").cannotUndo()
		case o.name == "--mirror" || o.name == "--prune" || strings.HasPrefix(o.name, "--mir"):
			a.note(Critical, History, o.span, "makes the remote like this repository: what is missing here is deleted there").cannotUndo()
		case o.name == "--no-verify":
			a.note(High, RunCode, o.span, "goes past the checks before a push")
		}
	}
	for i := range c.operands {
		f := &c.operands[i]
		switch {
		case strings.HasPrefix(f.s, "+"):
			a.note(Critical, History, f.span, "rewrites the history that others share").cannotUndo()
		case strings.HasPrefix(f.s, ":") && len(f.s) > 1:
			a.note(Critical, History, f.span, "deletes branches or tags that others share").cannotUndo()
		case i == 0:
			a.address(f)
		}
	}
}

// doGitCheckout judges checkout, switch and restore: switching keeps changes, restoring files drops them.
func (a *analysis) doGitCheckout(c *cmdCall) {
	sub := c.sub()
	lossy := c.has("-f", "--force", "--discard-changes", "-B", "-C")
	paths := sub == "restore" && !(c.has("--staged", "-S") && !c.has("--worktree", "-W"))
	for i := range c.fields {
		if c.fields[i].s == "--" && sub == "checkout" {
			paths = true
		}
	}
	for i := range c.operands {
		s := c.operands[i].s
		if s == "." || strings.HasPrefix(s, "./") || s == ":/" || strings.HasPrefix(s, "../") || sub == "checkout" && i > 0 && !c.has("-b", "-B", "-t", "--track", "--orphan") || strings.ContainsAny(s, "*") {
			paths = sub != "switch"
		}
	}
	switch {
	case paths:
		a.note(High, Delete, c.span, "drops changes to files that were never committed").cannotUndo()
	case lossy:
		a.note(High, Delete, c.span, "switches branches and drops what was not committed").cannotUndo()
	default:
		a.note(Medium, Write, c.span, "switches branches or puts files back").canUndo("git switch -")
	}
}

// doGitClean judges git clean: it deletes what is not in version control.
func (a *analysis) doGitClean(c *cmdCall) {
	switch {
	case c.has("-n", "--dry-run"):
		a.note(Low, Read, c.span, "lists what is not in version control")
	case c.has("-x", "-d"):
		a.note(Critical, Delete, c.span, "deletes everything that is not in version control").cannotUndo()
	default:
		a.note(High, Delete, c.span, "deletes files that are not in version control").cannotUndo()
	}
}
