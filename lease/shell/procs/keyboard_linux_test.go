package procs

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/wire/citest"
)

// A program that waits for its terminal by epoll waits for keys, by whichever of epoll's calls. Those that Bun runs (opencode) use
// epoll_pwait2, which was not known: a sign-in in a terminal never got the keyboard.
func TestWaitsInEpoll(t *testing.T) {
	const variable = "SUBLET_TEST_EPOLL"
	if call, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		fd, err := unix.EpollCreate1(0)
		if err == nil {
			err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, 0, &unix.EpollEvent{Events: unix.EPOLLIN})
		}
		if err != nil {
			t.Fatal(err)
		}
		forever := ^uintptr(0)
		if call == unix.SYS_EPOLL_PWAIT2 {
			forever = 0 // a pointer to the time
		}
		var got unix.EpollEvent
		unix.Syscall6(uintptr(call), uintptr(fd), uintptr(unsafe.Pointer(&got)), 1, forever, 0, 0) //nolint:errcheck // it is killed
		return
	}
	for _, call := range []int{unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWaitsInEpoll$")
		cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(call))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		control, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = terminal
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			raw := WaitsForKeys(0, cmd.Process.Pid, terminal.Name(), true, func() bool { return false })
			asking := WaitsForKeys(0, cmd.Process.Pid, terminal.Name(), false, func() bool { return true })
			if raw && asking {
				break
			}
			if time.Now().After(end) {
				t.Errorf("call %d: raw %v, asking %v", call, raw, asking)
				break
			}
		}
		cmd.Process.Kill() //nolint:errcheck // Wait returns how it ended
		_ = cmd.Wait()     // killed
		control.Close()
		terminal.Close()
	}
}

// gpg-agent starts a pinentry outside of the terminal's session. The user was asked about a program without a name.
func TestPinentryOfAgent(t *testing.T) {
	path, agent, connect := citest.Program(t, "pinentry-tty"), citest.Program(t, "gpg-agent"), citest.Program(t, "gpg-connect-agent")
	control, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer terminal.Close()
	home, err := os.MkdirTemp("/tmp", "gpg") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	// The agent keeps the output of its starter open, so that is no pipe.
	if err := exec.Command(agent, "--homedir", home, "--pinentry-program", path, "--daemon").Run(); err != nil {
		t.Fatal(err)
	}
	defer exec.Command(connect, "--homedir", home, "--no-autostart", "killagent", "/bye").Run() //nolint:errcheck // it may have ended
	ask := exec.Command(connect, "--homedir", home, "--no-autostart", "OPTION ttyname="+terminal.Name(), "GET_PASSPHRASE X X X X", "/bye")
	ask.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if name, _ := AsksForSecret(os.Getpid(), os.Getpid(), terminal.Name()); name != "" {
		t.Errorf("before a pinentry opens the terminal: %q", name)
	}
	if err := ask.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ask.Process.Kill() //nolint:errcheck // Wait returns how it ended
		_ = ask.Wait()     // killed
	}()
	awaitAsker(t, ask.Process.Pid, terminal.Name(), "pinentry-tty", true)
	if name, _ := AsksForSecret(os.Getpid(), ask.Process.Pid, "/dev/pts/other"); name != "" {
		t.Errorf("for another terminal: %q", name)
	}
}

// A pinentry that the command itself starts shows the command's prompt, and gives it what is typed.
func TestPinentryOfCommand(t *testing.T) {
	for name, outside := range map[string]bool{"in the foreground": false, "in a session of its own": true} {
		t.Run(name, func(t *testing.T) {
			control, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer control.Close()
			defer terminal.Close()
			cmd := exec.Command(citest.Program(t, "pinentry-tty"), "--ttyname", terminal.Name())
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Stdin = strings.NewReader("GETPIN\n")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Kill() //nolint:errcheck // Wait returns how it ended
				_ = cmd.Wait()     // killed
			}()
			group := cmd.Process.Pid
			if outside {
				group = syscall.Getpgrp()
			}
			awaitAsker(t, group, terminal.Name(), "pinentry-tty", false)
		})
	}
}

func awaitAsker(t *testing.T, group int, tty, wantName string, wantSystem bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		name, system := AsksForSecret(os.Getpid(), group, tty)
		if name == wantName {
			if system != wantSystem {
				t.Errorf("%s is the system's: %v", name, system)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %q, %v", name, system)
		}
	}
}
