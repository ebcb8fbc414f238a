package shell

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if home := os.Getenv(envWindow); home != "" {
		window(home)
	}
	// They wait for most of their time: twice as many at once take two thirds of it.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// envBash names the bash the tests run with; unset, it is the system's. `make test-matrix` sets it.
const envBash = "SUBLET_TEST_BASH"

// start starts a shell without the user's rc in a folder of its own; it is closed at the end of the test.
func start(t testing.TB, change func(*Options)) *Shell {
	t.Helper()
	o := Options{
		RC: NoRC, Dir: t.TempDir(), Folder: t.TempDir(), Env: testEnv(t),
		Path: os.Getenv(envBash),
		Log:  slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := Start(ctx, o)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if ents, err := os.ReadDir(o.Folder); err == nil && len(ents) > 0 {
			t.Errorf("files left behind: %v", ents)
		}
	})
	return s
}

func testEnv(t testing.TB) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash", "USER=tester",
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("log: %s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// patience bounds what a command of the tests may take, also on a machine with much else to do.
const patience = time.Minute

// do runs a command and fails the test on an error or when it takes more than patience.
func do(t testing.TB, s *Shell, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := s.Run(ctx, c)
	if err != nil {
		t.Fatalf("run %q: %v", c.Text, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("run %q: not ended after %v: %.2000s", c.Text, patience, fmt.Sprintf("%+v", res))
	}
	return res
}

func user(text string) Command   { return Command{Text: text, User: true} }
func leased(text string) Command { return Command{Text: text} }

// exit is the exit code, -1 where there is none.
func exit(r Result) int {
	if r.ExitCode == nil {
		return -1
	}
	return *r.ExitCode
}

// collector gathers bytes from callbacks.
type collector struct {
	mu sync.Mutex
	b  []byte
}

func (c *collector) add(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.b = append(c.b, p...)
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.b)
}

const envIgnoring = "SUBLET_TEST_IGNORING"

// ignoring tells whether this process began with SIGINT and SIGQUIT ignored, as nohup or a script would have it. Where not,
// the test is run in one that does: Go cannot take signal.Ignore back.
func ignoring(t *testing.T) bool {
	if os.Getenv(envIgnoring) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap '' INT QUIT; exec "$@"`, "sh", os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envIgnoring+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
