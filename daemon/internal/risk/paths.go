package risk

import (
	"path"
	"strings"
	"sync"
)

// zone is where a path is.
type zone int

const (
	zoneNone       zone = iota // /dev/null and the like: nothing is changed
	zoneTemp                   // a temporary file
	zoneTempRoot               // the temporary folder itself
	zoneBuild                  // build output inside the project, made again by a build
	zoneProject                // a file of the project
	zoneProjectTop             // the project itself
	zoneGuarded                // of the project, and run by itself or by others: CI, hooks of editors, settings of ours
	zoneGit                    // .git
	zoneGitCode                // .git/hooks, .git/config: git runs what they name
	zoneOutside                // elsewhere: other projects, other users' files
	zoneHomeFile               // an ordinary file at home
	zoneHomeTop                // home itself, or a folder straight in it
	zoneDot                    // settings at home
	zoneStartup                // run by itself: shell start-up files, autostart, ssh
	zoneCredential             // keys, tokens, passwords
	zoneSystem                 // of the operating system
	zoneSystemKey              // of the system, and decisive: passwd, sudoers, cron, units
	zoneRoot                   // / and the folders straight in it
	zoneDevice                 // a disk, memory or kernel interface
	zoneProc                   // of another process
	zoneNet                    // /dev/tcp
)

// under tells whether a cleaned path is dir or below it.
func under(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return dir != "" && (p == dir || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir)
}

func cleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// joinPath makes p absolute from cwd; "" when cwd is not known and p is relative.
func joinPath(cwd, p string) string {
	if strings.HasPrefix(p, "/") {
		return cleanPath(p)
	}
	if cwd == "" {
		return ""
	}
	return path.Join(cwd, p)
}

func systemBin(dir string) bool {
	switch cleanPath(dir) {
	case "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/homebrew/sbin", "/snap/bin", "/usr/games", "/usr/local/go/bin", "/usr/lib/go/bin", "/run/current-system/sw/bin", "/usr/local/games":
		return true
	}
	return false
}

// buildDirs are folders that builds make again.
var buildDirs = lazySet(`node_modules build dist target out bin obj .next .nuxt .turbo .cache __pycache__ .pytest_cache .mypy_cache
	.ruff_cache .tox .nox coverage htmlcov .coverage .gradle .parcel-cache .svelte-kit .vite storybook-static _build cmake-build-debug
	cmake-build-release .eggs venv .venv env DerivedData Pods .dart_tool .terraform elm-stuff .stack-work dist-newstyle zig-out zig-cache
	.zig-cache bazel-bin bazel-out .angular .output .serverless .aws-sam tmp .tmp logs`)

// buildFiles are endings of files that builds make again.
var buildFiles = []string{".o", ".a", ".so", ".pyc", ".pyo", ".class", ".obj", ".exe", ".test", ".out", ".prof", ".coverprofile", ".cover", ".tsbuildinfo", ".log", ".tmp", ".swp", ".bak~", "~", ".d", ".gcda", ".gcno"}

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// lazySet is wordSet when the set is first asked for: most processes of this program never do.
func lazySet(s string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return wordSet(s) })
}

// startupNames are files straight in a home folder that something runs by itself.
var startupNames = lazySet(`.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_functions .profile .login .logout .zshrc .zshenv .zprofile .zlogin
	.zlogout .kshrc .cshrc .tcshrc .mkshrc .inputrc .xprofile .xinitrc .xsession .xsessionrc .pam_environment .envrc .direnvrc .pythonrc
	.pythonrc.py .gdbinit .lldbinit .vimrc .gvimrc .exrc .nanorc .emacs .emacs.el .screenrc .tmux.conf .gitconfig .hgrc .lesskey .lessfilter .irbrc .pryrc .Rprofile .sqliterc
	.psqlrc .crontab .forward .npmrc .yarnrc .yarnrc.yml .condarc .pydistutils.cfg .curlrc .wgetrc .ssh .rhosts .shosts .dircolors`)

// startupDirs are the same, below home.
var startupDirs = []string{
	".config/autostart", ".config/systemd", ".config/environment.d", ".config/fish", ".config/git", ".config/bash", ".config/zsh",
	".config/nvim", ".config/vim", ".config/nushell", ".config/starship.toml", ".config/direnv", ".config/pip", ".config/tmux", ".config/plasma-workspace", ".config/sublet", ".local/share/applications", ".local/bin",
	"bin", ".bashrc.d", ".zshrc.d", ".oh-my-zsh", ".oh-my-bash", ".vim", ".emacs.d", ".git-templates", ".githooks", "Library/LaunchAgents", ".ssh", ".cargo/bin", "go/bin", ".sublet", ".claude", ".codex", ".kube/plugins", ".docker/cli-plugins", ".ipython/profile_default/startup", ".local/lib", ".cargo/config.toml", ".cargo/config", ".m2/settings.xml", ".gradle/init.d", ".gradle/init.gradle", ".pip",
}

