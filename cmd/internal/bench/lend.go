package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"sublet/client"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/socket"
)

// lendRows time a borrowed command end to end: a connection of its own asks the daemon, which offers the shell of a
// window on a PTY, and its bash runs it; exit code and directory are known at the end. A fresh lease for each.
func lendRows(binary string) ([]row, func(), error) {
	w := &window{}
	stop := func() { _ = w.close(binary) } // measured already
	if err := w.open(binary); err != nil {
		stop()
		return nil, nil, err
	}
	const n = 200
	spread := func(q float64, measure func() (float64, error)) func() (float64, error) {
		return func() (float64, error) {
			list := make([]float64, n)
			for i := range list {
				took, err := measure()
				if err != nil {
					return 0, err
				}
				list[i] = took
			}
			slices.Sort(list)
			return list[int(q*(n-1))], nil
		}
	}
	timed := func(call func() error) func() (float64, error) {
		return func() (float64, error) { return each(1, call) }
	}
	borrow := func() (float64, error) { return w.borrow(w.conns[0]) }
	bash := timed(func() error { return exec.Command("bash", "-c", "true").Run() })
	typed := timed(w.typed)
	own := timed(func() error {
		_, err := w.sh.Run(context.Background(), shell.Command{Text: "true", User: true})
		return err
	})
	return []row{
		{"E1", "borrowed `true`, end to end, median", "us", "bash -c true", 1.0 / 6, 7, spread(0.5, borrow), spread(0.5, bash)},
		{"E1p", "the same, the slowest in a hundred", "us", "the slowest bash -c true in a hundred", 1, 7, spread(0.99, borrow), spread(0.99, bash)},
		{"E2", "borrowed `true`, end to end, median", "us", "`true` typed into a bare bash on a PTY", 4, 7, spread(0.5, borrow), spread(0.5, typed)},
		{"E3", "the user's own `true`, end proved", "us", "`true` typed into a bare bash on a PTY", 2, 7, spread(0.5, own), spread(0.5, typed)},
		{"E4", "the shell goes from one borrower to the next", "us", "bash -c true", 1.0 / 6, 7, w.handOver, spread(0.5, bash)},
	}, stop, nil
}

// window is a sublet on a PTY, two connections that borrow from it, a shell of the same kind, and a bare bash.
type window struct {
	dir   string
	env   []string
	cmd   *exec.Cmd
	ptmx  *os.File
	conns []*client.Conn
	sh    *shell.Shell
	bare  *os.File
	bash  *exec.Cmd
	asked int
	work  sync.WaitGroup // what reads the window
}

func (w *window) open(binary string) (err error) {
	if w.dir, err = os.MkdirTemp("/tmp", "bench"); err != nil { // short: a socket's path holds 104 bytes
		return err
	}
	run, state, config := filepath.Join(w.dir, "run"), filepath.Join(w.dir, "state"), filepath.Join(w.dir, "config.toml")
	if err := os.WriteFile(config, []byte("model = \"offline\"\n[limits]\nrequests_per_second = 100000\n"), 0o600); err != nil {
		return err
	}
	w.env = []string{
		"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash", "TERM=xterm-256color", "LANG=C.UTF-8",
		"SUBLET_RUNTIME_DIR=" + run, "SUBLET_STATE_DIR=" + state, "SUBLET_CONFIG=" + config,
	}
	w.cmd = exec.Command(binary)
	w.cmd.Env, w.cmd.Dir = w.env, w.dir
	if w.ptmx, err = pty.Start(w.cmd); err != nil {
		return err
	}
	w.work.Go(func() { _, _ = io.Copy(io.Discard, w.ptmx) }) // ends with the window
	if w.sh, err = shell.Start(context.Background(), shell.Options{Folder: w.dir, RC: shell.NoRC}); err != nil {
		return err
	}
	w.bash = exec.Command("bash", "--noediting", "--norc", "-i")
	w.bash.Env = append(w.env, "PS1=", "PS2=")
	if w.bare, err = pty.Start(w.bash); err != nil {
		return err
	}
	paths, err := socket.FindPaths(func(name string) string {
		for _, kv := range w.env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}, os.Getuid())
	if err != nil {
		return err
	}
	begun := time.Now()
	for len(w.conns) < 2 {
		c, err := client.Dial(context.Background(), client.Options{Paths: paths, Env: w.env, Cwd: w.dir, NoStart: true})
		if err != nil && time.Since(begun) < 20*time.Second { // the window is still coming up
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		w.conns = append(w.conns, c)
	}
	for {
		if _, err = w.borrow(w.conns[0]); err == nil || time.Since(begun) > 20*time.Second {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
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

// typed types a command that tells its end, as any program that drives a terminal may, and waits until it has.
func (w *window) typed() error {
	w.asked++
	mark := fmt.Sprintf("<%d:0:", w.asked) // what is typed has no such text in it
	if _, err := fmt.Fprintf(w.bare, "true; echo \"<\"%d:$?:$PWD\n", w.asked); err != nil {
		return err
	}
	var seen []byte
	buf := make([]byte, 4096)
	for {
		n, err := w.bare.Read(buf)
		if seen = append(seen, buf[:n]...); strings.Contains(string(seen), mark) && strings.HasSuffix(string(seen), "\n") {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *window) close(binary string) error {
	var errs []error
	for _, c := range w.conns {
		errs = append(errs, c.Close())
	}
	if w.cmd != nil && w.cmd.Process != nil {
		errs = append(errs, w.cmd.Process.Signal(syscall.SIGHUP))
		_ = w.cmd.Wait() // ended by the signal
		errs = append(errs, w.ptmx.Close())
		w.work.Wait()
	}
	if w.sh != nil {
		errs = append(errs, w.sh.Close())
	}
	if w.bash != nil && w.bash.Process != nil {
		errs = append(errs, w.bare.Close())
		_ = w.bash.Wait() // its terminal is gone
	}
	stop := exec.Command(binary, "daemon", "stop")
	stop.Env = w.env
	return errors.Join(append(errs, stop.Run(), os.RemoveAll(w.dir))...)
}
