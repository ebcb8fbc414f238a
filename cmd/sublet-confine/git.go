package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sublet/lease/confine"
)

// A repository of git in a project.
type repository struct {
	dir  string // its git folder, in the project, with links resolved; "" if its work tree has none
	tree string // its work tree; "" if that is not known
}

// maxModules bounds the submodules that are found.
const maxModules = 1000

// repositories returns the repositories that git uses in a project: first the project's own, then the common one if the project is
// a work tree, those of submodules, and those that an index names.
func repositories(project string) (list []repository) {
	list = []repository{{gitDir(project, project), project}}
	add := func(r repository) {
		if !slices.Contains(list, r) && (r.dir == "" || !slices.ContainsFunc(list, func(o repository) bool { return o.dir == r.dir && r.tree == "" })) {
			list = append(list, r)
		}
	}
	for i := 0; i < len(list) && len(list) <= maxModules; i++ {
		r := list[i]
		if r.dir == "" {
			continue
		}
		if common := strings.TrimSpace(string(readRegular(filepath.Join(r.dir, "commondir")))); common != "" { // a work tree's: names the common folder
			if dir, err := filepath.EvalSymlinks(absolute(r.dir, common)); err == nil && dir != project && confine.Within(dir, project) {
				add(repository{dir: dir})
			}
		}
		for _, tree := range gitlinks(project, r) {
			add(repository{gitDir(project, tree), tree})
		}
		for _, dir := range modules(r.dir) {
			add(repository{dir: dir})
		}
	}
	return list
}

// recordName is a file in the git folder of a project that confined commands can write in: while any of them runs, it has the repositories
// that were there when the first of these began.
const recordName = "sublet.repositories"

// record returns the content of a new file recordName: two fields for each repository, ended by NUL.
func record(project string) (text string) {
	for _, r := range repositories(project) {
		text += r.dir + "\x00" + r.tree + "\x00"
	}
	return text
}

// recorded returns the repositories in the file recordName of a project. Without one, as in a git folder that nobody here can write
// in, these are the ones that are there now.
func recorded(project string) (list []repository) {
	now := repositories(project)
	fields := strings.Split(string(readRegular(filepath.Join(now[0].dir, recordName))), "\x00")
	if now[0].dir == "" || len(fields) < 2 {
		return now
	}
	for pair := range slices.Chunk(fields[:len(fields)-1], 2) {
		list = append(list, repository{dir: pair[0], tree: pair[len(pair)-1]}) // one of a pair only where the file is damaged
	}
	return list
}

// gitDir returns the git folder of a work tree, with links resolved; "" if there is none in the project.
func gitDir(project, tree string) string {
	git := filepath.Join(tree, ".git")
	if dir, ok := strings.CutPrefix(strings.TrimSpace(string(readRegular(git))), "gitdir: "); ok { // a file that names the folder
		git = absolute(tree, dir)
	}
	real, err := filepath.EvalSymlinks(git)
	if st, serr := os.Lstat(real); err != nil || serr != nil || !st.IsDir() || isPlaceholder(st) || real == project || !confine.Within(real, project) {
		return ""
	}
	return real
}

// isRepository reports whether the user's git takes a folder for a repository. In doubt it does not: the file HEAD may also be a link.
func isRepository(dir string) bool {
	for _, name := range append([]string{"."}, bareNames...) {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || !st.IsDir() || st.Mode()&0o500 != 0o500 {
			return false
		}
	}
	head := filepath.Join(dir, "HEAD")
	st, err := os.Lstat(head)
	if err != nil || !st.Mode().IsRegular() || st.Mode()&0o400 == 0 {
		return false
	}
	text := string(readRegular(head))
	text = text[:min(len(text), 255)] // git reads no more
	branch, ok := strings.CutPrefix(text, "ref:")
	return ok && strings.HasPrefix(strings.TrimLeft(branch, " \t\n"), "refs/") || len(text) >= 40 && strings.Trim(text[:40], "0123456789abcdef") == ""
}

