package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sublet/lease/shell"
)

// shellRows compares a leased command with what every other agent does, a bash for each command, and its output with the
// barest reader of a PTY there is.
func shellRows(s *site) (rows []row, err error) {
	trueOf := func(args ...string) func() (float64, error) {
		return func() (float64, error) {
			return once(100, func() error { return exec.Command(args[0], args[1:]...).Run() })
		}
	}
	shells := installedShells()
	for i, path := range append(shells, shells[0]) {
		name, private := filepath.Base(path), i == len(shells)
		if err := writeStartFiles(s.dir, name); err != nil {
			return nil, err
		}
		sh, err := shell.Start(shell.Options{Path: path, Dir: s.dir, Env: s.env, Folder: s.dir, Private: private})
		if err != nil {
			return nil, err
		}
		s.cleanup(sh.Close)
		leased := func(command string) func() (float64, error) {
			return func() (float64, error) {
				return quantile(0.5, 100, func() (float64, error) { return runLeased(sh, command) })
			}
		}
		if private {
			rows = append(
				rows,
				row{"C1p", "leased `true`, in a private shell", "us", "bash -c true", 0.4, 7, leased("true"), trueOf("bash", "-c", "true")},
				row{"O3", "`seq 1 500000`, in a private shell", "us", "bare PTY reader, onlcr on as peers leave it", 0.34, 5, func() (float64, error) { return runLeased(sh, shortLines) }, bareOutput},
			)
			continue
		}
		letter := name[:1]
		rows = append(
			rows,
			row{"C1" + letter, "leased `true`, exit code and cwd known, " + name, "us", "bash -c true", 0.4, 7, leased("true"), trueOf("bash", "-c", "true")},
			row{"C3" + letter, "leased `/bin/true`, " + name, "us", "bare fork and exec of /bin/true", 1.5, 7, leased("/bin/true"), trueOf("/bin/true")},
			row{"C5" + letter, "cancel of `sleep 100`, end proved, " + name, "us", "the millisecond it may take", 1, 7, func() (float64, error) { return cancelSleep(sh) }, fixed(1000)},
			row{"D1" + letter, "what a command changed is known, " + name, "us", "the millisecond it may take", 1, 7, func() (float64, error) { return changeKnown(sh) }, fixed(1000)},
		)
	}
	return rows, nil
}

// runLeased takes the shell, runs a command and gives the shell back. It returns how long it took until exit code and
// directory were known, in microseconds.
func runLeased(sh *shell.Shell, command string) (took float64, err error) {
	ctx := context.Background()
	var res shell.Result
	took, err = timed(func() error {
		err := sh.Hold(ctx)
		if err == nil {
			res, err = sh.Run(ctx, shell.Command{Text: command})
		}
		return err
	})
	if err == nil && (res.ExitCode == nil || *res.ExitCode != 0) {
		err = fmt.Errorf("%s: got %+v, want exit code 0", command, res)
	}
	return took, errors.Join(err, sh.Release())
}

// changeKnown is how long after a command's end it is known what the command changed, the median of forty, in microseconds.
func changeKnown(sh *shell.Shell) (float64, error) {
	return quantile(0.5, 40, func() (float64, error) {
		before, err := sh.State(context.Background())
		if err == nil {
			_, err = runLeased(sh, fmt.Sprintf("export CHANGED=%d", time.Now().UnixNano()))
		}
		if err != nil {
			return 0, err
		}
		var difference string
		took, err := timed(func() error {
			after, err := sh.State(context.Background())
			difference = shell.Difference(before, after)
			return err
		})
		if err == nil && !strings.Contains(difference, "CHANGED") {
			err = fmt.Errorf("export: the difference is %q", difference)
		}
		return took, err
	})
}

// cancelSleep is the median of what fifteen cancels take, in microseconds.
func cancelSleep(sh *shell.Shell) (float64, error) {
	return quantile(0.5, 15, func() (float64, error) {
		if err := sh.Hold(context.Background()); err != nil {
			return 0, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var at time.Time
		asleep := sync.OnceFunc(func() {
			time.AfterFunc(5*time.Millisecond, func() { // the sleep itself runs by then, not only what begins it
				at = time.Now()
				cancel()
			})
		})
		res, err := sh.Run(ctx, shell.Command{Text: "sh -c 'echo asleep; exec sleep 100'", Output: func([]byte) { asleep() }})
		took := float64(time.Since(at).Nanoseconds()) / 1e3
		if err == nil && res.Status != "cancelled" {
			err = fmt.Errorf("cancel: got %+v", res)
		}
		return took, errors.Join(err, sh.Release())
	})
}

const shortLines = "seq 1 500000"

// bareOutput reads a PTY on which bash runs the command, and does next to nothing else.
func bareOutput() (float64, error) {
	return timed(func() error {
		t, err := openTerminal(exec.Command("bash", "--norc", "-c", shortLines))
		if err != nil {
			return err
		}
		t.work.Wait() // until the last writer is gone
		if !bytes.HasSuffix(t.seen, []byte("\n500000\r\n")) {
			err = fmt.Errorf("%s: the last that was seen is %q", shortLines, t.seen)
		}
		return errors.Join(err, t.close())
	})
}
