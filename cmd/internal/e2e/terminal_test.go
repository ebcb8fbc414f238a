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

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/wire/citest"
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

// A terminal is the program on a PTY, what it printed, and an emulator that draws it and answers its queries.
type terminal struct {
	t     *testing.T
	w     *world
	cmd   *exec.Cmd
	tty   *os.File // kept open, so that modes can be read after the program's end
	ptmx  *os.File
	ended chan error
	work  sync.WaitGroup
	first unix.Termios // its modes before the program's start

	mu sync.Mutex
	// below: guarded by mu
	screen *vt.Emulator
	raw    bytes.Buffer
}

// open starts the program (args after its name) on a terminal of 100 by 30 and waits for nothing.
func (w *world) open(args ...string) *terminal {
	w.t.Helper()
	return w.openProgram(binary, args...)
}

// openProgram is open for another program.
func (w *world) openProgram(path string, args ...string) *terminal {
	w.t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		w.t.Fatal(err)
	}
	term := &terminal{t: w.t, w: w, tty: tty, ptmx: nonblocking(w.t, ptmx), ended: make(chan error, 1), screen: vt.NewEmulator(100, 30)}
	term.first = term.modes()
	cmd := exec.Command(path, args...)
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

// openShell starts the program and waits for the shell's prompt.
func (w *world) openShell() *terminal {
	w.t.Helper()
	term := w.open()
	term.atPrompt()
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
	var frames citest.Frames
	buf := make([]byte, 64<<10)
	for {
		n, err := term.ptmx.Read(buf)
		if n > 0 {
			term.mu.Lock()
			term.raw.Write(buf[:n])
			_, drawn := term.screen.Write(frames.Whole(buf[:n]))
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
		raw := term.bytes()
		term.t.Logf("screen at the end:\n%s\n%q", term.text(), raw[max(0, len(raw)-1000):])
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

// text returns the scrollback and the screen, without trailing blanks.
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

// bytes returns everything that the program wrote to the terminal.
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

// sees reports whether the pattern is there now.
func (term *terminal) sees(pattern string) bool {
	return regexp.MustCompile("(?m)" + pattern).MatchString(term.text())
}

// modes returns the terminal's settings, as `stty -a` would show them.
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

// run types a line at the prompt of command mode and waits for what it prints.
func (term *terminal) run(line, want string) {
	term.t.Helper()
	term.atPrompt()
	term.send(line, enter)
	term.see(want)
}

// atPrompt waits until the cursor stands behind the prompt: what is typed before belongs to the command that runs.
func (term *terminal) atPrompt() {
	term.t.Helper()
	term.w.await("the prompt", func() bool { return atShell(term.cursorLine()) })
}

// ask switches to AI mode, unless the terminal is in it, and asks.
func (term *terminal) ask(question string) {
	term.t.Helper()
	term.mode(true)
	term.send(ctrlU, question, enter) // clears keys that a question of the program did not take
}

// atShell and atAI report whether the line that the cursor is on is the prompt of the mode.
func atShell(line string) bool { return strings.HasSuffix(line, "$") || strings.HasSuffix(line, "#") }

func atAI(line string) bool { return strings.HasPrefix(line, ">") || strings.HasPrefix(line, "?") }

// mode waits for the prompt of a mode. At the other mode's prompt it presses Tab on an empty line, and again after 15 s: a shell that
// does not answer the window in time, on a machine that is overloaded, gets the key itself.
func (term *terminal) mode(ai bool) {
	term.t.Helper()
	is, other, keys := atShell, atAI, ctrlU+tab
	if ai {
		is, other, keys = atAI, atShell, tab
	}
	var pressed time.Time
	term.w.await("the prompt of the other mode", func() bool {
		line := term.cursorLine()
		if time.Since(pressed) > 15*time.Second && other(line) {
			term.send(keys)
			pressed = time.Now()
		}
		return is(line)
	})
}

func (term *terminal) cursorLine() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	lines := strings.Split(term.screen.String(), "\n")
	if y := term.screen.CursorPosition().Y; y < len(lines) {
		return strings.TrimRight(lines[y], " \r")
	}
	return ""
}

// answer waits until a question takes keys, presses one, and waits until done. A key that does not do it is pressed again after two
// seconds: on a slow machine also one that has answered.
func (term *terminal) answer(key string, done func() bool) {
	term.t.Helper()
	last, pressed := time.Now(), false
	term.w.await("the question to be armed and answered", func() bool {
		if done() {
			return true
		}
		if !pressed && term.armed() || time.Since(last) > 2*time.Second {
			term.send(key)
			last, pressed = time.Now(), true
		}
		return false
	})
}

// armed reports whether the screen has a question that takes keys: only then the answer that Enter gives is shown reversed.
func (term *terminal) armed() bool {
	term.mu.Lock()
	defer term.mu.Unlock()
	for y := range term.screen.Height() {
		for x := range term.screen.Width() {
			if c := term.screen.CellAt(x, y); c != nil && c.Style.Attrs&uv.AttrReverse != 0 {
				return true
			}
		}
	}
	return false
}

// allow waits until done, and answers a question with yes, if one is asked first.
func (term *terminal) allow(what string, done func() bool) {
	term.t.Helper()
	asked := func() bool { return term.sees(`\[n\] no`) }
	term.w.await(what, func() bool {
		if asked() && !done() {
			term.answer("y", func() bool { return done() || !asked() })
		}
		return done()
	})
}