// modules returns the git folders of the submodules in a git folder.
func modules(git string) (list []string) {
	list = []string{git}
	_ = filepath.WalkDir(filepath.Join(git, "modules"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil
		case len(list) > maxModules:
			return filepath.SkipAll
		case slices.Contains([]string{"objects", "refs", "logs", "hooks", "info"}, d.Name()) && slices.Contains(list, filepath.Dir(path)):
			return filepath.SkipDir // of a git folder; a submodule can have such a name too
		case exists(filepath.Join(path, "HEAD")):
			list = append(list, path)
		}
		return nil
	})
	return list[1:]
}

// gitlinkMode is the mode of an entry of an index that stands for a repository, 0160000, as it is in the file.
var gitlinkMode = []byte{0, 0, 0xe0, 0}

// gitTimeout bounds the run of git by which an index is read.
const gitTimeout = 5 * time.Second

// gitlinks returns the folders in a project that the index of r records as repositories. Git obeys their settings when it looks
// for changes in the work tree of r.
func gitlinks(project string, r repository) (list []string) {
	if r.tree == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(quoteGlob(r.dir), "sharedindex.*")) // the pattern is well-formed
	if !slices.ContainsFunc(append(files, filepath.Join(r.dir, "index")), func(file string) bool { return bytes.Contains(readRegular(file), gitlinkMode) }) {
		return nil // git need not be started
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "--git-dir="+r.dir, "--work-tree="+r.tree, "ls-files", "-sz")
	cmd.Dir, cmd.Env = r.tree, []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1"}
	out, err := cmd.Output()
	if err != nil {
		return nil // what it cannot read, the user's git cannot either
	}
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		mode, path, _ := strings.Cut(string(entry), "\t")
		if tree := filepath.Join(r.tree, path); strings.HasPrefix(mode, "160000 ") && tree != project && confine.Within(tree, project) {
			list = append(list, tree)
		}
	}
	return list
}

func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// settings returns the paths in a project that git's settings in r, and the user's, name as core.hooksPath or include.
func (r repository) settings(project string) (hooks, includes []string) {
	home := os.Getenv("HOME")
	s := settingsReader{project: project, tree: cmp.Or(r.tree, project), home: home, read: map[string]bool{}}
	for _, file := range []string{
		filepath.Join(r.dir, "config"), filepath.Join(r.dir, "config.worktree"),
		"/etc/gitconfig", filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "git/config"), filepath.Join(home, ".gitconfig"),
	} {
		s.add(file)
	}
	return s.hooks, s.includes
}

// A settingsReader collects the paths that git's settings files name for a work tree in a project.
type settingsReader struct {
	project, tree, home string
	read                map[string]bool // the files
	hooks, includes     []string
}

// add reads a settings file and those that it includes, whatever the condition.
func (s *settingsReader) add(file string) {
	if s.read[file] {
		return
	}
	s.read[file] = true
	for line := range strings.Lines(string(readRegular(file))) {
		name, value, ok := strings.Cut(line, "=")
		path := strings.Trim(strings.TrimSpace(value), `"`)
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(s.home, rest)
		}
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case !ok:
		case strings.HasSuffix(name, "hookspath"):
			if dir := absolute(s.tree, path); dir != s.project && confine.Within(dir, s.project) {
				s.hooks = append(s.hooks, dir)
			}
		case name == "path" || strings.HasSuffix(name, "]path") || strings.HasSuffix(name, "] path"): // of include or includeIf
			included := absolute(filepath.Dir(file), path)
			if confine.Within(included, s.project) {
				s.includes = append(s.includes, included)
			}
			s.add(included)
		}
	}
}

// absolute returns path, which may be relative to base.
func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// readRegular returns the content of a regular file, nil of anything else: a named pipe, which another confined command may have made,
// would block.
func readRegular(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	return text
}
