package main

import (
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
			continue // for Read, which gets a copy, only if it leads out
		case real == "/" || s.Project != "" && confine.Within(s.Project, real):
			continue // it would make the project writable
		}
		for _, other := range s.Caches {
			if other != dir && (inside(other) || reals[other] != at && inside(reals[other])) { // at: other is a link to this one
				real = ""
			}
		}
		if real != "" {
			list = append(list, real)
		}
	}
	return list
}

// protected returns the paths in the project of s that must stay read-only: those of protectedNames and what they lead to by symbolic
// links. Where the folder of one does not exist, it returns the outermost folder on the way that does not.
func protected(s confine.Spec) (list []string) {
	project := s.Project
	for _, name := range protectedNames(s) {
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

// protectedNames returns confine.Protected in the project of s, but for what does not exist and is in s.Inert; in its repositories
// the hooks, the settings and the files that locate the repository; and what would make a repository of s.Dir.
func protectedNames(s confine.Spec) (list []string) {
	project := s.Project
	for _, name := range confine.Protected {
		top, _, _ := strings.Cut(name, "/")
		if exists(filepath.Join(project, top)) || !slices.Contains(s.Inert, name) {
			list = append(list, filepath.Join(project, name))
		}
	}
	repositories := recorded(project)
	if git := repositories[0].dir; git != "" {
		list = append(list, filepath.Join(git, recordName))
	}
	for _, r := range repositories {
		if st, err := os.Lstat(filepath.Join(r.tree, ".git")); r.tree != "" && (err != nil || !st.IsDir() || isPlaceholder(st)) {
			list = append(list, filepath.Join(r.tree, ".git")) // a file or link that names the git folder, or absent
		}
		if r.dir == "" {
			continue
		}
		for _, name := range append([]string{"commondir"}, confine.GitProtected...) {
			list = append(list, filepath.Join(r.dir, name))
		}
		hooks, includes := r.settings(project)
		list = append(append(list, hooks...), includes...)
		// Files of each work tree that name the rest of the repository.
		trees, _ := filepath.Glob(filepath.Join(quoteGlob(r.dir), "worktrees", "*")) // the pattern is well-formed
		for _, tree := range trees {
			list = append(list, filepath.Join(tree, "commondir"), filepath.Join(tree, "gitdir"), filepath.Join(tree, "config.worktree"))
		}
	}
	for dir := s.Dir; confine.Within(dir, project); dir = filepath.Dir(dir) {
		if dir != project {
			list = append(list, filepath.Join(dir, ".git"))
		} else if repositories[0].dir != "" {
			break // see setAside
		}
		list = append(list, filepath.Join(dir, "commondir")) // where git then looks for bareNames
		if isRepository(dir) {
			for _, name := range confine.GitProtected {
				list = append(list, filepath.Join(dir, name))
			}
		}
		for _, name := range bareNames { // git takes a folder with both, and a file HEAD, for a repository
			if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || isPlaceholder(st) {
				list = append(list, filepath.Join(dir, name))
				break
			}
		}
	}
	if len(repositories) > maxModules { // there may be submodules that were not found
		list = append(list, filepath.Join(repositories[0].dir, "modules"))
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

// bareNames are the folders that a git folder must have, executable, which a placeholder that is a socket is not.
var bareNames = []string{"refs", "objects"}

// ownCommondir is what a placeholder for the file commondir of a git folder has in it: the folder itself, as if there were none.
const ownCommondir = ".\n"

// isPlaceholder reports whether this program made a file as a placeholder: one for which confine.IsPlaceholder is true, or a file in a git folder.
func isPlaceholder(st os.FileInfo) bool {
	inGit := st.Size() == int64(len(ownCommondir)) || st.Name() == recordName
	return confine.IsPlaceholder(st) || inGit && st.Mode() == os.ModeSticky|0o555
}
