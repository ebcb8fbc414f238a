package shell

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// needsTracing skips a test of what is only so where a process may be traced. In CI it may.
func needsTracing(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := newHolder()
	held := h.hold(cmd.Process.Pid)
	h.letGo(cmd.Process.Pid, syscall.SIGKILL)
	h.end()
	_ = cmd.Wait()
	if slices.Contains(held, cmd.Process.Pid) {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no process may be traced here")
	}
	t.Skip("no process may be traced here: the cancel of subshells behaves as bash's own there")
}
