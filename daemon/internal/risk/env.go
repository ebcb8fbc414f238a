package risk

import (
	"slices"
	"strings"
	"sync"
)

// poisonKind says what a variable makes later commands do (T3g).
type poisonKind struct {
	level Level  // when set for one command or exported; 0: nothing
	what  string // "… decides which programs run"
	code  bool   // its value is shell code
	until bool   // persists: bash itself runs or heeds it at every prompt or start
	by    string // programs it concerns: "*" all, else a word of programs separated by blanks; "" see prefix
}

// poisons names the variables whose value turns a harmless command into another. A name that ends in * is a prefix.
// Values that are known to be harmless (PAGER=cat) are let through by harmlessValue.
var poisons = sync.OnceValue(func() map[string]poisonKind {
	return map[string]poisonKind{
		"PATH":                {High, "decides which programs run", false, true, "*"},
		"LD_*":                {High, "loads code into every program", false, true, "*"},
		"DYLD_*":              {High, "loads code into every program", false, true, "*"},
		"GCONV_PATH":          {High, "loads code into every program", false, true, "*"},
		"BASH_ENV":            {Critical, "is a file that every bash runs at its start", false, true, "*"},
		"ENV":                 {High, "is a file that shells run at their start", false, true, "sh dash ksh bash"},
		"PROMPT_COMMAND":      {Critical, "is code that bash runs at every prompt", true, true, "*"},
		"PS0":                 {High, "is expanded at every prompt", true, true, "*"},
		"PS1":                 {High, "is expanded at every prompt", true, true, "*"},
		"PS2":                 {High, "is expanded at prompts", true, true, "*"},
		"PS4":                 {High, "is expanded for every traced command", true, true, "*"},
		"IFS":                 {Medium, "decides how words are split", false, true, "*"},
		"SHELLOPTS":           {High, "switches the shell's options", false, true, "*"},
		"BASHOPTS":            {High, "switches the shell's options", false, true, "*"},
		"BASH_FUNC_*":         {Critical, "defines functions in every bash", true, true, "*"},
		"BASH_LOADABLES_PATH": {High, "decides which code enable -f loads", false, true, "*"},
		"CDPATH":              {High, "decides where cd goes", false, true, "cd"},
		"HOME":                {Medium, "decides where programs look for their settings", false, true, "*"},
		"XDG_CONFIG_HOME":     {Medium, "decides where programs look for their settings", false, true, "*"},
		"XDG_CONFIG_DIRS":     {Medium, "decides where programs look for their settings", false, true, "*"},
		"HISTFILE":            {High, "decides where the history is kept", false, true, "history"},
		"HISTCONTROL":         {Medium, "decides what the history keeps", false, true, "history"},
		"HISTIGNORE":          {Medium, "decides what the history keeps", false, true, "history"},
		"HISTSIZE":            {Medium, "decides what the history keeps", false, true, "history"},
		"TMPDIR":              {Medium, "decides where temporary files go", false, true, "mktemp"},

		"PAGER":         {High, "is a program that others start to show text", true, true, "git man less systemctl journalctl psql mysql gh"},
		"MANPAGER":      {High, "is a program that man starts", true, true, "man"},
		"SYSTEMD_PAGER": {High, "is a program that systemctl starts", true, true, "systemctl journalctl"},
		"PSQL_PAGER":    {High, "is a program that psql starts", true, true, "psql"},
		"GH_PAGER":      {High, "is a program that gh starts", true, true, "gh"},
		"AWS_PAGER":     {High, "is a program that aws starts", true, true, "aws"},
		"BAT_PAGER":     {High, "is a program that bat starts", true, true, "bat"},
		"DELTA_PAGER":   {High, "is a program that delta starts", true, true, "delta"},
		"LESSOPEN":      {High, "is a program that less starts for every file", true, true, "less man git"},
		"LESSCLOSE":     {High, "is a program that less starts for every file", true, true, "less man git"},
		"LESS":          {Medium, "gives less its options", false, true, "less man git"},
		"LESSKEY*":      {High, "gives less its key bindings, which can run commands", false, true, "less man git"},
		"EDITOR":        {High, "is a program that others start to edit", true, true, "git crontab fc sudoedit visudo kubectl systemctl gh"},
		"VISUAL":        {High, "is a program that others start to edit", true, true, "git crontab fc sudoedit visudo kubectl systemctl gh"},
		"FCEDIT":        {High, "is a program that fc starts", true, true, "fc"},
		"SUDO_EDITOR":   {High, "is a program that sudoedit starts", true, true, "sudo sudoedit"},
		"SUDO_ASKPASS":  {High, "is a program that sudo starts", true, true, "sudo"},
		"SSH_ASKPASS*":  {High, "is a program that ssh starts", true, true, "ssh git scp"},
		"KUBE_EDITOR":   {High, "is a program that kubectl starts", true, true, "kubectl"},
		"BROWSER":       {High, "is a program that others start", true, true, "gh xdg-open"},
		"SSH_AUTH_SOCK": {High, "decides who signs with your keys", false, true, "ssh git scp ssh-add"},

		"GIT_PAGER":           {High, "is a program that git starts", true, true, "git"},
		"GIT_EDITOR":          {High, "is a program that git starts", true, true, "git"},
		"GIT_SEQUENCE_EDITOR": {High, "is a program that git starts", true, true, "git"},
		"GIT_SSH":             {High, "is a program that git starts", true, true, "git"},
		"GIT_SSH_COMMAND":     {High, "is a program that git starts", true, true, "git"},
		"GIT_ASKPASS":         {High, "is a program that git starts", true, true, "git"},
		"GIT_EXTERNAL_DIFF":   {High, "is a program that git starts", true, true, "git"},
		"GIT_PROXY_COMMAND":   {High, "is a program that git starts", true, true, "git"},
		"GIT_CONFIG*":         {High, "changes git's settings, which can start programs", false, true, "git"},
		"GIT_EXEC_PATH":       {High, "decides which programs git runs", false, true, "git"},
		"GIT_TEMPLATE_DIR":    {High, "decides which hooks git installs", false, true, "git"},
		"GIT_DIR":             {Medium, "decides which repository git uses", false, true, "git"},
		"GIT_WORK_TREE":       {Medium, "decides which files git uses", false, true, "git"},
		"GIT_INDEX_FILE":      {Medium, "decides which index git uses", false, true, "git"},
		"GIT_AUTHOR_*":        {0, "", false, false, "git"},
		"GIT_COMMITTER_*":     {0, "", false, false, "git"},
		"GIT_TERMINAL_PROMPT": {0, "", false, false, "git"},
		"GIT_OPTIONAL_LOCKS":  {0, "", false, false, "git"},
		"GIT_TRACE*":          {Medium, "writes a trace to a file", false, true, "git"},
		"GIT_*":               {High, "changes what git does", false, true, "git"},
		"HUB_*":               {Medium, "changes what hub does", false, true, "hub"},

		"PYTHONPATH":                   {High, "decides which code python loads", false, true, "python pip pytest"},
		"PYTHONHOME":                   {High, "decides which code python loads", false, true, "python pip pytest"},
		"PYTHONSTARTUP":                {High, "is a file that python runs at its start", false, true, "python"},
		"PYTHONINSPECT":                {Medium, "changes how python ends", false, true, "python"},
		"PYTHONWARNINGS":               {High, "can make python import code", false, true, "python"},
		"PYTHONBREAKPOINT":             {High, "is code that python runs", false, true, "python"},
		"PYTHONUSERBASE":               {High, "decides which code python loads", false, true, "python pip"},
		"PERL5LIB":                     {High, "decides which code perl loads", false, true, "perl"},
		"PERL5OPT":                     {High, "gives perl its options, which can be code", true, true, "perl"},
		"PERL5DB":                      {High, "is code that perl runs", false, true, "perl"},
		"RUBYOPT":                      {High, "gives ruby its options, which can be code", false, true, "ruby"},
		"RUBYLIB":                      {High, "decides which code ruby loads", false, true, "ruby"},
		"NODE_OPTIONS":                 {High, "gives node its options, which can load code", false, true, "node npm npx yarn pnpm"},
		"NODE_PATH":                    {High, "decides which code node loads", false, true, "node npm npx yarn pnpm"},
		"NPM_CONFIG_*":                 {High, "changes npm's settings, which can start programs", false, true, "npm npx"},
		"JAVA_TOOL_OPTIONS":            {High, "gives java its options, which can load code", false, true, "java mvn gradle"},
		"_JAVA_OPTIONS":                {High, "gives java its options, which can load code", false, true, "java mvn gradle"},
		"JDK_JAVA_OPTIONS":             {High, "gives java its options, which can load code", false, true, "java mvn gradle"},
		"CLASSPATH":                    {High, "decides which code java loads", false, true, "java mvn gradle"},
		"LUA_INIT*":                    {High, "is code that lua runs at its start", false, true, "lua"},
		"LUA_PATH*":                    {High, "decides which code lua loads", false, true, "lua"},
		"PHPRC":                        {High, "decides php's settings, which can load code", false, true, "php"},
		"GOFLAGS":                      {Medium, "gives go its flags", false, true, "go"},
		"GOROOT":                       {High, "decides which compiler go runs", false, true, "go"},
		"GOTOOLCHAIN":                  {Medium, "decides which toolchain go runs", false, true, "go"},
		"GOPROXY":                      {Medium, "decides where go fetches code", false, true, "go"},
		"GONOSUMDB":                    {Medium, "lets go take unchecked code", false, true, "go"},
		"GOENV":                        {Medium, "decides where go looks for its settings", false, true, "go"},
		"RUSTC_WRAPPER":                {High, "is a program that cargo starts", false, true, "cargo"},
		"RUSTC*":                       {High, "is a program that cargo starts", false, true, "cargo"},
		"RUSTFLAGS":                    {Medium, "gives the compiler its flags", false, true, "cargo"},
		"CARGO_*":                      {Medium, "changes cargo's settings", false, true, "cargo"},
		"CC":                           {Medium, "is a program that builds start", true, true, "make cmake go cargo configure"},
		"CXX":                          {Medium, "is a program that builds start", true, true, "make cmake go cargo configure"},
		"MAKEFLAGS":                    {High, "gives make its options, which can be code", true, true, "make"},
		"MAKEFILES":                    {High, "gives make files of code", false, true, "make"},
		"MFLAGS":                       {High, "gives make its options, which can be code", true, true, "make"},
		"TAR_OPTIONS":                  {High, "gives tar its options, which can start programs", false, true, "tar"},
		"RSYNC_RSH":                    {High, "is a program that rsync starts", true, true, "rsync"},
		"RSYNC_CONNECT_PROG":           {High, "is a program that rsync starts", true, true, "rsync"},
		"CVS_RSH":                      {High, "is a program that cvs starts", true, true, "cvs"},
		"SVN_SSH":                      {High, "is a program that svn starts", true, true, "svn"},
		"RIPGREP_CONFIG_PATH":          {High, "gives rg its options, which can start programs", false, true, "rg"},
		"GREP_OPTIONS":                 {Medium, "gives grep its options", false, true, "grep"},
		"FZF_DEFAULT_*":                {High, "is code that fzf runs", true, true, "fzf"},
		"CURL_HOME":                    {High, "decides curl's settings", false, true, "curl"},
		"WGETRC":                       {High, "decides wget's settings", false, true, "wget"},
		"INPUTRC":                      {High, "binds keys, which can run commands", false, true, "*"},
		"TERMINFO*":                    {Medium, "decides how the terminal is driven", false, true, "*"},
		"TERMCAP":                      {Medium, "decides how the terminal is driven", false, true, "*"},
		"VIMINIT":                      {High, "is code that vim runs", false, true, "vim vi"},
		"EXINIT":                       {High, "is code that vi runs", false, true, "vim vi ex"},
		"MYVIMRC":                      {High, "is code that vim runs", false, true, "vim vi"},
		"ZDOTDIR":                      {High, "decides what zsh runs at its start", false, true, "zsh"},
		"OPENSSL_CONF":                 {High, "can make openssl load code", false, true, "openssl curl"},
		"OPENSSL_ENGINES":              {High, "makes openssl load code", false, true, "openssl curl"},
		"SSL_CERT_*":                   {High, "decides which servers are trusted", false, true, "curl wget git go"},
		"CURL_CA_BUNDLE":               {High, "decides which servers are trusted", false, true, "curl"},
		"REQUESTS_CA_BUNDLE":           {High, "decides which servers are trusted", false, true, "python pip"},
		"NODE_TLS_REJECT_UNAUTHORIZED": {High, "lets node trust any server", false, true, "node npm npx"},
		"NODE_EXTRA_CA_CERTS":          {High, "decides which servers are trusted", false, true, "node npm npx"},
		"HTTP_PROXY":                   {High, "sends network traffic elsewhere", false, true, "curl wget git go npm pip"},
		"HTTPS_PROXY":                  {High, "sends network traffic elsewhere", false, true, "curl wget git go npm pip"},
		"ALL_PROXY":                    {High, "sends network traffic elsewhere", false, true, "curl wget git go npm pip"},
		"FTP_PROXY":                    {High, "sends network traffic elsewhere", false, true, "curl wget"},
		"HOSTALIASES":                  {High, "sends network traffic elsewhere", false, true, "*"},
		"RES_OPTIONS":                  {Medium, "changes how names are resolved", false, true, "*"},
		"PIP_*":                        {Medium, "changes pip's settings", false, true, "pip"},
		"DOCKER_HOST":                  {High, "sends docker's commands elsewhere", false, true, "docker"},
		"KUBECONFIG":                   {Medium, "decides which cluster is used", false, true, "kubectl helm"},
		"AWS_ENDPOINT_URL*":            {High, "sends aws's requests elsewhere", false, true, "aws"},
		"COMP_WORDBREAKS":              {Medium, "changes completion", false, true, "*"},
		"SUBLET_*":                     {High, "changes what sublet does", false, true, "sublet"},
		"ANTHROPIC_BASE_URL":           {High, "sends prompts elsewhere", false, true, "*"},
		"OPENAI_BASE_URL":              {High, "sends prompts elsewhere", false, true, "*"},
	}
})

