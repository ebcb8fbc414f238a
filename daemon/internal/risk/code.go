package risk

import (
	"regexp"
	"strings"
	"sync"
)

// lazyRe compiles an expression when it is first needed: most processes of this program never do.
func lazyRe(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// codeOptions are the options by which interpreters take code.
var codeOptions = map[string][]string{
	"python": {"-c"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "node": {"-e", "--eval", "-p", "--print"}, "nodejs": {"-e", "--eval", "-p", "--print"}, "bun": {"-e", "--eval", "-p"}, "deno": {"eval"},
	"php": {"-r", "-B", "-R", "-E"}, "lua": {"-e"}, "luajit": {"-e"}, "Rscript": {"-e"}, "R": {"-e"}, "julia": {"-e", "-E"}, "elixir": {"-e"}, "groovy": {"-e"},
	"osascript": {"-e"}, "guile": {"-c"}, "racket": {"-e"}, "ghc": {"-e"}, "tclsh": {}, "scala": {"-e"}, "swift": {"-e"}, "erl": {"-eval"}, "pwsh": {"-c", "-Command", "-EncodedCommand"}, "powershell": {"-c", "-Command", "-EncodedCommand"}, "raku": {"-e"}, "jshell": {},
}

// doCode judges interpreters of other languages.
func (a *analysis) doCode(c *cmdCall) {
	a.runs()
	name := strings.TrimRight(c.name, "0123456789.")
	if name == "perl" || name == "ruby" {
		if c.has("-i") {
			for k := range c.operands {
				a.touch(Write, &c.operands[k], c.st, touchOptions{verb: "edits"})
			}
		}
	}
	for i := range c.operands {
		if f := &c.operands[i]; !f.opaque() {
			if a.secretWord(f, c.st) {
				a.touch(Read, f, c.st, touchOptions{})
			}
		}
	}
	for i := range c.opts {
		o := &c.opts[i]
		for _, n := range codeOptions[name] {
			if o.name == n && o.val != nil {
				a.code(c, o.val)
				return
			}
		}
	}
	if name == "deno" && len(c.operands) > 1 && c.operands[0].s == "eval" {
		a.code(c, &c.operands[1])
		return
	}
	if name == "expect" {
		a.expect(c)
	}
	for i := range c.opts {
		switch o := &c.opts[i]; {
		case name == "python" && o.name == "-m" && o.val != nil:
			a.pythonModule(c, o.val)
			return
		case (name == "node" || name == "ruby" || name == "perl") && (o.name == "-r" || o.name == "--require" || o.name == "--import" || o.name == "-M" || o.name == "-I") && o.val != nil:
			if strings.HasPrefix(o.val.s, "/") || strings.HasPrefix(o.val.s, ".") {
				a.runFile(c, o.val)
			}
		}
	}
	if name == "node" && c.has("--check", "--test") || name == "ruby" && c.has("-c") || name == "php" && c.has("-l", "-i", "-m", "-v") || name == "perl" && c.has("-c") {
		level := Low
		if c.has("--test") {
			level = Medium
		}
		a.note(level, RunCode, c.span, "checks or tests code")
		return
	}
	if len(c.operands) > 0 && c.operands[0].s != "-" {
		if name == "deno" || name == "bun" || name == "swift" || name == "java" {
			a.base(c)
		}
		a.runFile(c, &c.operands[0])
		return
	}
	if len(c.fields) == 2 && (c.fields[1].s == "-V" || c.fields[1].s == "-v" || c.fields[1].s == "-VV" || c.fields[1].s == "-h") {
		a.note(Low, Read, c.span, "asks "+show(c.name)+" for its version")
		return
	}
	if t := c.st.stdin.text; t != nil {
		f := field{s: *t, known: true, span: c.span, flow: c.st.stdin.flow}
		a.code(c, &f)
		return
	}
	a.fromStdin(c, show(c.name))
}

// expect judges what a script given to expect starts.
func (a *analysis) expect(c *cmdCall) {
	text := ""
	if o := c.opt("-c"); o != nil && o.val != nil {
		text = o.val.s
	} else if t := c.st.stdin.text; t != nil {
		text = *t
	}
	a.spend(len(text) / bytesParsed)
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' || r == '[' || r == ']' }) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "spawn" || word == "exec" || word == "system" {
			a.raiseBy(rest, c.span, c.st)
		}
	}
}

