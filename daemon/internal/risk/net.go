package risk

import "strings"

// doCurl judges curl: fetching reads the network, sending is more.
func (a *analysis) doCurl(c *cmdCall) {
	level, says := Medium, "fetches from the network"
	send := false
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-F", "--form", "--form-string", "--url-query":
			send = true
			if o.val != nil {
				a.curlData(c, o)
			}
		case "-T", "--upload-file":
			send = true
			if o.val != nil && o.val.s != "-" && o.val.s != "." {
				a.touch(Read, o.val, c.st, touchOptions{verb: "sends"})
			}
		case "-X", "--request":
			if o.val != nil {
				switch strings.ToUpper(o.val.s) {
				case "GET", "HEAD", "OPTIONS":
				case "DELETE":
					send = true
					a.note(High, Delete, o.span, "deletes something on a server").cannotUndo()
				default:
					send = true
				}
			}
		case "-K", "--config":
			a.note(High, RunCode, o.span, "takes options from a file")
			if o.val != nil {
				a.touch(Read, o.val, c.st, touchOptions{})
			}
		case "-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--output-dir", "--etag-save", "--libcurl", "--hsts", "--alt-svc":
			if o.val != nil && o.val.s != "-" {
				a.touch(Write, o.val, c.st, touchOptions{})
				a.facts.wrote(a.fileKey(o.val, c.st), written{flow: flowNet})
			}
		case "-u", "--user", "-U", "--proxy-user", "-E", "--cert", "--key", "-b", "--cookie", "--oauth2-bearer", "-n", "--netrc", "--netrc-file":
			level = High
			a.note(High, Network, o.span, "sends credentials")
			if o.val != nil && (o.name == "--cert" || o.name == "--key" || o.name == "-E") {
				continue
			}
		case "-k", "--insecure":
			a.note(High, Network, o.span, "does not check which server answers")
		case "-x", "--proxy", "--preproxy", "--socks5", "--socks4", "--resolve", "--connect-to", "--doh-url", "--unix-socket", "--abstract-unix-socket", "--proxy1.0", "--socks5-hostname":
			a.note(High, Network, o.span, "sends the request to another place than it seems")
		case "-H", "--header":
			if o.val != nil && strings.HasPrefix(o.val.s, "@") {
				v := *o.val
				v.s = v.s[1:]
				a.touch(Read, &v, c.st, touchOptions{verb: "sends"})
			}
			if o.val != nil && secretHeader(o.val.s) {
				a.note(High, Network, o.span, "sends credentials")
				level = High
			}
		}
	}
	if c.has("-O", "--remote-name", "-J", "--remote-name-all") {
		for i := range c.operands {
			if u := c.operands[i].s; strings.Contains(u, "/") {
				u, _, _ = strings.Cut(u, "?")
				f := field{s: u[strings.LastIndexByte(u, '/')+1:], known: c.operands[i].known, span: c.operands[i].span}
				if f.s != "" {
					a.touch(Write, &f, c.st, touchOptions{})
					a.facts.wrote(a.fileKey(&f, c.st), written{flow: flowNet})
				}
			}
		}
	}
	if o := c.opt("-G", "--get"); o != nil && send {
		level = High
	}
	local := len(c.operands) > 0
	for i := range c.operands {
		f := &c.operands[i]
		a.urlOperand(c, f)
		local = local && localHost(hostOf(f.s))
	}
	if o := c.opt("--url"); o != nil && o.val != nil {
		a.urlOperand(c, o.val)
		local = localHost(hostOf(o.val.s))
	}
	if send {
		level, says = High, "sends data to a server"
	}
	if local && level == High && !c.has("--unix-socket") {
		says += " on this machine"
	}
	a.network(c, level, says)
}

func secretHeader(s string) bool {
	name, _, _ := strings.Cut(s, ":")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "authorization", "cookie", "x-api-key", "api-key", "private-token", "x-auth-token", "x-vault-token", "proxy-authorization", "x-goog-api-key", "x-amz-security-token", "job-token":
		return true
	}
	return false
}

