package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// mounts makes the mount namespace of a command: everything read-only but what s allows, and s.Hidden covered. dir is the
// command's folder. It returns the folders that can be written, for the keeper's Landlock rules.
func mounts(s confine.Spec, dir string) (writable []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make the mounts private: %w", err)
	}
	// Open the sources of bind mounts now, since /tmp and /dev are covered before they are bound.
	open := func(paths ...string) (list []bindSource) {
		for _, path := range paths {
			p, openErr := openSource(path)
			list, err = append(list, p), errors.Join(err, openErr)
		}
		return list
	}
	caches := open(caches(s)...)
	var write []bindSource
	if s.Reach == confine.Project {
		write = append(open(s.Project), caches...)
	}
	shown := dir // whole, since git looks for a repository only within one file system
	if s.Project != "" && confine.Within(dir, s.Project) && strings.HasPrefix(s.Project, "/tmp/") {
		shown = s.Project
	}
	workDir := open(shown)
	kept := open(keptInTmp(s)...)
	devices := open(commonDevices...)
	terminal := open(ownTerminal()...)
	if err != nil {
		return nil, err
	}
	if err := setAttr("/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}); err != nil {
		return nil, fmt.Errorf("make everything read-only: %w", err)
	}
	upper, err := coverTmp()
	if err != nil {
		return nil, err
	}
	for _, p := range kept {
		if err := upper.mountReadOnly(p); err != nil {
			return nil, err
		}
	}
	// Show the command's folder in /tmp, or the project that it is in, read-only as it would be elsewhere: coverTmp may have left
	// /tmp empty, and in its overlay a write would succeed and then be lost.
	if strings.HasPrefix(dir, "/tmp/") && (s.Reach == confine.Read || !confine.Within(dir, s.Project)) {
		if err := upper.mountReadOnly(workDir[0]); err != nil {
			return nil, err
		}
	}
	if err := makeDev(devices, terminal); err != nil {
		return nil, err
	}
	for _, p := range write {
		if err := showWritable(p); err != nil {
			return nil, err
		}
		writable = append(writable, p.path)
	}
	if s.Reach == confine.Project {
		err = protect(s)
	} else {
		writable, err = coverCaches(caches, upper)
	}
	if err != nil {
		return nil, err
	}
	return append(writable, "/tmp", "/dev/shm"), hide(s.Hidden)
}

// keptInTmp returns the paths of s.Kept below /tmp that are outside of the project: they are mounted over the temporary /tmp.
func keptInTmp(s confine.Spec) (list []string) {
	for _, path := range s.Kept {
		if strings.HasPrefix(path, "/tmp/") && (s.Project == "" || !confine.Within(path, s.Project)) && exists(path) {
			list = append(list, path)
		}
	}
	return list
}

// showWritable mounts p at its own path, writable.
func showWritable(p bindSource) error {
	if strings.HasPrefix(p.path, "/tmp/") {
		if err := os.MkdirAll(p.path, 0o755); err != nil { // needed where coverTmp left /tmp empty
			return fmt.Errorf("show %s: %w", p.path, err)
		}
	}
	if err := p.bind(p.path, 0); err != nil {
		return err
	}
	// EPERM: the file system is read-only outside, which a user namespace cannot change.
	if err := setAttr(p.path, 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("make %s writable: %w", p.path, err)
	}
	return nil
}

// coverCaches makes folders writable through overlays whose upper layer is in upper, and returns those where that is possible. The
// others stay read-only.
func coverCaches(caches []bindSource, upper *tmpfs) (writable []string, err error) {
	for _, p := range caches {
		switch err := upper.overlayWritable(p); {
		case err == nil:
			writable = append(writable, p.path)
		case !errors.Is(err, unix.EINVAL):
			return nil, err
		}
	}
	return writable, nil
}

// A bindSource is a file or folder, opened by openSource, that is mounted elsewhere or again.
type bindSource struct {
	path string
	fd   int
}

func openSource(path string) (bindSource, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return bindSource{}, fmt.Errorf("open %s: %w", path, err)
	}
	return bindSource{path, fd}, nil
}

// source returns a path of the opened file or folder that remains valid when its own path is covered.
func (p bindSource) source() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// bind mounts p, with the mounts below it, at path, and sets the mount attributes, MOUNT_ATTR_….
func (p bindSource) bind(path string, attributes uint64) error {
	if err := unix.Mount(p.source(), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	if attributes == 0 {
		return nil
	}
	if err := setAttr(path, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: attributes}); err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	return nil
}

func setAttr(path string, flags uint, attr unix.MountAttr) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &attr)
}

// tmpfs is a file system in memory, of bounded size, that ends with the command. It is the upper layer of the overlays.
type tmpfs struct {
	root  string
	count int
}

