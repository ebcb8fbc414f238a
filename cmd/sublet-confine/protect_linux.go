package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// protect makes the protected names of a project and s.Kept read-only, also where they are links into the project.
func protect(s confine.Spec) error {
	project := s.Project
	p := protector{project: project, own: map[string]bool{project: true}}
	for _, path := range append(protected(s), s.Kept...) {
		if !confine.Within(path, project) {
			continue // already read-only
		}
		if err := p.protect(path, 0); err != nil {
			return err
		}
	}
	for _, r := range recorded(project) { // a mount point cannot be renamed, so no other repository can replace it
		if r.dir == "" {
			continue
		}
		if err := p.ownMount(r.dir); err != nil {
			return err
		}
	}
	return nil
}

// A protector turns paths in a project into mount points, which no command can remove, rename or replace.
type protector struct {
	project string
	own     map[string]bool // paths that are mount points
}

// protect makes path read-only and the folders on the way to it mount points. links is how many symbolic links were
// followed so far.
func (p *protector) protect(path string, links int) error {
	if links > maxLinks {
		return fmt.Errorf("protect %s: too many links", path)
	}
	// The folders on the way to path, outermost first.
	for i := len(p.project) + 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		up := path[:i]
		st, err := os.Lstat(up)
		switch {
		case err != nil || !st.IsDir() && st.Mode()&os.ModeSymlink == 0:
			return nil // it does not exist, and makePlaceholders found that it need not
		case st.Mode()&os.ModeSymlink != 0:
			if err := p.protectLink(up, links); err != nil {
				return err
			}
			real, err := filepath.EvalSymlinks(up)
			if err != nil || !confine.Within(real, p.project) {
				return nil // outside the project all is read-only
			}
			return p.protect(filepath.Join(real, path[i:]), links+1)
		}
		if err := p.ownMount(up); err != nil {
			return err
		}
	}
	switch st, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return nil // makePlaceholders could not create it, so neither can the command
	case err != nil:
		return err
	case st.Mode()&os.ModeSymlink != 0:
		return p.protectLink(path, links)
	}
	if p.own[path] {
		return setAttr(path, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	return p.mount(path, unix.MOUNT_ATTR_RDONLY)
}

// protectLink makes a symbolic link a mount point, and protects its target if that is in the project.
func (p *protector) protectLink(path string, links int) error {
	if !p.own[path] {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		defer unix.Close(fd)
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		p.own[path] = true
	}
	to, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	if to = filepath.Clean(to); to == p.project || !confine.Within(to, p.project) {
		return nil
	}
	return p.protect(to, links+1)
}

// ownMount makes a folder a mount point without changing whether it is writable.
func (p *protector) ownMount(dir string) error {
	if p.own[dir] {
		return nil
	}
	return p.mount(dir, 0)
}

// mount makes path a mount point by binding it to itself, with the given MOUNT_ATTR_ flags.
func (p *protector) mount(path string, attributes uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	defer unix.Close(fd)
	p.own[path] = true
	return bindSource{path, fd}.bind(path, attributes)
}

// placeholders are files at protected names of a project that do not exist, so that a command cannot create them. Those in the
// project's own folder are Unix sockets: there may be forty, and a socket is removed faster than a folder. .git, most names in
// subfolders, and all names where the file system has no sockets, get folders. Git ignores sockets and empty folders. Two are files:
// commondir beside a file HEAD, which git reads, and recordName, which it does not. Commands that run at the same time share the
// placeholders. Each command takes a shared lock on the project, and the last one removes them; that removes the mounts over them, too.
type placeholders struct {
	lock *os.File // the project's folder; nil = nothing to remove
	spec confine.Spec
}

// lockTimeout is how long to wait for another command that is removing the placeholders.
const lockTimeout = 2 * time.Second

// makePlaceholders makes the placeholders of a project; with another reach it makes none. The caller calls release.
func makePlaceholders(s confine.Spec) (*placeholders, error) {
	p := &placeholders{spec: s}
	if s.Reach != confine.Project {
		return p, nil
	}
	lock, err := os.Open(s.Project)
	if err != nil {
		return nil, err
	}
	p.lock = lock
	for end := time.Now().Add(lockTimeout); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			lock.Close()
			return nil, fmt.Errorf("lock %s: %w", s.Project, err)
		}
	}
	if err := checkIncludes(s.Project); err != nil {
		p.release()
		return nil, err
	}
	umask := unix.Umask(0) // process-wide, but no other goroutine makes files yet
	defer unix.Umask(umask)
	for _, path := range protected(s) {
		if err := makePlaceholder(s, int(lock.Fd()), path); err != nil {
			p.release()
			return nil, fmt.Errorf("make a placeholder for %s: %w", path, err)
		}
	}
	return p, nil
}

