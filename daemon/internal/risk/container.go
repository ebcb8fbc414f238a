package risk

import "strings"

// doDockerRun judges containers that are started: rights and mounts decide.
func (a *analysis) doDockerRun(c *cmdCall) {
	a.runs()
	a.note(High, RunCode, c.span, "runs a container, which may fetch an image and run its code")
	for i := range c.opts {
		o := &c.opts[i]
		v := ""
		if o.val != nil {
			v = o.val.s
		}
		switch o.name {
		case "--privileged":
			a.note(Critical, Privilege, o.span, "gives the container the rights of the whole machine").cannotUndo()
		case "--pid", "--net", "--network", "--ipc", "--userns", "--uts":
			if v == "host" {
				a.note(High, Privilege, o.span, "lets the container into the machine's own "+strings.TrimLeft(o.name, "-"))
			}
		case "--cap-add", "--device", "--security-opt":
			a.note(High, Privilege, o.span, "gives the container more rights")
			if o.name == "--cap-add" && (strings.EqualFold(v, "ALL") || strings.Contains(strings.ToUpper(v), "SYS_ADMIN")) || strings.HasPrefix(v, "/dev/sd") || strings.HasPrefix(v, "/dev/mem") {
				a.note(Critical, Privilege, o.span, "gives the container the rights of the whole machine").cannotUndo()
			}
		case "-v", "--volume", "--mount":
			src := v
			if o.name == "--mount" {
				src = ""
				for kv := range strings.SplitSeq(v, ",") {
					if k, w, _ := strings.Cut(kv, "="); k == "source" || k == "src" {
						src = w
					}
				}
			} else {
				src, _, _ = strings.Cut(v, ":")
			}
			readOnly := strings.HasSuffix(v, ":ro") || strings.Contains(v, "readonly")
			if !strings.HasPrefix(src, "/") && !strings.HasPrefix(src, ".") && !strings.HasPrefix(src, "~") {
				continue // a volume of docker's own
			}
			f := *o.val
			f.s = src
			p := a.pathOf(&f, c.st)
			if p == "" {
				p = joinPath(c.st.cwd, strings.ReplaceAll(src, "\x00", "_"))
			}
			z := a.zoneOf(p)
			switch {
			case p == "/var/run/docker.sock" || p == "/run/docker.sock":
				a.note(Critical, Privilege, o.span, "gives the container the rights of the whole machine").cannotUndo()
			case z == zoneRoot || z == zoneSystemKey || z == zoneStartup || z == zoneDevice:
				if readOnly {
					a.note(High, Read, o.span, "shows "+show(src)+" to the container")
				} else {
					a.note(Critical, Write, o.span, "lets the container change "+show(src)).cannotUndo()
				}
			case z == zoneCredential:
				a.touch(Read, &f, c.st, touchOptions{})
			case !readOnly:
				a.note(High, Write, o.span, "lets the container change "+show(src))
			}
		case "--env-file":
			if o.val != nil {
				a.touch(Read, o.val, c.st, touchOptions{})
			}
		}
	}
	if len(c.operands) > 1 {
		st := c.st.clone()
		st.remote, st.cwd, st.alts = true, "", nil
		a.exec(c.operands[1:], st, c.span, nil)
	}
}
