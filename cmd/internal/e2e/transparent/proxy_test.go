package transparent

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// proxy is the smallest transparent program: a shell on a second PTY, and every byte passed on. With TRANSPARENT_DROP=n
// it drops the n-th byte of the shell's output.
func proxy(shell string) int {
	if err := os.Unsetenv("TRANSPARENT_PROXY"); err != nil {
		return 1
	}
	cmd := exec.Command(shell)
	ptmx, tty, err := pty.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	resize := func() error { return pty.InheritSize(os.Stdin, ptmx) }
	if err := resize(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	saved, err := term.MakeRaw(os.Stdin.Fd())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = term.Restore(os.Stdin.Fd(), saved) }() // the process ends
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = newSession()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = tty.Close()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	go func() { // ends with the process
		for range resized {
			_ = resize() // the shell may have ended
		}
	}()
	go func() {
		_, _ = io.Copy(ptmx, os.Stdin)
		os.Exit(1) // the window is gone; SIGHUP does not say so where it is ignored, as below nohup
	}()
	drop, buf := dropped(), make([]byte, 4096)
	for {
		n, err := ptmx.Read(buf)
		p := buf[:n]
		if 0 <= drop && drop < n {
			p = append(append([]byte(nil), p[:drop]...), p[drop+1:]...)
		}
		drop = max(drop-n, -1)
		_, _ = os.Stdout.Write(p) // the terminal may be gone
		if err != nil {
			break
		}
	}
	_ = cmd.Wait() // its status is passed on
	return cmd.ProcessState.ExitCode()
}

// The comparison passes for a program that passes everything on, and fails for one that drops a single byte, whether the
// byte is a letter, a colour or the end of a mode.
func TestComparison(t *testing.T) {
	t.Parallel()
	r := row{
		shell: "bash", files: map[string]string{".bashrc": "PS1='> '\n"},
		steps: []step{
			{keys: "printf '\\e[31mred\\e[m\\n'\r", until: `^red\n> ▮`},
			{keys: "printf '\\e[?25l'; echo word\r", until: `^word\n> ▮`},
		},
	}
	w := newWorld(t, r)
	w.settled = 300 * time.Millisecond
	pair := func(drop int) (*side, string) {
		alone, other := w.side(), w.side()
		alone.open("bash")
		other.openProxy(drop)
		defer other.term.close()
		defer alone.term.close()
		return alone, w.compare(alone, other)
	}
	alone, diff := pair(-1)
	if diff != "" {
		t.Errorf("a program that passes everything on differs: %s", diff)
	}
	stream := alone.term.stream.String()
	for _, c := range []struct{ what, text string }{{"letter", "word\r\n"}, {"colour", "31mred"}, {"mode", "?25l"}} {
		if _, diff := pair(strings.LastIndex(stream, c.text)); diff == "" {
			t.Errorf("a program that drops a byte of a %s is not told from the shell", c.what)
		}
	}
}