func (a *analysis) pythonModule(c *cmdCall, m *field) {
	switch m.s {
	case "json.tool", "this", "timeit", "calendar", "dis", "tokenize", "ast", "pydoc", "sysconfig", "site", "platform", "base64":
		a.note(Low, Read, c.span, "runs python's "+m.s)
		for i := range c.operands {
			if i == 1 && m.s == "json.tool" {
				a.touch(Write, &c.operands[i], c.st, touchOptions{})
				continue
			}
			a.touch(Read, &c.operands[i], c.st, touchOptions{})
		}
	case "pytest", "unittest", "doctest", "mypy", "black", "ruff", "flake8", "pylint", "isort", "coverage", "build", "tox", "nox", "py_compile", "compileall", "cProfile", "trace", "pdb", "django", "flask", "uvicorn", "gunicorn", "ipykernel", "bandit", "pyright", "sphinx", "mkdocs":
		a.note(Medium, RunCode, c.span, "runs the project's code with "+m.s)
	case "venv", "virtualenv":
		a.note(Medium, Write, c.span, "makes a virtual environment")
		for i := range c.operands {
			a.touch(Write, &c.operands[i], c.st, touchOptions{tree: true})
		}
	case "pip", "pip3", "ensurepip":
		fs := append([]field{{s: "pip", known: true, span: m.span}}, c.operands...)
		a.exec(fs, c.st.clone(), c.span, c.prefix)
	case "http.server", "SimpleHTTPServer":
		a.note(High, Network, c.span, "serves the files of this folder to the network")
		a.facts.send = true
	case "zipfile", "tarfile":
		a.note(Medium, Write, c.span, "packs or unpacks an archive")
	default:
		a.note(High, RunCode, m.span, "runs the python module "+show(m.s))
	}
}

var (
	// What makes code of any language more than a calculation.
	codeRunsRe   = lazyRe(`\b(system|popen\w*|exec\w*|spawn\w*|subprocess|child_process|shell_exec|passthru|proc_open|pcntl_exec|Open3|os\.startfile|pty|ctypes|__import__|importlib|eval|compile|fork|kill|IO\.popen|posix|qx|require\s*\(?\s*['"](?:node:)?child_process|Runtime|ProcessBuilder|os\.execute|io\.popen|do shell script|globals|getattr|setattr|__builtins__|__class__|__subclasses__|Function|process\.binding|runpy|code\.interact|pickle|marshal|open3|Kernel|instance_eval|send|callcc)\b|` + "`")
	codeDeleteRe = lazyRe(`\b(rmtree|unlink\w*|rmdir\w*|removedirs|rm_rf?|remove_entry\w*|remove|rmSync|unlinkSync|rm|delete_files|FileUtils|truncate)\b`)
	codeNetRe    = lazyRe(`\b(socket|urllib\w*|requests|httpx|aiohttp|http\.client|ftplib|smtplib|telnetlib|paramiko|fetch|XMLHttpRequest|https?\.(?:get|request|createServer)|net\.(?:connect|createServer|Socket)|dgram|LWP|Net::\w+|open-uri|URI\.open|TCPSocket|curl_\w+|fsockopen|IO::Socket|dns|xmlrpc|websocket\w*|boto3|WebClient|Invoke-WebRequest)\b`)
	codeWriteRe  = lazyRe(`\b(write\w*|writelines|dump|save\w*|to_csv|to_json|makedirs?|mkdir\w*|rename\w*|move|copy\w*|chmod\w*|chown\w*|symlink\w*|link|touch|appendFile\w*|createWriteStream|file_put_contents|fwrite|fputs|shutil|File\.write|File\.open|tempfile|open)\b`)
	codeSecretRe = lazyRe(`(?i)(\.ssh/|id_rsa|id_ed25519|\.aws/|\.env\b|\.netrc|/etc/shadow|\.gnupg|\.kube/config|secret|passw|api_?key|token|credential|os\.environ\b|process\.env\b|getenv|%ENV|\bENV\[|\$_ENV)`)
	// What runs a text that it is given.
	codeMakesRe  = lazyRe(`\b(exec|eval|execfile|instance_eval|Function|runInThisContext|loadstring|do_string|iex|Invoke-Expression)\s*[({ ]|\b(system|popen|spawn\w*|subprocess\.\w+|execSync|shell_exec)\s*\(?\s*[^'"\s(\[]`)
	openModeRe   = lazyRe(`open\s*\(([^()]*)\)`)
	openSafeRe   = lazyRe(`^\s*(?:0|r?['"][^'"]*['"]|sys\.argv\[\d\])\s*(?:,\s*(?:mode\s*=\s*)?['"]rb?t?['"])?\s*(?:,\s*(?:encoding|errors|newline)\s*=\s*['"][\w-]*['"]\s*)*$`)
	codeStringRe = lazyRe(`"((?:[^"\\\n]|\\.){1,1000})"|'((?:[^'\\\n]|\\.){1,1000})'` + "|`([^`]{1,1000})`")
)