// credentialNames are files, anywhere, that hold keys, tokens or passwords.
var credentialNames = lazySet(`.netrc _netrc .pgpass .my.cnf .mylogin.cnf .git-credentials .pypirc .vault-token .htpasswd id_rsa id_dsa id_ecdsa id_ed25519
	id_ecdsa_sk id_ed25519_sk credentials.json client_secret.json service-account.json service_account.json serviceAccountKey.json application_default_credentials.json
	secrets.yml secrets.yaml secrets.json secrets.toml credentials.yml.enc master.key .env .env.local .env.production .env.prod .env.development .env.dev .env.staging .env.test
	.env.secret .envrc .secrets .dockercfg shadow gshadow shadow- gshadow- krb5.keytab wallet.dat keystore.jks login.keychain login.keychain-db key4.db logins.json
	Login\ Data Cookies cookies.sqlite .bash_history .zsh_history .psql_history .mysql_history .python_history .node_repl_history .sqlite_history .lesshst .viminfo .s3cfg .boto rclone.conf hosts.yml terraform.tfstate terraform.tfvars kubeconfig passwords.txt password.txt`)

// credentialEnds are endings of such files.
var credentialEnds = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".gpg", ".asc", ".ppk", ".keytab", ".ovpn", ".age", ".tfvars"}

// credentialDirs are folders of home that hold them.
var credentialDirs = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".kube", ".docker/config.json", ".docker/contexts", ".password-store",
	".local/share/keyrings", ".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird", ".config/BraveSoftware", "Library/Keychains", "Library/Application Support/Google/Chrome",
	".terraform.d/credentials.tfrc.json", ".config/rclone", ".config/doctl", ".config/heroku", ".config/stripe", ".config/Slack", ".config/Signal", ".config/1Password", ".config/Bitwarden", ".npmrc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	".m2/settings.xml", ".gradle/gradle.properties", ".bitcoin", ".ethereum", ".electrum", ".config/solana", ".vault-token", ".config/sublet/credentials", ".claude/.credentials.json", ".codex/auth.json", ".fly", ".config/netlify", ".config/configstore", ".config/ngrok", ".config/hcloud",
}

