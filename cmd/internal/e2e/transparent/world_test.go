package transparent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/wire/citest"

	"golang.org/x/sys/unix"
)

// A row is what a person does in a shell that is set up as files say.
type row struct {
	name  string
	shell string            // bash, zsh or fish
	needs []string          // programs, or files by their path, without which the row is skipped; in CI it fails
	files map[string]string // in the home folder
	cols  int               // of the terminal; 0 = 80
	first string            // what the screen shows first; "" = the prompt "> "
	steps []step
	leave string // what ends the shell; "" = exit
	fresh bool   // the user has never run the other program: there are no settings, and no daemon runs
}

// A step is one thing that a person does, and what the screen shows then.
type step struct {
	keys       string // typed at once
	touch      string // a file made in the home folder, which a command waits for
	cols, rows int    // the window gets this size
	// until is a pattern, (?m) on, of the screen with ▮ at the cursor. It must not hold before the step, or the row proves nothing.
	until string
	blind bool // what is on the screen depends on chance, from here to the end of the row; files and history do not
}

// A world is one user who has everything twice, to do the same things with the shell alone and with another program.
type world struct {
	t    *testing.T
	row  row
	root string
	runs int
	// settled is how long both screens must have been silent to count as different. Beside much load a program needs seconds to begin.
	settled time.Duration
}

// A side is one of the two.
type side struct {
	w    *world
	dir  string // its folder; those of the two have paths of the same length
	term *terminal
}

func newWorld(t *testing.T, r row) *world {
	t.Helper()
	for _, name := range append([]string{r.shell}, r.needs...) {
		_, err := exec.LookPath(name)
		if strings.HasPrefix(name, "/") {
			_, err = os.Stat(name)
		}
		if err != nil {
			citest.Skip(t, name, "is missing: `make shells` installs it")
		}
	}
	root, err := os.MkdirTemp("/tmp", "tr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(root)
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); err = os.RemoveAll(root) {
			time.Sleep(10 * time.Millisecond) // a shell whose window was closed is still writing its history
		}
		if err != nil {
			t.Error(err)
		}
	})
	if r.first == "" {
		r.first = `^> ▮$`
	}
	if r.cols == 0 {
		r.cols = 80
	}
	if r.leave == "" {
		r.leave = "exit\r"
	}
	return &world{t: t, row: r, root: root, settled: 15 * time.Second}
}

