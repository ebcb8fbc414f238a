package transparent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	// patience bounds every wait; it is long because the machine may be slow under the race detector.
	patience = 2 * time.Minute
	// quiet is how long a terminal must have been silent for its screen to count as drawn.
	quiet = 40 * time.Millisecond
)

// A terminal is a person's: a program on a PTY, and an emulator that draws what it prints and answers its queries.
type terminal struct {
	t     *testing.T
	cmd   *exec.Cmd
	tty   *os.File // kept open, so that modes can be read after the program's end
	ptmx  *os.File
	found unix.Termios // the terminal's settings before the program began
	ended chan struct{}
	work  sync.WaitGroup

	mu sync.Mutex
	// below: guarded by mu
	screen *vt.Emulator
	stream bytes.Buffer
	last   time.Time // when it last printed or was typed into
	modes  map[ansi.Mode]bool
	title  string
	cursor string
	bells  int
}

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }

// open starts cmd on a terminal of its own.
func open(t *testing.T, cmd *exec.Cmd, cols, rows int) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	// creack/pty's file blocks in Read after Close; one that the runtime polls does not.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(setSize(tty, cols, rows), unix.SetNonblock(fd, true), master.Close()); err != nil {
		t.Fatal(err)
	}
	term := &terminal{
		t: t, cmd: cmd, tty: tty, ptmx: os.NewFile(uintptr(fd), "ptmx"), ended: make(chan struct{}),
		screen: vt.NewEmulator(cols, rows), last: time.Now(), modes: map[ansi.Mode]bool{},
	}
	term.screen.SetCallbacks(vt.Callbacks{ // called by Write, so with mu held
		Bell:        func() { term.bells++ },
		Title:       func(title string) { term.title = title },
		CursorStyle: func(style vt.CursorStyle, blink bool) { term.cursor = fmt.Sprint(style, blink) },
		EnableMode:  func(m ansi.Mode) { term.modes[m] = true },
		DisableMode: func(m ansi.Mode) { term.modes[m] = false },
	})
	term.found = term.settings()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = newSession()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term.work.Go(func() { _ = cmd.Wait(); close(term.ended) }) // ProcessState has its status
	term.work.Go(term.draw)
	term.work.Go(func() { _, _ = io.Copy(term.ptmx, term.screen) }) // answers to queries; ends with close
	t.Cleanup(term.close)
	return term
}

func (term *terminal) draw() {
	buf := make([]byte, 64<<10)
	for {
		n, err := term.ptmx.Read(buf)
		if n > 0 {
			term.mu.Lock()
			term.stream.Write(buf[:n])
			_, drawn := term.screen.Write(buf[:n])
			term.last = time.Now()
			term.mu.Unlock()
			if drawn != nil {
				term.t.Errorf("emulator: %v", drawn)
			}
		}
		if err != nil {
			return // closed
		}
	}
}

// close closes the window, and so ends what still runs. It is idempotent.
func (term *terminal) close() {
	// The emulator's own Close races with a reader that waits for its replies; the end of the pipe they come by does not.
	_ = errors.Join(term.tty.Close(), term.ptmx.Close(), term.screen.InputPipe().(io.Closer).Close())
	select {
	case <-term.ended:
	case <-time.After(patience):
		term.t.Errorf("%s did not end with its window", term.cmd.Path)
		_ = term.cmd.Process.Kill()
	}
	term.work.Wait()
}

// send types keys. It fails where nobody reads them for a long time.
func (term *terminal) send(keys string) {
	term.t.Helper()
	for some := range slices.Chunk([]byte(keys), 1024) {
		if err := term.ptmx.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			term.t.Fatal(err)
		}
		if _, err := term.ptmx.Write(some); err != nil {
			term.t.Fatalf("type %.60q: %v; the screen:\n%s", keys, err, frame(term.look().text))
		}
	}
	term.touched()
}

// touched makes quiet begin anew.
func (term *terminal) touched() {
	term.mu.Lock()
	defer term.mu.Unlock()
	term.last = time.Now()
}

// silence returns how long nothing was printed or typed.
func (term *terminal) silence() time.Duration {
	term.mu.Lock()
	defer term.mu.Unlock()
	return time.Since(term.last)
}

// end types keys that end the program, and waits until it has.
func (term *terminal) end(keys string) {
	term.t.Helper()
	term.send(keys)
	select {
	case <-term.ended:
		term.touched()
	case <-time.After(patience):
		term.t.Fatalf("%s did not end; the screen:\n%s", term.cmd.Path, frame(term.look().text))
	}
}

func (term *terminal) resize(cols, rows int) {
	term.t.Helper()
	term.mu.Lock()
	term.screen.Resize(cols, rows)
	term.mu.Unlock()
	if err := setSize(term.tty, cols, rows); err != nil {
		term.t.Fatal(err)
	}
}

// setSize is asked of the terminal's own side: the master's Fd method would make its reads block.
func setSize(tty *os.File, cols, rows int) error {
	return pty.Setsize(tty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
}

// settings returns what stty would show.
func (term *terminal) settings() unix.Termios {
	term.t.Helper()
	settings, err := unix.IoctlGetTermios(int(term.tty.Fd()), ioctlGetTermios)
	if err != nil {
		term.t.Fatal(err)
	}
	return *settings
}

// view is what a terminal shows.
type view struct {
	text   string   // the rows of the screen, without trailing blanks, ▮ at the cursor
	styled []string // scrollback and screen, colours and all
	modes  string   // the terminal's modes that programs have changed
	rest   string   // its title, the shape of its cursor, how often it rang
}

// look returns the view of now.
func (term *terminal) look() view {
	term.mu.Lock()
	defer term.mu.Unlock()
	var v view
	var text strings.Builder
	at := term.screen.CursorPosition()
	for y := range term.screen.Height() {
		end := 0 // of what stays on this row
		line := make(uv.Line, 0, term.screen.Width())
		for x := range term.screen.Width() + 1 {
			if x == at.X && y == at.Y {
				text.WriteString("▮")
				end = text.Len()
			}
			cell := term.screen.CellAt(x, y)
			if cell == nil {
				break
			}
			line = append(line, *cell)
			text.WriteString(cell.Content)
			if cell.Content != "" && cell.Content != " " {
				end = text.Len()
			}
		}
		kept := text.String()
		kept = kept[:max(end, strings.LastIndexByte(kept, '\n')+1)]
		text.Reset()
		text.WriteString(kept + "\n")
		v.styled = append(v.styled, line.Render())
	}
	v.text = strings.TrimRight(text.String(), "\n")
	var back []string
	for _, line := range term.screen.Scrollback().Lines() {
		back = append(back, line.Render())
	}
	v.styled = append(back, v.styled...)
	var set []string
	for mode, on := range term.modes {
		if on != (mode == ansi.ModeTextCursorEnable || mode == ansi.ModeAutoWrap) { // those are on from the start
			set = append(set, fmt.Sprintf("%T %d %t", mode, mode.Mode(), on))
		}
	}
	slices.Sort(set)
	v.modes = strings.Join(set, ", ")
	v.rest = fmt.Sprintf("title %q, cursor %s, alternate screen %t, %d bells", term.title, term.cursor, term.screen.IsAltScreen(), term.bells)
	return v
}