// harmlessCredential are exceptions: public keys, known hosts, examples.
func harmlessCredential(base string) bool {
	switch base {
	case "cert.pem", "fullchain.pem", "chain.pem", "ca.pem", "cacert.pem", "ca-cert.pem", "public.pem", "pubkey.pem", "ca-certificates.pem",
		"known_hosts", "known_hosts.old", "authorized_keys", "config.example", ".ssh":
		return true
	}
	for _, end := range []string{".pub", ".example", ".sample", ".template", ".dist", ".tmpl", ".md", ".crt"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// systemDirs are the folders of the operating system.
var systemDirs = wordSet("bin boot etc lib lib32 lib64 libx32 opt root run sbin srv sys usr var proc System Library Applications private snap nix")

// systemKeys are the files of the system whose change decides who may do what, or what runs by itself.
var systemKeys = []string{
	"/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/pam.d", "/etc/security", "/etc/ssh", "/etc/crontab",
	"/etc/cron.d", "/etc/cron.daily", "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/anacrontab", "/var/spool/cron", "/var/spool/at", "/etc/systemd", "/usr/lib/systemd", "/lib/systemd",
	"/run/systemd", "/etc/init.d", "/etc/rc.local", "/etc/rc.d", "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/zshrc", "/etc/zshenv", "/etc/environment", "/etc/ld.so.preload", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/fstab", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/apt", "/etc/yum.repos.d", "/etc/pki", "/etc/ssl", "/etc/ca-certificates", "/usr/local/share/ca-certificates", "/etc/udev", "/etc/modprobe.d", "/etc/modules-load.d",
	"/etc/kernel", "/etc/default/grub", "/etc/grub.d", "/boot", "/etc/X11/xinit", "/etc/xdg/autostart", "/etc/NetworkManager/dispatcher.d", "/etc/update-motd.d", "/etc/logrotate.d", "/etc/dbus-1", "/etc/polkit-1", "/Library/LaunchDaemons", "/Library/LaunchAgents", "/etc/gitconfig", "/etc/docker",
}

// secretSystem are system files that only root should read.
var secretSystem = []string{"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/security/opasswd", "/root/.ssh", "/var/lib/secrets", "/run/secrets", "/var/run/secrets", "/etc/kubernetes/admin.conf", "/etc/kubernetes/pki", "/var/lib/kubelet"}

// zoneOf finds where an absolute cleaned path is. The path may end in a pattern.
func (a *analysis) zoneOf(p string) zone {
	base := p[strings.LastIndexByte(p, '/')+1:]
	if p == "/" {
		return zoneRoot
	}
	first, rest, deep := strings.Cut(p[1:], "/")
	if strings.ContainsAny(first, "*?[") {
		if matchAny(p, secretSystem) {
			return zoneCredential
		}
		return zoneRoot // /*, /e?c/…: any of the system's folders
	}
	switch first {
	case "dev":
		return deviceZone(p, base)
	case "proc":
		if base == "environ" || base == "mem" || base == "maps" {
			return zoneCredential
		}
		if deep && (strings.HasPrefix(rest, "sys") || rest == "sysrq-trigger" || rest == "kcore" || rest == "kmem" || rest == "mem") {
			return zoneDevice
		}
		return zoneProc
	case "sys":
		return zoneDevice
	case "tmp":
		return a.inTemp("/tmp", p)
	case "var":
		if under(p, "/var/tmp") {
			return a.inTemp("/var/tmp", p)
		}
	}
	if a.c.ProjectRoot != "" && under(p, a.c.ProjectRoot) {
		return a.projectZone(p)
	}
	if t := a.c.Env["TMPDIR"]; t != "" && under(p, cleanPath(t)) {
		return tempZone(strings.TrimPrefix(p[len(cleanPath(t)):], "/"), p != cleanPath(t))
	}
	if home, below, ok := a.homeOf(p); ok {
		return homeZone(home, below)
	}
	if matchAny(p, secretSystem) {
		return zoneCredential
	}
	if credentialBase(base) {
		return zoneCredential
	}
	if matchAny(p, systemKeys) {
		return zoneSystemKey
	}
	if systemDirs[first] {
		if !deep || rest == "" || strings.Trim(rest, "*.?") == "" {
			return zoneRoot
		}
		return zoneSystem
	}
	if !deep && (first == "home" || first == "Users" || first == "mnt" || first == "media" || first == "data") {
		return zoneRoot
	}
	return zoneOutside
}

// inTemp is the zone of a path in a folder of temporary files. What lies there is temporary, but for a project that is in
// version control, and for what is run by itself or secret in a home that was put there.
func (a *analysis) inTemp(temp, p string) zone {
	if a.c.Tracked != nil && a.c.ProjectRoot != temp && under(p, a.c.ProjectRoot) {
		return a.projectZone(p)
	}
	if h := a.c.Home; h != temp && under(h, temp) && under(p, h) {
		switch z := homeZone(h, strings.TrimPrefix(p[len(h):], "/")); {
		case z == zoneStartup, z == zoneCredential, p == h:
			return z
		}
	}
	return tempZone(strings.TrimPrefix(p[len(temp):], "/"), p != temp)
}

func tempZone(rest string, deep bool) zone {
	if !deep || strings.Trim(rest, "*.") == "" {
		return zoneTempRoot
	}
	return zoneTemp
}

func deviceZone(p, base string) zone {
	switch {
	case base == "null" || base == "zero" || base == "full" || base == "stdin" || base == "stdout" || base == "stderr" || base == "tty" || base == "random" || base == "urandom",
		strings.HasPrefix(p, "/dev/fd/"):
		return zoneNone
	case strings.HasPrefix(p, "/dev/shm/") || strings.HasPrefix(p, "/dev/mqueue/"):
		return zoneTemp
	case strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/"):
		return zoneNet
	}
	return zoneDevice
}

func (a *analysis) projectZone(p string) zone {
	root := a.c.ProjectRoot
	if p == root {
		return zoneProjectTop
	}
	rest := p[len(root):]
	if root != "/" {
		rest = rest[1:]
	}
	if strings.Trim(rest, "*.?") == "" {
		return zoneProjectTop // *, .*: all of it
	}
	base := rest[strings.LastIndexByte(rest, '/')+1:]
	if i := strings.Index("/"+rest+"/", "/.git/"); i >= 0 {
		inner := strings.TrimPrefix(("/" + rest)[i:], "/.git")
		inner = strings.TrimPrefix(inner, "/")
		if strings.HasPrefix(inner, "hooks") || inner == "config" || strings.HasPrefix(inner, "config.") || strings.HasPrefix(inner, "modules/") && strings.Contains(inner, "/hooks") || inner == "info/attributes" {
			return zoneGitCode
		}
		return zoneGit
	}
	if credentialBase(base) {
		return zoneCredential
	}
	first, _, _ := strings.Cut(rest, "/")
	switch first {
	case ".github", ".circleci", ".gitlab", ".husky", ".githooks", ".vscode", ".idea", ".sublet", ".sublet.toml", ".claude", ".cursor", ".codex", ".devcontainer", ".buildkite", ".woodpecker", ".drone", ".forgejo", ".gitea", ".zed", ".mvn", ".cargo":
		return zoneGuarded
	}
	switch base {
	case ".gitlab-ci.yml", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", "cloudbuild.yaml", "appveyor.yml", ".pre-commit-config.yaml", "lefthook.yml", ".gitattributes", ".gitmodules", ".npmrc", ".yarnrc.yml", ".envrc", ".mcp.json", ".bazelrc", ".pnpmfile.cjs":
		return zoneGuarded
	}
	for seg := range strings.SplitSeq(rest, "/") {
		if buildDirs()[seg] {
			return zoneBuild
		}
	}
	for _, end := range buildFiles {
		if strings.HasSuffix(base, end) {
			return zoneBuild
		}
	}
	return zoneProject
}

// homeOf splits a path that is in somebody's home folder.
func (a *analysis) homeOf(p string) (home, below string, ok bool) {
	if h := a.c.Home; h != "" && under(p, h) {
		return h, strings.TrimPrefix(p[len(h):], "/"), true
	}
	for _, top := range []string{"/home/", "/Users/"} {
		if r, ok := strings.CutPrefix(p, top); ok && r != "" {
			name, below, _ := strings.Cut(r, "/")
			return top + name, below, true
		}
	}
	if under(p, "/root") {
		return "/root", strings.TrimPrefix(p[len("/root"):], "/"), true
	}
	return "", "", false
}

func homeZone(home, below string) zone {
	if below == "" || strings.Trim(below, "*.?[!]") == "" {
		return zoneHomeTop
	}
	base := below[strings.LastIndexByte(below, '/')+1:]
	first, _, deep := strings.Cut(below, "/")
	if below == ".ssh/authorized_keys" || below == ".ssh/config" || below == ".ssh/rc" || below == ".ssh/environment" {
		return zoneStartup
	}
	if !harmlessCredential(base) && matchAny(below, credentialDirs) || credentialBase(base) {
		return zoneCredential
	}
	if startupNames()[first] || globHits(first, startupNames()) || matchAny(below, startupDirs) {
		return zoneStartup
	}
	if strings.HasPrefix(first, ".") {
		return zoneDot
	}
	if !deep || deep && strings.Trim(below[len(first):], "/*.") == "" {
		return zoneHomeTop
	}
	return zoneHomeFile
}

// matchAny tells whether p is one of the list or below one; segments of p may be patterns.
func matchAny(p string, list []string) bool {
	pattern := strings.ContainsAny(p, "*?[")
	for _, d := range list {
		if under(p, d) {
			return true
		}
		if !pattern {
			continue
		}
		ps, ds := strings.Split(p, "/"), strings.Split(d, "/")
		if len(ps) < len(ds) {
			continue
		}
		hit := true
		for i, seg := range ds {
			if seg != ps[i] && (!strings.ContainsAny(ps[i], "*?[") || !globMatch(ps[i], seg) || strings.HasPrefix(seg, ".") && !strings.HasPrefix(ps[i], ".")) {
				hit = false
				break
			}
		}
		if hit {
			return true
		}
	}
	return false
}

// globHits tells whether a pattern matches one of the names.
func globHits(pattern string, names map[string]bool) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	for n := range names {
		if n[0] == '.' && pattern[0] != '.' {
			continue
		}
		if globMatch(pattern, n) {
			return true
		}
	}
	return false
}

func credentialBase(base string) bool {
	if base == "" {
		return false
	}
	if credentialNames()[base] {
		return true
	}
	if harmlessCredential(base) {
		return false
	}
	if strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env") && base != ".env" && len(base) > 4 {
		return true
	}
	for _, end := range credentialEnds {
		if strings.HasSuffix(base, end) && len(base) > len(end) {
			return !strings.HasPrefix(base, "*") || end != ".asc"
		}
	}
	if strings.ContainsAny(base, "*?[") && strings.Trim(base, "*?") != "" {
		return globHits(base, credentialNames()) && base[0] == '.' || strings.HasPrefix(base, "id_")
	}
	return false
}
