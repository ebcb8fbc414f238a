package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon"
	"sublet/wire"
	"sublet/wire/socket"
)

func (a *app) daemon() *cobra.Command {
	return family("daemon", "The background program: start, stop, status, logs", "",
		a.daemonRun(), a.asks("start", "Start the daemon, where none runs", cobra.NoArgs, a.reportStarted),
		a.daemonStop(), a.daemonRestart(), a.daemonStatus(), a.daemonLogs())
}

func (a *app) daemonRun() *cobra.Command {
	var stay bool
	c := command("run", "Run the daemon in the foreground (sublet starts it by itself)", cobra.NoArgs, func([]string) error {
		paths, err := a.paths()
		if err != nil {
			return err
		}
		return daemon.Run(context.Background(), daemon.Options{Paths: paths, Version: Version(), Stay: stay})
	})
	c.Flags().BoolVar(&stay, "stay", false, "do not leave when idle: for service managers")
	return c
}

func (a *app) reportStarted(_ context.Context, c *client.Conn, _ []string) error {
	a.printf("the daemon runs, pid %d\n", c.Ready().Daemon.PID)
	return nil
}

func (a *app) daemonStop() *cobra.Command {
	var drain time.Duration
	var ifIdle bool
	c := command("stop", "Stop the daemon, once running turns have ended", cobra.NoArgs, func([]string) error { return a.stop(drain, ifIdle) })
	c.Flags().BoolVar(&ifIdle, "if-idle", false, "do nothing, with exit status 1, while turns run")
	return withDrain(c, &drain)
}

func (a *app) daemonRestart() *cobra.Command {
	var drain time.Duration
	start := a.asks("restart", "Stop the daemon, once running turns have ended, and start this version", cobra.NoArgs, a.reportStarted)
	start.PreRunE = func(*cobra.Command, []string) error {
		if err := a.stop(drain, false); !errors.Is(err, client.ErrNoDaemon) {
			return err
		}
		return nil
	}
	return withDrain(start, &drain)
}

// withDrain adds the flag --drain.
func withDrain(c *cobra.Command, drain *time.Duration) *cobra.Command {
	c.Flags().DurationVar(drain, "drain", drainDefault, "how long running turns may still take; those that wait for an answer are not waited for")
	return c
}

const (
	drainDefault = 30 * time.Second // how long running turns may continue at a stop
	stopBound    = 30 * time.Second // how long a daemon may take to end after its turns
)

// stop ends the daemon and returns when it is gone.
func (a *app) stop(drain time.Duration, ifIdle bool) error {
	if drain < 0 {
		return &usageError{errors.New("--drain must not be negative")}
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	c, err := a.dial(ctx, noStart)
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := wire.Call(ctx, c, &wire.ShutdownRequest{DrainMS: drain.Milliseconds(), IfIdle: ifIdle})
	if e, ok := errors.AsType[*wire.Error](err); ok && ifIdle && e.Code == wire.CodeShuttingDown {
		return hinted{fmt.Sprintf("the daemon is busy, %s of its turns are running", e.Details["turns"]), "without --if-idle it finishes them first"}
	}
	if err != nil {
		return err
	}
	paths, err := a.paths()
	if err != nil {
		return err
	}
	bound := time.After(drain + stopBound)
	select {
	case <-c.Done():
	case <-bound:
		return coded{fmt.Errorf("the daemon, pid %d, has not stopped after %v", reply.PID, drain+stopBound), exitTimeout}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// The last things a daemon does are to remove its socket, if that is not a service manager's, and to drop its lock.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Lstat(paths.Socket); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if lock, err := socket.TryLock(paths.Lock); err == nil {
			return lock.Close()
		}
		select {
		case <-tick.C:
		case <-bound:
			return coded{fmt.Errorf("the daemon, pid %d, has not released its socket", reply.PID), exitTimeout}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *app) daemonStatus() *cobra.Command {
	var asJSON bool
	return withJSON(command("status", "Print the daemon's state; exit status 4 if none runs", cobra.NoArgs, func([]string) error {
		return a.connected(noStart, func(ctx context.Context, c *client.Conn) error {
			s, err := wire.Call(ctx, c, &wire.StatusRequest{})
			if err != nil {
				return err
			}
			return a.printStatus(s, asJSON)
		})
	}), &asJSON, "")
}

func (a *app) printStatus(s *wire.StatusReply, asJSON bool) error {
	a.subtractSelf(s)
	if asJSON {
		return a.printView(s)
	}
	w := a.table("")
	const mib = 1 << 20
	fmt.Fprintf(w, "state\t%s\npid\t%d\nversion\t%s\nup\t%s\nclients\t%d\nturns\t%d\nshells\t%d\nmemory\t%.1f MiB, %d goroutines\nstore\t%.1f MiB\n",
		plain(s.State), s.PID, plain(s.Version), ms(s.UptimeMS), s.Clients, s.Turns, len(s.Leases), float64(s.Memory)/mib, s.Goroutines,
		float64(s.StoreSize)/mib)
	for _, l := range s.Leases {
		if l.LeaseID != "" {
			fmt.Fprintf(w, "lease\t%s has the shell of %d for %s, %d wait: %s\n", plain(l.Holder), l.ClientPID, ms(l.HeldMS), len(l.Queue), plain(l.Purpose))
		}
	}
	for _, m := range s.MCPServers {
		how := m.State
		if m.Error != "" {
			how += ": " + plain(m.Error)
		}
		fmt.Fprintf(w, "mcp\t%s, %d tools, %s\n", plain(m.Name), len(m.Tools), how)
	}
	return w.Flush()
}

// subtractSelf removes this command's own connection from a status.
func (a *app) subtractSelf(s *wire.StatusReply) {
	s.Clients = max(0, s.Clients-1)
	for i, of := range s.Connections {
		if of.Name == a.command && !of.Shell {
			s.Connections[i].Count--
		}
	}
	s.Connections = slices.DeleteFunc(s.Connections, func(of wire.Connections) bool { return of.Count <= 0 })
}

func (a *app) daemonLogs() *cobra.Command {
	var follow bool
	var lines int
	c := command("logs", "Print the daemon's log", cobra.NoArgs, func([]string) error {
		paths, err := a.paths()
		if err != nil {
			return err
		}
		return a.logs(paths.Log(), lines, follow)
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added")
	c.Flags().IntVarP(&lines, "lines", "n", 200, "begin with so many lines")
	return c
}

func (a *app) logs(path string, lines int, follow bool) error {
	switch f, err := os.Open(path); {
	case err == nil:
		f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if _, none := os.Stat(filepath.Dir(path)); none != nil || !follow {
			return hinted{"there is no log yet: " + path, "`sublet daemon start` starts a daemon"}
		}
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	// tail -F continues with the new file when the log is rotated; its message about that, on standard error, is not shown.
	args := []string{"-n", strconv.Itoa(max(0, lines)), path}
	if follow {
		args = slices.Insert(args, 0, "-F")
	}
	tail := exec.CommandContext(ctx, "tail", args...)
	out, err := tail.StdoutPipe()
	if err == nil {
		err = tail.Start()
	}
	if err != nil {
		return err
	}
	for in := bufio.NewReader(out); err == nil; {
		var line string
		line, err = in.ReadString('\n')
		a.printf("%s", plain(line))
	}
	err = tail.Wait()
	if ctx.Err() != nil {
		return exitCode(exitCancelled)
	}
	return err
}
