package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/lease/confine"
)

// caches returns the folders of s.Caches that exist, with symbolic links resolved. It leaves out a cache inside the project
// or inside another cache, because an earlier command may have replaced it by a link that leads out.
func caches(s confine.Spec) (list []string) {
	reals := map[string]string{} // of those that exist
	for _, dir := range s.Caches {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			reals[dir] = real
		}
	}
	for _, dir := range s.Caches {
		real, ok := reals[dir]
		parent, err := filepath.EvalSymlinks(filepath.Dir(dir)) // the home may be reached by a link
		if err != nil || !ok {
			continue
		}
		at := filepath.Join(parent, filepath.Base(dir))
		st, err := os.Stat(real)
		if err != nil || !st.IsDir() {
			continue
		}
		inside := func(base string) bool { return base != "" && (confine.Within(dir, base) || confine.Within(at, base)) }
		switch {
		case inside(s.Project) && (s.Reach == confine.Project || !confine.Within(real, s.Project)):
			continue
		case real == "/" || s.Project != "" && confine.Within(s.Project, real):
			continue // it would make the project writable
		}
		for _, other := range s.Caches {
			if other != dir && (inside(other) || reals[other] != at && inside(reals[other])) {
				real = ""
			}
		}
		if real != "" {
			list = append(list, real)
		}
	}
	return list
}

// protected returns the paths in a project that must stay read-only: those of protectedNames and what they lead to by symbolic
// links. Where the folder of one does not exist, it returns the outermost folder on the way that does not.
func protected(project string) (list []string) {
	for _, name := range protectedNames(project) {
		paths := []string{name}
		if st, err := os.Lstat(name); err == nil && st.Mode()&os.ModeSymlink != 0 {
			paths = followed(name)
		}
		for _, path := range paths {
			if path == project || !confine.Within(path, project) {
				continue
			}
			for up := filepath.Dir(path); up != project; up = filepath.Dir(up) {
				if st, err := os.Lstat(up); errors.Is(err, fs.ErrNotExist) || err == nil && isPlaceholder(st) {
					path = up
				}
			}
			list = append(list, path)
		}
	}
	return list
}

// protectedNames returns confine.Protected in a project, and in its git folders hooks, settings and the files that locate the
// repository.
func protectedNames(project string) (list []string) {
	for _, name := range confine.Protected {
		list = append(list, filepath.Join(project, name))
	}
	if st, err := os.Lstat(filepath.Join(project, ".git")); err != nil || !st.IsDir() || isPlaceholder(st) {
		list = append(list, filepath.Join(project, ".git")) // a file or link that names the repository, or absent
	}
	for _, dir := range gitDirs(project) {
		for _, name := range confine.GitProtected {
			list = append(list, filepath.Join(dir, name))
		}
		if common := filepath.Join(dir, "commondir"); exists(common) {
			list = append(list, common)
		}
		hooks, includes := gitSettings(project, dir)
		list = append(append(list, hooks...), slices.DeleteFunc(includes, func(path string) bool { return !exists(path) })...)
		// Files of each work tree that name the rest of the repository.
		trees, _ := filepath.Glob(filepath.Join(quoteGlob(dir), "worktrees", "*")) // the pattern is well-formed
		for _, tree := range trees {
			list = append(list, filepath.Join(tree, "commondir"), filepath.Join(tree, "gitdir"), filepath.Join(tree, "config.worktree"))
		}
	}
	return list
}

func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// maxModules bounds the submodules that modules finds.
const maxModules = 1000

// gitDirs returns the git folders inside a project: its own, the common one of a work tree, and those of its submodules.
func gitDirs(project string) (list []string) {
	git := filepath.Join(project, ".git")
	if text, err := os.ReadFile(git); err == nil { // a file that names the folder, as in a work tree
		if dir, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("gitdir: ")); ok {
			git = string(dir)
			if !filepath.IsAbs(git) {
				git = filepath.Join(project, git)
			}
		}
	}
	real, err := filepath.EvalSymlinks(git)
	if st, serr := os.Lstat(real); err != nil || serr != nil || !st.IsDir() || isPlaceholder(st) || real == project || !confine.Within(real, project) {
		return nil
	}
	list = []string{real}
	common := filepath.Join(real, "commondir") // a work tree's: names the common folder
	if st, err := os.Stat(common); err != nil || !st.Mode().IsRegular() {
		common = "" // reading a named pipe, which another held command may have made, would block
	}
	if text, err := os.ReadFile(common); err == nil {
		dir := string(bytes.TrimSpace(text))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(real, dir)
		}
		if dir, err := filepath.EvalSymlinks(dir); err == nil && dir != project && confine.Within(dir, project) {
			list = append(list, dir)
		}
	}
	for _, dir := range slices.Clone(list) {
		list = append(list, modules(dir)...)
	}
	return list
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

// gitSettings returns what settings returns of the settings files in a git folder.
func gitSettings(project, git string) (hooks, includes []string) {
	read := map[string]bool{}
	for _, name := range []string{"config", "config.worktree"} {
		h, i := settings(project, filepath.Join(git, name), read)
		hooks, includes = append(hooks, h...), append(includes, i...)
	}
	return hooks, includes
}

// settings returns the paths within a project that a settings file of git leads to: as core.hooksPath, as an included file, and
// those of included files. It adds the file to read, and returns nothing of one that is there already.
func settings(project, file string, read map[string]bool) (hooks, includes []string) {
	st, err := os.Stat(file)
	if err != nil || !st.Mode().IsRegular() || read[file] { // reading a named pipe would block
		return nil, nil
	}
	read[file] = true
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, "=")
		path := strings.Trim(strings.TrimSpace(value), `"`)
		absolute := func(base string) string {
			if !filepath.IsAbs(path) {
				return filepath.Join(base, path)
			}
			return filepath.Clean(path)
		}
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case !ok:
		case strings.HasSuffix(name, "hookspath"):
			if dir := absolute(project); dir != project && confine.Within(dir, project) {
				hooks = append(hooks, dir)
			}
		case name == "path" || strings.HasSuffix(name, "]path") || strings.HasSuffix(name, "] path"): // of include or includeIf
			included := absolute(filepath.Dir(file))
			if confine.Within(included, project) {
				includes = append(includes, included)
			}
			h, i := settings(project, included, read)
			hooks, includes = append(hooks, h...), append(includes, i...)
		}
	}
	return hooks, includes
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

// placeholderMode is the file mode by which a placeholder is recognised.
const placeholderMode = os.ModeSticky | 0o555

func isPlaceholder(st os.FileInfo) bool {
	return (st.IsDir() || st.Mode().Type() == os.ModeSocket) && st.Mode()&(os.ModePerm|os.ModeSticky|os.ModeSetuid|os.ModeSetgid)&^os.ModeSetgid == placeholderMode
}
