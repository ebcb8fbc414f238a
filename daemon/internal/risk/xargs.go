package risk

import "strings"

// doXargs judges xargs and parallel: the command gets words that it reads.
func (a *analysis) doXargs(c *cmdCall) {
	a.runs()
	a.note(Low, Read, c.span, "builds commands from what it reads")
	if c.name == "parallel" {
		a.v.Commands[a.cmd].Level = max(a.v.Commands[a.cmd].Level, Medium)
		if c.has("-S", "--sshlogin") {
			a.note(High, Network, c.span, "runs commands on other machines")
			a.facts.send = true
		}
	}
	for i := range c.opts {
		if o := &c.opts[i]; o.name == "-a" || o.name == "--arg-file" {
			if o.val != nil {
				a.touch(Read, o.val, c.st, touchOptions{})
			}
		}
	}
	var more []field
	in := c.st.stdin
	if in.text != nil && len(*in.text) < 4096 && !strings.ContainsAny(*in.text, "\"'\\\x00") && c.name == "xargs" {
		for w := range strings.FieldsSeq(*in.text) {
			more = append(more, field{s: w, known: true, span: c.span, flow: in.flow})
		}
	} else if in.list != "" {
		more = []field{{s: in.list, glob: true, many: true, span: c.span, flow: in.flow | flowOutput}}
	} else {
		more = []field{{s: string(unknownPart), many: true, span: c.span, flow: in.flow | flowOutput}}
	}
	tail := c.tail
	if tail == 0 {
		if c.name == "parallel" { // runs the lines it reads
			if in.text != nil {
				f := field{s: *in.text, known: true, span: c.span, flow: in.flow}
				a.shellText(c, &f, c.st)
				return
			}
			a.fromStdin(c, "parallel")
		}
		return
	}
	cmd := append([]field(nil), c.fields[tail:]...)
	if c.name == "parallel" {
		for i := range cmd {
			if cmd[i].s == ":::" || cmd[i].s == "::::" || cmd[i].s == ":::+" {
				if cmd[i].s == ":::" {
					more = cmd[i+1:]
				}
				cmd = cmd[:i]
				break
			}
		}
		f := field{known: true, span: c.tailSpan()}
		text := joinFields(cmd)
		if !strings.Contains(text, "{") {
			text += " {}"
		}
		for i, m := range more {
			arg := string(unknownPart)
			if m.known && i < maxUnroll {
				arg = m.s
			}
			a.spend((len(text) + strings.Count(text, "{")*len(arg)) / bytesCopied)
			f.s = strings.NewReplacer("{}", arg, "{.}", arg, "{/}", arg, "{//}", arg, "{/.}", arg).Replace(text)
			if strings.Contains(f.s, "\x00") {
				a.opaque()
			}
			a.inline(f.s, f.span, c.st.clone())
			if i >= maxUnroll {
				break
			}
		}
		return
	}
	repl := ""
	if o := c.opt("-I", "--replace", "-i"); o != nil {
		repl = "{}"
		if o.val != nil && o.val.s != "" {
			repl = o.val.s
		}
	}
	if repl == "" {
		if len(more) == 1 && !more[0].known {
			a.raiseCritical(cmd, c, c.st) // there may be nothing to read
		}
		cmd = append(cmd, more...)
	} else {
		word := string(unknownPart)
		if len(more) == 1 {
			word = more[0].s
		}
		for i := range cmd {
			if strings.Contains(cmd[i].s, repl) {
				cmd[i].s = a.replace(cmd[i].s, repl, word, -1)
				cmd[i].known = cmd[i].known && !strings.Contains(word, "\x00")
				cmd[i].flow |= in.flow
			}
		}
	}
	known := len(a.findings)
	a.exec(cmd, c.st.clone(), c.tailSpan(), c.prefix)
	if root, ok := strings.CutSuffix(in.list, "/*"); ok {
		for _, f := range a.findings[min(known, len(a.findings)):] {
			if f.Effect == Delete && f.Level >= High { // the list may hold every file of the tree
				a.touch(Delete, &field{s: root, glob: true, span: c.tailSpan()}, c.st, touchOptions{tree: true})
				break
			}
		}
	}
}