// checkIncludes returns an error if git's settings include a file that does not exist and that a command could create. A placeholder
// cannot prevent that, since git would fail to read it.
func checkIncludes(project string) error {
	for _, r := range repositories(project) {
		_, includes := r.settings(project)
		for _, file := range includes {
			dir, err := filepath.EvalSymlinks(filepath.Dir(file))
			if err != nil || !confine.Within(dir, project) || exists(file) {
				continue
			}
			if st, err := os.Lstat(dir); err == nil && !isPlaceholder(st) {
				return fmt.Errorf("git's settings include %s, which does not exist: make that file, it may be empty, or remove it from the settings", file)
			}
		}
	}
	return nil
}

// makePlaceholder makes a placeholder at path if nothing is there, unless the folder of path does not exist or is reached by a
// link. project is the descriptor of the project's folder. The umask must be 0, so that no second call sets the mode.
func makePlaceholder(s confine.Spec, project int, path string) error {
	dir, name := project, filepath.Base(path)
	if parent := filepath.Dir(path); parent != s.Project {
		var err error
		if dir, err = openBelow(project, s, parent); err != nil {
			return nil //nolint:nilerr // see above
		}
		defer unix.Close(dir)
	}
	switch name {
	case "commondir":
		if exists(filepath.Join(filepath.Dir(path), "HEAD")) { // git reads it
			return makeFile(dir, name, ownCommondir)
		}
	case recordName:
		return makeFile(dir, name, record(s.Project))
	}
	made := errors.ErrUnsupported // not made yet
	if dir == project && name != ".git" || name == "commondir" || slices.Contains(bareNames, name) {
		made = unix.Mknodat(dir, name, unix.S_IFSOCK|unix.S_ISVTX|0o444, 0)
	}
	if made != nil && !existsOrForbidden(made) { // the file system may not support sockets
		made = unix.Mkdirat(dir, name, unix.S_ISVTX|0o555)
	}
	switch {
	case existsOrForbidden(made), errors.Is(made, unix.EPERM):
		return nil // it exists, or the command cannot create it either
	case made != nil:
		return made
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_ISVTX != 0 {
		return err
	}
	return unix.Fchmodat(dir, name, unix.S_ISVTX|0o555, 0) // mkdir of some file systems ignores the sticky bit
}

// makeFile makes a placeholder in a git folder that is a file, at once with its content.
func makeFile(dir int, name, content string) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return nil
	}
	temp := fmt.Sprintf("%s.%x", name, rand.Uint64()) // no name that a command could have made
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, unix.S_ISVTX|0o555)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EROFS):
		return nil // the command cannot create it either
	case err != nil:
		return err
	}
	defer func() { _ = unix.Unlinkat(dir, temp, 0) }()
	_, err = unix.Write(fd, []byte(content))
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	if err = unix.Linkat(dir, temp, dir, name, 0); existsOrForbidden(err) {
		return nil // another launcher made it
	}
	return err
}

