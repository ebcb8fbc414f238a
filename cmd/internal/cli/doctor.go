package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
	"sublet/lease/shell"
	"sublet/wire"
)

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check everything sublet needs, and say what to do about what is missing", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.runDoctor() },
	}
}

// check is one line of the doctor's.
type check struct {
	name string
	run  func() (found string, err error)
	warn bool // a failure costs something, but sublet works
}

func (a *app) runDoctor() error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var conn *client.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	paths, err := a.paths()
	if err != nil {
		return err
	}
	checks := []check{
		{name: "version", run: func() (string, error) { return Version(), nil }},
		{name: "bash", run: func() (string, error) {
			path, version, err := shell.Find(os.Environ())
			return path + " " + version, err
		}},
		{name: "folders", run: func() (string, error) { return paths.Runtime + ", " + paths.State, paths.Prepare() }},
		{name: "settings", run: func() (string, error) {
			_, err := config.Load(paths.Config)
			return paths.Config, err
		}},
		{name: "daemon", run: func() (found string, err error) {
			if conn, err = a.dial(ctx, false); err != nil {
				return "", err
			}
			d := conn.Ready().Daemon
			return fmt.Sprintf("pid %d, version %s, protocol %d", d.PID, plain(d.Version), conn.Ready().Protocol), nil
		}},
		{name: "model", warn: true, run: func() (string, error) { return a.checkModel(conn) }},
		{name: "terminal", warn: true, run: func() (string, error) {
			if !isTerminal(a.stdin) || !isTerminal(os.Stdout) {
				return "", hinted{"standard input or output is none", "run it in the terminal where you use sublet"}
			}
			if t := a.env("TERM"); t == "" || t == "dumb" {
				return "", hinted{"TERM is " + t, "use a terminal that can move its cursor"}
			}
			return a.env("TERM"), nil
		}},
		{name: "git", warn: true, run: func() (string, error) {
			path, err := exec.LookPath("git")
			if err != nil {
				return "", hinted{"not found", "agents see what changed with it: install git"}
			}
			return path, nil
		}},
	}
	failed := 0
	for _, c := range checks {
		found, err := c.run()
		if err == nil {
			a.printf("ok    %-9s %s\n", c.name, oneLine(found))
			continue
		}
		word := "FAIL"
		if c.warn {
			word = "warn"
		} else {
			failed++
		}
		a.printf("%s  %-9s %s\n", word, c.name, oneLine(err.Error()))
		if hint := hintOf(err); hint != "" {
			a.printf("      %-9s hint: %s\n", "", oneLine(hint))
		}
	}
	if failed > 0 {
		return exitCode(exitFailed)
	}
	return nil
}

// checkModel tells which model answers.
func (a *app) checkModel(c *client.Conn) (string, error) {
	if c == nil {
		return "", errors.New("not known without a daemon")
	}
	models := c.Ready().Models
	if len(models) == 0 {
		return "", errors.New("the daemon names none")
	}
	m := models[0]
	name := plain(m.Name)
	switch {
	case m.ProviderKind == "offline":
		return "", hinted{
			name + " (built in: rules, no network)",
			"for a real one put `model = \"anthropic/NAME\"` into the settings (`sublet config edit`) and set ANTHROPIC_API_KEY",
		}
	case !m.Loaded:
		return "", hinted{name + " cannot be used yet", "its key is missing: see `sublet config show`, provider." + plain(m.Provider)}
	}
	return fmt.Sprintf("%s, context window %d tokens", name, contextWindow(m)), nil
}

func contextWindow(m wire.ModelInfo) int {
	if m.ContextWindow == 0 {
		return 128_000 // what is assumed where nobody says
	}
	return m.ContextWindow
}
