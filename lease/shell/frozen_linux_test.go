package shell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// frozenTexts have forks of the shell that a cancel holds: they wait for P, which takes long over its SIGINT. Behind it S
// must not begin.
var frozenTexts = map[string]string{
	"subshell": `(P; S)`, "process substitution": `cat <(P; S)`, "substitution": `x=$(P; S)`, "pipeline": `{ P; S; } | cat`,
	"errexit": `set -e; (P; S); S`,
}

// frozenText puts a program in: it tells when SIGINT comes, and makes the file that is returned where S is reached.
func frozenText(t *testing.T, text string) (filled, reached, struck string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "slow")
	reached, struck = filepath.Join(dir, "reached"), filepath.Join(dir, "struck")
	script := "#!/bin/sh\ntrap 'touch " + struck + "; sleep 1; exit 0' INT\necho go >/dev/tty\nwhile :; do sleep 0.02; done\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer("P", program, "S", "touch "+reached).Replace(text)
	return text + "; : echo go", reached, struck
}

// stoppedIn are the stopped processes of a shell's session.
func stoppedIn(session int) (pids []int) {
	eachProcess(func(pid int) bool { id, err := unix.Getsid(pid); return err == nil && id == session }, func(st procStat) {
		if st.State == 'T' || st.State == 't' {
			pids = append(pids, st.PID)
		}
	})
	return pids
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Subshells that a cancel had stopped stayed so for good where sublet was killed in that moment.
func TestKilledWithFrozen(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	for name, text := range frozenTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, reached, struck := frozenText(t, text)
			w := openWindow(t, t.TempDir())
			w.run("cancelled leased " + text)
			w.read("goes")
			awaitTrue(t, "SIGINT", func() bool { return exists(struck) })
			if len(stoppedIn(w.pid)) == 0 {
				t.Fatal("nothing is stopped: the test does not see what it is for")
			}
			w.kill()
			awaitTrue(t, "the end of what was stopped", func() bool { return len(stoppedIn(w.pid)) == 0 })
			awaitEnd(t, w.pid)
			if exists(reached) {
				t.Error("what stood behind the program ran")
			}
		})
	}
}

// The same where it is the shell that is killed.
func TestShellKilledWithFrozen(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	for name, text := range frozenTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			text, reached, struck := frozenText(t, text)
			pid := s.PID()
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				for end := time.Now().Add(patience); !exists(struck) && time.Now().Before(end); time.Sleep(time.Millisecond) {
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}()
			res, _ := cancelled(t, s, leased(text))
			<-killed
			if !res.Respawned {
				t.Errorf("got %s, exit %d: %q %q, left over %v", res.Status, exit(res), res.Output, res.Notes, res.Leftovers)
			}
			awaitTrue(t, "the end of what was stopped", func() bool { return len(stoppedIn(pid)) == 0 })
			if exists(reached) {
				t.Error("what stood behind the program ran")
			}
		})
	}
}
