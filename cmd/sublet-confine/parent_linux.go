package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
	"sublet/lease/procstat"
)

// A confined command is three processes. The parent is the shell's job: it stops, continues and ends as the command does.
// Its child, the keeper, is in the new namespaces and in a session of its own without a terminal. The keeper starts the
// command in the parent's process group and kills the processes that the command leaves. The command can signal neither. If
// the parent is killed, as a cancel does in the end, the keeper ends the command; if the keeper is killed, the parent does.

// A report is what the keeper sends to the parent.
type report struct {
	kind, value uint32
	text        string
}

const (
	started uint32 = iota + 1 // value is the command's process ID
	stopped
	left  // text names the processes that the command left running
	ended // value is the command's wait status, text is lines to print; none of its processes is left
)

func (r report) send(w io.Writer) error {
	var b []byte
	for _, n := range []uint32{r.kind, r.value, uint32(len(r.text))} {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	_, err := w.Write(append(b, r.text...))
	return err
}

func receive(from io.Reader) (r report, err error) {
	var b [12]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return r, err
	}
	text := make([]byte, binary.NativeEndian.Uint32(b[8:]))
	_, err = io.ReadFull(from, text)
	return report{binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:]), string(text)}, err
}

// parent starts the keeper, stops and continues when the command does, as a job of a shell must, and returns the command's
// exit status. If a signal ended the command, it ends this process by the same signal and does not return.
func parent(spec string, argv []string) (int, error) {
	// Do not pass on descriptors that the shell left open: they would reach files despite mounts and rules.
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, fmt.Errorf("close what was inherited: %w", err)
	}
	s, err := readSpec(spec)
	if err != nil {
		return 0, err
	}
	placeholders, err := makePlaceholders(s)
	if err != nil {
		return 0, err
	}
	defer placeholders.release()
	// The terminal sends its signals to the whole process group: they are the command's, and this process follows it.
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, caughtSignals()...)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the subreaper: %w", err)
	}
	keeper, reports, err := start(s, spec, argv)
	if err != nil {
		return 0, err
	}
	ws, ran, err := follow(reports, caught)
	status := await(keeper, func() {})
	if err != nil { // the keeper was killed
		endLeftovers()
	}
	switch {
	case err != nil && ran:
		fmt.Fprintf(os.Stderr, "%s: the keeper was killed (%s), and the command with it\n", confine.Program, describe(status))
		return 128 + int(unix.SIGKILL), nil
	case err != nil && !ran && status.Signaled() && slices.Contains(jobSignals, os.Signal(status.Signal())): // this process gets it, too
		placeholders.release()
		killSelf(status.Signal())
	case err != nil && status.ExitStatus() == confine.NotConfined: // the keeper printed why
		return confine.NotConfined, nil
	case err != nil:
		return 0, fmt.Errorf("the keeper ended before it started the command (%s)", describe(status))
	case ws.Signaled():
		placeholders.release()
		killSelf(ws.Signal())
	}
	return ws.ExitStatus(), nil
}

// start starts the keeper in new namespaces. The caller reads its reports.
func start(s confine.Spec, spec string, argv []string) (pid int, reports *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	defer unix.Close(pair[1])
	reports = os.NewFile(uintptr(pair[0]), "reports")
	files := []uintptr{0, 1, 2, closed, uintptr(pair[1])}
	if s.Script != "" {
		script, err := copyInMemory(s.Script)
		if err != nil {
			return 0, nil, err
		}
		defer script.Close()
		files[scriptFD] = script.Fd()
	}
	if s.Proxy != "" {
		fd, err := dialProxy(s.Proxy)
		if err != nil {
			return 0, nil, err
		}
		defer unix.Close(fd)
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
		// CAP_DAC_OVERRIDE and the like count only for this user's files; an overlay creates folders with the rights of its mounter.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_SETPCAP}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := maskStop(unix.SIG_BLOCK)
	if err != nil {
		return 0, nil, err
	}
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{confine.Program, argKeep, spec}, argv...), &syscall.ProcAttr{
		Env: os.Environ(), Files: files, Sys: attr,
	})
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) // it has no other error than a wrong argument
	if err != nil {
		return 0, nil, fmt.Errorf("make namespaces: %w", err)
	}
	return pid, reports, nil
}

