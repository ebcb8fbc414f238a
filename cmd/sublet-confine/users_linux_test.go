package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/wire/citest"
)

// patience bounds a command, on a machine that does much else.
const patience = 20 * time.Second

// serial makes numbers that no other process has in its arguments.
var serial atomic.Int64

func init() { serial.Store(int64(os.Getpid()) * 10000) }

// built is the launcher, where every user can run it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("/var/tmp", "sublet-launcher")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	return confinetest.Build(dir)
})

// TestMain runs the tests of root in a mount namespace of their own, where /var/tmp is memory: what they mount and leave
// there is gone with it.
func TestMain(m *testing.M) {
	const inside = "SUBLET_TEST_MOUNTS"
	if os.Getuid() == 0 && os.Getenv(inside) == "" {
		again := exec.Command("/proc/self/exe", os.Args[1:]...)
		again.Args[0] = os.Args[0]
		again.Env = append(os.Environ(), inside+"=own")
		again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
		again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread() // which Pdeathsig is about
		err := again.Run()
		if again.ProcessState == nil {
			fmt.Fprintln(os.Stderr, "no mount namespace for the tests:", err)
			os.Exit(1)
		}
		os.Exit(again.ProcessState.ExitCode())
	}
	if os.Getuid() == 0 {
		if err := syscall.Mount("tmpfs", "/var/tmp", "tmpfs", 0, "mode=1777"); err != nil {
			fmt.Fprintln(os.Stderr, "mount /var/tmp for the tests:", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if path, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// A user is who attacks. The tests run as root where they can, and then as both.
type user struct {
	name     string
	uid, gid int
}

var ordinary = user{"user", 65534, 65534} // nobody: it is on every system and owns nothing

// users returns who can attack here.
func users(t *testing.T) []user {
	if os.Getuid() != 0 {
		t.Log("not root: without the attacks of root")
		return []user{{"user", os.Getuid(), os.Getgid()}}
	}
	return []user{ordinary, {"root", 0, 0}}
}

func (u user) as(cmd *exec.Cmd) *exec.Cmd {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if u.uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid)}
	}
	return cmd
}

// launcher returns the launcher. Where nothing can be held for a user the test is skipped; CI fails there.
func launcher(t *testing.T, who user) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := who.as(exec.Command(path, "--probe")).CombinedOutput(); err != nil {
		citest.Skip(t, err, string(out))
	}
	return path
}

// running returns the processes that have a word in their arguments and have not ended.
func running(word string) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, path := range list {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(word)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// place makes a folder that all users reach, with a spec in it, and returns the words that hold a command.
func placeOf(t *testing.T, who user, s confine.Spec) (dir, prefix string) {
	t.Helper()
	program := launcher(t, who)
	dir, err := os.MkdirTemp("/var/tmp", "sublet-job")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if s.Reach == confine.Project && s.Project == "" {
		s.Project = dir
	}
	spec := filepath.Join(filepath.Dir(program), fmt.Sprint("job", serial.Add(1)))
	if err := os.WriteFile(spec, s.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}
	return dir, program + " " + spec + " "
}

func (u user) run(t *testing.T, dir, prefix, text string) (string, error) {
	t.Helper()
	words := strings.Fields(prefix)
	cmd := u.as(exec.Command(words[0], append(words[1:], "bash", "-c", text)...))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
