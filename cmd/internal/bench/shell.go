package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"

	"sublet/lease/shell"
)

// shellRows compares a leased command in the co-process with what every other agent does, a bash for each command, and
// its output with the barest reader of a PTY there is.
func shellRows(string) ([]row, func(), error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, nil, err
	}
	sh, err := shell.Start(context.Background(), shell.Options{Folder: dir, RC: shell.NoRC})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	private, err := shell.Start(context.Background(), shell.Options{Folder: dir, RC: shell.NoRC, Private: true})
	if err != nil {
		return nil, nil, errors.Join(err, sh.Close(), os.RemoveAll(dir))
	}
	stop := func() { _ = errors.Join(sh.Close(), private.Close(), os.RemoveAll(dir)) } // measured already
	leased := func(s *shell.Shell, command string, want int) func() error {
		return func() error {
			res, err := s.Run(context.Background(), shell.Command{Text: command})
			if err == nil && (res.ExitCode == nil || *res.ExitCode != want) {
				err = fmt.Errorf("%s: got %+v, want exit code %d", command, res, want)
			}
			return err
		}
	}
	exit := func(args ...string) func() error {
		return func() error { return exec.Command(args[0], args[1:]...).Run() }
	}
	median100 := func(call func() error) func() (float64, error) {
		return func() (float64, error) { return once(100, call) }
	}
	return []row{
		{"C1", "leased `true`, exit code and cwd known", "us", "bash -c true", 0.1, 7, median100(leased(sh, "true", 0)), median100(exit("bash", "-c", "true"))},
		{"C1p", "the same in a private shell", "us", "bash -c true", 0.1, 7, median100(leased(private, "true", 0)), median100(exit("bash", "-c", "true"))},
		{"C3", "leased `/bin/true`", "us", "bare fork and exec of /bin/true", 1.5, 7, median100(leased(sh, "/bin/true", 0)), median100(exit("/bin/true"))},
		{"C5", "cancel of `sleep 100`, end proved and told", "us", "kill and wait of a bare sleep", 3, 7, func() (float64, error) { return cancelSleep(sh) }, killSleep},
		{"O1", "20 MB of long lines through the user's shell", "us", "bare PTY reader", 1.15, 7, output(sh, longLines), bareOutput(longLines)},
		{"O3", "`seq 1 500000` in a private shell", "us", "bare PTY reader, onlcr on as peers leave it", 0.34, 5, output(private, shortLines), bareOutput(shortLines)},
	}, stop, nil
}

const (
	longLines  = "head -c 20000000 /dev/zero | tr '\\0' x | fold -w 120"
	shortLines = "seq 1 500000"
)

func cancelSleep(sh *shell.Shell) (float64, error) {
	list := make([]float64, 15)
	for i := range list {
		ctx, cancel := context.WithCancel(context.Background())
		var at time.Time
		started := make(chan struct{})
		go func() {
			<-started
			// The sleep itself must be running, not only the command that starts it.
			for _, in := sh.Foreground(); in; _, in = sh.Foreground() {
				time.Sleep(time.Millisecond)
			}
			at = time.Now()
			cancel()
		}()
		res, err := sh.Run(ctx, shell.Command{Text: "sleep 100", Started: func() { close(started) }})
		took := time.Since(at)
		cancel()
		if err != nil || res.Status != "cancelled" {
			return 0, fmt.Errorf("cancel: got %+v, %w", res, err)
		}
		list[i] = float64(took.Microseconds())
	}
	return median(list), nil
}

func killSleep() (float64, error) {
	return once(15, func() error {
		cmd := exec.Command("sleep", "100")
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			return err
		}
		_ = cmd.Wait() // ended by the signal: that is what is timed
		return nil
	})
}

func output(sh *shell.Shell, command string) func() (float64, error) {
	return func() (float64, error) {
		var n int
		took, err := each(1, func() error {
			_, err := sh.Run(context.Background(), shell.Command{Text: command, Output: func(p []byte) { n += len(p) }})
			return err
		})
		if err == nil && n < 1_000_000 {
			err = fmt.Errorf("%s: saw only %d bytes", command, n)
		}
		return took, err
	}
}

// bareOutput reads a PTY on which bash runs the command, and does nothing else.
func bareOutput(command string) func() (float64, error) {
	return func() (float64, error) {
		return each(1, func() error {
			ptmx, tty, err := pty.Open()
			if err != nil {
				return err
			}
			defer ptmx.Close()
			cmd := exec.Command("bash", "--norc", "-c", command)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				return err
			}
			if err := tty.Close(); err != nil {
				return err
			}
			var total int
			buf := make([]byte, 64<<10)
			for {
				n, err := ptmx.Read(buf)
				total += n
				if err != nil {
					if !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) { // EIO: the last writer is gone
						return err
					}
					break
				}
			}
			if total < 1_000_000 {
				return fmt.Errorf("saw only %d bytes", total)
			}
			return cmd.Wait()
		})
	}
}
