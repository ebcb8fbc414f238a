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
// load. Of several signals that it was about to take when it was held all but one were lost.
func TestLetGoBehindSigaction(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	t.Run("struck", func(t *testing.T) { letGoBehindSigaction(t, "trapped\n", 7) })
	t.Run("others before", func(t *testing.T) { letGoBehindSigaction(t, "", -1, syscall.SIGHUP, syscall.SIGUSR2) })
}

func letGoBehindSigaction(t *testing.T, output string, status int, others ...syscall.Signal) {
	gate := newGate(t)
	cmd := exec.Command(cmp.Or(os.Getenv(envBash), "bash"), "-c", `trap "echo trapped; exit 7" INT; trap : USR2; read -r _ <"$1"; sleep 1000; echo after`, "bash", gate.Name())
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
	for _, sig := range others {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	h.letGo(pid, syscall.SIGINT)
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Wait()
	if got := out.String(); cmd.ProcessState.ExitCode() != status || got != output {
		t.Errorf("got %v, %q, want status %d, %q", err, got, status, output)
	}
}
