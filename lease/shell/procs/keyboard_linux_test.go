package procs

import (
	"os"
	"os/exec"
	"strconv"
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
	path := citest.Program(t, "pinentry-tty")
	control, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer terminal.Close()
	cmd := exec.Command(path, "--ttyname", terminal.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	asks, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	gpg := exec.Command("sleep", "100") // it waits for the agent
	gpg.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, c := range []*exec.Cmd{gpg, cmd} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			c.Process.Kill() //nolint:errcheck // Wait returns how it ended
			_ = c.Wait()     // killed
		}()
	}
	if name, _ := AsksForSecret(os.Getpid(), gpg.Process.Pid, terminal.Name()); name != "" {
		t.Errorf("before it opens the terminal: %q", name)
	}
	if _, err := asks.Write([]byte("GETPIN\n")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		name, system := AsksForSecret(os.Getpid(), gpg.Process.Pid, terminal.Name())
		if name == "pinentry-tty" && system {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %q, %v", name, system)
		}
	}
	if name, _ := AsksForSecret(os.Getpid(), gpg.Process.Pid, "/dev/pts/other"); name != "" {
		t.Errorf("for another terminal: %q", name)
	}
}
