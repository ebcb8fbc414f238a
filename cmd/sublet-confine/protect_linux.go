package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// protect makes what starts by itself in a project read-only, and what is to stay as it is, also where it is a link to
// something in the project.
func protect(s confine.Spec) error {
	project := s.Project
	h := holder{project: project, own: map[string]bool{project: true}}
	for _, path := range append(protected(project), s.Kept...) {
		if !confine.Within(path, project) {
			continue // it is read-only
		}
		if err := h.hold(path, 0); err != nil {
			return err
		}
	}
	for _, dir := range gitDirs(project) { // also without a name in it that is protected: it cannot be moved aside
		if err := h.ownMount(dir); err != nil {
			return err
		}
	}
	return nil
}

// protected returns the paths in a project that are read-only: the names that are for every project, and what its git
// folders hold of the kind.
func protected(project string) (list []string) {
	for _, name := range confine.Protected {
		list = append(list, filepath.Join(project, name))
	}
	if st, err := os.Lstat(filepath.Join(project, ".git")); err != nil || !st.IsDir() || isPlace(st) {
		list = append(list, filepath.Join(project, ".git")) // decides where the repository is
	}
	for _, dir := range gitDirs(project) {
		for _, name := range confine.GitProtected {
			list = append(list, filepath.Join(dir, name))
		}
		if common := filepath.Join(dir, "commondir"); exists(common) {
			list = append(list, common)
		}
		list = append(list, hookDirs(project, dir)...)
		// Of each work tree git keeps there where the rest of the repository is.
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

// maxModules bounds the submodules that are looked for.
const maxModules = 1000

// gitDirs returns the git folders of a project that lie in it: its own, and those of its submodules.
func gitDirs(project string) (list []string) {
	git := filepath.Join(project, ".git")
	if text, err := os.ReadFile(git); err == nil { // of a work tree, or of a bare repository beside it
		if dir, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("gitdir: ")); ok {
			git = string(dir)
			if !filepath.IsAbs(git) {
				git = filepath.Join(project, git)
			}
		}
	}
	real, err := filepath.EvalSymlinks(git)
	if st, serr := os.Lstat(real); err != nil || serr != nil || !st.IsDir() || isPlace(st) || real == project || !confine.Within(real, project) {
		return nil
	}
	list = []string{real}
	if text, err := os.ReadFile(filepath.Join(real, "commondir")); err == nil { // of a work tree: the rest is there
		dir := string(bytes.TrimSpace(text))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(real, dir)
		}
		if dir, err := filepath.EvalSymlinks(dir); err == nil && dir != project && confine.Within(dir, project) {
			real = dir
			list = append(list, dir)
		}
	}
	_ = filepath.WalkDir(filepath.Join(real, "modules"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil
		case len(list) > maxModules:
			return filepath.SkipAll
		case slices.Contains([]string{"objects", "refs", "logs", "hooks", "info"}, d.Name()):
			return filepath.SkipDir
		}
		if _, err := os.Lstat(filepath.Join(path, "HEAD")); err == nil {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// hookDirs returns the folders within the project that a git folder's settings name as core.hooksPath.
func hookDirs(project, git string) (list []string) {
	text, err := os.ReadFile(filepath.Join(git, "config"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasSuffix(strings.ToLower(strings.TrimSpace(name)), "hookspath") {
			continue
		}
		dir := strings.Trim(strings.TrimSpace(value), `"`)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(project, dir)
		}
		if dir = filepath.Clean(dir); dir != project && confine.Within(dir, project) {
			list = append(list, dir)
		}
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A holder makes paths in a project mounts of their own, which no command can remove, rename or replace.
type holder struct {
	project string
	own     map[string]bool // what is a mount of its own
}

// maxLinks is the most links that follow each other, as in the kernel.
const maxLinks = 40

// hold makes path read-only, and has the folders that lead to it stay where they are.
func (h *holder) hold(path string, links int) error {
	if links > maxLinks {
		return fmt.Errorf("protect %s: too many links", path)
	}
	// The folders that lead to it, from the outside in.
	for i := len(h.project) + 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		up := path[:i]
		st, err := os.Lstat(up)
		switch {
		case err != nil || !st.IsDir() && st.Mode()&os.ModeSymlink == 0:
			return nil // it is not there: holdPlaces made what must be
		case st.Mode()&os.ModeSymlink != 0:
			if err := h.holdLink(up, links); err != nil {
				return err
			}
			real, err := filepath.EvalSymlinks(up)
			if err != nil || !confine.Within(real, h.project) {
				return nil // what lies outside is read-only
			}
			return h.hold(filepath.Join(real, path[i:]), links+1)
		}
		if err := h.ownMount(up); err != nil {
			return err
		}
	}
	switch st, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return nil // holdPlaces could not make it, and so neither can the command
	case err != nil:
		return err
	case st.Mode()&os.ModeSymlink != 0:
		return h.holdLink(path, links)
	}
	if h.own[path] && path != h.project {
		return setAttr(path, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	return h.mount(path, unix.MOUNT_ATTR_RDONLY)
}

// holdLink has a link stay as it is, and holds what it leads to in the project.
func (h *holder) holdLink(path string, links int) error {
	if !h.own[path] {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		defer unix.Close(fd)
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		h.own[path] = true
	}
	to, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	if to = filepath.Clean(to); to == h.project || !confine.Within(to, h.project) {
		return nil
	}
	return h.hold(to, links+1)
}

// ownMount makes a folder a mount of its own, as writable as it was.
func (h *holder) ownMount(dir string) error {
	if h.own[dir] {
		return nil
	}
	return h.mount(dir, 0)
}

func (h *holder) mount(path string, attributes uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	defer unix.Close(fd)
	h.own[path] = true
	return place{path, fd}.bind(path, attributes)
}

// Places are what stands for protected names of a project that do not exist, so that there is something to mount over: sockets
// that nobody listens on, as a file system removes a folder in up to a millisecond, and there are thirty; but folders for .git
// and what is in it, and where there can be no sockets. Git lists neither sockets nor empty folders. Commands that run at the same time share them, and the last one removes them: the
// removal takes the mounts over them along. A shared lock on the project counts the commands.
type places struct {
	lock    *os.File // the project's folder; nil = nothing to remove
	project string
	absent  []string // what was not there, may not come and cannot be held
}

// placeMode is the mode of a place, by which it is known.
const placeMode = os.ModeSticky | 0o555

func isPlace(st os.FileInfo) bool {
	return (st.IsDir() || st.Mode().Type() == os.ModeSocket) && st.Mode()&(os.ModePerm|os.ModeSticky|os.ModeSetuid|os.ModeSetgid)&^os.ModeSetgid == placeMode
}

// lockPatience is how long to wait for who removes the places at the end of another command.
const lockPatience = 2 * time.Second

func holdPlaces(s confine.Spec) (*places, error) {
	p := &places{project: s.Project}
	if s.Reach != confine.Project {
		return p, nil
	}
	lock, err := os.Open(s.Project)
	if err != nil {
		return nil, err
	}
	p.lock = lock
	for end := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			lock.Close()
			return nil, fmt.Errorf("lock %s: %w", s.Project, err)
		}
	}
	for _, dir := range gitDirs(s.Project) {
		if common := filepath.Join(dir, "commondir"); !exists(common) {
			p.absent = append(p.absent, common)
		}
	}
	umask := unix.Umask(0) // of this process; nothing else runs in it yet
	defer unix.Umask(umask)
	for _, path := range protected(s.Project) {
		if err := makePlace(s, int(lock.Fd()), path); err != nil {
			p.release()
			return nil, fmt.Errorf("hold the place of %s: %w", path, err)
		}
	}
	return p, nil
}

// makePlace makes a place for path where nothing is, unless its own folder is not there or is reached by a link. project is
// that folder's descriptor. The umask is 0, so that the place has its mode at once: to change it costs as much as to make it.
func makePlace(s confine.Spec, project int, path string) error {
	dir, name := project, filepath.Base(path)
	if parent := filepath.Dir(path); parent != s.Project {
		var err error
		if dir, err = openBelow(s.Project, parent); err != nil {
			return nil //nolint:nilerr // see above
		}
		defer unix.Close(dir)
	}
	made := errors.ErrUnsupported
	if dir == project && name != ".git" {
		made = unix.Mknodat(dir, name, unix.S_IFSOCK|unix.S_ISVTX|0o555, 0)
	}
	if made != nil && !there(made) { // the file system may have no sockets
		made = unix.Mkdirat(dir, name, unix.S_ISVTX|0o555)
	}
	switch {
	case there(made), errors.Is(made, unix.EPERM):
		return nil // it is there, or the command cannot make it either
	case made != nil:
		return made
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_ISVTX != 0 {
		return err
	}
	return unix.Fchmodat(dir, name, unix.S_ISVTX|0o555, 0) // where mkdir of the file system leaves that out
}

// there reports whether an error is that of making what is there, or cannot be there.
func there(err error) bool {
	return errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS)
}

// openBelow opens a folder of the project without following links.
func openBelow(project, dir string) (int, error) {
	fd, err := unix.Open(project, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || dir == project {
		return fd, err
	}
	defer unix.Close(fd)
	return unix.Openat2(fd, strings.TrimPrefix(dir, project+"/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
}

// release removes what a launcher that was killed left in a project.
func release(spec string) error {
	s, err := readSpec(spec)
	if err != nil || s.Reach != confine.Project {
		return err
	}
	lock, err := os.Open(s.Project)
	if err != nil {
		return err
	}
	(&places{lock: lock, project: s.Project}).release()
	return nil
}

// release removes the places, unless another command relies on them. It also removes what would lead git to another
// repository's settings: nothing can stand in its place, as git would not go on.
func (p *places) release() {
	if p.lock == nil {
		return
	}
	defer p.lock.Close()
	defer func() { p.lock = nil }()
	for _, path := range p.absent {
		p.remove(path, func(os.FileInfo) bool { return true })
	}
	if unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	list := protected(p.project)
	slices.Reverse(list) // what is in a folder before the folder
	for _, path := range list {
		p.remove(path, isPlace)
	}
}

// remove removes a file, or an empty folder, in the project if it is what is meant. What cannot be removed is left.
func (p *places) remove(path string, meant func(os.FileInfo) bool) {
	st, err := os.Lstat(path)
	if err != nil || !meant(st) {
		return
	}
	dir := int(p.lock.Fd())
	if parent := filepath.Dir(path); parent != p.project {
		if dir, err = openBelow(p.project, parent); err != nil {
			return
		}
		defer unix.Close(dir)
	}
	flags := 0
	if st.IsDir() {
		flags = unix.AT_REMOVEDIR
	}
	_ = unix.Unlinkat(dir, filepath.Base(path), flags)
}
