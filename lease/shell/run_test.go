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
	o := Options{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Path: os.Getenv(envBash), NoStartup: true, Dir: t.TempDir(), Folder: t.TempDir(), Output: scr.output, Event: scr.event,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash", "PS1=$ "},
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

func TestRun(t *testing.T) {
	s, scr := start2(t, nil)
	res := do(t, s, "echo one; false")
	if res.Status != "ok" || *res.ExitCode != 1 || string(res.Output) != "one\n" {
		t.Errorf("got %+v %q", res, res.Output)
	}
	res = do(t, s, "cd /usr; export X=1; f() { echo f; }; alias g='echo g'")
	if res.Dir != "/usr" || !res.Changes {
		t.Errorf("got %+v", res)
	}
	res = do(t, s, "f; g; echo $X")
	if string(res.Output) != "f\ng\n1\n" {
		t.Errorf("got %q", res.Output)
	}
	st, err := s.State(t.Context())
	if err != nil || st.Vars["X"] != "1" || st.Aliases["g"] != "echo g" || st.Functions["f"] == "" {
		t.Errorf("state %+v, %v", st, err)
	}
	_ = scr
}

func TestHalfTypedLine(t *testing.T) {
	s, scr := start2(t, nil)
	scr.shows(t, "# ")
	if err := s.Keys([]byte("echo half")); err != nil {
		t.Fatal(err)
	}
	scr.shows(t, "echo half")
	res := do(t, s, "echo lent")
	if string(res.Output) != "lent\n" {
		t.Errorf("got %q", res.Output)
	}
	if err := s.Keys([]byte(" line\r")); err != nil {
		t.Fatal(err)
	}
	scr.shows(t, "\rhalf line\r\n")
	if strings.Contains(scr.String(), "__sublet") {
		t.Errorf("screen %q", scr.String())
	}
}

func TestScreen(t *testing.T) {
	s, scr := start2(t, nil)
	scr.shows(t, "# ")
	scr.prompts(t, 1)
	if ok, err := s.HoldIfEmpty(t.Context()); err != nil || !ok {
		t.Fatalf("hold: %v, %v", ok, err)
	}
	if res := do(t, s, "echo lent"); string(res.Output) != "lent\n" {
		t.Errorf("got %q", res.Output)
	}
	if res := do(t, s, "echo again"); string(res.Output) != "again\n" {
		t.Errorf("got %q", res.Output)
	}
	before := len(scr.String())
	if err := s.GiveScreen(t.Context()); err != nil {
		t.Fatal(err)
	}
	scr.await(t, "a fresh prompt", func() bool { return strings.HasSuffix(string(scr.b[before:]), "# ") })
}

func TestCancel(t *testing.T) {
	s, _ := start2(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := s.Run(ctx, Command{Text: "sleep 100; echo behind", Started: cancel})
	if err != nil || res.Status != "cancelled" || strings.Contains(string(res.Output), "behind") {
		t.Errorf("got %+v %q, %v", res, res.Output, err)
	}
	if res := do(t, s, "echo after"); string(res.Output) != "after\n" {
		t.Errorf("got %q", res.Output)
	}
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
