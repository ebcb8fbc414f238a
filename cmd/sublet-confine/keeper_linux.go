package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// The first arguments of the processes that this program starts as itself.
const (
	argKeep  = "--keep"  // the keeper, in new namespaces
	argEnter = "--enter" // the process that becomes the command
)

// childModes maps the first argument to what this program does when it has started itself as a child.
var childModes = map[string]func(string, []string) error{argKeep: keeper, argEnter: enter}

// Descriptors that the keeper, and what becomes the command, inherit besides the standard streams.
const (
	scriptFD  = 3 // the command's text, if the spec has a script
	starterFD = 4 // who started the process: the keeper sends reports there, and reads EOF when the parent ends; enter reads a Spec
	proxyFD   = 5 // the connection to the proxy, if the spec has one
)

func init() {
	if len(os.Args) > 1 && childModes[os.Args[1]] != nil { // the lock would cost the parent a millisecond
		runtime.LockOSThread() // main stays on the first thread, which the Landlock domains and the mask of signals are of
	}
}

// prepare makes the mounts for a command in the namespaces of this process, connects its network, and sets its limits. It returns the
// folders that the command can write.
func prepare(s confine.Spec) (writable []string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if writable, err = mounts(s, dir); err != nil {
		return nil, err
	}
	if s.Reach == confine.Project && !s.Network {
		if err := loopbackUp(); err != nil {
			return nil, fmt.Errorf("bring up the loopback interface: %w", err)
		}
	}
	if s.Proxy != "" {
		if err := offerListener(proxyFD); err != nil {
			return nil, fmt.Errorf("connect the proxy of the allowed hosts: %w", err)
		}
	}
	if err := os.Chdir(dir); err != nil { // from the old mount into the new one of the same path
		return nil, err
	}
	return writable, setLimits()
}

// keeper makes the mounts, starts the command, waits for it, kills what it left running, and exits. It returns only if it could
// not start the command.
//
// The command is to be in the parent's process group, so its process is started before the keeper leaves that session. The
// keeper is to outlive a signal to that group, so the process waits at a gate, and executes the command after the keeper has left.
func keeper(spec string, argv []string) error {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, caughtSignals()...)
	if err := unix.CloseRange(scriptFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors from the command: %w", err)
	}
	launcher, parent := os.Getppid(), os.NewFile(starterFD, "parent")
	s, err := readSpec(spec)
	if err != nil {
		return err
	}
	if s.Caches, err = prepare(s); err != nil {
		return err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	if err := scopeSignals(); err != nil {
		return err
	}
	// endAll relies on the Landlock domain: without it, it would kill all processes of the user.
	if err := syscall.Kill(launcher, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a signal to the parent must be refused, and returned %v", err)
	}
	pid, gate, err := launch(s, program, argv)
	if err != nil {
		return err
	}
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	go func() {
		for sig := range caught { // sent to the whole job, perhaps before the process was in it
			_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may be gone
		}
	}()
	gone, exited := make(chan struct{}), make(chan syscall.WaitStatus, 1)
	go func() {
		if n, _ := parent.Read(make([]byte, 1)); n > 0 { // the parent has read that the command ended
			os.Exit(0)
		}
		close(gone) // the parent was killed
	}()
	_ = report{kind: started, value: uint32(pid)}.send(parent) // this and other reports fail if the parent has ended
	_, err = gate.Write(confine.Spec{Reach: s.Reach, Project: s.Project, Caches: s.Caches}.Encode())
	if err = errors.Join(err, gate.Close()); err != nil && !errors.Is(err, unix.EPIPE) { // else the process was killed
		return fmt.Errorf("pass on the reach: %w", err)
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, unix.O_CLOEXEC) // else a reader of the command's output would not get EOF
		}
	}
	go func() { exited <- await(pid, func() { _ = report{kind: stopped, value: uint32(pid)}.send(parent) }) }()
	var ws syscall.WaitStatus
	var text string
	select {
	case ws = <-exited:
		text = leftovers()
	case <-gone:
	}
	endAll()
	notes := setAside(s)
	if text != "" {
		_ = report{kind: left, text: text}.send(parent)
	}
	if s.Proxy != "" {
		for host := range strings.Lines(denied(proxyFD)) {
			notes += confine.DeniedHost(strings.TrimSuffix(host, "\n"))
		}
	}
	_ = report{ended, uint32(ws), notes}.send(parent)
	<-gone // else this process exits
	// The launcher has the project locked until its files are closed, of which EOF may have come first; then it ends.
	for end := time.Now().Add(reapTimeout); os.Getppid() == launcher && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	releaseInside(s)
	os.Exit(0)
	return nil
}

// await waits for process pid to end and returns its wait status. It calls stop whenever pid stops, and reaps other children.
func await(pid int, stop func()) (ws syscall.WaitStatus) {
	for {
		got, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || err == nil && got != pid:
		case err == nil && ws.Stopped():
			stop()
		default:
			return ws
		}
	}
}

