package risk

import "strings"

// doSSH judges a command that runs on another machine.
func (a *analysis) doSSH(c *cmdCall) {
	a.runs()
	a.note(High, Network, c.span, "works on another machine through "+show(c.name))
	a.facts.send = true
	a.seen |= flowNet
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil {
			continue
		}
		switch o.name {
		case "-o":
			a.sshOption(c, o.val)
		case "-F":
			a.note(High, RunCode, o.span, "takes its settings, which can start programs, from a file")
		case "-L", "-R", "-D", "-W", "-w", "-J":
			a.note(High, Network, o.span, "opens a tunnel")
		case "-E":
			a.touch(Write, o.val, c.st, touchOptions{})
		case "-I":
			a.note(Critical, RunCode, o.span, "loads a library")
		}
	}
	if len(c.operands) == 0 && c.tail == 0 {
		return
	}
	host := c.operands
	if len(host) > 0 {
		a.address(&host[0])
		if strings.HasPrefix(host[0].s, "-") {
			a.note(Critical, RunCode, host[0].span, "a host that is read as an option")
		}
	}
	if c.tail > 0 {
		tail := c.fields[c.tail:]
		f := field{s: joinFields(tail), known: true, span: c.tailSpan()}
		for i := range tail {
			f.known = f.known && tail[i].known
			f.flow |= tail[i].flow
		}
		st := c.st.clone()
		st.remote, st.cwd, st.alts, st.vars, st.shared = true, "", nil, nil, false
		a.shellText(c, &f, st)
		return
	}
	if c.st.stdin.text != nil {
		st := c.st.clone()
		st.remote, st.cwd, st.alts = true, "", nil
		f := field{s: *c.st.stdin.text, known: true, span: c.span, flow: c.st.stdin.flow}
		a.shellText(c, &f, st)
	} else if c.st.stdin.flow&flowSecret != 0 {
		a.note(Critical, Secret, c.span, "sends secrets to another machine").cannotUndo()
	}
}

// sshOption judges -o: some options are commands that run here.
func (a *analysis) sshOption(c *cmdCall, f *field) {
	name, val, _ := strings.Cut(f.s, "=")
	if !strings.Contains(f.s, "=") {
		name, val, _ = strings.Cut(f.s, " ")
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "proxycommand", "localcommand", "knownhostscommand", "match", "remotecommand", "proxyusefdpass":
		if strings.EqualFold(strings.TrimSpace(val), "none") {
			return
		}
		v := *f
		v.s = strings.NewReplacer("%h", "_", "%p", "_", "%r", "_").Replace(val)
		a.note(High, RunCode, f.span, "ssh runs the command in "+show(name))
		a.shellText(c, &v, c.st)
	case "pkcs11provider", "securitykeyprovider", "include":
		a.note(Critical, RunCode, f.span, "ssh loads "+show(val))
	case "stricthostkeychecking", "userknownhostsfile":
		if v := strings.ToLower(val); v == "no" || v == "/dev/null" || v == "off" {
			a.note(High, Network, f.span, "does not check which machine answers")
		}
	default:
		if f.opaque() {
			a.note(High, Unknown, f.span, "an option of ssh that is not known here")
		}
	}
}

// doRemoteRun is for programs that run the command elsewhere: docker exec, kubectl exec, vagrant ssh.
func (a *analysis) doRemoteRun(c *cmdCall) {
	a.runs()
	a.base(c)
	a.optionRoles(c)
	if c.tail == 0 {
		return
	}
	st := c.st.clone()
	st.remote, st.cwd, st.alts = true, "", nil
	a.runTail(c, st)
}
