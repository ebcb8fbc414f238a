package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// child holds this process, which has namespaces of its own, and becomes the command. It does not return but for an error;
// what runs at that time is only this program.
func child(spec string, argv []string) error {
	// Capabilities and the system call filter are a thread's, and execve makes the calling thread the process.
	runtime.LockOSThread()
	s, err := readSpec(spec)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := mounts(s, dir); err != nil {
		return err
	}
	if s.Reach == confine.Project {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bring up the loopback interface: %w", err)
		}
	}
	if err := os.Chdir(dir); err != nil { // into the mounts that were made
		return err
	}
	if err := limits(); err != nil {
		return err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := restrictPaths(s); err != nil {
		return err
	}
	if err := dropCapabilities(s); err != nil {
		return err
	}
	env := append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return len(kv) > 7 && kv[:7] == "TMPDIR=" }), "TMPDIR=/tmp")
	first := uint(3) // of the descriptors that the command does not get: what the shell had open
	if s.Script != "" {
		first++
	}
	if err := unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close the shell's files: %w", err)
	}
	if err := filter(); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
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

// restrictPaths has Landlock allow reading, writing where the mounts are writable, and no signals or abstract sockets out
// of this process and what it starts.
func restrictPaths(s confine.Spec) error {
	if abi := landlockABI(); abi < minABI {
		return fmt.Errorf("the kernel has version %d of Landlock, and %d is needed (Linux 6.12)", abi, minABI)
	}
	writable := []string{"/tmp", "/dev/shm"}
	if s.Reach == confine.Project {
		writable = append(writable, s.Project)
	}
	writable = append(writable, existing(s.Caches)...)
	rules := []landlock.Rule{
		landlock.RODirs("/"),
		landlock.RWDirs(writable...).WithRefer().IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts").WithIoctlDev().IgnoreIfMissing(),
	}
	if err := landlock.V7.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return nil
}

// existing returns the folders of a list that are there, with their links resolved.
func existing(dirs []string) (list []string) {
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if st, err := os.Stat(real); err == nil && st.IsDir() {
				list = append(list, real)
			}
		}
	}
	return list
}

func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// dropCapabilities gives up every privilege for good. Root in a project of another user, as in many containers, keeps what
// it needs to write there: elsewhere the mounts are read-only.
func dropCapabilities(s confine.Spec) error {
	var keep uint32
	if s.Reach == confine.Project && os.Geteuid() == 0 {
		var st unix.Stat_t
		if err := unix.Stat(s.Project, &st); err != nil {
			return err
		}
		if st.Uid != 0 {
			keep = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_CHOWN
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
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep, Permitted: keep}}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}