// existsOrForbidden reports whether an error of creating a file means that it exists or that nobody here can create it.
func existsOrForbidden(err error) bool {
	return errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS)
}

// openBelow opens a folder of the project, whose descriptor is project, without following links.
func openBelow(project int, s confine.Spec, dir string) (int, error) {
	return unix.Openat2(project, "."+strings.TrimPrefix(dir, s.Project), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
}

// releaseInside removes the placeholders of a project as release does, in the mount namespace of a command that has ended.
func releaseInside(s confine.Spec) {
	if s.Reach != confine.Project {
		return
	}
	lock, err := os.Open(s.Project)
	if err != nil {
		return
	}
	unmounted := make(chan error)
	go func() { // not on the first thread, whose Landlock domain forbids it
		unmounted <- unix.Unmount(s.Project, unix.MNT_DETACH) // and so what is mounted over the placeholders; lock stays writable
	}()
	if <-unmounted == nil {
		(&placeholders{lock: lock, spec: s}).release()
	}
}

// release removes the placeholders, unless another command uses them.
func (p *placeholders) release() {
	if p.lock == nil {
		return
	}
	defer p.lock.Close()
	defer func() { p.lock = nil }()
	if unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	list := protected(p.spec)
	slices.Reverse(list) // the content of a folder before the folder
	for _, path := range list {
		removePlaceholder(int(p.lock.Fd()), p.spec, path)
	}
}

// setAside renames the git folder of each repository in the project that a command may have made, and returns a line about each. Git looks
// for changes in the repositories that an index names, and so would run the programs that their settings name. If the command left a
// .git that is no repository, git would take the project's folder itself for one, by its file HEAD.
func setAside(s confine.Spec) (lines string) {
	if s.Reach != confine.Project {
		return ""
	}
	known := recorded(s.Project)
	rename := func(path, why string) {
		to := fmt.Sprintf("%s.untrusted-%x", path, rand.Uint64())
		if err := os.Rename(path, to); err != nil {
			lines += fmt.Sprintf("%s: %s, and renaming %q failed: %v\n", confine.Program, why, path, err)
			return
		}
		lines += fmt.Sprintf("%s: %q is %q now: %s\n", confine.Program, path, filepath.Base(to), why)
	}
	if head := filepath.Join(s.Project, "HEAD"); exists(head) && known[0].dir != "" && !isRepository(known[0].dir) {
		rename(head, "without a repository in .git, git would run what the settings in the project's folder name")
	}
	for _, r := range repositories(s.Project) {
		git := filepath.Join(r.tree, ".git")
		st, err := os.Lstat(git)
		old := slices.ContainsFunc(known, func(k repository) bool {
			return k.tree == r.tree || k.dir == r.dir && sameHooks(s.Project, r, k)
		})
		if r.tree == "" || err != nil || isPlaceholder(st) && !exists(filepath.Join(git, "HEAD")) || old {
			continue
		}
		rename(git, "git would run what this new repository sets whenever it looks for changes in the project")
	}
	return lines
}

// sameHooks reports whether two repositories with one git folder, perhaps with different work trees, have the same folders of hooks:
// core.hooksPath may be relative to the work tree.
func sameHooks(project string, a, b repository) bool {
	hooksA, _ := a.settings(project)
	hooksB, _ := b.settings(project)
	return a.dir != "" && slices.Equal(hooksA, hooksB)
}

// removePlaceholder removes what is at path in a project, whose descriptor is project, if it is a placeholder. It ignores errors.
func removePlaceholder(project int, s confine.Spec, path string) {
	st, err := os.Lstat(path)
	if err != nil || !isPlaceholder(st) {
		return
	}
	dir, err := openBelow(project, s, filepath.Dir(path))
	if err != nil {
		return
	}
	defer unix.Close(dir)
	flags := 0
	if st.IsDir() {
		flags = unix.AT_REMOVEDIR
	}
	_ = unix.Unlinkat(dir, filepath.Base(path), flags)
}
