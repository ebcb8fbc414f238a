package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// argPrepare is the first argument of the child in new namespaces, which makes the mounts in them. It then executes this
// program again with argKeep: the keeper, which starts the command.
const (
	argPrepare = "--held"
	argKeep    = "--keep"
)

// childModes maps the first argument to what this program does when it has started itself as a child.
var childModes = map[string]func(string, []string) error{argPrepare: prepare, argKeep: keeper}

// Descriptors that the keeper inherits besides the standard streams.
const (
	parentFD = 3 // reports go there; reading it returns EOF when the parent ends
	scriptFD = 4 // the command's text, if the spec has a script
	proxyFD  = 5 // the connection to the proxy, if the spec has one
)

func init() {
	if len(os.Args) > 1 && (os.Args[1] == argPrepare || os.Args[1] == argKeep) { // the lock would cost the parent a millisecond
		runtime.LockOSThread() // keep other goroutines, and so onThread, off the first thread
	}
}

// onThread calls f on a new thread, which ends with f. Restrictions that f puts on its thread apply to processes that f
// starts, but not to the rest of this process.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		result <- f()
	}()
	return <-result
}

// prepare makes the mounts for a command in the namespaces of this process, and then executes the keeper. It returns only if
// it fails.
func prepare(spec string, argv []string) error {
	s, err := readSpec(spec)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if s.Caches, err = mounts(s, dir); err != nil { // the keeper needs to know what is writable
		return err
	}
	if s.Reach == confine.Project && !s.Network {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bring up the loopback interface: %w", err)
		}
	}
	if s.Proxy != "" {
		if err := offerListener(proxyFD); err != nil {
			return fmt.Errorf("connect the proxy of the allowed hosts: %w", err)
		}
	}
	if err := os.Chdir(dir); err != nil { // from the old mount into the new one of the same path
		return err
	}
	if err := setLimits(); err != nil {
		return err
	}
	reach, err := inMemory(s.Encode(), 0) // the mounts may hide the file spec
	if err != nil {
		return fmt.Errorf("pass on the reach: %w", err)
	}
	defer reach.Close()
	return onThread(func() error { // exec replaces the process by this thread, so all of the keeper is in its Landlock domain
		if err := scopeSignals(); err != nil {
			return err
		}
		args := append([]string{"sublet-confine", argKeep, strconv.Itoa(int(reach.Fd()))}, argv...)
		return fmt.Errorf("become the keeper: %w", syscall.Exec("/proc/self/exe", args, os.Environ()))
	})
}

// keeper starts the command in the mounts that prepare made, waits for it, kills what it left running, and exits. prepared
// is the number of a descriptor with a Spec whose Caches are all writable folders. It returns only if it could not start
// the command.
func keeper(prepared string, argv []string) error {
	// Catch jobSignals, which also unblocks SIGTSTP. Exec resets them to their defaults for the command.
	signal.Notify(make(chan os.Signal, 1), caughtSignals()...)
	if err := unix.CloseRange(parentFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors from the command: %w", err)
	}
	parent := os.NewFile(parentFD, "parent")
	s, err := readSpec("/proc/self/fd/" + prepared)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	// endAll relies on the Landlock domain: without it, it would kill all processes of the user.
	if err := syscall.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a signal to the parent must be refused, and returned %v", err)
	}
	var ending sync.Mutex // else endAll would kill and reap what another goroutine starts
	over := false         // the parent has ended, guarded by ending
	go func() {
		var b [1]byte
		_, _ = parent.Read(b[:]) // the parent sends nothing, so this returns when it has ended
		ending.Lock()
		defer ending.Unlock()
		over = true
		endAll()
	}()
	ending.Lock()
	if over {
		os.Exit(confine.NotConfined)
	}
	var pid int
	err = onThread(func() (err error) {
		pid, err = launch(s, program, argv)
		return err
	})
	ending.Unlock()
	if err != nil {
		return err
	}
	_ = report{kind: started, value: uint32(pid)}.send(parent) // fails if the parent ended; the other goroutine then ends the command
	if _, err := unix.Setsid(); err != nil {                   // after the command, which stays in the job's process group
		endAll()
		return fmt.Errorf("leave the terminal: %w", err)
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, unix.O_CLOEXEC) // else a reader of the command's output would not get EOF
		}
	}
	ws := await(pid, func() { _ = report{kind: stopped, value: uint32(pid)}.send(parent) })
	ending.Lock()
	text := leftovers()
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
	_ = report{kind: printed, text: notes}.send(parent)
	_ = report{kind: ended, value: uint32(ws)}.send(parent)
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

// launch permanently restricts the calling thread and starts the command from it. The command inherits the thread's Landlock
// domain, which is nested in that of the keeper: the keeper can signal the command, but not the reverse.
func launch(s confine.Spec, program string, argv []string) (pid int, err error) {
	if err := restrictPaths(s.Caches); err != nil {
		return 0, err
	}
	if err := dropCapabilities(s); err != nil {
		return 0, err
	}
	files := []uintptr{0, 1, 2}
	if s.Script != "" {
		files = append(files, scriptFD)
	}
	env := append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") || kv == oneThread }), "TMPDIR=/tmp")
	if err := installFilter(); err != nil {
		return 0, fmt.Errorf("filter system calls: %w", err)
	}
	restore, err := maskStop(unix.SIG_UNBLOCK)
	if err != nil {
		return 0, err
	}
	defer restore()
	pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: env, Files: files})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	return pid, nil
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
	devices := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
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
