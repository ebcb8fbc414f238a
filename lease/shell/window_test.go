package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// envWindow makes the test binary a window that is killed: it lends a shell with this home, runs what it reads, each line a
// command, and tells. One that prints "go" is cancelled then where the line says so.
const envWindow = "SUBLET_TEST_WINDOW"

func window(home string) {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	folder, err := os.MkdirTemp(home, ".folder")
	if err != nil {
		fail(err)
	}
	s, err := Start(context.Background(), Options{Path: os.Getenv(envBash), Folder: folder, Env: os.Environ()})
	if err != nil {
		fail(err)
	}
	fmt.Println("pid", s.PID())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ctx, cancel := context.WithCancel(context.Background())
		text, cancels := strings.CutPrefix(in.Text(), "cancelled ")
		c := leased(strings.TrimPrefix(text, "leased "))
		c.User = c.Text == text
		seen := ""
		c.Output = func(p []byte) {
			if had := strings.Contains(seen, "go\r\n"); !had {
				if seen += string(p); strings.Contains(seen, "go\r\n") {
					fmt.Println("goes")
					if cancels {
						cancel()
					}
				}
			}
		}
		_, err := s.Run(ctx, c)
		cancel()
		if err != nil {
			fail(err)
		}
		s.current().awaitRead(patience) // it told so from its hook
		fmt.Println("done")
	}
	os.Exit(0)
}

// killable is a window of a test, which may be killed. Its methods end the test where they fail.
type killable struct {
	t     *testing.T
	pid   int // of its shell
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.Reader
	lines *bufio.Scanner
}

func openWindow(t *testing.T, home string) *killable {
	t.Helper()
	w := &killable{t: t, cmd: exec.Command(os.Args[0])}
	w.cmd.Env = append(withoutEnv(testEnv(t), "HOME"), "HOME="+home, envWindow+"="+home, envBash+"="+os.Getenv(envBash))
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if w.out, err = w.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(w.out)
	fmt.Sscan(w.read("pid "), &w.pid)
	t.Cleanup(func() { killSession(w.pid) }) // hung up in a fork of the shell, a sleep may stay
	return w
}

func (w *killable) run(text string) {
	w.t.Helper()
	if _, err := fmt.Fprintln(w.in, text); err != nil {
		w.t.Fatal(err)
	}
}

// read reads lines up to one that begins so, and returns its rest.
func (w *killable) read(want string) string {
	w.t.Helper()
	for w.lines.Scan() {
		if rest, ok := strings.CutPrefix(w.lines.Text(), want); ok {
			return rest
		}
		w.t.Log(w.lines.Text())
	}
	w.t.Fatalf("no %q of the window", want)
	return ""
}

// kill ends it with SIGKILL.
func (w *killable) kill() {
	w.t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, w.out)
	_ = w.cmd.Wait()
}

// awaitEnd waits for the end of a process that is no child of ours.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	runs := func() (yes bool) {
		eachProcess(func(p int) bool { return p == pid }, func(procStat) { yes = true })
		return yes
	}
	for end := time.Now().Add(patience); runs(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shell outlives its window")
		}
	}
}
