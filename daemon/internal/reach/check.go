package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/lsp"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/tool"
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
	Log     *slog.Logger
}

// Run implements tool.Held.
func (c Checker) Run(ctx context.Context, dir string, args []string, stdin []byte) ([]byte, error) {
	env, program, err := c.find(dir, args[0])
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
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == confine.NotConfined {
		return nil, fmt.Errorf("check with %s: %s", args[0], out.kept.Bytes())
	}
	return out.kept.Bytes(), err
}

// find returns the environment of a checker and its path.
func (c Checker) find(dir, name string) (env []string, path string, err error) {
	env = append(slices.Clip(c.Env), "GOTOOLCHAIN=local") // there is no network to fetch another from
	path, err = child.Find(name, env, dir, c.Home)
	return env, path, err
}

// Languages returns s for the changed files of a turn. Its servers are held as other checkers are, and work for projects only, since a
// home may be large.
func (c Checker) Languages(s *lsp.Servers) tool.Languages {
	return func(ctx context.Context, path string, text []byte) (by string, problems []string, fault error) {
		root := project.Root(filepath.Dir(path))
		if !IsProject(root, c.Home) {
			return "", nil, nil
		}
		f := s.Check(ctx, c.start, root, path, text)
		return f.By, f.Lines, f.Fault
	}
}

// Opener returns what opens files that were read in a server of s, so that it is ready for their changes.
func (c Checker) Opener(s *lsp.Servers) func(path string, text []byte) {
	return func(path string, text []byte) {
		if root := project.Root(filepath.Dir(path)); IsProject(root, c.Home) {
			s.Open(c.start, root, path, text)
		}
	}
}

// start implements lsp.Start.
func (c Checker) start(dir string, args []string) (lsp.Program, error) {
	env, path, err := c.find(dir, args[0])
	if err != nil {
		return lsp.Program{}, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	p, err := child.Start(child.Spec{
		Name: args[0], Path: path, Args: args[1:], Env: env, Dir: dir,
		Launcher: c.Launcher, Reach: c.Spec(dir), Folder: c.Runtime, Log: c.Log,
	})
	if err != nil {
		return lsp.Program{}, err
	}
	why := func() string {
		if how := p.EndReason(); how != "" {
			return how + p.LastWords()
		}
		return ""
	}
	return lsp.Program{Reader: p.Stdout, Writer: p.Stdin, End: p.End, Why: why}, nil
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
