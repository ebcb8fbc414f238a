// Package citest has what tests of all packages share.
package citest

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A test program that a script starts in the background, or under nohup, ignores these signals, and so would all that its tests start:
// no ^C would end a command. A signal that is caught is not ignored there. `go test` does the same.
func init() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// Skip skips the test for a reason. Where CI is set, which has all that tests need, the test fails.
func Skip(t testing.TB, reason ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason...)
	}
	t.Skip(reason...)
}

// Program returns the path of a program on PATH. Without it the test is skipped, as by Skip.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, err)
	}
	return path
}

// Buffer is a text that may be read while it is written.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