// scopeSignals puts the calling thread, and what it starts, into a new Landlock domain that no signal can leave. A ruleset
// must handle some file access: this one handles, and allows, only moving files between folders. In the domain mounts are
// forbidden, so prepare makes them before.
func scopeSignals() error {
	if abi := landlockABI(); abi < minABI {
		return fmt.Errorf("the kernel has version %d of Landlock, and %d is needed (Linux 6.12)", abi, minABI)
	}
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: ll.AccessFSRefer, Scoped: ll.ScopeSignal}, 0)
	if err != nil {
		return fmt.Errorf("scope signals: %w", err)
	}
	defer unix.Close(fd)
	if err := allow(fd, ll.AccessFSRefer, "/"); err != nil {
		return fmt.Errorf("scope signals: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	if err := ll.LandlockRestrictSelf(fd, 0); err != nil {
		return fmt.Errorf("scope signals: %w", err)
	}
	return nil
}

// launch starts the process that becomes the command once it has read a Spec from the gate. It is in this thread's Landlock domain.
func launch(s confine.Spec, program string, argv []string) (pid int, gate *os.File, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, err
	}
	defer unix.Close(pipe[0])
	files := []uintptr{0, 1, 2, closed, uintptr(pipe[0])}
	if s.Script != "" {
		files[scriptFD] = scriptFD
	}
	gate = os.NewFile(uintptr(pipe[1]), "gate")
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{confine.Program, argEnter, program}, argv...), &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return 0, nil, fmt.Errorf("start the command: %w", err)
	}
	return pid, gate, nil
}

// enter restricts this process, and executes the command in it with argv. The command's Landlock domain is nested in that of the
// keeper: the keeper can signal the command, but not the reverse. It returns only if it fails.
func enter(program string, argv []string) error {
	if err := unix.CloseRange(starterFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors from the command: %w", err)
	}
	text, err := io.ReadAll(os.NewFile(starterFD, "gate"))
	if err != nil || len(text) == 0 { // the keeper was killed, which the parent reports
		return err
	}
	s, err := confine.Decode(text)
	if err != nil {
		return err
	}
	if err := restrictPaths(s.Caches); err != nil {
		return err
	}
	if err := dropCapabilities(s); err != nil {
		return err
	}
	if err := installFilter(); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	if _, err := maskStop(unix.SIG_UNBLOCK); err != nil {
		return err
	}
	env := append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") }), "TMPDIR=/tmp")
	return fmt.Errorf("run %s: %w", program, syscall.Exec(program, argv, env))
}

// loopbackUp sets the flag IFF_UP of the interface lo of this network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// maxProcesses bounds the processes and threads of the user while a command runs, those outside included. It does not apply
// to root.
const maxProcesses = 8192

// setLimits disables core dumps and applies maxProcesses, to this process and those it starts.
func setLimits() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core files: %w", err)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: min(now.Cur, maxProcesses), Max: min(now.Max, maxProcesses)}); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}

// minABI is the oldest version of Landlock that keeps a process from sending signals out of its domain: Linux 6.12.
const minABI = 6

// Access rights of Landlock. All are known to version 5.
const (
	readAccess   = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	deviceAccess = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	allAccess    = ll.AccessFSIoctlDev<<1 - 1
)

// restrictPaths restricts the calling thread by Landlock: it may read everywhere, may write below the writable folders, and
// cannot signal processes or connect to abstract sockets outside the domain. This covers what mounts cannot: named pipes,
// devices and the memory of other processes.
func restrictPaths(writable []string) error {
	ruleset, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: allAccess, Scoped: ll.ScopeSignal | ll.ScopeAbstractUnixSocket}, 0)
	if err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	defer unix.Close(ruleset)
	devices := slices.Clone(commonDevices)
	if exists(console) {
		devices = append(devices, console)
	}
	if err := errors.Join(
		allow(ruleset, readAccess, "/"),
		allow(ruleset, allAccess&^ll.AccessFSIoctlDev, writable...),
		allow(ruleset, deviceAccess, devices...),
		allow(ruleset, deviceAccess|ll.AccessFSReadDir, "/dev/pts"),
	); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return nil
}

// allow adds rules to a Landlock ruleset that grant access to the paths and what is below them.
func allow(ruleset int, access uint64, paths ...string) error {
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		err = ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: access, ParentFd: fd}, 0)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// landlockABI returns the kernel's version of Landlock, 0 if it has none.
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// dropCapabilities permanently drops the calling thread's capabilities. Root keeps the one to read files of other users and,
// where the project belongs to another user as in many containers, those to write there; the mounts are read-only elsewhere.
func dropCapabilities(s confine.Spec) error {
	var keep uint32
	if os.Geteuid() == 0 && mayMount() {
		keep = 1 << unix.CAP_DAC_READ_SEARCH
		if s.Reach == confine.Project {
			var st unix.Stat_t
			if err := unix.Stat(s.Project, &st); err != nil {
				return err
			}
			if st.Uid != 0 {
				keep |= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_CHOWN
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	for c := range uintptr(64) {
		if c < 32 && keep&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last one
		}
		if err != nil {
			return fmt.Errorf("drop capability %s: %w", strconv.Itoa(int(c)), err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep, Permitted: keep}}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
