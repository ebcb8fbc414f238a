//go:build !linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// sandboxExec is macOS's program that applies a profile to itself and executes another program.
const sandboxExec = "/usr/bin/sandbox-exec"

// argAttempt is the first argument of the command that probe confines.
const argAttempt = "--attempt"

// childModes maps the first argument to what this program does when it has started itself as a child.
var childModes = map[string]func(string, []string) error{argAttempt: attempt}

// parent runs a command under sandbox-exec and returns its exit status. If SIGINT, SIGTERM, SIGHUP or SIGKILL ended the
// command, it ends this process by the same signal and does not return; for another signal it returns 128 and its number.
// What the command leaves running is not ended, and stays in the sandbox.
func parent(spec string, argv []string) (int, error) {
	if err := closeInherited(); err != nil {
		return 0, err
	}
	s, err := readSpec(spec)
	if err != nil {
		return 0, err
	}
	temp, err := tempDir("sublet-held-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	cmd := exec.Command(sandboxExec, append([]string{"-p", seatbeltOf(s, temp).profile(), "--"}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	if s.Script != "" {
		script, err := os.Open(s.Script)
		if err != nil {
			return 0, err
		}
		defer script.Close()
		cmd.ExtraFiles = []*os.File{script}
	}
	// The terminal sends signals to the whole process group. They are meant for the command; this process ends when it does.
	caught := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() { // ends with this process
		for sig := range caught {
			if sig == unix.SIGTERM || sig == unix.SIGHUP { // it may have been sent to this process alone
				_ = cmd.Process.Signal(sig) // the command may be gone
			}
		}
	}()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return 0, err
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return cmd.ProcessState.ExitCode(), nil
	}
	if sig := ws.Signal(); slices.Contains([]syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGKILL}, sig) { // Go dumps stacks for the others
		os.RemoveAll(temp)
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig) // cannot fail for this process
	}
	return 128 + int(ws.Signal()), nil
}

// tempDir makes a temporary folder and returns its path without symbolic links, as profiles need it.
func tempDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// closeInherited keeps descriptors that the shell left open from the command: they would reach files despite the profile.
func closeInherited() error {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("close what was inherited: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// manyHidden is more hidden paths than a command has.
const manyHidden = 400

// probe has a command of each reach attempt what the reach forbids.
func probe() (int, error) {
	if _, err := os.Stat(sandboxExec); err != nil {
		return 0, fmt.Errorf("nothing holds commands on this system: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	dir, err := tempDir("sublet-probe")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	project, secret, spec := filepath.Join(dir, "project"), filepath.Join(dir, "secret"), filepath.Join(dir, "spec")
	if err := errors.Join(os.MkdirAll(filepath.Join(project, ".git/hooks"), 0o700), os.WriteFile(secret, nil, 0o600)); err != nil {
		return 0, err
	}
	for _, s := range []confine.Spec{{Reach: confine.Read}, {Reach: confine.Project, Project: project}, {Reach: confine.Read, Network: true}} {
		s.Hidden = []string{secret}
		for n := range manyHidden { // a profile that grows too long must fail here, not with each command
			s.Hidden = append(s.Hidden, fmt.Sprintf("/Users/somebody/.config/program-%d/credentials", n))
		}
		if err := os.WriteFile(spec, s.Encode(), 0o600); err != nil {
			return 0, err
		}
		command := []string{exe, argAttempt, s.Reach, dir}
		if s.Network {
			command = []string{exe, argNothing}
		}
		status, err := parent(spec, command)
		if err != nil {
			return 0, err
		}
		if status != 0 {
			return 0, fmt.Errorf("sandbox-exec does not hold commands to the reach %s: exit status %d", s.Reach, status)
		}
	}
	fmt.Println("Seatbelt (no loopback, no allowed hosts)")
	return 0, nil
}

// attempt tries, in the folder that probe made (args[0]), what a command with the reach may do and what it may not. It returns an error for
// the first attempt that succeeded or failed against the rules.
func attempt(reach string, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: " + argAttempt + " REACH DIR")
	}
	dir, temp := args[0], os.Getenv("TMPDIR")
	project, secret := filepath.Join(dir, "project"), filepath.Join(dir, "secret")
	write := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	read := func(path string) error {
		_, err := os.ReadFile(path)
		return err
	}
	newName := filepath.Join(temp, "link")
	linked := os.Link(secret, newName)
	if linked == nil {
		linked = read(newName)
	}
	for _, try := range []struct {
		what    string
		err     error
		allowed bool
	}{
		{"writing in the temporary folder", write(filepath.Join(temp, "x")), true},
		{"writing in the project", write(filepath.Join(project, "x")), reach == confine.Project},
		{"writing outside of the project", write(filepath.Join(dir, "x")), false},
		{"writing a hook of git", write(filepath.Join(project, ".git/hooks/x")), false},
		{"making a protected folder", os.Mkdir(filepath.Join(project, ".VSCode"), 0o700), false},
		{"renaming .git", os.Rename(filepath.Join(project, ".git"), filepath.Join(project, "git")), false},
		{"reading a secret", read(secret), false},
		{"reading a secret by a new name", linked, false},
		{"connecting", connect(), false},
		{"signals to others", syscall.Kill(os.Getppid(), 0), false},
		{"typing into the terminal", typing(), false},
	} {
		if try.allowed && try.err != nil || !try.allowed && !errors.Is(try.err, fs.ErrPermission) {
			return fmt.Errorf("%s: allowed is %t, and the error is %v", try.what, try.allowed, try.err)
		}
	}
	return nil
}

// connect tries to connect to this machine. Nothing has to listen at port 9 (discard): the sandbox refuses before that matters.
func connect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
}

// typing makes the request TIOCSTI on a device that does not support it: the sandbox refuses the request before the device can.
func typing() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil //nolint:nilerr // then attempt reports a failure, because this is not a refusal
	}
	defer null.Close()
	return unix.IoctlSetPointerInt(int(null.Fd()), unix.TIOCSTI, 'x')
}
