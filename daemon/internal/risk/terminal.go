package risk

import "strings"

// doTmux judges tmux and screen: some sub-commands type into other shells or run commands.
func (a *analysis) doTmux(c *cmdCall) {
	a.runs()
	if c.name != "tmux" {
		a.otherTerminal(c)
		return
	}
	sub := ""
	if len(c.operands) > 0 {
		sub = c.operands[0].s
	}
	text := field{known: true, span: c.span}
	var typed []string
	for i := 1; i < len(c.operands); i++ {
		o := &c.operands[i]
		if o.s == "Enter" || o.s == "C-m" || o.s == "C-j" {
			typed = append(typed, "\n")
		} else {
			typed = append(typed, o.s)
		}
		text.known = text.known && o.known
		text.flow |= o.flow
	}
	text.s = strings.Join(typed, " ")
	switch sub {
	case "ls", "list-sessions", "list-windows", "lsw", "list-panes", "lsp", "has-session", "has", "display-message", "display", "capture-pane", "capturep", "show-options", "show", "info", "list-clients", "lsc", "list-keys", "lsk", "show-environment":
		a.note(Low, Read, c.span, "looks at tmux's sessions")
		if strings.Contains(text.s, "#(") {
			a.note(High, RunCode, c.span, "runs a command inside a format of tmux")
		}
	case "send-keys", "send", "pipe-pane", "pipep", "run-shell", "run", "if-shell", "if", "new-window", "neww", "new-session", "new", "split-window", "splitw", "respawn-pane", "respawnp", "respawn-window", "display-popup", "popup", "set-buffer", "paste-buffer":
		a.note(High, RunCode, c.span, "types or runs commands in another terminal")
		st := c.st.clone()
		st.cwd, st.alts = "", nil
		if strings.TrimSpace(text.s) != "" {
			a.shellText(c, &text, st)
		}
	case "kill-server", "kill-session", "kill-window", "kill-pane":
		a.note(High, Signal, c.span, "ends terminals and what runs in them").cannotUndo()
	default:
		a.note(High, ShellState, c.span, "changes what runs in other terminals")
		if strings.Contains(text.s, " ") {
			a.shellText(c, &text, c.st)
		}
	}
}

// otherTerminal judges screen and windows of terminals, which run or type what their words say.
func (a *analysis) otherTerminal(c *cmdCall) {
	if len(c.fields) == 2 && (c.fields[1].s == "-ls" || c.fields[1].s == "-list") {
		a.note(Low, Read, c.span, "lists terminals")
		return
	}
	a.note(High, RunCode, c.span, "runs or types commands in another terminal")
	for i := 1; i < len(c.fields); i++ {
		// The words from some point on are the command: look at every beginning, for what is known to be bad.
		if strings.HasPrefix(c.fields[i].s, "-") {
			continue
		}
		a.raiseBy(joinFields(c.fields[i:]), c.span, c.st)
		if i > 8 {
			break
		}
	}
}

func (a *analysis) doAt(c *cmdCall) {
	a.runs()
	if c.has("-l", "-q") && c.name == "at" && c.has("-l") || c.name == "atq" {
		a.note(Low, Read, c.span, "lists planned jobs")
		return
	}
	a.note(Critical, Persistence, c.span, "plans commands that run later by themselves").cannotUndo()
	if t := c.st.stdin.text; t != nil {
		f := field{s: *t, known: true, span: c.span, flow: c.st.stdin.flow}
		a.shellText(c, &f, c.st)
	} else if c.st.stdin.flow&flowNet != 0 {
		a.fromStdin(c, "at")
	}
}

// doSublet judges our own program inside an agent's command: borrowing the shell, tools and asking are wrappers.
func (a *analysis) doSublet(c *cmdCall) {
	a.runs()
	var ops []field
	for i := range c.fields[1:] {
		if f := c.fields[i+1]; !strings.HasPrefix(f.s, "-") || len(ops) > 0 {
			ops = append(ops, f)
		}
	}
	word := func(i int) string {
		if i < len(ops) {
			return ops[i].s
		}
		return ""
	}
	switch word(0) {
	case "version", "doctor", "help", "completion", "explain", "policy", "trust", "audit":
		if (word(0) == "policy" || word(0) == "trust") && word(1) != "ls" && word(1) != "test" && word(1) != "" {
			a.note(Critical, Persistence, c.span, "changes the rules that decide what runs")
			return
		}
		a.note(Low, Read, c.span, "asks sublet about itself")
	case "session", "daemon", "config":
		switch word(1) {
		case "ls", "show", "search", "status", "logs", "path", "check", "":
			a.note(Low, Read, c.span, "looks at sublet's state")
		default:
			a.note(High, Write, c.span, "changes sublet's sessions, settings or daemon")
		}
	case "lease":
		switch word(1) {
		case "ls":
			a.note(Low, Read, c.span, "lists who borrows the shell")
		case "run":
			a.note(High, RunCode, c.span, "runs a command in the shell of the user, past the question for it")
			for i := 1; i < len(c.fields); i++ {
				if c.fields[i].s == "--" {
					rest := c.fields[i+1:]
					st := c.st.clone()
					st.mayBe("")
					if len(rest) == 1 {
						a.shellText(c, &rest[0], st)
					} else if len(rest) > 1 {
						a.exec(rest, st, c.span, nil)
					}
					break
				}
			}
		default:
			a.note(High, Signal, c.span, "takes the shell away from who borrows it")
		}
	case "ask":
		a.note(High, RunCode, c.span, "starts another agent")
		for i := range c.fields {
			if f := c.fields[i].s; f == "full" || strings.HasSuffix(f, "=full") {
				a.note(Critical, RunCode, c.fields[i].span, "starts another agent that asks for almost nothing").cannotUndo()
			}
		}
	case "tool":
		a.note(High, RunCode, c.span, "runs a tool of an agent")
		for i := range c.fields {
			name, val, _ := strings.Cut(c.fields[i].s, "=")
			if name != "--command" && name != "--path" && name != "--file" {
				continue
			}
			v := c.fields[i]
			v.s = val
			if val == "" && i+1 < len(c.fields) {
				v = c.fields[i+1]
			}
			switch {
			case name == "--command":
				a.shellText(c, &v, c.st)
			case word(1) == "write" || word(1) == "edit":
				a.touch(Write, &v, c.st, touchOptions{})
			default:
				a.touch(Read, &v, c.st, touchOptions{})
			}
		}
	default:
		a.note(High, RunCode, c.span, "starts sublet inside a command")
	}
}