// jobSignals are the signals that a terminal or a shell sends to a whole job; parent and keeper catch them.
var jobSignals = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGTSTP}

// caughtSignals returns jobSignals without those that this process inherited as ignored, as background jobs do SIGHUP.
func caughtSignals() []os.Signal { return slices.DeleteFunc(slices.Clone(jobSignals), signal.Ignored) }

// maskStop blocks SIGTSTP in the calling thread and the processes it starts, or unblocks it. It returns the mask that the thread had.
// ^Z must not stop the keeper, which is in the job's process group until it has started the command.
func maskStop(how int) (old unix.Sigset_t, err error) {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGTSTP - 1)
	if err := unix.PthreadSigmask(how, &set, &old); err != nil {
		return old, fmt.Errorf("mask signals: %w", err)
	}
	return old, nil
}

// closed is, in syscall.ProcAttr.Files, a descriptor that the new process does not have.
const closed = ^uintptr(0)

// copyInMemory returns an anonymous file with the content of a file: a command that has it cannot change the original.
func copyInMemory(path string) (*os.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("sublet", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sublet")
	if _, err := f.WriteAt(text, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mayMount reports whether this process can mount without a user namespace (CAP_SYS_ADMIN, as root has). The owners of files
// then keep their names inside.
func mayMount() bool {
	var data [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// follow handles the keeper's reports and the signals of this process until the command ends, and returns its wait status.
// When the command stops, this process stops too, so that the shell sees a stopped job. Signals that arrive before the
// command was started are sent to it then. ran reports whether it was started; err is that of reading the reports.
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
	var earlySignals []os.Signal
	pid, cancelled := 0, false
	for {
		select {
		case err := <-failed:
			return 0, pid > 0, err
		case sig := <-caught:
			cancelled = cancelled || sig != unix.SIGTSTP
			switch {
			case pid == 0:
				earlySignals = append(earlySignals, sig)
			case sig == unix.SIGTERM || sig == unix.SIGHUP:
				// It may have been sent to this process alone, as `kill PID` does. If the command got the signal too, it gets it twice.
				_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may be gone
			}
		case r := <-arrived:
			switch r.kind {
			case started:
				pid = int(r.value)
				for _, sig := range earlySignals {
					_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may be gone
				}
			case stopped:
				if st, err := procstat.Read(pid); err != nil || st.State != 'T' {
					continue // the whole job was stopped, and continued before this process read the report
				}
				_ = syscall.Kill(os.Getpid(), unix.SIGSTOP) // cannot fail for this process
				// Continued again. As a part of the job the command got the same SIGCONT, and may have been stopped since.
				if group, err := unix.Getpgid(pid); err == nil && group != unix.Getpgrp() {
					_ = syscall.Kill(pid, unix.SIGCONT) // it may be gone
				}
			case left:
				if !cancelled { // a cancel is meant to end all of the command
					fmt.Fprintf(os.Stderr, "%s: ended what the command left running, which its reach does not allow: %s\n", confine.Program, r.text)
				}
			case ended:
				fmt.Fprint(os.Stderr, r.text)
				_, _ = reports.Write([]byte{0}) // the keeper exits at once; without this, it does the rest in place of a parent that was killed
				return syscall.WaitStatus(r.value), true, nil
			}
		}
	}
}

// describe returns how a process ended: SIGKILL, exit status 2.
func describe(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return "exit status " + strconv.Itoa(ws.ExitStatus())
}

// killSelf ends this process by the signal that ended the command, so that the shell reports that signal.
func killSelf(sig syscall.Signal) {
	// signal.Reset is not enough: the Go runtime would still handle SIGSEGV and the like, and print stacks.
	var byDefault [4]uint64 // the kernel's struct sigaction with SIG_DFL; 8 below is the size of its signal set
	_, _, _ = unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // no core dump of this program
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(100 * time.Millisecond) // another thread may get the signal, a little later
	os.Exit(128 + int(sig))            // not reached unless the signal is blocked
}
