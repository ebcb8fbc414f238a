// Package dialecttest drives the integration script of a dialect in a real shell on a pseudo-terminal, through the script
// protocol alone. It knows nothing of the client's own part, which is in package shell.
package dialecttest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/wire/citest"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/term"
)

// patience bounds each wait; none of them is expected to last that long.
const patience = 15 * time.Second

// Options for Start.
type Options struct {
	Files     map[string]string // in the home directory, by relative path
	Env       []string          // more of it
	NoStartup bool
	Restore   string
}

// A Held is what the widget reported as it began to block.
type Held struct {
	Context, Flags string
	Cursor         int
	Line           string // "" where there is none
}

// A Result is how a borrowed command ended.
type Result struct {
	Output string // between the marks
	Status int
	Dir    string
}

// A Prompt is what the prompt hook reported.
type Prompt struct {
	Status int
	Dir    string
}

// Shell is a shell that a test talks to. Its terminal shows what a person would see while the client hides what is printed
// between the line that runs a borrowed command and that command's beginning.
type Shell struct {
	Home, Folder string
	PID          int

	t        testing.TB
	dialect  *dialect.Dialect
	terminal *term.Terminal
	down     *os.File
	runs     int

	mu       sync.Mutex
	changed  chan struct{} // closed, and made anew, when anything below changes
	screen   *vt.Emulator
	splitter term.Splitter
	hides    bool   // from the next mark C
	hidden   bool   // up to the next mark S
	borrowed bool   // between the marks S and E
	output   []byte // of the last borrowed command
	raw      []byte // all of it, without marks
	prompt   int    // the row of the last prompt, from the first that scrolled away
	hungUp   bool   // nothing has the terminal open
	marks    []term.Mark
	records  []string
	seen     map[string]int // marks ("m" and kind) and records ("r" and kind) that a test has taken
}

// Find returns the path of a shell. Without it the test is skipped, or fails where CI is set.
func Find(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		citest.Skip(t, err)
	}
	return path
}

// Start starts the shell in a home directory of its own, on a terminal of 80×24, and waits for its first prompt.
func Start(t testing.TB, d *dialect.Dialect, o Options) *Shell {
	t.Helper()
	path := Find(t, d.Name)
	s := &Shell{
		Home: t.TempDir(), Folder: filepath.Join(t.TempDir(), "it's here"), t: t, dialect: d,
		seen: make(map[string]int), changed: make(chan struct{}), screen: vt.NewEmulator(80, 24),
	}
	s.write(s.Home, o.Files)
	env := append([]string{
		"HOME=" + s.Home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=" + path, "USER=tester",
	}, o.Env...)
	launch := d.Start(dialect.Start{
		Folder: s.Folder, Nonce: "n0", Env: env, NoStartup: o.NoStartup, Restore: o.Restore,
	})
	s.write(s.Folder, map[string]string{launch.File: launch.Text})
	up := s.fifo("up")
	s.down = s.fifo("down")
	cmd := &exec.Cmd{Path: path, Args: launch.Args, Env: launch.Env, Dir: s.Home}
	terminal, slave, err := term.Open(term.Size{Cols: 80, Rows: 24}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	s.terminal = terminal
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.PID = cmd.Process.Pid
	var readers sync.WaitGroup
	readers.Go(func() { s.readTerminal() })
	readers.Go(func() { s.readRecords(up) })
	readers.Go(func() { io.Copy(s.terminal, s.screen) }) //nolint:errcheck // what the shell asks of the terminal
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("screen:\n%s\nlast output: %q\nrecords: %q", strings.Join(s.Screen(), "\n"), s.raw[max(0, len(s.raw)-600):], s.records)
		}
		kill := time.AfterFunc(2*time.Second, func() { cmd.Process.Kill() })
		s.terminal.Close()
		s.screen.InputPipe().(io.Closer).Close() // Close of the emulator races with its Read
		cmd.Process.Signal(syscall.SIGHUP)
		cmd.Wait() //nolint:errcheck // how it ends does not matter
		kill.Stop()
		up.Close()
		s.down.Close()
		readers.Wait()
	})
	s.Prompt()
	return s
}

func (s *Shell) write(folder string, files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *Shell) fifo(name string) *os.File {
	s.t.Helper()
	path := filepath.Join(s.Folder, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *Shell) readTerminal() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.terminal.Read(buf)
		s.mu.Lock()
		s.splitter.Feed(buf[:n], s.show, s.mark)
		s.hungUp = err != nil
		s.changeLocked()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *Shell) show(p []byte) {
	s.raw = append(s.raw, p...)
	if s.borrowed {
		s.output = append(s.output, p...)
	}
	if !s.hidden {
		s.screen.Write(p) //nolint:errcheck // it cannot fail
	}
}

