package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sublet/daemon/internal/child"
	"sublet/lease/confine"
)

const (
	checkOutput = 64 << 10        // bytes kept of what a checker prints
	checkGrace  = 1 * time.Second // for its output to end once it was killed
)

// A Checker runs programs that look at changed files, held to the reach read.
type Checker struct {
	Confiner
	Spec    func(dir string) confine.Spec // what they are held to in a folder
	Env     []string
	Home    string
	Runtime string // private folder for their settings
}

// Run implements tool.Held.
func (c Checker) Run(ctx context.Context, dir string, args []string, stdin []byte) ([]byte, error) {
	env := append(slices.Clip(c.Env), "GOTOOLCHAIN=local") // there is no network to fetch another from
	program, err := child.Find(args[0], env, dir, c.Home)
	if err != nil {
		return nil, err
	}
	spec, err := os.CreateTemp(c.Runtime, "check-*") // 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(spec.Name())
	_, err = spec.Write(c.Spec(filepath.Clean(dir)).Encode())
	if err := errors.Join(err, spec.Close()); err != nil {
		return nil, err
	}
	out := &firstBytes{left: checkOutput}
	cmd := exec.CommandContext(ctx, c.Launcher, append([]string{spec.Name(), program}, args[1:]...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, env, bytes.NewReader(stdin), out, out
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, checkGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == confine.NotHeld {
		return nil, fmt.Errorf("check with %s: %s", args[0], out.kept.Bytes())
	}
	return out.kept.Bytes(), err
}

// firstBytes keeps the beginning of what is written to it. os/exec writes from one goroutine where both outputs are the same.
type firstBytes struct {
	kept bytes.Buffer
	left int
}

func (f *firstBytes) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.left -= n
	f.kept.Write(p[:n])
	return len(p), nil
}
