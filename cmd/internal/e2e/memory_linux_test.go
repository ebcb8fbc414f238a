package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// An agent's command prints without end: neither window nor daemon grows with what it prints.
func TestOutputInFlatMemory(t *testing.T) {
	// Whoever kept the output would grow by more than all of it. The race detector makes the rest grow, and ten times slower.
	printed, most := 100<<20, 25<<20
	if raceEnabled {
		printed, most = 20<<20, 20<<20
	}
	endless := func(n int) string { return fmt.Sprintf("yes %0200d | head -c %d", 0, n) }
	w := newWorld(t, "", script{
		{Match: "^warm", Steps: []step{{ToolCalls: []call{bash(endless(1 << 20))}}, {Text: "it is warm"}}},
		{Match: "^print", Steps: []step{{ToolCalls: []call{bash(endless(printed))}}, {Text: "it is printed"}}},
	}, "[policy]\nmode = \"auto\"")
	term := w.openShell()
	term.ask("warm up")
	term.see(`^it is warm`)
	pids := map[string]int{"window": term.cmd.Process.Pid, "daemon": w.daemonPID()}
	before := map[string]int{}
	for who, pid := range pids {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil { // the peak begins anew: proc(5)
			t.Fatal(err)
		}
		before[who] = peakMemory(t, pid)
	}
	term.ask("print without end")
	term.see(`^it is printed`)
	for who, pid := range pids {
		after := peakMemory(t, pid)
		t.Logf("%s: %d MiB before, at most %d MiB while %d MiB were printed", who, before[who]>>20, after>>20, printed>>20)
		if after-before[who] > most {
			t.Errorf("%s grew by %d MiB", who, (after-before[who])>>20)
		}
	}
	if !term.sees(`MB left out`) {
		t.Errorf("the end of the output is not on the screen:\n%s", term.text())
	}
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most resident memory a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := peak.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
