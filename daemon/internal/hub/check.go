package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
)

const (
	checkOutput = 64 << 10        // bytes kept of what a checker prints
	checkGrace  = 1 * time.Second // for its output to end once it was killed
)

// checker returns what runs programs that look at changed files; nil where the kernel cannot hold them.
func (t *turn) checker() tool.Held {
	if !t.hub.confiner().Holds(confine.Read) {
		return nil
	}
	return t.held
}

// held implements tool.Held: in the environment of the agents' private shells, held to the reach read.
func (t *turn) held(ctx context.Context, dir string, args []string, stdin []byte) ([]byte, error) {
	env := t.environ()
	list := append(lend.PrivateEnv(env, nil), "GOTOOLCHAIN=local") // there is no network to fetch another from
	program, err := mcp.Find(args[0], list, dir, lend.Home(env))
	if err != nil {
		return nil, err
	}
	spec, err := os.CreateTemp(t.hub.opts.Runtime, "check-*") // 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(spec.Name())
	_, err = spec.Write(t.hub.confinement(confine.Read, filepath.Clean(dir)).Encode())
	if err := errors.Join(err, spec.Close()); err != nil {
		return nil, err
	}
	out := &firstBytes{left: checkOutput}
	cmd := exec.CommandContext(ctx, t.hub.confiner().Launcher, append([]string{spec.Name(), program}, args[1:]...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, list, bytes.NewReader(stdin), out, out
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
