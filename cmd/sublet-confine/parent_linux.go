package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// A held command is three processes. The parent is the shell's job: it stops, continues and ends as the command does. Its
// child, the keeper, has the namespaces, a session of its own and no terminal; it starts the command, whose process group is
// the parent's, and ends what the command leaves. The command can signal neither. Where the parent is killed, as a cancel
// does in the end, the keeper ends the command; where the keeper is killed, the parent does.

// A report is what the keeper sends to the parent.
type report struct {
	kind, value uint32
	text        string // of left and hosts
}

const (
	started uint32 = iota + 1 // value is the command's process ID
	stopped
	left  // text is what the command left running, value its length
	ended // value is its wait status; nothing of it is left
	hosts // text is the hosts that it was denied, one a line
)

func (r report) send(w io.Writer) error {
	r.value = max(r.value, uint32(len(r.text)))
	b := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, r.kind), r.value)
	_, err := w.Write(append(b, r.text...))
	return err
}

func receive(from io.Reader) (r report, err error) {
	var b [8]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return r, err
	}
	r.kind, r.value = binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:])
	if r.kind == left || r.kind == hosts {
		text := make([]byte, r.value)
		_, err = io.ReadFull(from, text)
		r.text = string(text)
	}
	return r, err
}

// parent starts the keeper, follows the stops and continuations of the command as a shell's job does, and ends as it did.
func parent(spec string, argv []string) (int, error) {
	// What a shell left open is not the command's: descriptors reach files that no mount and no rule covers.
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, fmt.Errorf("close what was inherited: %w", err)
	}
	s, err := readSpec(spec)
	if err != nil {
		return 0, err
	}
	held, err := holdPlaces(s)
	if err != nil {
		return 0, err
	}
	defer held.release()
	// The terminal sends its signals to the whole process group: they are the command's, and this process follows it.
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, heeded()...)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the parent of what the command leaves: %w", err)
	}
	keeper, reports, err := start(s, spec, argv)
	if err != nil {
		return 0, err
	}
	ws, ran, err := follow(reports, caught)
	status, exited := wait(keeper)
	endLeftovers() // nothing, unless the keeper was killed
	switch {
	case err != nil && ran:
		return 128 + int(unix.SIGKILL), fmt.Errorf("what holds the command was killed (%v), and with it the command", status)
	case err != nil && !ran && status.Signaled() && slices.Contains(jobSignals, os.Signal(status.Signal())): // this process gets it, too
		held.release()
		dieOf(status.Signal())
	case err != nil && exited && status.ExitStatus() == confine.NotHeld: // it said why
		return confine.NotHeld, nil
	case err != nil:
		return 0, fmt.Errorf("what holds the command ended early (%v)", status)
	case ws.Signaled():
		held.release()
		dieOf(ws.Signal())
	}
	return ws.ExitStatus(), nil
}

// oneThread has the Go runtime of the keeper begin with one scheduler, which saves a tenth of the time that a held command
// costs. It is written so that it is not taken for the user's own.
const oneThread = "GOMAXPROCS=01"

// lean is the environment with oneThread, unless the user has one of their own.
func lean() []string {
	if os.Getenv("GOMAXPROCS") != "" {
		return os.Environ()
	}
	return append(os.Environ(), oneThread)
}

// start starts the keeper in namespaces of its own.
func start(s confine.Spec, spec string, argv []string) (pid int, reports *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	defer unix.Close(pair[1])
	reports = os.NewFile(uintptr(pair[0]), "reports")
	files := []uintptr{0, 1, 2, uintptr(pair[1])}
	if s.Script != "" {
		f, err := copyInMemory(s.Script)
		if err != nil {
			return 0, nil, err
		}
		defer f.Close()
		files = append(files, f.Fd())
	}
	if s.Proxy != "" {
		fd, err := dialProxy(s.Proxy)
		if err != nil {
			return 0, nil, err
		}
		defer unix.Close(fd)
		if s.Script == "" {
			files = append(files, ^uintptr(0))
		}
		files = append(files, uintptr(fd))
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	if !s.Network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if !mayMount() {
		uid, gid := os.Getuid(), os.Getgid()
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Over what this user may mount: overlay makes its folders with the rights of who mounts it.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_SETPCAP}
	}
	restore, err := maskStop(unix.SIG_BLOCK)
	if err != nil {
		return 0, nil, err
	}
	defer restore()
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{"sublet-confine", stageTwo, spec}, argv...), &syscall.ProcAttr{
		Env: lean(), Files: files, Sys: attr,
	})
	if err != nil {
		return 0, nil, fmt.Errorf("make namespaces: %w", err)
	}
	return pid, reports, nil
}

