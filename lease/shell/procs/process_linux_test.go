package procs

import (
	"os/exec"
	"syscall"
	"testing"
)

// After a long command the newest process's number proves nothing: the numbers may have begun anew and passed it again.
func TestBegunSinceAfterWrap(t *testing.T) {
	from := Now()
	cmd := exec.Command("sleep", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	from.ticks -= 2 * ticks
	from.newest = Now().newest // that which the numbers passed again
	if noneSince(from, inSession(cmd.Process.Pid)) {
		t.Error("a process that began since is overlooked")
	}
}
