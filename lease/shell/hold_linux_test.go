package shell

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A subshell that was held behind the call by which bash takes SIGINT over for a wait, and before it had noted what it replaced,
// was let go on with SIGINT there: it sent that to itself for good, and the cancel took 4 s and SIGKILL. One of 28,000, under
// load.
func TestLetGoBehindSigaction(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	gate := newGate(t)
	cmd := exec.Command(cmp.Or(os.Getenv(envBash), "bash"), "-c", `trap "echo trapped; exit 7" INT; read -r _ <"$1"; sleep 1000; echo after`, "bash", gate.Name())
	var out strings.Builder
	cmd.Stdout = &out
	if err := startUnignored(cmd); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	awaitTrue(t, "the read", func() bool { c, ok := syscallOf(pid, pid); return ok && c.nr == sysRead })
	h := newHolder()
	defer h.end()
	if !slices.Equal(h.hold(pid), []int{pid}) {
		t.Fatal("not held")
	}
	if _, err := gate.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	var program int
	h.call(func() { // to where it has a child, and sigaction for SIGINT ends
		for begun := false; ; {
			if err := unix.PtraceSyscall(pid, 0); err != nil {
				t.Error(err)
				return
			}
			if !h.stand(pid) {
				t.Error("it does not stand still")
				return
			}
			if kids := children(pid); len(kids) > 0 {
				program = kids[0]
			}
			c, ok := syscallOf(pid, pid)
			is := ok && program != 0 && c.nr == unix.SYS_RT_SIGACTION && c.args[0] == uint64(syscall.SIGINT)
			if is && begun {
				return
			}
			begun = is
		}
	})
	awaitTrue(t, "the program", func() bool { return !isFork(program) && diesOf(program, syscall.SIGINT) })
	if err := syscall.Kill(program, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	h.letGo(pid, syscall.SIGINT)
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Wait()
	if got := out.String(); cmd.ProcessState.ExitCode() != 7 || got != "trapped\n" {
		t.Errorf("got %v, %q, want its trap to have run", err, got)
	}
}
