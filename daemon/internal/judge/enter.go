package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/lease/confine"
	"sublet/wire/visible"
)

// Entering returns v, with the reach raised to free if the command changes the user's shell into another git repository, into a folder in
// which a confined command may make one now, or into one that is not known here. A prompt that shows git's state runs what that
// repository's settings name, and so does git itself. jobs are the projects that running jobs are confined to.
func Entering(v risk.Verdict, c risk.Context, jobs []string) risk.Verdict {
	if v.Reach.Confines() {
		return v
	}
	for i := range v.Commands {
		cmd := &v.Commands[i]
		if cmd.Name != "cd" && cmd.Name != "pushd" && cmd.Name != "popd" {
			continue
		}
		dirs, known := targets(*cmd, c)
		where := "a folder that is not known beforehand"
		if known {
			root := reach.Real(c.ProjectRoot)
			if where = visible.Exact(repositoryAround(dirs, root)); where == "" {
				where = writableNow(dirs, c, jobs)
			}
		}
		if where == "" {
			continue
		}
		v.Reach = risk.ReachFree
		v.Reasons = append(v.Reasons, risk.Reason{Text: "a prompt that shows git's state runs what the settings of a repository there name (" + where + ")", Effect: risk.RunCode, Level: risk.Low})
		if cmd.Beyond = known && lasting(cmd.Argv[len(cmd.Argv)-1], c); !cmd.Beyond {
			v.Rest = max(v.Rest, risk.Medium)
		}
	}
	return v
}

// lasting reports whether a rule may allow to enter a folder by this word: it names the same folder from everywhere, in a repository that
// no confined command may write in now, nor one that is confined to a repository around it.
func lasting(dir string, c risk.Context) bool {
	if !filepath.IsAbs(dir) || reach.Real(dir) != dir {
		return false
	}
	root, repository := reach.Real(c.ProjectRoot), repositoryAround([]string{dir}, "/")
	return repository != "" && repositoryAround([]string{filepath.Dir(repository)}, "/") == "" && writableNow([]string{dir}, c, nil) == "" &&
		!(within(root, dir) && reach.IsProject(root, reach.Home()))
}

// targets returns the folders that a command may change into: several if .. may be meant with or without links, or if CDPATH is set.
func targets(cmd risk.Command, c risk.Context) (dirs []string, known bool) {
	words := slices.DeleteFunc(slices.Clone(cmd.Argv[1:]), func(w string) bool { return slices.Contains([]string{"-L", "-P", "-e", "-@", "--"}, w) })
	switch {
	case len(words) == 0 && cmd.Name == "cd":
		return []string{c.Home}, true
	case len(words) != 1 || cmd.Name == "popd":
		return nil, false // the folders that pushd keeps; in zsh two words replace a part of the folder's name
	}
	dir := words[0]
	if !filepath.IsAbs(dir) && (cmd.Cwd == "" || dir == "" || strings.ContainsRune("-+~", rune(dir[0]))) || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || strings.ContainsRune("*?[", r) }) {
		return nil, false
	}
	if !filepath.IsAbs(dir) {
		if dir[0] != '.' {
			for _, base := range filepath.SplitList(c.Env["CDPATH"]) {
				if !filepath.IsAbs(base) {
					base = filepath.Join(cmd.Cwd, base)
				}
				dirs = append(dirs, reach.Real(filepath.Join(base, dir)))
			}
			if _, err := os.Stat(filepath.Join(cmd.Cwd, dir)); err != nil { // the shell looks in a CDPATH that is not exported, and for a variable
				return nil, false
			}
		}
		dir = cmd.Cwd + "/" + dir
	}
	if throughProc(dir) {
		return nil, false
	}
	dirs = append(dirs, reach.Real(filepath.Clean(dir)))
	if real, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, real) {
		dirs = append(dirs, real)
	}
	return dirs, true
}

// throughProc reports whether a path leads through /proc, perhaps by a link: /proc/self/cwd is another folder for the shell.
func throughProc(path string) bool {
	links := 0
	for i := 1; i <= len(path) && links < 40; i++ { // 40: path_resolution(7)
		if i < len(path) && path[i] != '/' {
			continue
		}
		up := path[:i]
		if within("/proc", filepath.Clean(up)) {
			return true
		}
		if to, err := os.Readlink(up); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(up), to)
			}
			path, i = to+path[i:], 0
			links++
		}
	}
	return links == 40
}

// repositoryAround returns the first of some folders that is, or is in, a repository other than the project's own; "" if there is none.
func repositoryAround(dirs []string, root string) string {
	for _, dir := range dirs {
		for ; dir != root && dir != "/"; dir = filepath.Dir(dir) {
			for _, name := range []string{".git", "HEAD"} { // HEAD: one without a work tree
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
					return dir
				}
			}
		}
	}
	return ""
}

// writableNow returns the first of some folders in which a confined command may make a repository while the shell is there, "" if there is
// none: in a build cache, in a folder of the settings, or below a project in which such a command or one of jobs runs.
func writableNow(dirs []string, c risk.Context, jobs []string) string {
	shared := append(confine.Caches(reach.Home(), os.Getenv), c.Writable...)
	for _, dir := range dirs {
		used := slices.ContainsFunc(jobs, func(job string) bool { return dir != job && within(job, dir) }) // its placeholders may not be there yet
		for up := filepath.Dir(dir); up != "/" && !used; up = filepath.Dir(up) {
			used = confine.InUse(up)
		}
		if used || slices.ContainsFunc(shared, func(s string) bool { return within(reach.Real(s), dir) }) {
			return visible.Exact(dir) + ", where a command may make one"
		}
	}
	return ""
}