// network notes what goes over it, for the whole text too.
func (a *analysis) network(c *cmdCall, level Level, says string) {
	a.seen |= flowNet
	a.facts.fetched = true
	if level >= High {
		a.facts.send = true
	}
	if level >= High && c.st.stdin.flow&flowSecret != 0 {
		a.note(Critical, Secret, c.span, "sends secrets over the network").cannotUndo()
	}
	a.note(level, Network, c.span, says)
}

// curlData judges the data of a request: @file sends the file.
func (a *analysis) curlData(c *cmdCall, o *option) {
	s := o.val.s
	if o.name == "--data-raw" || o.name == "--form-string" {
		return
	}
	i := strings.IndexByte(s, '@')
	if strings.HasPrefix(o.name, "-F") || o.name == "--form" {
		if i < 0 {
			i = strings.Index(s, "=<")
			if i >= 0 {
				i++
			}
		}
		if i <= 0 || s[i-1] != '=' {
			return
		}
	} else if i != 0 && !(o.name == "--data-urlencode" && i > 0) {
		return
	}
	v := *o.val
	v.s, _, _ = strings.Cut(s[i+1:], ";")
	if v.s == "-" {
		return
	}
	a.touch(Read, &v, c.st, touchOptions{verb: "sends"})
	p := a.pathOf(&v, c.st)
	if p == "" || a.zoneOf(p) != zoneProject && a.zoneOf(p) != zoneTemp && a.zoneOf(p) != zoneBuild {
		a.note(High, Network, v.span, "sends the file "+show(v.s)+" to a server")
	}
}

func (a *analysis) urlOperand(c *cmdCall, f *field) {
	a.address(f)
	switch scheme, rest, _ := strings.Cut(f.s, "://"); {
	case strings.EqualFold(scheme, "file"):
		v := *f
		v.s = "/" + strings.TrimLeft(strings.TrimPrefix(rest, "localhost"), "/")
		a.touch(Read, &v, c.st, touchOptions{})
	case strings.Contains(rest, "@") && strings.Contains(strings.SplitN(rest, "@", 2)[0], ":"):
		a.note(High, Network, f.span, "sends credentials")
	}
	switch hostOf(f.s) {
	case "169.254.169.254", "metadata.google.internal", "100.100.100.200", "fd00":
		a.facts.secret = true
		a.note(High, Secret, f.span, "asks the cloud's service for credentials of this machine")
	}
	if f.flow&flowOutput != 0 || f.flow&flowSecret != 0 {
		a.note(High, Network, f.span, "puts what another program prints into an address")
	}
}

func localHost(h string) bool {
	switch h {
	case "localhost", "127.0.0.1", "[", "0.0.0.0", "":
		return h != ""
	}
	return strings.HasPrefix(h, "127.") || strings.HasSuffix(h, ".localhost")
}

