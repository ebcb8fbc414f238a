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