// code judges the text of another language. It is not understood, so it is never low; what is in it that runs commands,
// deletes, writes or talks to the network raises it, and what looks like a shell command in it is judged as one (T3e).
func (a *analysis) code(c *cmdCall, f *field) {
	a.runs()
	if f.flow&flowNet != 0 {
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
		return
	}
	if f.opaque() {
		a.opaque()
		a.note(High, RunCode, f.span, "runs code that is not known here")
	}
	text := f.s
	if len(text) > 16<<10 {
		a.note(High, RunCode, f.span, "runs a long piece of code that was not examined")
		text = text[:16<<10]
	}
	a.spend(len(text) / bytesMatched)
	level, what := Medium, "runs code given to "+show(c.name)
	switch {
	case codeRunsRe().MatchString(text):
		a.note(High, RunCode, f.span, "runs code that starts programs or makes code of its own")
		a.commandsIn(c, text, f.span)
	case codeDeleteRe().MatchString(text):
		a.note(High, Delete, f.span, "runs code that deletes").cannotUndo()
	case codeWriteRe().MatchString(text) && !onlyReads(text):
		a.note(High, Write, f.span, "runs code that writes files")
	}
	if codeMakesRe().MatchString(text) && (codeNetRe().MatchString(text) || c.st.stdin.flow&flowNet != 0) {
		a.note(Critical, RunCode, f.span, "runs code that fetches code, or is given it from the network, and runs that").cannotUndo()
	}
	if codeNetRe().MatchString(text) {
		a.facts.fetched, a.facts.send = true, true
		a.seen |= flowNet
		a.note(High, Network, f.span, "runs code that talks to the network")
	}
	if codeSecretRe().MatchString(text) {
		a.facts.secret = true
		a.seen |= flowSecret
		a.note(High, Secret, f.span, "runs code that reads secrets or variables")
	}
	if len(text) > 2000 {
		level, what = High, "runs a long piece of code given to "+show(c.name)
	}
	a.note(level, RunCode, f.span, what)
	a.wideLoss(text, f.span)
	if c.name == "pwsh" || c.name == "powershell" || c.name == "nu" || c.name == "xonsh" || c.name == "elvish" {
		a.raiseBy(text, f.span, c.st) // shells, which know the same programs
	}
}

