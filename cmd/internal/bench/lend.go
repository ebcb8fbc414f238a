package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client"
	"sublet/wire"
)

// lendRows time a borrowed command end to end, each with a lease of its own: a client asks the daemon, which leases the shell of a
// window on a PTY and has it run the command, until the client knows exit code and directory.
func lendRows(s *site) (rows []row, err error) {
	of200 := func(q float64, measure func() (float64, error)) func() (float64, error) {
		return func() (float64, error) { return quantile(q, 200, measure) }
	}
	bash := func() (float64, error) {
		return once(1, func() error { return exec.Command("bash", "-c", "true").Run() })
	}
	for _, path := range installedShells() {
		shell := filepath.Base(path)
		dir := filepath.Join(s.dir, shell)
		w := &window{site: &site{binary: s.binary, dir: dir, env: append(sandbox(dir), "SHELL="+path)}, shell: shell, path: path}
		s.cleanup(w.close)
		if err := w.open(); err != nil {
			return nil, fmt.Errorf("%s: %w", shell, err)
		}
		borrow := func() (float64, error) { return w.borrow(w.conns[0]) }
		letter := shell[:1]
		rows = append(rows,
			row{"E1" + letter, "borrowed `true`, end to end, median, " + shell, "us", "bash -c true", 0.4, 7, of200(0.5, borrow), of200(0.5, bash)},
			row{"E2" + letter, "the same, the slowest in a hundred", "us", "the slowest bash -c true in a hundred", 1, 7, of200(0.99, borrow), of200(0.99, bash)},
			row{"E4" + letter, "the shell goes from one borrower to the next", "us", "bash -c true", 0.4, 7, w.handOver, of200(0.5, bash)})
		if shell == "bash" {
			agent, err := w.agent()
			if err != nil {
				return nil, err
			}
			rows = append(rows, row{"E5", "an MCP call of `true`, median, bash", "us", "`sublet lease run -- true`", 1.3, 7, of200(0.5, agent), func() (float64, error) {
				return once(20, func() error { return w.sublet("lease", "run", "--", "true") })
			}})
		}
		more, err := terminalRows(w)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// installedShells returns the paths of those that can be measured, bash first, and prints which cannot.
func installedShells() (list []string) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		if path, err := exec.LookPath(name); err != nil {
			fmt.Printf("without rows of %s: it is not installed (`make shells`)\n", name)
		} else {
			list = append(list, path)
		}
	}
	return list
}

// window is a sublet on a PTY, its shell alone on another, and two connections that borrow from the first.
type window struct {
	*site
	shell, path string
	outer, bare *terminal
	conns       []*client.Conn
	mcp         *sdk.ClientSession // nil: none was started
}

func (w *window) open() (err error) {
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return err
	}
	settings := "model = \"offline\"\n[limits]\nrequests_per_second = 100000\n"
	if err := errors.Join(writeStartFiles(w.dir, w.shell), os.WriteFile(filepath.Join(w.dir, "config.toml"), []byte(settings), 0o600)); err != nil {
		return err
	}
	if err := w.sublet("daemon", "start"); err != nil {
		return err
	}
	if w.outer, err = w.start(w.binary); err != nil {
		return err
	}
	if w.bare, err = w.start(w.path); err != nil {
		return err
	}
	paths, err := pathsIn(w.env)
	if err != nil {
		return err
	}
	for range 2 {
		c, err := client.Dial(context.Background(), client.Options{Paths: paths, Env: w.env, Cwd: w.dir, NoStart: true})
		if err != nil {
			return err
		}
		w.conns = append(w.conns, c)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { // the window is still coming up
		if _, err = w.borrow(w.conns[0]); err == nil || time.Since(begun) > 20*time.Second {
			return err
		}
	}
}

func (w *window) start(program string, args ...string) (*terminal, error) {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	return openTerminal(cmd)
}

// borrow returns how long it took until exit code and directory were known, in microseconds. The shell is given back
// after that.
func (w *window) borrow(c *client.Conn) (took float64, err error) {
	begun := time.Now()
	end, err := c.LeaseRun(context.Background(), &wire.LeaseRunRequest{Command: "true"}, func(m wire.LeaseMessage) {
		if _, ok := m.(*wire.CommandCompleted); ok {
			took = float64(time.Since(begun).Nanoseconds()) / 1e3
		}
	})
	if err == nil && (end.ExitCode == nil || *end.ExitCode != 0 || end.Cwd == "") {
		err = fmt.Errorf("true: got %+v, want exit code 0 and a directory", end)
	}
	return took, err
}

// agent starts a gateway as an agent of another program does, and returns what a call takes, in microseconds.
func (w *window) agent() (func() (float64, error), error) {
	cmd := exec.Command(w.binary, "serve", "mcp")
	cmd.Env, cmd.Dir = w.env, w.dir
	var err error
	w.mcp, err = sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(context.Background(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, err
	}
	return func() (float64, error) {
		return once(1, func() error {
			res, err := w.mcp.CallTool(context.Background(), &sdk.CallToolParams{Name: "shell", Arguments: map[string]any{"command": "true"}})
			if err == nil && res.IsError {
				err = fmt.Errorf("true: %+v", res.Content[0])
			}
			return err
		})
	}, nil
}

// handOver is what one command takes while two borrowers take turns, each waiting while the other has the shell.
func (w *window) handOver() (float64, error) {
	const turns = 100
	errs := make([]error, len(w.conns))
	var work sync.WaitGroup
	begun := time.Now()
	for i, c := range w.conns {
		work.Go(func() {
			for range turns {
				if _, errs[i] = w.borrow(c); errs[i] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return float64(time.Since(begun).Microseconds()) / float64(turns*len(w.conns)), errors.Join(errs...)
}

func (w *window) close() error {
	var errs []error
	if w.mcp != nil {
		errs = append(errs, w.mcp.Close())
	}
	for _, c := range w.conns {
		errs = append(errs, c.Close())
	}
	for _, t := range []*terminal{w.outer, w.bare} {
		if t != nil {
			errs = append(errs, t.close())
		}
	}
	return errors.Join(append(errs, w.sublet("daemon", "stop"))...)
}
