// Package procstattest starts the processes that tests look at.
package procstattest

import (
	"io"
	"os/exec"
	"testing"
)

// Process is a child of the test. It must end with its standard input, which the test's end closes.
type Process struct {
	PID int
	In  io.Writer
	Out io.Reader
}

// Start starts a program. A byte of its output shows that it was executed.
func Start(t testing.TB, program string, args ...string) Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // how it ends is its own
	})
	return Process{PID: cmd.Process.Pid, In: in, Out: out}
}
