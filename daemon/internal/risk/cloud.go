package risk

import "strings"

// doCloud judges a cloud's command line by its operation, which these programs name by its verb: describe-instances,
// compute instances delete, group list.
func (a *analysis) doCloud(c *cmdCall) {
	level, says := Level(0), ""
	var at Span
	for i := range c.operands {
		f := &c.operands[i]
		if f.opaque() {
			break
		}
		switch verb, rest, _ := strings.Cut(f.s, "-"); {
		case cloudSecret(f.s):
			a.seen |= flowSecret
			a.facts.secret = true
			level, says, at = High, "asks a cloud for a secret", f.span
		case (verb == "delete" || verb == "terminate" || verb == "destroy" || verb == "purge") && rest != "tags":
			level, says, at = Critical, "deletes something in a cloud", f.span
		case level == 0 && (verb == "describe" || verb == "list" || verb == "ls" || verb == "show" || verb == "get" || verb == "wait" || verb == "help"):
			level, says, at = Medium, "asks a cloud", f.span
			continue // `get-x` may be followed by nothing worse, but `list` may be a name
		default:
			continue
		}
		break
	}
	switch {
	case level == Critical && c.has("--dry-run", "--dryrun"):
		a.note(High, Network, at, says+", but is told not to")
	case level == Critical:
		a.note(Critical, Delete, at, says).cannotUndo()
		a.facts.send = true
	case level == High:
		a.note(High, Secret, at, says)
	case level == Medium:
		a.facts.fetched = true
		a.seen |= flowNet
		a.note(Medium, Network, at, says)
		a.optionRoles(c)
		return
	}
	a.usual(c)
}

// cloudSecret tells that an operation answers with a secret.
func cloudSecret(op string) bool {
	switch op {
	case "get-secret-value", "get-parameter", "get-parameters", "get-parameters-by-path", "get-password-data", "get-login-password", "get-login",
		"get-session-token", "get-federation-token", "assume-role", "get-credentials", "create-access-key", "print-access-token",
		"print-identity-token", "get-access-token", "list-keys", "get-object", "access", "get-random-password", "decrypt":
		return true
	}
	return false
}

// doPack judges programs that pack a file in place, unless they are told to write to their output, to list or to test.
func (a *analysis) doPack(c *cmdCall) {
	for i := range c.opts {
		if o := c.opts[i].spec; o != nil && o.lower {
			a.note(Low, Read, c.span, "looks into packed files, or writes to its output")
			for i := range c.operands {
				a.role(c, roleRead, &c.operands[i])
			}
			for i := range c.opts {
				if o := &c.opts[i]; o.val != nil && (o.name == "-o" || o.name == "--output") {
					a.role(c, roleWrite, o.val)
				}
			}
			return
		}
	}
	a.usual(c)
}

// doSSHKey judges ssh-keygen: showing a fingerprint or looking for a host only reads.
func (a *analysis) doSSHKey(c *cmdCall) {
	if c.has("-l", "-B", "-F") && !c.has("-R", "-p", "-y", "-e") {
		a.note(Low, Read, c.span, "shows the fingerprint of a key")
		for i := range c.opts {
			if o := &c.opts[i]; o.val != nil && o.name == "-f" && !strings.HasSuffix(o.val.s, ".pub") && !o.val.opaque() {
				a.note(Low, Read, o.span, "reads the public part of "+show(o.val.s))
			}
		}
		return
	}
	a.usual(c)
}

// doDebugger judges gdb and lldb: commands given to them can be the shell's.
func (a *analysis) doDebugger(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil || o.name != "-ex" && o.name != "-iex" && o.name != "-eval-command" && o.name != "-o" {
			continue
		}
		text, ok := strings.CutPrefix(strings.TrimSpace(o.val.s), "!")
		for _, word := range []string{"shell ", "platform shell ", "make "} {
			if rest, found := strings.CutPrefix(o.val.s, word); found {
				text, ok = rest, true
			}
		}
		if ok {
			v := *o.val
			v.s = text
			a.shellText(c, &v, c.st)
		}
	}
	a.doCode(c)
}