// poisonPrefixes are the names of poisons that end in *, longest first.
var poisonPrefixes = sync.OnceValue(func() (list []string) {
	for n := range poisons() {
		if strings.HasSuffix(n, "*") {
			list = append(list, strings.TrimSuffix(n, "*"))
		}
	}
	slices.SortFunc(list, func(x, y string) int { return len(y) - len(x) })
	return list
})

// poisonOf finds what a variable's name means; level 0 is nothing.
func poisonOf(name string) poisonKind {
	if k, ok := poisons()[name]; ok {
		return k
	}
	if len(name) < 3 {
		return poisonKind{}
	}
	upper := name
	if strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_config_") {
		upper = strings.ToUpper(name)
		if k, ok := poisons()[upper]; ok {
			return k
		}
	}
	for _, p := range poisonPrefixes() {
		if strings.HasPrefix(upper, p) {
			return poisons()[p+"*"]
		}
	}
	return poisonKind{}
}

// harmlessValue tells that a value of a poisonous variable does nothing of the kind.
func harmlessValue(name string, f *field) bool {
	if !f.known {
		return false
	}
	switch f.s {
	case "":
		return !strings.HasPrefix(name, "HIST") && name != "PATH" && name != "HOME" && name != "IFS"
	case "cat", "less", "more", "true", ":", "less -R", "less -FRX", "less -F", "/bin/cat", "/usr/bin/cat", "/bin/true", "/usr/bin/less":
		return strings.Contains(name, "PAGER") || strings.Contains(name, "EDITOR") || name == "VISUAL"
	case "vi", "vim", "nvim", "nano", "emacs", "code", "code --wait", "micro", "hx", "/bin/false", "false", "echo", "/bin/echo":
		return strings.Contains(name, "EDITOR") || name == "VISUAL" || strings.Contains(name, "ASKPASS") || name == "BROWSER"
	case "gcc", "clang", "cc", "g++", "clang++", "c++", "gcc-12", "gcc-13", "gcc-14", "musl-gcc", "zig cc":
		return name == "CC" || name == "CXX"
	case "local", "off", "direct", "auto":
		return strings.HasPrefix(name, "GO")
	}
	switch name {
	case "GOFLAGS":
		return !strings.Contains(f.s, "exec") && !strings.Contains(f.s, "modfile") && !strings.Contains(f.s, "overlay")
	case "IFS":
		return len(f.s) <= 4 // the read loop's idiom, for one command
	case "LESS":
		return strings.HasPrefix(f.s, "-") && !strings.ContainsAny(f.s, "oOkK+")
	case "LD_LIBRARY_PATH":
		return false
	case "NODE_OPTIONS":
		return strings.HasPrefix(f.s, "--max-old-space-size=") && !strings.Contains(f.s, " ")
	case "CARGO_TERM_COLOR", "CARGO_INCREMENTAL", "CARGO_NET_RETRY":
		return true
	case "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "PIP_NO_CACHE_DIR", "PIP_QUIET":
		return true
	}
	return false
}