// side makes a home folder.
func (w *world) side() *side {
	w.t.Helper()
	w.runs++
	s := &side{w: w, dir: filepath.Join(w.root, fmt.Sprint(w.runs))}
	for name, text := range w.row.files {
		s.write(name, text)
	}
	// fish begins to read every manual page where it has never done so.
	for _, dir := range []string{s.home(".local/share/fish/generated_completions"), filepath.Join(s.dir, "run")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	return s
}

func (s *side) home(parts ...string) string {
	return filepath.Join(append([]string{s.dir, "home"}, parts...)...)
}

func (s *side) write(name, text string) {
	s.w.t.Helper()
	path := s.home(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
		s.w.t.Fatal(err)
	}
}

// open starts a program in a terminal.
func (s *side) open(program string, env ...string) {
	s.w.t.Helper()
	shell, err := exec.LookPath(s.w.row.shell)
	if err != nil {
		s.w.t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = s.home()
	run := filepath.Join(s.dir, "run")
	cmd.Env = slices.Concat([]string{
		"HOME=" + s.home(), "PATH=" + os.Getenv("PATH"), "SHELL=" + shell, "TERM=xterm-256color", "LANG=C.UTF-8", "USER=tester",
		"XDG_RUNTIME_DIR=" + run, "TMUX_TMPDIR=" + run, "SCREENDIR=" + run, "_ZO_DATA_DIR=" + s.home(".local/share/zoxide"),
	}, shared, env)
	s.term = open(s.w.t, cmd, s.w.row.cols, 24)
}

// openTested starts what the tests are about.
func (s *side) openTested() {
	switch under() {
	case "bare":
		s.open(s.w.row.shell)
	case "proxy":
		s.openProxy(-1)
	case "sublet":
		if s.w.row.fresh {
			s.openFresh()
			return
		}
		s.open(sublet)
	default:
		s.open(under())
	}
}

// openFresh starts sublet without a daemon and settings, and waits until it has started a daemon.
func (s *side) openFresh() {
	run := filepath.Join(s.dir, "run")
	env := []string{
		"SUBLET_RUNTIME_DIR=" + run, "SUBLET_STATE_DIR=" + filepath.Join(run, "state"), "SUBLET_CONFIG=" + filepath.Join(run, "config.toml"),
	}
	s.open(sublet, env...)
	s.w.t.Cleanup(func() {
		stop := exec.Command(sublet, "daemon", "stop")
		stop.Env = slices.Concat(os.Environ(), shared, env)
		if out, err := stop.CombinedOutput(); err != nil {
			s.w.t.Errorf("stop the daemon: %v: %s", err, out)
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(quiet) {
		_, err := os.Stat(filepath.Join(run, "daemon.sock"))
		switch {
		case err == nil:
			return
		case time.Now().After(deadline):
			s.w.t.Fatalf("no daemon; the screen:\n%s", frame(s.look().text))
		}
	}
}

// openProxy starts the proxy, which drops the byte at drop; -1 = none.
func (s *side) openProxy(drop int) {
	self, err := os.Executable()
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.open(self, "TRANSPARENT_PROXY="+s.w.row.shell, fmt.Sprint("TRANSPARENT_DROP=", drop))
}

func (s *side) do(st step) {
	s.w.t.Helper()
	if st.cols != 0 {
		s.term.resize(st.cols, st.rows)
	}
	if st.touch != "" {
		s.write(st.touch, "")
	}
	s.term.send(st.keys)
}

// look returns what is shown, with the first side's folder in the place of its own.
func (s *side) look() view {
	v := s.term.look()
	v.text, v.rest = s.same(v.text), s.same(v.rest)
	for i, line := range v.styled {
		v.styled[i] = s.same(line)
	}
	return v
}

func (s *side) same(text string) string {
	return strings.ReplaceAll(text, s.dir+"/", filepath.Join(s.w.root, "1")+"/")
}

// compare plays the row with the shell alone and with what open starts, and returns the first difference, "" = none. After each
// step it waits until both show the same, so that a slow program is no different one. It fails the test where the shell
// does not show what a step waits for.
func (w *world) compare(alone *side, other *side) string {
	w.t.Helper()
	blind := false
	if diff := w.await(alone, other, w.row.first, blind); diff != "" {
		return "at the first prompt: " + diff
	}
	for i, st := range w.row.steps {
		name := fmt.Sprintf("step %d, %.60q", i+1, st.keys)
		if v := alone.look(); regexp.MustCompile("(?m)" + st.until).MatchString(v.text) {
			w.t.Fatalf("%s: %q holds before it:\n%s", name, st.until, frame(v.text))
		}
		blind = blind || st.blind
		alone.do(st)
		other.do(st)
		if diff := w.await(alone, other, st.until, blind); diff != "" {
			return fmt.Sprintf("after %s: %s", name, diff)
		}
	}
	alone.term.end(w.row.leave)
	other.term.end(w.row.leave)
	if diff := w.await(alone, other, "", blind); diff != "" {
		return "after the end: " + diff
	}
	want, got := alone.left(), other.left()
	if got.modes == other.term.found {
		got.modes = want.modes // what the user has set is gone with the shell, and the terminal is as it was
	}
	return want.difference(got)
}

// await waits until the pattern matches what the shell alone shows, and the other shows the same. It returns the difference that
// is left when both have been silent for a long time.
func (w *world) await(alone, other *side, pattern string, blind bool) (diff string) {
	w.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for {
		silent := min(alone.term.silence(), other.term.silence())
		if silent < quiet {
			time.Sleep(quiet - silent) // of the terminals, which is the event that is waited for
			continue
		}
		a, b := alone.look(), other.look()
		if pattern == "" && b.modes == "" {
			a.modes = "" // at the end it is no difference to leave the terminal in a better state
		}
		found := re.MatchString(a.text)
		if blind {
			diff = ""
			if found && !re.MatchString(b.text) {
				diff = fmt.Sprintf("waited for %q; the screen is\n%s", pattern, frame(b.text))
			}
		} else {
			diff = b.difference(a)
		}
		late := silent > patience
		switch {
		case found && diff == "":
			return ""
		case found && (late || !blind && silent > w.settled):
			return diff
		case late:
			w.t.Fatalf("waited for %q; the screen of the shell alone:\n%s", pattern, frame(a.text))
		}
		time.Sleep(quiet / 4)
	}
}

// leftover is what a program has left behind.
type leftover struct {
	status int
	modes  unix.Termios
	files  map[string]string
}

// left closes the window.
func (s *side) left() leftover {
	s.w.t.Helper()
	modes := s.term.settings()
	s.term.close()
	return leftover{s.term.cmd.ProcessState.ExitCode(), modes, s.files()}
}

func (want leftover) difference(got leftover) string {
	if got.status != want.status {
		return fmt.Sprintf("exit status %d, the shell's is %d", got.status, want.status)
	}
	if got.modes != want.modes {
		return fmt.Sprintf("the terminal is left with %+v, by the shell with %+v", got.modes, want.modes)
	}
	for _, name := range slices.Sorted(maps.Keys(want.files)) {
		if got.files[name] != want.files[name] {
			return fmt.Sprintf("%s holds\n%s\nwith the shell alone\n%s", name, got.files[name], want.files[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got.files)) {
		if _, ok := want.files[name]; !ok {
			return fmt.Sprintf("%s is there, and not with the shell alone", name)
		}
	}
	return ""
}

// difference returns what differs in v from want, "" = nothing.
func (v view) difference(want view) string {
	switch {
	case v.text != want.text:
		return fmt.Sprintf("the screen is\n%s\nwith the shell alone\n%s", frame(v.text), frame(want.text))
	case !slices.Equal(v.styled, want.styled):
		for i, line := range want.styled {
			if i >= len(v.styled) || v.styled[i] != line {
				return fmt.Sprintf("scrollback and screen have %d lines, with the shell alone %d; from line %d on they are\n%q\nwith the shell alone\n%q",
					len(v.styled), len(want.styled), i, v.styled[min(i, len(v.styled)):min(i+3, len(v.styled))], want.styled[i:min(i+3, len(want.styled))])
			}
		}
		return fmt.Sprintf("scrollback and screen have %d lines, with the shell alone %d", len(v.styled), len(want.styled))
	case v.modes != want.modes || v.rest != want.rest:
		return fmt.Sprintf("the terminal has %s; %s\nwith the shell alone %s; %s", v.rest, v.modes, want.rest, want.modes)
	}
	return ""
}

func frame(text string) string { return "  │" + strings.ReplaceAll(text, "\n", "\n  │") }

// notCompared are caches, and what holds times.
var notCompared = regexp.MustCompile(`^(\.cache|\.zcompdump|\.viminfo|\.local/share/(direnv|zoxide)|\.config/fish/fish_variables)`)

// fishCommands returns the commands of a history file of fish's. At one exit in 25, which one is chance, fish writes the file
// anew with the last of each command only; and it looks in the background which words are paths.
func fishCommands(file string) string {
	var list []string
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "- cmd: ") {
			list = append(slices.DeleteFunc(list, func(l string) bool { return l == line }), line)
		}
	}
	return strings.Join(list, "")
}

// files returns what is in the home folder.
func (s *side) files() map[string]string {
	s.w.t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(s.home(), func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, s.home()+"/")
		if err != nil || !e.Type().IsRegular() || notCompared.MatchString(name) {
			return err
		}
		raw, err := os.ReadFile(path)
		list[name] = s.same(string(raw))
		if filepath.Base(name) == "fish_history" {
			list[name] = fishCommands(list[name])
		}
		return err
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	return list
}

// test runs the rows.
func test(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(strings.ReplaceAll(r.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r)
			alone, tested := w.side(), w.side()
			alone.open(r.shell)
			tested.openTested()
			if diff := w.compare(alone, tested); diff != "" {
				t.Error(diff)
			}
		})
	}
}