// coverTmp mounts a tmpfs over /tmp, and over that an overlay of the old /tmp that writes to the tmpfs, which is then reachable by
// descriptor only. Where no overlay is possible, the tmpfs stays as an empty /tmp.
func coverTmp() (*tmpfs, error) {
	tmp, err := openSource("/tmp")
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1g,mode=755"); err != nil {
		return nil, fmt.Errorf("mount a temporary folder over /tmp: %w", err)
	}
	root, err := openSource("/tmp")
	if err != nil {
		return nil, err
	}
	m := &tmpfs{root: root.source()}
	err = m.overlayWritable(tmp)
	if errors.Is(err, unix.EINVAL) { // no overlay is possible: the tmpfs stays as an empty /tmp
		return m, unix.Chmod("/tmp", 0o1777)
	}
	return m, err
}

// dir makes a new folder in m and returns its path.
func (m *tmpfs) dir(mode uint32) (string, error) {
	m.count++
	path := filepath.Join(m.root, strconv.Itoa(m.count))
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	return path, unix.Chmod(path, mode)
}

// overlayWritable mounts an overlay over p that shows its content and writes to m. For the error EINVAL see overlay.
func (m *tmpfs) overlayWritable(p bindSource) error {
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return fmt.Errorf("stat %s: %w", p.path, err)
	}
	upper, err := m.dir(st.Mode & 0o7777)
	if err != nil {
		return err
	}
	work, err := m.dir(0o700)
	if err != nil {
		return err
	}
	return overlay(p.path, "lowerdir="+p.source()+",upperdir="+upper+",workdir="+work)
}

// mountReadOnly makes p, whose path is covered, visible and read-only. It prefers an overlay to the folder itself, since
// named pipes in the folder would connect to their readers outside. For the error EINVAL see overlay.
func (m *tmpfs) mountReadOnly(p bindSource) error {
	empty, err := m.dir(0o755)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.path, 0o755); err != nil { // needed where coverTmp left /tmp empty
		return fmt.Errorf("show %s: %w", p.path, err)
	}
	if err := overlay(p.path, "lowerdir="+p.source()+":"+empty); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return p.bind(p.path, 0)
}

// overlay mounts an overlay file system at path. Without root it fails with EINVAL if something is mounted below the lower
// folder, as AppImages do below /tmp.
func overlay(path, options string) error {
	// userxattr: without privileges, overlayfs must store its metadata in user extended attributes.
	if err := unix.Mount("overlay", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "userxattr,"+options); err != nil {
		return fmt.Errorf("mount an overlay over %s: %w", path, err)
	}
	return nil
}

// commonDevices are those that every program may use.
var commonDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// makeDev mounts a minimal /dev: commonDevices, the command's own terminal, a new devpts,
// and a tmpfs for /dev/shm, of 256 MiB because one without a size may take half of the machine's memory.
func makeDev(devices, terminal []bindSource) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, d := range devices {
		if err := os.WriteFile(d.path, nil, 0o600); err != nil {
			return err
		}
		if err := d.bind(d.path, 0); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/dev/shm", "/dev/pts"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mknod(emptyDevice, unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("make %s: %w", emptyDevice, err)
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=1777"); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	// A new instance does not contain the terminals outside.
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	for _, t := range terminal {
		if err := showTerminal(t); err != nil {
			return err
		}
	}
	return setAttr("/dev", 0, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// ownTerminal returns the first of the standard streams that is a pseudo-terminal, if its path still exists. Majors 136 to 143
// are the slaves of UNIX98 pseudo-terminals (linux/major.h); a minor has 20 bits.
func ownTerminal() []string {
	for fd := range 3 {
		var st, named unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) < 136 || unix.Major(st.Rdev) > 143 {
			continue
		}
		path := "/dev/pts/" + strconv.Itoa(int((unix.Major(st.Rdev)-136)<<20|unix.Minor(st.Rdev)))
		if unix.Stat(path, &named) == nil && named.Dev == st.Dev && named.Ino == st.Ino {
			return []string{path}
		}
	}
	return nil
}

// console is the name of the command's terminal: its own is in a devpts that the command does not see.
const console = "/dev/console"

// showTerminal gives the command's terminal the name console, for `tty`, and reopens the standard streams by that name: through
// inherited descriptors the command could change the terminal's mode and owner.
func showTerminal(t bindSource) error {
	if err := os.WriteFile(console, nil, 0o600); err != nil {
		return err
	}
	if err := t.bind(console, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	for fd := range 3 {
		var st, named unix.Stat_t
		if unix.Fstat(fd, &st) != nil || unix.Stat(console, &named) != nil || st.Rdev != named.Rdev {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			continue
		}
		if again, err := unix.Open(console, flags&(unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_APPEND)|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Dup3(again, fd, 0)
			unix.Close(again)
		}
	}
	return nil
}

// emptyDevice is a character device 0:0, which any user may make and nobody can open on a nodev mount, root included. It is
// mounted over hidden files.
const emptyDevice = "/dev/.hidden"

// hide makes files and folders unreadable: it mounts an empty tmpfs without permissions over a folder, and emptyDevice over a file.
func hide(paths []string) error {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // it does not exist, or this user cannot reach it
		}
		st, err := os.Stat(real)
		if err != nil {
			continue
		}
		if st.IsDir() {
			err = unix.Mount("tmpfs", real, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=4k,mode=0")
		} else {
			err = unix.Mount(emptyDevice, real, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", real, err)
		}
	}
	return nil
}
