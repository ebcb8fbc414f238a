package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envTracer makes the test binary the tracer of a process: each signal but SIGKILL stops that one for good, and of SIGKILL it
// dies untold, as one does that the system has in an uninterruptible sleep.
const envTracer = "SUBLET_TEST_TRACER"

func init() {
	if pid := os.Getenv(envTracer); pid != "" {
		tracer(pid)
	}
}

func tracer(pid string) {
	runtime.LockOSThread()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = unix.PtraceSeize(n)
	}
	fmt.Println(err)
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// hold makes a shell one that no signal ends, until release.
func hold(t *testing.T, s *Shell) (release func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envTracer+"="+strconv.Itoa(s.PID()))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if told, err := bufio.NewReader(out).ReadString('\n'); err != nil || told != "<nil>\n" {
		release()
		if os.Getenv("CI") != "" {
			t.Fatalf("no process may be traced here: %s%v; a shell that SIGKILL does not end is untested", told, err)
		}
		t.Skipf("no process may be traced here: %s%v", told, err)
	}
	return release
}

// A cancel waited without end for a shell that not even SIGKILL ends.
func TestCancelOfAShellThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	pid := s.PID()
	release := hold(t, s)
	defer time.AfterFunc(30*time.Second, release).Stop() // where the cancel waits for the end
	defer release()
	res, took := cancelled(t, s, leased("echo go; sleep 1000"))
	if res.Status != "cancelled" || res.Respawned || took < replaceAfter || took > provedWithin+slack {
		t.Errorf("got %s after %v, respawned %v", res.Status, took, res.Respawned)
	}
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "SIGKILL") {
		t.Errorf("got notes %q", res.Notes)
	}
	release()
	if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" || s.PID() == pid {
		t.Errorf("then got %q", r.Output)
	}
}

// Nor does the end of a window wait for such a shell.
func TestCloseOfAShellThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := Start(ctx, Options{RC: NoRC, Dir: t.TempDir(), Folder: folder, Env: testEnv(t), Path: os.Getenv(envBash)})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, s)
	defer release()
	end := time.AfterFunc(30*time.Second, release) // where Close waits for the end
	watch := stopwatch(t)
	for range 2 {
		if err := s.Close(); !errors.Is(err, errHeld) {
			t.Errorf("got error %v, want %v", err, errHeld)
		}
	}
	if took := watch(); !end.Stop() || took > 2*closeGrace+slack {
		t.Errorf("took %v", took)
	}
	if ents, err := os.ReadDir(folder); err != nil || len(ents) > 0 {
		t.Errorf("files left behind: %v, %v", ents, err)
	}
	release()
	s.workers.Wait()
}

// A child that stops the shell cost it on a cancel: nobody let it go on, and it was taken for deaf.
func TestCancelOfAStoppedShell(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`kill -STOP $$; echo go; sleep 1000`,
		`sh -c 'echo go; kill -STOP $PPID; sleep 1000'; echo after`,
		`sh -c 'echo go; while :; do kill -STOP $PPID; sleep 0.01; done'; echo after`,
		`(echo go; kill -STOP $$; sleep 1000); echo after`,
		`echo go; x=$(kill -STOP $$; sleep 1000); echo after`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			pid := s.PID()
			res, took := cancelled(t, s, leased(text))
			if res.Status != "cancelled" || res.Respawned || s.PID() != pid || took > slack || strings.Contains(string(res.Output), "after") {
				t.Errorf("got %s after %v, respawned %v: %q %q", res.Status, took, res.Respawned, res.Output, res.Notes)
			}
			if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
				t.Errorf("then got %q", r.Output)
			}
		})
	}
}

// Nor did it go on by itself, where the child that stopped it had the terminal.
func TestShellStoppedByAChild(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if r := do(t, s, leased(`sh -c 'kill -STOP $PPID'; echo on`)); string(r.Output) != "on\n" {
		t.Errorf("got %q", r.Output)
	}
}
