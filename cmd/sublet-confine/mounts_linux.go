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

// mounts makes everything read-only but what s allows, and hides what it names. dir is the command's folder.
func mounts(s confine.Spec, dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	// Referred to by descriptors, as /tmp and /dev may be covered before they are mounted again.
	var writable []place
	if s.Reach == confine.Project {
		writable = append(writable, place{path: s.Project})
		for _, cache := range existing(s.Caches) {
			writable = append(writable, place{path: cache})
		}
	}
	here := []place{{path: dir}}
	devices := []place{{path: "/dev/null"}, {path: "/dev/zero"}, {path: "/dev/full"}, {path: "/dev/random"}, {path: "/dev/urandom"}, {path: "/dev/tty"}, {path: "/dev/pts"}}
	for _, list := range [][]place{writable, here, devices} {
		if err := open(list); err != nil {
			return err
		}
	}
	if err := setAttr("/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}); err != nil {
		return fmt.Errorf("make everything read-only: %w", err)
	}
	if err := throwaway("/tmp", s); err != nil {
		return err
	}
	if s.Reach == confine.Read && strings.HasPrefix(dir, "/tmp/") { // is no temporary folder to who works in it
		if err := here[0].bind(dir); err != nil {
			return err
		}
	}
	if err := makeDev(devices); err != nil {
		return err
	}
	for _, p := range writable {
		if err := p.bind(p.path); err != nil {
			return err
		}
		if err := setAttr(p.path, 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s writable: %w", p.path, err)
		}
	}
	if s.Reach == confine.Read {
		for _, cache := range existing(s.Caches) {
			if err := throwaway(cache, s); err != nil {
				return err
			}
		}
	} else if err := protect(s.Project); err != nil {
		return err
	}
	return hide(s.Hidden)
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

// bind mounts the place, with what is mounted below it, at path.
func (p place) bind(path string) error {
	if err := unix.Mount(p.source(), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}

func setAttr(path string, flags uint, attr unix.MountAttr) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &attr)
}

// throwaway has path go on showing what it holds, and keeps what is written there in memory until the command ends.
func throwaway(path string, s confine.Spec) error {
	size := s.TempSize
	if size == 0 {
		size = confine.DefaultTempSize
	}
	below := []place{{path: path}}
	if err := open(below); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(below[0].fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=755", size)); err != nil {
		return fmt.Errorf("mount a temporary folder over %s: %w", path, err)
	}
	upper, work := filepath.Join(path, "upper"), filepath.Join(path, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Chmod(upper, st.Mode&0o7777); err != nil {
		return err
	}
	// userxattr: without privileges over the file system overlay keeps its notes in user attributes.
	options := "userxattr,lowerdir=" + below[0].source() + ",upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("overlay", path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount an overlay over %s: %w", path, err)
	}
	return nil
}

// makeDev puts a folder over /dev that holds the devices that every program may use, and memory for shm.
func makeDev(devices []place) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID, "size=1m,mode=755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, d := range devices {
		make := func() error { return os.WriteFile(d.path, nil, 0o600) }
		if d.path == "/dev/pts" {
			make = func() error { return os.Mkdir(d.path, 0o755) }
		}
		if err := make(); err != nil {
			return err
		}
		if err := d.bind(d.path); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/dev/shm", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(nothing, nil, 0); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=1777"); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	return setAttr("/dev", 0, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// nothing is an empty file that its owner may not read. It is mounted over files that are hidden.
const nothing = "/dev/.hidden"

// protect makes what starts by itself in a project read-only.
func protect(project string) error {
	// A .git that is a folder of its own mount cannot be moved aside, and a .git file decides where the repository is.
	git := filepath.Join(project, ".git")
	names := []string{}
	if st, err := os.Lstat(git); err == nil && st.IsDir() {
		p := []place{{path: git}}
		if err := open(p); err != nil {
			return err
		}
		if err := p[0].bind(git); err != nil {
			return err
		}
	} else if err == nil {
		names = append(names, ".git")
	}
	for _, name := range append(names, confine.Protected...) {
		path := filepath.Join(project, name)
		switch st, err := os.Lstat(path); {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			continue // its folder is not there, or cannot be written
		case err != nil:
			return err
		case st.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("%s is a link, and cannot be protected", path)
		}
		p := []place{{path: path}}
		if err := open(p); err != nil {
			return err
		}
		if err := p[0].bind(path); err != nil {
			return err
		}
		if err := setAttr(path, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
	}
	return nil
}

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
