// Package screentest has a terminal emulator for tests of the screen.
package screentest

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"sublet/wire/citest"
)

// Screen is a terminal's screen and scrollback. Like tmux it treats "erase below" in the first cell as a clear, and moves the
// erased text into the scrollback. It is safe for concurrent use.
type Screen struct {
	mu sync.Mutex
	// Guarded by mu.
	emulator *vt.Emulator
	modes    map[int]bool
	raw      []byte
	frames   citest.Frames
}

// New returns an empty screen of w by h cells.
func New(w, h int) *Screen {
	s := &Screen{emulator: vt.NewEmulator(w, h), modes: map[int]bool{25: true}}
	s.emulator.SetCallbacks(vt.Callbacks{
		EnableMode:  func(m ansi.Mode) { s.modes[m.Mode()] = true },
		DisableMode: func(m ansi.Mode) { s.modes[m.Mode()] = false },
	})
	s.emulator.RegisterCsiHandler('J', func(params ansi.Params) bool {
		if part, _, _ := params.Param(0, 0); part == 0 && s.emulator.CursorPosition() == uv.Pos(0, 0) && !s.emulator.IsAltScreen() {
			for y := range s.used() {
				s.emulator.Scrollback().Push(s.line(y))
			}
		}
		return false
	})
	return s
}

// Write prints a program's output.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, p...)
	_, err := s.emulator.Write(s.frames.Whole(p))
	return len(p), err
}

// Resize makes the window w by h cells and shows lines, with the cursor after the last one: what a terminal shows that has wrapped
// or cut its lines.
func (s *Screen) Resize(w, h int, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emulator.Resize(w, h)
	_, _ = s.emulator.WriteString("\x1b[H\x1b[K\x1b[B\x1b[J\x1b[H" + strings.Join(lines, "\r\n"))
}

func (s *Screen) line(y int) (line uv.Line) {
	for x := range s.emulator.Width() {
		line = append(line, *s.emulator.CellAt(x, y))
	}
	return line
}

func (s *Screen) used() int {
	text := s.text()
	if text == "" {
		return 0
	}
	return strings.Count(text, "\n") + 1
}

func (s *Screen) text() string {
	lines := strings.Split(s.emulator.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Text returns the text on the screen, without empty lines at its end.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text()
}

// All returns the text of the scrollback and the screen.
func (s *Screen) All() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, line := range s.emulator.Scrollback().Lines() {
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String() + s.text()
}

// Cursor returns the cursor's place.
func (s *Screen) Cursor() (row, col int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.emulator.CursorPosition()
	return at.Y, at.X
}

// Odd lists the modes that differ from what a shell expects.
func (s *Screen) Odd() (odd []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, on := range s.modes {
		if on != (m == 25 || m == 7) {
			odd = append(odd, strconv.Itoa(m))
		}
	}
	return odd
}

// On reports whether a mode is on.
func (s *Screen) On(mode string) bool { return slices.Contains(s.Odd(), mode) }

// Raw returns all that was written.
func (s *Screen) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.raw)
}
