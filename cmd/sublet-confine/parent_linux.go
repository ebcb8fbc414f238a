package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// reapBound is how long what the command left behind may take to end once it was killed.
const reapBound = 5 * time.Second

const (
	// leaveBound is how long what the command left running may take to end by itself.
	leaveBound = 200 * time.Millisecond
	// namedMost and nameMost bound what is printed about it: processes, and bytes of each one's command line.
	namedMost, nameMost = 5, 80
)

// parent starts the held process, follows its stops and continuations as a shell's job does, and ends what it left.
func parent(spec string, argv []string) (int, error) {
	s, err := readSpec(spec)
	if err != nil {
		return 0, err
	}
	placeholders, err := holdPlaces(s)
	defer releasePlaces(placeholders)
	if err != nil {
		return 0, err
	}
	// The terminal sends its signals to the whole process group: they are the command's, and this process ends with it.
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the parent of what the command leaves: %w", err)
	}
	pid, err := start(s, spec, argv)
	if err != nil {
		return 0, err
	}
	ws, err := follow(pid)
	left := endLeftovers()
	if len(left) > 0 && len(caught) == 0 { // who cancels a command ends all of it
		fmt.Fprintf(os.Stderr, "%s: ended what the command left running, which its reach does not allow: %s\n", confine.Program, strings.Join(left, "; "))
	}
	if err != nil {
		return 0, err
	}
	if ws.Signaled() {
		releasePlaces(placeholders)
		dieOf(ws.Signal())
	}
	return ws.ExitStatus(), nil
}

// start starts the held process in namespaces of its own.
func start(s confine.Spec, spec string, argv []string) (pid int, err error) {
	files := []uintptr{0, 1, 2}
	if s.Script != "" {
		f, err := os.Open(s.Script)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		files = append(files, f.Fd())
	}
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
	}
	if !mayMount() {
		uid, gid := os.Getuid(), os.Getgid()
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Over what this user may mount: overlay makes its folders with the rights of who mounts it.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_SETPCAP}
	}
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{"sublet-confine", stageTwo, spec}, argv...), &syscall.ProcAttr{
		Env: os.Environ(), Files: files, Sys: attr,
	})
	if err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	return pid, nil
}

// mayMount reports whether this process can mount without a user namespace: real root, where names of other owners stay.
func mayMount() bool {
	var data [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// follow waits for the held process. Where it stops, this process stops too, so that the shell sees a stopped job.
func follow(pid int) (syscall.WaitStatus, error) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case got != pid: // something that it left, or that stopped
		case ws.Stopped():
			if err := syscall.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
				return 0, fmt.Errorf("stop with the command: %w", err)
			}
			// Continued again: as a job the command got the same SIGCONT; one that was stopped by itself did not.
			_ = syscall.Kill(pid, unix.SIGCONT) // it may be gone
		default:
			return ws, nil
		}
	}
}

// endLeftovers kills what the command left running and is not about to end by itself, as a process substitution is. It returns
// what that was, for people. This process is the one that orphans below it are given to, so that each round finds the children
// of those killed in the last one.
func endLeftovers() (left []string) {
	begin, killed := time.Now(), []int(nil)
	for end := begin.Add(reapBound); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return left
			}
			if pid <= 0 {
				break
			}
		}
		if time.Since(begin) < leaveBound {
			continue
		}
		for _, pid := range children() {
			if text := name(pid); text != "" && len(left) < namedMost && !slices.Contains(killed, pid) {
				left, killed = append(left, text), append(killed, pid)
			}
			_ = syscall.Kill(pid, unix.SIGKILL) // it may be gone
		}
	}
	return left
}

// name returns a process's command line without control characters, cut to nameMost bytes; "" of one that has ended.
func name(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(line), "?"))
	if len(text) > nameMost {
		text = strings.ToValidUTF8(text[:nameMost], "") + "…"
	}
	return strings.TrimSpace(text)
}

// children returns this process's children.
func children() (pids []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, task := range tasks {
		list, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// dieOf ends this process by the signal that ended the command, so that the shell reports it as the command's end.
func dieOf(sig syscall.Signal) {
	signal.Reset(sig)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a core of this program would help nobody
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(100 * time.Millisecond)
	os.Exit(128 + int(sig))
}

// holdPlaces makes an empty folder for each protected name of the project that does not exist, so that there is something to
// mount over. It returns those that it made. Git lists no empty folders.
func holdPlaces(s confine.Spec) (made []string, err error) {
	if s.Reach != confine.Project {
		return nil, nil
	}
	for _, name := range confine.Protected {
		path := filepath.Join(s.Project, name)
		if filepath.Dir(name) != "." {
			if _, err := os.Lstat(filepath.Dir(path)); err != nil {
				continue // without .git there are no hooks; who makes one cannot make them run outside
			}
		}
		switch err := os.Mkdir(path, 0o755); {
		case err == nil:
			made = append(made, path)
		case errors.Is(err, os.ErrExist), errors.Is(err, os.ErrPermission), errors.Is(err, unix.EROFS), errors.Is(err, unix.ENOTDIR):
			// it is there, or the command cannot make it either
		default:
			return made, fmt.Errorf("hold the place of %s: %w", path, err)
		}
	}
	return made, nil
}

func releasePlaces(made []string) {
	for _, path := range made {
		_ = os.Remove(path) // another command may still hold it, and removes it
	}
}