func (s *Shell) mark(m term.Mark) {
	if m.PID != s.PID {
		return
	}
	switch m.Kind {
	case 'S':
		s.hidden, s.borrowed, s.output = false, true, nil
	case 'E':
		s.borrowed = false
	case 'P':
		s.borrowed = false
		s.prompt = s.rowLocked()
	case 'C': // what the shell has not erased, the client does
		if up := s.rowLocked() - s.prompt; up > 0 {
			s.screen.WriteString(fmt.Sprintf("\x1b[%dA", up)) //nolint:errcheck // it cannot fail
		}
		s.screen.WriteString("\r\x1b[J") //nolint:errcheck // it cannot fail
		s.hidden, s.hides = s.hides, false
	}
	s.marks = append(s.marks, m)
}

// rowLocked returns the row of the cursor, counted from the first that scrolled away.
func (s *Shell) rowLocked() int { return s.screen.ScrollbackLen() + s.screen.CursorPosition().Y }

func (s *Shell) readRecords(up *os.File) {
	var pending []byte
	buf := make([]byte, 4096)
	for {
		n, err := up.Read(buf)
		if err != nil {
			return
		}
		pending = append(pending, buf[:n]...)
		for {
			i := strings.IndexByte(string(pending), 0)
			if i < 0 {
				break
			}
			s.mu.Lock()
			s.records = append(s.records, string(pending[:i]))
			s.changeLocked()
			s.mu.Unlock()
			pending = pending[i+1:]
		}
	}
}

// Await waits until condition holds; it is looked at whenever the shell has printed something, and now and then.
func (s *Shell) Await(what string, condition func() bool) {
	s.t.Helper()
	if !s.await(condition) {
		s.t.Fatalf("%s: not within %v", what, patience)
	}
}

func (s *Shell) await(condition func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		s.mu.Lock()
		is, changed := condition(), s.changed
		s.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-late:
			return false
		}
	}
}

// changeLocked wakes who waits.
func (s *Shell) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Mark waits for the next mark of a kind that was not taken yet.
func (s *Shell) Mark(kind byte) (m term.Mark) {
	s.t.Helper()
	s.Await("mark "+string(kind), func() bool {
		n := 0
		for _, m = range s.marks {
			if m.Kind == kind {
				if n++; n > s.seen["m"+string(kind)] {
					s.seen["m"+string(kind)]++
					return true
				}
			}
		}
		return false
	})
	return m
}

// Record waits for the next record of a kind that was not taken yet, and returns what stands behind the process id.
func (s *Shell) Record(kind string) (text string) {
	s.t.Helper()
	s.Await("record "+kind, func() bool {
		n := 0
		for _, r := range s.records {
			if rest, ok := strings.CutPrefix(r, fmt.Sprintf("%s %d", kind, s.PID)); ok {
				if n++; n > s.seen["r"+kind] {
					s.seen["r"+kind]++
					text = strings.TrimPrefix(rest, " ")
					return true
				}
			}
		}
		return false
	})
	return text
}

// Count returns how many records of a kind have come.
func (s *Shell) Count(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if strings.HasPrefix(r, kind+" ") {
			n++
		}
	}
	return n
}

// Type types keys.
func (s *Shell) Type(keys string) {
	s.t.Helper()
	if _, err := s.terminal.Write([]byte(keys)); err != nil {
		s.t.Fatal(err)
	}
}

// Enter types a line and Enter, and waits for the next prompt.
func (s *Shell) Enter(line string) Prompt {
	s.t.Helper()
	s.Type(line + "\r")
	return s.Prompt()
}

// Prompt waits for the next prompt, and until the line editor has the terminal: before that it would echo keys, and take ^R
// and ^V for itself.
func (s *Shell) Prompt() Prompt {
	s.t.Helper()
	s.Mark('P')
	text, dir, _ := strings.Cut(s.Record("P"), " ")
	status, err := strconv.Atoi(text)
	if err != nil {
		s.t.Errorf("the prompt's record: %v", err)
	}
	s.Await("the line editor takes the terminal", func() bool {
		modes, err := s.terminal.Modes()
		return err == nil && modes.Lflag&unix.ICANON == 0
	})
	return Prompt{status, dir}
}

// Key types the key that calls the widget.
func (s *Shell) Key() {
	s.t.Helper()
	s.Type(s.dialect.HoldKey)
}

// Hold calls the widget and waits until it blocks.
func (s *Shell) Hold() Held {
	s.t.Helper()
	s.Key()
	return s.Held()
}

// Look is Hold, after which the line goes on as it was.
func (s *Shell) Look() Held {
	s.t.Helper()
	defer s.Direct("none")
	return s.Hold()
}

// Held waits until the widget blocks.
func (s *Shell) Held() Held {
	s.t.Helper()
	s.Mark('A')
	f := strings.Split(s.Record("A"), " ")
	if len(f) != 4 {
		s.t.Fatalf("record A: got %q, want four words", f)
	}
	h := Held{Context: f[0], Flags: f[1]}
	h.Cursor, _ = strconv.Atoi(f[2])
	if f[3] != "0" {
		line, err := os.ReadFile(filepath.Join(s.Folder, "line"))
		if err != nil {
			s.t.Fatal(err)
		}
		h.Line = string(line)
	}
	return h
}