func (a *analysis) doWget(c *cmdCall) {
	level, says := Medium, "fetches from the network"
	toFile := true
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "-O", "--output-document":
			toFile = false
			if o.val != nil && o.val.s != "-" {
				a.touch(Write, o.val, c.st, touchOptions{})
				a.facts.wrote(a.fileKey(o.val, c.st), written{flow: flowNet})
			}
		case "-o", "-a", "--output-file", "--append-output", "-P", "--directory-prefix", "--save-cookies":
			if o.val != nil {
				a.touch(Write, o.val, c.st, touchOptions{})
			}
		case "--post-data", "--post-file", "--body-data", "--body-file", "--method":
			level, says = High, "sends data to a server"
			if o.val != nil && strings.HasSuffix(o.name, "file") {
				a.touch(Read, o.val, c.st, touchOptions{verb: "sends"})
			}
		case "--use-askpass", "-e", "--execute", "--config":
			a.note(High, RunCode, o.span, "changes what wget does or starts a program")
		case "--user", "--password", "--http-user", "--http-password", "--load-cookies":
			level = High
			a.note(High, Network, o.span, "sends credentials")
		case "--no-check-certificate":
			a.note(High, Network, o.span, "does not check which server answers")
		case "-i", "--input-file":
			if o.val != nil {
				a.touch(Read, o.val, c.st, touchOptions{})
			}
		case "--spider":
			toFile = false
		case "--header":
			if o.val != nil && secretHeader(o.val.s) {
				level = High
				a.note(High, Network, o.span, "sends credentials")
			}
		}
	}
	for i := range c.operands {
		f := &c.operands[i]
		a.urlOperand(c, f)
		if u := f.s; toFile && strings.Contains(u, "/") {
			u, _, _ = strings.Cut(u, "?")
			base := u[strings.LastIndexByte(u, '/')+1:]
			g := field{s: base, known: f.known, span: f.span}
			if base != "" {
				a.touch(Write, &g, c.st, touchOptions{})
				a.facts.wrote(a.fileKey(&g, c.st), written{flow: flowNet})
			}
		}
	}
	a.network(c, level, says)
}

func remotePath(s string) bool {
	i := strings.IndexByte(s, ':')
	return strings.Contains(s, "://") || i > 0 && !strings.Contains(s[:i], "/") || strings.HasPrefix(s, "rsync:")
}

// doRsync judges rsync: what it copies where, what --delete drops and what -e runs.
func (a *analysis) doRsync(c *cmdCall) {
	dry := c.has("-n", "--dry-run")
	remote := false
	ops := c.operands
	for i := range ops {
		if remotePath(ops[i].s) {
			remote = true
			a.address(&ops[i])
		}
	}
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "-e", "--rsh", "--rsync-path":
			a.runs()
			if o.val != nil {
				first, _, _ := strings.Cut(strings.TrimSpace(o.val.s), " ")
				if first == "ssh" && o.name != "--rsync-path" {
					v := *o.val
					v.s += " _"
					a.raiseBy(v.s, o.span, c.st)
					continue
				}
				a.note(High, RunCode, o.span, "rsync runs a program that is named here")
				a.shellText(c, o.val, c.st)
			}
		case "--files-from", "--exclude-from", "--include-from", "--password-file":
			if o.val != nil {
				a.touch(Read, o.val, c.st, touchOptions{})
			}
		case "--log-file", "--write-batch", "--backup-dir", "--partial-dir", "-T", "--temp-dir":
			if o.val != nil {
				a.touch(Write, o.val, c.st, touchOptions{})
			}
		}
	}
	if len(ops) < 2 {
		if remote {
			a.network(c, High, "asks another machine for its files")
			return
		}
		a.note(Low, Read, c.span, "lists files")
		return
	}
	to := &ops[len(ops)-1]
	for i := range ops[:len(ops)-1] {
		if !remotePath(ops[i].s) {
			a.touch(Read, &ops[i], c.st, touchOptions{verb: "copies", tree: true})
		}
	}
	if dry {
		if remote {
			a.network(c, High, "asks another machine what a copy would change")
		} else {
			a.note(Low, Read, c.span, "lists what a copy would change")
		}
		return
	}
	if remotePath(to.s) {
		a.network(c, High, "copies files to another machine")
	} else {
		if remote {
			a.network(c, High, "copies files from another machine")
		} else {
			a.note(Medium, Write, c.span, "copies files")
		}
		a.touch(Write, to, c.st, touchOptions{tree: true})
	}
	for i := range c.opts {
		o := &c.opts[i]
		if strings.HasPrefix(o.name, "--delete") || o.name == "--del" {
			if remotePath(to.s) {
				a.note(Critical, Delete, o.span, "deletes files on another machine").cannotUndo()
				continue
			}
			f := *to
			f.span = o.span
			a.touch(Delete, &f, c.st, touchOptions{tree: true, verb: "deletes what is not in the source from"})
		}
		if o.name == "--remove-source-files" {
			for k := range ops[:len(ops)-1] {
				a.touch(Delete, &ops[k], c.st, touchOptions{tree: true})
			}
		}
	}
}

