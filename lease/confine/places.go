package confine

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Protected are names in a project's folder that programs run, or take commands from, unasked: the settings of editors, agents,
// direnv and the like, of what version control runs, and of CI services. Build tools are not among them: who builds a project runs
// its code anyway. No confined command can change one that exists. While a command runs, a placeholder (a socket or an empty
// folder) stands for each that does not exist and is not in Spec.Inert, and for .git.
var Protected = []string{
	".vscode", ".idea", ".zed", ".helix", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".dir-locals.el", ".dir-locals-2.el",
	".envrc", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".config/mise", ".config/mise.toml", ".devcontainer",
	".claude", ".codex", ".cursor", ".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc", ".aider.conf.yml", ".kiro", ".windsurf", ".mcp.json",
	".sublet", ".sublet.toml", ".husky", ".pre-commit-config.yaml", "lefthook.yml", "lefthook-local.yml", ".lefthook.yml", ".lefthook-local.yml", ".hg/hgrc", ".jj/repo/config.toml",
	".github", ".gitlab-ci.yml", ".gitea", ".forgejo", ".circleci", ".travis.yml", "Jenkinsfile", ".woodpecker", ".woodpecker.yml", ".drone.yml", ".buildkite",
	"appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "cloudbuild.yaml",
}

// traces has, for the names of Protected of one program each, what is in the home of a user who uses the program: patterns of
// path.Match, in which CONFIG is the user's folder of settings. A name that is not listed here is never inert.
var traces = []struct{ names, home []string }{
	{[]string{".vscode", ".devcontainer"}, []string{".vscode*", ".cursor*", ".windsurf*", "CONFIG/Code*", "CONFIG/VSCodium"}},
	{[]string{".idea"}, []string{"CONFIG/JetBrains", "CONFIG/Google/AndroidStudio*"}},
	{[]string{".zed"}, []string{"CONFIG/zed", ".local/share/zed"}},
	{[]string{".helix"}, []string{"CONFIG/helix", ".cache/helix"}},
	{[]string{".nvim.lua", ".nvimrc"}, []string{"CONFIG/nvim"}},
	{[]string{".exrc", ".vimrc"}, []string{".vimrc", ".vim", ".exrc", "CONFIG/vim", "CONFIG/nvim"}},
	{[]string{".dir-locals.el", ".dir-locals-2.el"}, []string{".emacs*", "CONFIG/emacs"}},
	{[]string{".envrc"}, []string{"CONFIG/direnv", ".local/share/direnv"}},
	{[]string{".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".config/mise", ".config/mise.toml"}, []string{"CONFIG/mise", ".local/share/mise"}},
	{[]string{".claude", ".mcp.json"}, []string{".claude*"}},
	{[]string{".codex"}, []string{".codex"}},
	{[]string{".cursor"}, []string{".cursor*"}},
	{[]string{".gemini"}, []string{".gemini"}},
	{[]string{".qwen"}, []string{".qwen"}},
	{[]string{".opencode", "opencode.json", "opencode.jsonc"}, []string{".opencode", "CONFIG/opencode", ".local/share/opencode"}},
	{[]string{".aider.conf.yml"}, []string{".aider*"}},
	{[]string{".kiro"}, []string{".kiro"}},
	{[]string{".windsurf"}, []string{".windsurf*", ".codeium"}},
	{[]string{".hg/hgrc"}, []string{".hgrc", "CONFIG/hg"}},
	{[]string{".jj/repo/config.toml"}, []string{".jjconfig.toml", "CONFIG/jj"}},
	// Services that the owner of a repository first turns on, and hook managers, which begin in git's hooks: a project that uses one
	// has its file.
	{[]string{
		".husky", ".pre-commit-config.yaml", "lefthook.yml", "lefthook-local.yml", ".lefthook.yml", ".lefthook-local.yml", ".circleci", ".travis.yml", "Jenkinsfile", ".woodpecker", ".woodpecker.yml", ".drone.yml",
		".buildkite", "appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "cloudbuild.yaml",
	}, nil},
}

// Inert returns, for Spec.Inert, the names of Protected that start nothing by appearing in a project, because the user with this home
// has not used the program that takes commands from them.
func Inert(home string) (list []string) {
	config, err := os.UserConfigDir()
	if err != nil {
		config = path.Join(home, ".config")
	}
	for _, t := range traces {
		if !slices.ContainsFunc(t.home, func(pattern string) bool {
			dir := home
			if rest, ok := strings.CutPrefix(pattern, "CONFIG/"); ok {
				dir, pattern = config, rest
			}
			found, _ := fs.Glob(os.DirFS(dir), pattern) // the pattern is well-formed
			return len(found) > 0
		}) {
			list = append(list, t.names...)
		}
	}
	return list
}

// IsPlaceholder reports whether a file is the placeholder for a name of Protected that does not exist. It is recognised by its
// sticky bit and by the lack of any right to write.
func IsPlaceholder(st fs.FileInfo) bool {
	mode := st.Mode() & (fs.ModePerm | fs.ModeSticky | fs.ModeSetuid)
	return st.IsDir() && mode == fs.ModeSticky|0o555 || st.Mode().Type() == fs.ModeSocket && mode == fs.ModeSticky|0o444
}

// InUse reports whether the placeholders of a command that is confined to the project dir are in it. Such a command runs, or was killed.
func InUse(dir string) bool {
	return slices.ContainsFunc(append([]string{".git"}, Protected...), func(name string) bool {
		st, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && IsPlaceholder(st)
	})
}

// GitProtected are the protected names in a git folder.
var GitProtected = []string{"hooks", "config", "config.worktree", "info/attributes"}

// KeptHome returns paths for Spec.Kept: the home if it is below /tmp, so that it is not replaced by a temporary folder, and the home's
// settings that lie in the project.
func KeptHome(home, project string) (list []string) {
	if home = path.Clean(home); Within(home, "/tmp") && home != "/tmp" {
		list = append(list, home)
	}
	for _, at := range SettingsLinks(home) {
		if project != "" && Within(at, project) && at != project {
			list = append(list, at)
		}
	}
	return list
}

// SettingsLinks returns where the links among the settings in a home lead, as they do for who keeps these in a repository.
func SettingsLinks(home string) (list []string) {
	for _, pattern := range []string{".*", ".*/*", ".config/*/*"} {
		names, _ := fs.Glob(os.DirFS(home), pattern) // the pattern is well-formed
		for _, name := range names {
			name = path.Join(home, name)
			if _, err := os.Readlink(name); err != nil {
				continue // no link
			}
			if to, err := filepath.EvalSymlinks(name); err == nil {
				list = append(list, to)
			}
		}
	}
	return list
}

// Within reports whether file is dir or below it. Both are clean.
func Within(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// Caches returns the cache folders of build tools for a user with this home and environment, whether they exist or not. None
// contains settings.
func Caches(home string, env func(string) string) []string {
	or := func(value string, below ...string) string {
		if path.IsAbs(value) {
			return path.Clean(value)
		}
		return path.Join(append([]string{home}, below...)...)
	}
	cache := or(env("XDG_CACHE_HOME"), ".cache")
	gopath := or(strings.Split(env("GOPATH"), ":")[0], "go")
	list := []string{path.Join(gopath, "pkg")}
	if v := env("GOMODCACHE"); path.IsAbs(v) {
		list = append(list, path.Clean(v))
	}
	list = append(list, GoCache(home, env))
	for _, name := range []string{"pip", "uv", "pypoetry", "yarn", "node", "deno", "ccache", "sccache", "golangci-lint", "gopls", "staticcheck", "typescript", "ms-playwright"} {
		list = append(list, path.Join(cache, name))
		if runtime.GOOS == "darwin" {
			list = append(list, path.Join(home, "Library/Caches", name))
		}
	}
	cargo := or(env("CARGO_HOME"), ".cargo")
	list = append(list, path.Join(cargo, "registry"), path.Join(cargo, "git"))
	for _, name := range []string{
		".npm/_cacache", ".npm/_logs", ".gradle/caches", ".gradle/wrapper", ".gradle/daemon", ".gradle/native", ".m2/repository", ".ccache", ".ivy2/cache",
		".local/share/pnpm/store", ".bun/install/cache", ".nuget/packages", ".cabal/packages", ".stack/pantry",
	} {
		list = append(list, path.Join(home, name))
	}
	list = slices.DeleteFunc(list, func(dir string) bool { return Within(home, dir) }) // a variable that names no cache
	slices.Sort(list)
	return slices.Compact(list)
}

// GoCache returns Go's build cache folder for a user with this home and environment, whether it exists or not.
func GoCache(home string, env func(string) string) string {
	if v := env("GOCACHE"); path.IsAbs(v) {
		return path.Clean(v)
	}
	if runtime.GOOS == "darwin" {
		return path.Join(home, "Library/Caches/go-build")
	}
	if v := env("XDG_CACHE_HOME"); path.IsAbs(v) {
		return path.Join(v, "go-build")
	}
	return path.Join(home, ".cache/go-build")
}