// jobSignals are those that a terminal or a shell sends to a whole job, and that are caught here.
var jobSignals = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGTSTP}

// heeded returns those of jobSignals that this process was not started to ignore, as background jobs ignore SIGHUP.
func heeded() []os.Signal { return slices.DeleteFunc(slices.Clone(jobSignals), signal.Ignored) }

// maskStop blocks SIGTSTP in the calling thread, and so in what it starts, or unblocks it; restore takes that back. Until a
// keeper has started the command it is in the job's process group, and a ^Z must not stop it. The others of jobSignals end it,
// and with it the job: Go does not keep them blocked.
func maskStop(how int) (restore func(), err error) {
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGTSTP - 1)
	runtime.LockOSThread()
	if err := unix.PthreadSigmask(how, &set, &old); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("mask signals: %w", err)
	}
	return func() {
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) // it has no other error than a wrong argument
		runtime.UnlockOSThread()
	}, nil
}

// copyInMemory returns a copy of a file that has no name, so that the command cannot change the file by its descriptor.
func copyInMemory(path string) (*os.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "command")
	if _, err := f.Write(text); err != nil {
		f.Close()
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// mayMount reports whether this process can mount without a user namespace: real root, where names of other owners stay.
func mayMount() bool {
	var data [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// follow returns the wait status of the command. Where the command stops, this process stops too, so that the shell sees a
// stopped job. ran reports whether the command was started. What the job is sent before that, the command gets then.
func follow(reports *os.File, caught <-chan os.Signal) (ws syscall.WaitStatus, ran bool, err error) {
	arrived, failed := make(chan report), make(chan error, 1)
	go func() { // ends with reports
		for {
			r, err := receive(reports)
			if err != nil {
				failed <- err
				return
			}
			arrived <- r
		}
	}()
	var early []os.Signal
	pid, cancelled := 0, false
	for {
		select {
		case err := <-failed:
			return 0, pid > 0, err
		case sig := <-caught:
			cancelled = cancelled || sig != unix.SIGTSTP
			switch {
			case pid == 0:
				early = append(early, sig)
				if sig == unix.SIGTSTP { // it may have stopped what is to become the command
					_ = syscall.Kill(0, unix.SIGCONT) // the own group is there
				}
			case sig == unix.SIGTERM || sig == unix.SIGHUP:
				// One that was sent to this process alone, as `kill PID` does; the command may have had it already.
				_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may be gone
			}
		case r := <-arrived:
			switch r.kind {
			case started:
				pid = int(r.value)
				for _, sig := range early {
					_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may be gone
				}
			case stopped:
				if !isStopped(pid) {
					continue // the whole job was stopped, and was continued before this process read of it
				}
				if err := syscall.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
					return 0, true, fmt.Errorf("stop with the command: %w", err)
				}
				// Continued again. As a part of the job the command got the same SIGCONT, and may have been stopped since.
				if group, err := unix.Getpgid(pid); err == nil && group != unix.Getpgrp() {
					_ = syscall.Kill(pid, unix.SIGCONT) // it may be gone
				}
			case left:
				if !cancelled { // who cancels a command ends all of it
					fmt.Fprintf(os.Stderr, "%s: ended what the command left running, which its reach does not allow: %s\n", confine.Program, r.text)
				}
			case hosts:
				for line := range strings.Lines(r.text) {
					fmt.Fprint(os.Stderr, confine.DeniedHost(strings.TrimSuffix(line, "\n")))
				}
			case ended:
				return syscall.WaitStatus(r.value), true, nil
			}
		}
	}
}

func isStopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(stat, ')') // the name before it may hold anything
	return err == nil && end > 0 && bytes.HasPrefix(stat[end+1:], []byte(" T"))
}

// wait waits for a child to exit.
func wait(pid int) (ws syscall.WaitStatus, exited bool) {
	for {
		_, err := syscall.Wait4(pid, &ws, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return ws, err == nil && ws.Exited()
		}
	}
}

// dieOf ends this process by the signal that ended the command, so that the shell reports it as the command's end.
func dieOf(sig syscall.Signal) {
	// signal.Reset leaves those that a fault raises to the Go runtime, which prints its stacks.
	var byDefault [4]uint64 // sigaction(2) with SIG_DFL, as the kernel has it
	_, _, _ = unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a core of this program would help nobody
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(100 * time.Millisecond)
	os.Exit(128 + int(sig))
}