func (a *analysis) doScp(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil {
			continue
		}
		switch o.name {
		case "-S", "-D":
			a.runs()
			a.note(High, RunCode, o.span, "runs a program that is named here")
			a.shellText(c, o.val, c.st)
		case "-o":
			a.sshOption(c, o.val)
		case "-F":
			a.note(High, RunCode, o.span, "takes its settings, which can start programs, from a file")
		}
	}
	a.network(c, High, "copies files from or to another machine")
	ops := c.operands
	if c.name == "sftp" {
		for i := range ops {
			a.address(&ops[i])
		}
		return
	}
	for i := range ops {
		f := &ops[i]
		switch {
		case remotePath(f.s):
			a.address(f)
		case i == len(ops)-1:
			a.touch(Write, f, c.st, touchOptions{})
			for k := range ops[:i] {
				if s := ops[k].s; remotePath(s) && ops[k].known {
					a.facts.wrote(a.fileKey(f, c.st), written{flow: flowNet})
					if p := a.pathOf(f, c.st); p != "" {
						a.facts.wrote(joinPath(p, s[strings.LastIndexAny(s, "/:")+1:]), written{flow: flowNet})
					}
				}
			}
		default:
			a.touch(Read, f, c.st, touchOptions{verb: "sends", tree: c.has("-r")})
		}
	}
}

// doCrontab judges crontab: what it takes over runs by itself from then on.
func (a *analysis) doCrontab(c *cmdCall) {
	switch {
	case c.has("-l"):
		a.note(Low, Read, c.span, "lists the planned jobs")
	case c.has("-r"):
		a.note(Critical, Persistence, c.span, "deletes all planned jobs").cannotUndo()
	case c.has("-e"):
		a.note(High, Persistence, c.span, "edits the planned jobs")
	default:
		a.note(Critical, Persistence, c.span, "replaces the planned jobs, which run by themselves").cannotUndo()
		if t := c.st.stdin.text; t != nil {
			a.raiseBy(*t, c.span, c.st)
		}
		for i := range c.operands {
			a.touch(Read, &c.operands[i], c.st, touchOptions{})
		}
	}
}

// doAPI judges clients of web interfaces (gh api, az rest): the method decides.
func (a *analysis) doAPI(c *cmdCall) {
	method := ""
	if o := c.opt("-X", "--method"); o != nil && o.val != nil {
		method = strings.ToUpper(o.val.s)
	}
	fields := c.has("-f", "-F", "--field", "--raw-field", "--input", "--body", "-b")
	switch {
	case method == "DELETE":
		a.network(c, Critical, "deletes something on a server")
	case method == "" && !fields || method == "GET":
		a.network(c, Medium, "asks a server")
	default:
		a.network(c, High, "changes something on a server")
	}
	for i := range c.operands {
		s := c.operands[i].s
		if strings.Contains(s, "secret") || strings.Contains(s, "/keys") || strings.Contains(s, "token") {
			a.note(High, Secret, c.operands[i].span, "asks for keys or secrets")
		}
		if strings.Contains(s, "graphql") && fields {
			a.note(High, Network, c.operands[i].span, "may change something on a server")
		}
	}
}

// doOpenssl judges openssl: most of it works with keys.
func (a *analysis) doOpenssl(c *cmdCall) {
	a.base(c)
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil {
			continue
		}
		switch o.name {
		case "-in", "-inkey", "-key", "-CAkey":
			a.touch(Read, o.val, c.st, touchOptions{})
		case "-out", "-keyout", "-writerand":
			a.touch(Write, o.val, c.st, touchOptions{})
		case "-engine", "-provider", "-provider-path", "-config":
			a.note(High, RunCode, o.span, "may load code")
		}
	}
}
