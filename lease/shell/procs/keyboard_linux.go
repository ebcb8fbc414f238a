package procs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// WaitsForKeys reports whether a thread of the foreground group pgid, or of the shell alone if that is its own group, waits for the
// terminal tty: it is blocked in a read of it, or in select, poll or epoll while canonical mode is off (raw), or in one of these
// with the terminal among its descriptors while asks reports a question on the screen. For a program whose system call cannot be
// read, such as another user's (sudo), asks decides.
func WaitsForKeys(shell, pgid int, tty string, raw bool, asks func() bool) bool {
	loop := func(watches func() bool) bool { return raw || asks() && watches() }
	if pgid == shell {
		return waits(shell, shell, tty, loop) // read -t and read -e, its builtins, wait in select
	}
	for _, pid := range Group(pgid) {
		if !showsCalls(pid) {
			if asks() {
				return true
			}
			continue
		}
		if slices.ContainsFunc(threads(pid), func(tid int) bool { return waits(pid, tid, tty, loop) }) {
			return true
		}
	}
	return false
}

// waits reports whether a thread is blocked in a read of the terminal, or in select, poll or epoll if loop accepts that; watches
// reports whether the terminal is among what it waits for.
func waits(pid, tid int, tty string, loop func(watches func() bool) bool) bool {
	c, ok := syscallOf(pid, tid)
	if !ok {
		return false
	}
	isTerminal := func(fd uint64) bool { return namesTerminal(pid, fd, tty) }
	if c.nr == sysRead {
		return isTerminal(c.args[0])
	}
	watches := waitCalls[c.nr]
	return watches != nil && loop(func() bool { return watches(pid, c, isTerminal) })
}

// maxThreads bounds how many threads of a program are looked at.
const maxThreads = 64

func threads(pid int) (tids []int) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxThreads)
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// blocked is the system call a process is blocked in.
type blocked struct {
	nr   int
	args [3]uint64
}

// syscallOf reads what a thread is blocked in (proc(5), /proc/PID/syscall).
func syscallOf(pid, tid int) (c blocked, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/syscall")
	if err != nil {
		return c, false
	}
	f := strings.Fields(string(b))
	if len(f) < 4 {
		return c, false // "running"
	}
	if c.nr, err = strconv.Atoi(f[0]); err != nil {
		return c, false
	}
	for i := range c.args {
		if c.args[i], err = strconv.ParseUint(strings.TrimPrefix(f[i+1], "0x"), 16, 64); err != nil {
			return c, false
		}
	}
	return c, true
}

// namesTerminal reports whether a descriptor is the terminal tty, which a confined command has as /dev/console.
func namesTerminal(pid int, fd uint64, tty string) bool {
	to, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.FormatUint(fd, 10))
	return err == nil && (to == tty || to == "/dev/tty" || to == "/dev/console")
}

// showsCalls reports whether the system shows what a process is blocked in.
func showsCalls(pid int) bool {
	_, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	return err == nil
}

// secretAskers are programs of the system that ask for passwords, and keep them from the command. A pinentry is none: it shows the
// prompt of the program that starts it, and gives it what is typed.
var secretAskers = []string{
	"sudo", "su", "ssh", "ssh-add", "ssh-keygen", "scp", "sftp", "passwd", "gpg", "gpg2", "doas",
	"pkexec", "polkit-agent-helper-1", "git", "git-remote-https", "git-remote-http", "git-credential-cache", "git-credential-store", "cryptsetup", "login",
	"newgrp", "kinit", "chsh", "chfn",
}

// AsksForSecret returns the program that reads a terminal without echo, in the foreground group, and whether it is one of the
// system's that are known to ask for passwords: by the path of its file and by that file's owner, root. All others that read
// the terminal must be such programs too, else system is false. Where none of the group reads it at this moment, that is a pinentry
// which has the terminal open, the system's if it and the gpg-agent that started it are, or "".
func AsksForSecret(shell, pgid int, tty string) (name string, system bool) {
	for _, pid := range Group(pgid) {
		if !mayRead(pid, tty) {
			continue
		}
		is, known := systemProgram(pid, secretAskers...)
		if !known {
			if is == "" {
				is = Name(pid)
			}
			return is, false
		}
		name, system = is, true
	}
	if name == "" {
		return pinentry(tty)
	}
	return name, system
}

// pinentry returns the name of a pinentry that has opened the terminal, "" if there is none, and whether it and the gpg-agent that
// started it are the system's. gpg-agent starts it outside of the terminal's session.
func pinentry(tty string) (name string, system bool) {
	all := func(int) bool { return true }
	eachProcess(all, func(st stat) {
		if !strings.HasPrefix(st.Name, "pinentry") {
			return
		}
		fds, _ := filepath.Glob("/proc/" + strconv.Itoa(st.PID) + "/fd/*") // fails for a bad pattern only
		opened := slices.ContainsFunc(fds, func(fd string) bool {
			to, err := os.Readlink(fd)
			return err == nil && to == tty
		})
		if opened {
			_, of := systemProgram(st.Parent, "gpg-agent")
			_, is := systemProgram(st.PID, "pinentry", "pinentry-curses", "pinentry-tty")
			name, system = st.Name, of && is
		}
	})
	return name, system
}

// mayRead reports whether a process waits for a terminal, or may do so: of a process of another user that is not known.
func mayRead(pid int, tty string) bool {
	return !showsCalls(pid) || slices.ContainsFunc(threads(pid), func(tid int) bool {
		return waits(pid, tid, tty, func(watches func() bool) bool { return watches() })
	})
}

// systemProgram returns the name of the file that a process runs, and whether it is one of names that root installed, in
// a folder of installed programs: elsewhere root may own a file that others chose (a mount, an unpacked archive). /run/wrappers
// is NixOS's for setuid programs. The file of a setuid program cannot be seen: one that runs as root was installed by root.
func systemProgram(pid int, names ...string) (name string, known bool) {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	path, err := os.Readlink(exe)
	if errors.Is(err, os.ErrPermission) {
		name = Name(pid)
		var st syscall.Stat_t
		return name, slices.Contains(names, name) && syscall.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && st.Uid == 0
	}
	if err != nil {
		return "", false
	}
	name = path[strings.LastIndexByte(path, '/')+1:]
	var st syscall.Stat_t
	if !slices.Contains(names, name) || syscall.Stat(exe, &st) != nil || st.Uid != 0 || st.Mode&0o022 != 0 {
		return name, false
	}
	return name, slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/opt/", "/nix/store/", "/run/wrappers/"}, func(dir string) bool {
		return strings.HasPrefix(path, dir)
	})
}