// poison judges the assignment of one variable and remembers it for the commands that follow.
func (a *analysis) poison(name string, f *field, st *state, kind assignKind, sp Span) {
	k := poisonOf(name)
	if k.level == 0 {
		if name == "" || kind == assignExport && strings.ContainsAny(name, "\x00") {
			a.note(High, ShellState, sp, "sets a variable whose name is not known here")
		}
		return
	}
	if st.remote || harmlessValue(name, f) && (kind == assignPrefix || name != "IFS") {
		return
	}
	if kind == assignPlain && (name == "CC" || name == "CXX" || name == "HOME" && f.known) {
		kind = assignPrefix
	}
	level := k.level
	if name == "PATH" {
		level = pathLevel(f, a.c.Env["PATH"])
	}
	if kind == assignPrefix && level == Critical && !k.code {
		level = High
	}
	if k.code && f.known && strings.TrimSpace(f.s) != "" {
		if strings.HasPrefix(name, "PS") {
			a.evalText(f.s, st, sp)
			if !strings.Contains(f.s, "$(") && !strings.Contains(f.s, "`") {
				level = Medium
			}
		} else {
			a.inline(strings.ReplaceAll(strings.TrimLeft(f.s, "|-"), "%s", "_"), sp, st.clone()) // LESSOPEN='|cmd %s'
		}
	}
	eff := ShellState
	if kind == assignPrefix {
		eff = RunCode
	} else if level == Critical {
		eff = Persistence
	}
	a.note(level, eff, sp, "sets "+show(name)+", which "+k.what)
	if kind != assignPrefix && level >= High && !slices.Contains(st.changed, name) {
		st.changed = append(slices.Clip(st.changed), name)
	}
}

