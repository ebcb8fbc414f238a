package tui

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// wakeUps prints how often threads of its parent went to sleep within two seconds, from outside: a process that looks at itself
// is not idle.
const wakeUps = `n() { cat /proc/$PPID/task/*/status | awk '/^voluntary/ {n += $2} END {print n}'; }
sleep 0.8; a=$(n); sleep 2; b=$(n); echo $((b-a))`

// While nothing changes nothing is written and nothing wakes up. The runtime
// and clocks that other tests left running may do so for a while.
func TestIdleIsQuiet(t *testing.T) {
	for _, ai := range []bool{false, true} {
		w := open(t, 80, 24)
		w.command("ls")
		if ai {
			w.ai()
		}
		woken, written := 0, 0
		for range 5 {
			n := len(w.screen.Raw())
			out, err := exec.Command("sh", "-c", wakeUps).Output()
			if err != nil {
				t.Fatal(err)
			}
			if woken, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
				t.Fatal(err)
			}
			if written = len(w.screen.Raw()) - n; woken+written == 0 {
				break
			}
		}
		if woken+written != 0 {
			t.Errorf("AI mode %v: %d wake-ups while idle, %d bytes written", ai, woken, written)
		}
	}
}
