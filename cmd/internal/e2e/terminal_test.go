package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Keys as a terminal sends them.
const (
	enter  = "\r"
	tab    = "\t"
	escape = "\x1b"
	ctrlC  = "\x03"
	ctrlD  = "\x04"
	ctrlU  = "\x15"
	ctrlZ  = "\x1a"
)

// A terminal is a person's: the program on a PTY, what it printed, and an emulator that draws it and answers its
// queries.
type terminal struct {
	t     *testing.T
	w     *world
	cmd   *exec.Cmd
	tty   *os.File // kept open, so that modes can be read after the program's end
	ptmx  *os.File
	ended chan error
	work  sync.WaitGroup

	mu sync.Mutex
	// below: guarded by mu
	screen *vt.Emulator
	raw    bytes.Buffer
}

// open starts the program (args after its name) on a terminal of 100 by 30 and waits for nothing.
func (w *world) open(args ...string) *terminal {
	w.t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		w.t.Fatal(err)
	}
	term := &terminal{t: w.t, w: w, tty: tty, ptmx: nonblocking(w.t, ptmx), ended: make(chan error, 1), screen: vt.NewEmulator(100, 30)}
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = w.env, w.project
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	term.cmd = cmd
	term.work.Go(func() { term.ended <- cmd.Wait() })
	term.work.Go(term.draw)
	term.work.Go(term.reply)
	w.t.Cleanup(term.close)
	return term
}

// nonblocking makes reads of a PTY master end when it is closed; creack/pty's file does not (its issue 174).
func nonblocking(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.SetNonblock(fd, true), f.Close()); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "ptmx")
}

func (term *terminal) draw() {
	buf := make([]byte, 64<<10)
	for {
		n, err := term.ptmx.Read(buf)
		if n > 0 {
			term.mu.Lock()
			term.raw.Write(buf[:n])
			_, drawn := term.screen.Write(buf[:n])
			term.mu.Unlock()
			if drawn != nil {
				term.t.Errorf("emulator: %v", drawn)
			}
		}
		if err != nil {
			return // closed, or nobody has the other side open
		}
	}
}

// reply sends the emulator's answers to queries back, as a terminal does.
func (term *terminal) reply() {
	_, err := io.Copy(term.ptmx, term.screen)
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) {
		term.t.Errorf("emulator's replies: %v", err)
	}
}

func (term *terminal) close() {
	if term.alive() {
		_ = term.cmd.Process.Signal(syscall.SIGHUP) // as a closed window does; it may have ended meanwhile
		select {
		case err := <-term.ended:
			term.ended <- err
		case <-time.After(10 * time.Second):
			term.t.Errorf("the program did not end on SIGHUP")
			_ = term.cmd.Process.Kill()
		}
	}
	if term.t.Failed() {
		term.t.Logf("screen at the end:\n%s", term.text())
	}
	// The emulator's own Close races with a reader that waits for its replies; the end of the pipe they come by does not.
	_ = errors.Join(term.tty.Close(), term.ptmx.Close(), term.screen.InputPipe().(io.Closer).Close())
	term.work.Wait()
}

func (term *terminal) alive() bool {
	select {
	case err := <-term.ended:
		term.ended <- err
		return false
	default:
		return true
	}
}

// send types keys.
func (term *terminal) send(keys ...string) {
	term.t.Helper()
	if _, err := io.WriteString(term.ptmx, strings.Join(keys, "")); err != nil {
		term.t.Fatal(err)
	}
}

// text is all a person can see by scrolling up, without trailing blanks.
func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	var b strings.Builder
	for _, line := range term.screen.Scrollback().Lines() {
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	for line := range strings.SplitSeq(term.screen.String(), "\n") {
		b.WriteString(strings.TrimRight(line, " \r"))
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

// bytes is everything the program wrote to the terminal.
func (term *terminal) bytes() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.raw.String()
}

// see waits until the pattern (a regular expression, (?m) on) is on the screen or in its scrollback, and returns it.
func (term *terminal) see(pattern string) string {
	term.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if found := re.FindString(term.text()); found != "" {
			return found
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("waited %v to see %q; the screen:\n%s\ndaemon log:\n%s", patience, pattern, term.text(), term.w.logTail())
		}
	}
}

// sees tells whether the pattern is there now.
func (term *terminal) sees(pattern string) bool {
	return regexp.MustCompile("(?m)" + pattern).MatchString(term.text())
}

// modes is the terminal's line settings, as `stty -a` would show them.
func (term *terminal) modes() unix.Termios {
	term.t.Helper()
	m, err := unix.IoctlGetTermios(int(term.tty.Fd()), ioctlGetTermios)
	if err != nil {
		term.t.Fatal(err)
	}
	return *m
}

// wait returns the program's exit status, 128 + signal for one that was killed.
func (term *terminal) wait() int {
	term.t.Helper()
	select {
	case err := <-term.ended:
		term.ended <- err
		state := term.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if state.Signaled() {
			return 128 + int(state.Signal())
		}
		return state.ExitStatus()
	case <-time.After(patience):
		term.t.Fatalf("the program did not end; the screen:\n%s", term.text())
		return -1
	}
}