// Direct sends the widget a directive.
func (s *Shell) Direct(directive string) {
	s.t.Helper()
	if _, err := s.down.WriteString(directive + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// Erase has the widget erase what the editor shows.
func (s *Shell) Erase() {
	s.t.Helper()
	s.Direct("screen")
	s.Mark('C')
}

// State has the widget write the state, and reads it.
func (s *Shell) State() dialect.State {
	s.t.Helper()
	s.Direct("state")
	s.Record("T")
	text, err := os.ReadFile(filepath.Join(s.Folder, "state"))
	if err != nil {
		s.t.Fatal(err)
	}
	st, err := s.dialect.ReadState(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// LookState is State of an editor that is not held before nor afterwards.
func (s *Shell) LookState() dialect.State {
	s.t.Helper()
	defer s.Direct("none")
	s.Hold()
	return s.State()
}

// Undo undoes in the shell what differs between two states, except for the variables in left, which the shell cannot put back.
func (s *Shell) Undo(before, after dialect.State, left ...string) {
	s.t.Helper()
	text, got := s.dialect.Restore(before, after, after)
	if !slices.Equal(got, left) {
		s.t.Errorf("left %q, want %q", got, left)
	}
	if r := s.Run(text); r.Output != "" || r.Status != 0 {
		s.t.Fatalf("restore: %+v\n%s", r, text)
	}
	now := s.LookState()
	for _, name := range left {
		delete(now.Local, name)
	}
	if d := dialect.Difference(before, now); d != "" || before.Sum() != now.Sum() {
		s.t.Errorf("not restored: %s\n%s", d, text)
	}
}

// Begin has the widget, which blocks, run a command, and waits for the command's beginning.
func (s *Shell) Begin(text, dir string) {
	s.t.Helper()
	s.write(s.Folder, map[string]string{"text": text + "\n"})
	s.runs++
	s.mu.Lock()
	s.hides = true
	s.mu.Unlock()
	s.Direct(strings.TrimSuffix("run n"+strconv.Itoa(s.runs)+" "+dir, " "))
	s.Type(s.dialect.AcceptKey)
	s.Mark('S')
}

// End waits for the end of the command that Begin began, and for the prompt behind it.
func (s *Shell) End() Result {
	s.t.Helper()
	f := strings.SplitN(s.Record("E"), " ", 3)
	m := s.Mark('E')
	if len(f) != 3 || f[0] != m.Nonce || m.Nonce != "n"+strconv.Itoa(s.runs) {
		s.t.Fatalf("end: got record %q and mark %+v", f, m)
	}
	status, err := strconv.Atoi(f[1])
	if err != nil {
		s.t.Fatalf("end: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Result{string(s.output), status, f[2]}
}

// Run holds the editor, erases it and runs a command, and waits for the prompt behind it.
func (s *Shell) Run(text string) Result {
	s.t.Helper()
	if h := s.Hold(); h.Context != "ready" {
		s.t.Fatalf("the editor is not ready: %+v", h)
	}
	s.Erase()
	s.Begin(text, "")
	r := s.End()
	s.Prompt()
	return r
}

// Screen returns the lines of the terminal without trailing spaces, up to the last that is not empty.
func (s *Shell) Screen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screenLocked()
}

func (s *Shell) screenLocked() []string {
	lines := strings.Split(s.screen.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// AwaitScreen waits until the terminal shows exactly these lines.
func (s *Shell) AwaitScreen(lines ...string) {
	s.t.Helper()
	s.Await(fmt.Sprintf("screen %q", lines), func() bool { return strings.Join(s.screenLocked(), "\n") == strings.Join(lines, "\n") })
}

// AwaitText waits until the terminal shows a text.
func (s *Shell) AwaitText(text string) {
	s.t.Helper()
	s.Await(fmt.Sprintf("text %q", text), func() bool { return strings.Contains(strings.Join(s.screenLocked(), "\n"), text) })
}

// Signal sends the shell a signal by name.
func (s *Shell) Signal(name string) {
	s.t.Helper()
	if err := syscall.Kill(s.PID, unix.SignalNum("SIG"+name)); err != nil {
		s.t.Fatal(err)
	}
}

// Resize changes the terminal's size.
func (s *Shell) Resize(cols, rows int) {
	s.t.Helper()
	s.mu.Lock()
	s.screen.Resize(cols, rows)
	s.mu.Unlock()
	if err := s.terminal.Resize(term.Size{Cols: cols, Rows: rows}); err != nil {
		s.t.Fatal(err)
	}
}

// Exited waits until the shell has ended.
func (s *Shell) Exited() {
	s.t.Helper()
	s.Await("the end", func() bool { return s.hungUp })
}

// Foreground returns the terminal's foreground process group.
func (s *Shell) Foreground() int { return s.terminal.Foreground() }