// onlyReads tells that the only opens in a piece of code are for reading.
func onlyReads(text string) bool {
	for _, w := range codeWriteRe().FindAllString(text, -1) {
		if w != "open" && w != "dump" {
			return false
		}
	}
	opens := openModeRe().FindAllStringSubmatch(text, -1)
	if len(opens) != strings.Count(text, "open") {
		return false
	}
	for _, m := range opens {
		if !openSafeRe().MatchString(m[1]) {
			return false
		}
	}
	return true
}

var wideLossRe = lazyRe(`(?:rmtree|rm_rf|delete|delete-directory|delete-file|removeSync|rmSync|remove_entry_secure|removedirs|rm|unlink|remove_dir_all|RemoveAll)\s*\(?\s*(?:os\.path\.expanduser\(\s*|glob\s*\(?\s*)?['"](/\*?|~/?\*?|/(?:home|etc|usr|var|boot|root|bin|lib)[^'"]*)['"]`)

// wideLoss finds code that deletes the root, home or the system.
func (a *analysis) wideLoss(text string, sp Span) {
	if m := wideLossRe().FindStringSubmatch(text); m != nil {
		a.note(Critical, Delete, sp, "runs code that deletes "+show(m[1])).cannotUndo()
	}
	if strings.Contains(text, "/dev/sd") || strings.Contains(text, "/dev/nvme") || strings.Contains(text, "/dev/mem") {
		a.note(Critical, Write, sp, "runs code that works on a device").cannotUndo()
	}
	if (strings.Contains(text, ".bashrc") || strings.Contains(text, "authorized_keys") || strings.Contains(text, "crontab")) && codeWriteRe().MatchString(text) {
		a.note(Critical, Persistence, sp, "runs code that writes a start-up file").cannotUndo()
	}
}

// commandsIn judges the strings in a piece of code as shell commands, for what they would raise.
func (a *analysis) commandsIn(c *cmdCall, text string, sp Span) {
	var all []string
	for i, m := range codeStringRe().FindAllStringSubmatch(text, 24) {
		if i >= 24 {
			break
		}
		s := m[1] + m[2] + m[3]
		s = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\n`, "\n", `\\`, `\`).Replace(s)
		all = append(all, s)
		if strings.ContainsAny(s, " \t") || lookup(s) != nil {
			a.raiseBy(s, sp, c.st)
		}
	}
	if len(all) > 1 { // ['rm', '-rf', '/']
		quoted := make([]string, len(all))
		for i, s := range all {
			quoted[i] = shellQuote(s)
		}
		a.raiseBy(strings.Join(quoted, " "), sp, c.st)
	}
	if i := strings.Index(text, "qx"); i >= 0 && i+3 < len(text) {
		a.raiseBy(strings.Trim(text[i+2:], "(){}[]/; "), sp, c.st)
	}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// raiseBy judges a text that may be a command, and keeps what is known to be bad in it: that it is not a command at all
// is no finding.
func (a *analysis) raiseBy(text string, sp Span, st *state) {
	if a.depth >= maxDepth || len(text) > 4096 || brackets(text) > 200 {
		return
	}
	sub := a.part(source{text: text, outer: &sp}, true)
	defer func() { // also when the budget is spent in there
		for i := range sub.findings {
			f := &sub.findings[i]
			if f.Level >= High && f.Effect != Unknown {
				fnd := a.note(f.Level, f.Effect, sp, f.Text)
				if f.hard {
					fnd.cannotUndo()
				}
			}
		}
		a.facts.secret = a.facts.secret || sub.facts.secret
		a.facts.send = a.facts.send || sub.facts.send
		a.facts.fetched = a.facts.fetched || sub.facts.fetched
	}()
	sub.program(text, st.clone())
}

// shellWord returns s as a word of the shell, in quotes only where they are needed.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%^") == "" {
		return s
	}
	return shellQuote(s)
}
