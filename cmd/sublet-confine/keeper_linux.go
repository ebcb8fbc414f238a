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
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// What the keeper inherits beside the terminal.
const (
	parentFD = 3 // reports go there; it ends when the parent does
	scriptFD = 4 // the command's text, if the spec has a script
	proxyFD  = 5 // the connection to the proxy, if the spec has one
)

func init() {
	if len(os.Args) > 1 && (os.Args[1] == stageTwo || os.Args[1] == stageThree) { // it costs the others a millisecond
		runtime.LockOSThread() // no other goroutine runs on the first thread: see onThread
	}
}

// onThread calls f on a thread of its own, which ends with it: what f does to the thread, this process does not keep. What f
// starts does.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		result <- f()
	}()
	return <-result
}

// prepare makes the mounts of a command, in the namespaces that this process has, and becomes its keeper. It returns only an
// error, before the command was started.
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
			return fmt.Errorf("make the way to the allowed hosts: %w", err)
		}
	}
	if err := os.Chdir(dir); err != nil { // into the mounts that were made
		return err
	}
	if err := limits(); err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("reach", 0) // the mounts may hide the file
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, s.Encode()); err != nil {
		return fmt.Errorf("pass on the reach: %w", err)
	}
	return onThread(func() error { // all threads of the program that follows are in this one's domain
		if err := scopeSignals(); err != nil {
			return err
		}
		args := append([]string{"sublet-confine", stageThree, strconv.Itoa(fd)}, argv...)
		return fmt.Errorf("become the keeper: %w", syscall.Exec("/proc/self/exe", args, os.Environ()))
	})
}

// keeper starts the command where prepare made it a place, and ends what it left. prepared is the descriptor of a reach in
// which the caches are all folders that are writable. It returns only an error, before the command was started.
func keeper(prepared string, argv []string) error {
	// They are caught from now on, and SIGTSTP is no longer blocked; for the command they are as they are by default.
	signal.Notify(make(chan os.Signal, 1), heeded()...)
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
		return fmt.Errorf("become the parent of what the command leaves: %w", err)
	}
	if err := syscall.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a signal to the parent gave %v and must not be possible", err) // see endAll
	}
	go func() {
		var b [1]byte
		_, _ = parent.Read(b[:]) // it sends nothing: this returns when it is gone
		endAll()
		os.Exit(confine.NotHeld)
	}()
	var pid int
	if err := onThread(func() (err error) {
		pid, err = launch(s, program, argv)
		return err
	}); err != nil {
		return err
	}
	if _, err := unix.Setsid(); err != nil { // after the command, which stays in the job's process group
		endAll()
		return fmt.Errorf("leave the terminal: %w", err)
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, unix.O_CLOEXEC) // what reads the command's output sees its end
		}
	}
	_ = report{kind: started, value: uint32(pid)}.send(parent) // where the parent is gone, the other goroutine ends all
	ws := await(pid, func() { _ = report{kind: stopped, value: uint32(pid)}.send(parent) })
	text := lingering()
	endAll()
	if text != "" {
		_ = report{kind: left, text: text}.send(parent)
	}
	if s.Proxy != "" {
		_ = report{kind: hosts, text: denied(proxyFD)}.send(parent)
	}
	_ = report{kind: ended, value: uint32(ws)}.send(parent)
	os.Exit(0)
	return nil
}

// await waits until the process pid ends, and reaps what else is given to this process. It calls stop whenever pid stops.
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

// scopeSignals makes a Landlock domain of the calling thread and what it starts, out of which no signal goes. All of what is
// held has to be in one: each call makes another. A domain forbids to move a file to another folder unless it allows that, and
// forbids mounts if it does.
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

// launch gives up the calling thread's rights for good and starts the command from it. The command's domain is the thread's,
// within that of the other threads of this process: it cannot signal them, and they can signal it.
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

// maxProcesses is the most processes and threads that an ordinary user's command may have beside what they run already; it
// does not bind root.
const maxProcesses = 8192

func limits() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core files: %w", err)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	if most := min(now.Cur, maxProcesses); most < now.Cur {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: min(now.Max, maxProcesses)}); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
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

// restrictPaths has Landlock allow the calling thread reading, writing below the folders given, and no signals or abstract
// sockets out of what it starts. It adds to the mounts what they do not hold: named pipes, devices, other processes' memory.
func restrictPaths(writable []string) error {
	ruleset, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: allAccess, Scoped: ll.ScopeSignal | ll.ScopeAbstractUnixSocket}, 0)
	if err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	defer unix.Close(ruleset)
	if err := errors.Join(
		allow(ruleset, readAccess, "/"),
		allow(ruleset, allAccess&^ll.AccessFSIoctlDev, writable...),
		allow(ruleset, deviceAccess, "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
		allow(ruleset, deviceAccess|ll.AccessFSReadDir, "/dev/pts"),
	); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return nil
}

// allow adds rules to a set, that grant access below the paths.
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

func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// dropCapabilities gives up the calling thread's privileges for good. Root keeps the right to read what others own, and in
// another user's project, as in many containers, what it needs to write there: elsewhere the mounts are read-only.
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
