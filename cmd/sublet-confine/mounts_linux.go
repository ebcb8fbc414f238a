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

// mounts makes everything read-only but what s allows, and hides what it names. dir is the command's folder. It returns the
// folders that can be written.
func mounts(s confine.Spec, dir string) (writable []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make the mounts private: %w", err)
	}
	// Referred to by descriptors, as /tmp and /dev may be covered before they are mounted again.
	caches := caches(s)
	var write []place
	if s.Reach == confine.Project {
		for _, path := range append([]string{s.Project}, caches...) {
			write = append(write, place{path: path})
		}
	}
	here := []place{{path: dir}}
	kept := keptInTmp(s)
	devices := []place{{path: "/dev/null"}, {path: "/dev/zero"}, {path: "/dev/full"}, {path: "/dev/random"}, {path: "/dev/urandom"}, {path: "/dev/tty"}}
	terminal := ownTerminal()
	for _, list := range [][]place{write, here, kept, devices, terminal} {
		if err := open(list); err != nil {
			return nil, err
		}
	}
	if err := setAttr("/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}); err != nil {
		return nil, fmt.Errorf("make everything read-only: %w", err)
	}
	memory, err := coverTmp(s)
	if err != nil {
		return nil, err
	}
	for _, p := range kept {
		if err := memory.show(p); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(dir, "/tmp/") && (s.Reach == confine.Read || !confine.Within(dir, s.Project)) { // is no temporary folder to who works in it
		if err := memory.show(here[0]); err != nil {
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
		writable, err = coverCaches(caches, memory)
	}
	if err != nil {
		return nil, err
	}
	return append(writable, "/tmp", "/dev/shm"), hide(s.Hidden)
}

// keptInTmp returns the folders below /tmp that stay as they are, and so are no temporary ones; those in a project are its.
func keptInTmp(s confine.Spec) (list []place) {
	for _, path := range s.Kept {
		if strings.HasPrefix(path, "/tmp/") && (s.Project == "" || !confine.Within(path, s.Project)) && exists(path) {
			list = append(list, place{path: path})
		}
	}
	return list
}

// showWritable mounts a place at its path, where it can be written.
func showWritable(p place) error {
	if strings.HasPrefix(p.path, "/tmp/") {
		if err := os.MkdirAll(p.path, 0o755); err != nil { // where /tmp began empty
			return fmt.Errorf("show %s: %w", p.path, err)
		}
	}
	if err := p.bind(p.path, 0); err != nil {
		return err
	}
	// A file system that is read-only outside stays so, and a user namespace has no say in it.
	if err := setAttr(p.path, 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("make %s writable: %w", p.path, err)
	}
	return nil
}

// coverCaches has folders keep in memory what is written there, and returns those in which that is possible. The others stay
// read-only.
func coverCaches(caches []string, memory *memory) (writable []string, err error) {
	covered := []place{}
	for _, path := range caches {
		covered = append(covered, place{path: path})
	}
	if err := open(covered); err != nil {
		return nil, err
	}
	for _, p := range covered {
		switch err := memory.cover(p); {
		case err == nil:
			writable = append(writable, p.path)
		case !errors.Is(err, unix.EINVAL):
			return nil, err
		}
	}
	return writable, nil
}

// caches returns the folders of build tools that are there, with their links resolved. A cache within the project is the
// project's: a command may have replaced it by a link that leads out. So may one have done within another cache.
func caches(s confine.Spec) (list []string) {
	for _, dir := range s.Caches {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		st, err := os.Stat(real)
		if err != nil || !st.IsDir() {
			continue
		}
		inside := func(base string) bool { return base != "" && confine.Within(dir, base) }
		switch {
		case inside(s.Project) && (s.Reach == confine.Project || !confine.Within(real, s.Project)):
			continue
		case real == "/" || s.Project != "" && confine.Within(s.Project, real):
			continue // no cache holds a project
		}
		for _, other := range s.Caches {
			if other != dir && inside(other) {
				real = ""
			}
		}
		if real != "" {
			list = append(list, real)
		}
	}
	return list
}

// A place is a file or folder that is mounted again.
type place struct {
	path string
	fd   int
}

func open(list []place) error {
	for i := range list {
		fd, err := unix.Open(list[i].path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", list[i].path, err)
		}
		list[i].fd = fd
	}
	return nil
}

func (p place) source() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// bind mounts the place, with what is mounted below it, at path, and sets attributes of that mount.
func (p place) bind(path string, attributes uint64) error {
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

// Memory is a file system that ends with the command and is bounded. Overlays keep in it what is written to them.
type memory struct {
	root  string
	count int
}

// coverTmp makes memory, and has /tmp keep in it what is written there. Nothing else shows it.
func coverTmp(s confine.Spec) (*memory, error) {
	size := s.TempSize
	if size == 0 {
		size = confine.DefaultTempSize
	}
	tmp, root := []place{{path: "/tmp"}}, []place{{path: "/tmp"}}
	if err := open(tmp); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=755", size)); err != nil {
		return nil, fmt.Errorf("mount a temporary folder over /tmp: %w", err)
	}
	if err := open(root); err != nil {
		return nil, err
	}
	m := &memory{root: root[0].source()}
	err := m.cover(tmp[0])
	if errors.Is(err, unix.EINVAL) { // it then begins empty
		return m, unix.Chmod("/tmp", 0o1777)
	}
	return m, err
}

func (m *memory) dir(mode uint32) (string, error) {
	m.count++
	path := filepath.Join(m.root, strconv.Itoa(m.count))
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	return path, unix.Chmod(path, mode)
}

// cover has a place go on showing what it holds, and keeps what is written there in memory.
func (m *memory) cover(p place) error {
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", p.path, err)
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

// show has the place, which is covered, be seen and not be written. It is an overlay, not the folder itself, in which a
// named pipe would still lead to who reads it outside.
func (m *memory) show(p place) error {
	empty, err := m.dir(0o755)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.path, 0o755); err != nil { // where /tmp began empty
		return fmt.Errorf("show %s: %w", p.path, err)
	}
	if err := overlay(p.path, "lowerdir="+p.source()+":"+empty); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return p.bind(p.path, 0)
}

// overlay fails with EINVAL where an ordinary user has a folder covered below which something is mounted, as programs do
// below /tmp that are one file.
func overlay(path, options string) error {
	// userxattr: without privileges over the file system overlay keeps its notes in user attributes.
	if err := unix.Mount("overlay", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "userxattr,"+options); err != nil {
		return fmt.Errorf("mount an overlay over %s: %w", path, err)
	}
	return nil
}

// makeDev puts a folder over /dev that holds the devices that every program may use, terminals of the command's own, the
// one that it runs in, and memory for shm.
func makeDev(devices, terminal []place) error {
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
	if err := unix.Mknod(nothing, unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("make %s: %w", nothing, err)
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=1777"); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	// The terminals of others are not in it.
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	for _, t := range terminal {
		showTerminal(t)
	}
	return setAttr("/dev", 0, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// maxTerminal bounds the terminals that are made to get the name of the one that the command runs in.
const maxTerminal = 128

// ownTerminal returns the path of the pseudo-terminal that the command runs in, if it does and has one.
func ownTerminal() []place {
	for fd := range 3 {
		var st, named unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) < 136 || unix.Major(st.Rdev) > 143 {
			continue
		}
		n := (unix.Major(st.Rdev)-136)<<20 | unix.Minor(st.Rdev)
		path := "/dev/pts/" + strconv.Itoa(int(n))
		if n <= maxTerminal && unix.Stat(path, &named) == nil && named.Dev == st.Dev && named.Ino == st.Ino {
			return []place{{path: path}}
		}
	}
	return nil
}

// showTerminal has the command's terminal have the name that it has outside, for `tty` and `ps`, and the command's standard
// streams be opened by it: the descriptors that were inherited would let the command change its mode and owner. Without the
// name, or the right to open it, the command has them as they are.
func showTerminal(t place) {
	// A name in this file system cannot be made, but by making terminals up to its number.
	var others []int
	defer func() {
		for _, fd := range others {
			unix.Close(fd)
		}
	}()
	for {
		fd, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil || n > maxTerminal {
			unix.Close(fd)
			return
		}
		if t.path == "/dev/pts/"+strconv.Itoa(n) {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0) // stays open as long as the keeper runs, and so does the name
			break
		}
		others = append(others, fd)
	}
	if t.bind(t.path, unix.MOUNT_ATTR_RDONLY) != nil {
		return
	}
	for fd := range 3 {
		var st, named unix.Stat_t
		if unix.Fstat(fd, &st) != nil || unix.Stat(t.path, &named) != nil || st.Rdev != named.Rdev {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			continue
		}
		if again, err := unix.Open(t.path, flags&(unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_APPEND)|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Dup3(again, fd, 0)
			unix.Close(again)
		}
	}
}

// nothing is the device 0:0, which everybody may make and which nobody, root included, can open on a mount without devices.
// It is mounted over files that are hidden.
const nothing = "/dev/.hidden"

// hide covers secrets: a folder with an empty one, a file with one that may not be read.
func hide(paths []string) error {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // not there, or not for this user either
		}
		st, err := os.Stat(real)
		if err != nil {
			continue
		}
		if st.IsDir() {
			err = unix.Mount("tmpfs", real, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=4k,mode=0")
		} else {
			err = unix.Mount(nothing, real, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", real, err)
		}
	}
	return nil
}
