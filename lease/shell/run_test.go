package shell

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/wire/citest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// envBash names the bash that the tests run with; unset, it is the system's. `make test-matrix` sets it.
const envBash = "SUBLET_TEST_BASH"

// screen collects what Options.Output receives, and the events.
type screen struct {
	mu     sync.Mutex
	b      []byte
	events []any
}

func (s *screen) output(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, p...)
}

func (s *screen) event(e any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.b)
}

const patience = 30 * time.Second

// await waits until is, called with the lock held, reports true. The shell calls event with its own lock held: is must not
// call the shell.
func (s *screen) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	s.until(t, what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return is()
	})
}

func (s *screen) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s; screen %q", patience, what, s.String())
		}
	}
}

func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	s.await(t, text, func() bool { return strings.Contains(string(s.b), text) })
}

// prompts waits until so many prompts were reported.
func (s *screen) prompts(t *testing.T, n int) {
	t.Helper()
	s.until(t, "a prompt", func() bool { return len(events[PromptShown](s)) >= n })
}

func start2(t *testing.T, change func(*Options)) (*Shell, *screen) {
	t.Helper()
	scr := &screen{}
	home := t.TempDir()
	writeFiles(t, home, startupFiles)
	o := Options{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Path: os.Getenv(envBash), Dir: t.TempDir(), Folder: t.TempDir(), Output: scr.output, Event: scr.event,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash", "PS1=$ "},
	}
	if change != nil {
		change(&o)
	}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, scr
}

// A borrowed command does not change the terminal's size for the user.
func TestSizeAfterACommand(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path, o.Size = path, Size{Cols: 90, Rows: 20} })
			scr.prompts(t, 1)
			do(t, s, "stty rows 5 cols 5")
			if got := do(t, s, "stty size; echo $COLUMNS"); string(got.Output) != "20 90\n90\n" {
				t.Errorf("got %q", got.Output)
			}
		})
	}
}

func do(t *testing.T, s *Shell, text string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := s.Run(ctx, Command{Text: text})
	if err != nil {
		t.Fatalf("run %q: %v; %s", text, err, s.Busy())
	}
	if ctx.Err() != nil {
		t.Fatalf("run %q: %v", text, ctx.Err())
	}
	return res
}

// A command that runs at Close was reported as ok, without an exit code.
func TestCloseDuringCommand(t *testing.T) {
	s, _ := start2(t, nil)
	began := make(chan struct{})
	go func() {
		<-began
		_ = s.Close()
	}()
	res, err := s.Run(t.Context(), Command{Text: "sleep 60", Started: func() { close(began) }})
	if err != nil || res.Status != "shell_exited" || res.ExitCode != nil {
		t.Errorf("got %+v, %v", res, err)
	}
}