// oldPath stands for the value of PATH where it is not known.
const oldPath = "\x01PATH"

// pathLevel judges a new PATH: what stands before the old one can take the place of any program.
func pathLevel(f *field, old string) Level {
	front := f.s
	if strings.IndexByte(f.s, unknownPart) >= 0 {
		return High
	}
	if i := strings.Index(front, oldPath); i >= 0 {
		front = front[:i] // $PATH stands here
	} else if old != "" && strings.Contains(front, old) {
		front = front[:strings.Index(front, old)]
	} else if !f.known {
		return High
	}
	if f.known && (old == "" || !strings.Contains(f.s, old)) {
		front = f.s
	}
	for dir := range strings.SplitSeq(strings.Trim(front, ":"), ":") {
		if dir != "" && !systemBin(dir) {
			return High
		}
	}
	if strings.HasPrefix(f.s, ":") || strings.HasSuffix(f.s, ":") || strings.Contains(f.s, "::") {
		return High // an empty entry is the current folder
	}
	for dir := range strings.SplitSeq(f.s, ":") {
		if !strings.HasPrefix(dir, "/") && dir != oldPath {
			return High
		}
	}
	return Medium
}

// exported judges `export NAME`, which hands an old value on.
func (a *analysis) exported(name string, st *state, sp Span) {
	if k := poisonOf(name); k.level >= High {
		if v, ok := st.vars[name]; ok && len(v.words) == 1 && harmlessValue(name, &field{s: v.words[0], known: true}) {
			return
		}
		a.note(Medium, ShellState, sp, "exports "+show(name)+", which "+k.what)
	}
}

// poisonHits tells whether a changed variable concerns a program.
func poisonHits(name, program string) bool {
	k := poisonOf(name)
	if k.level == 0 {
		return name == program // an alias or a function
	}
	if k.by == "*" {
		return true
	}
	for p := range strings.FieldsSeq(k.by) {
		if p == program || strings.HasPrefix(program, p) && isDigits(strings.TrimPrefix(program, p)) {
			return true
		}
	}
	return false
}
