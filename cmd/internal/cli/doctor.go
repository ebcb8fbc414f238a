package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sublet/client"
	"sublet/daemon"
	"sublet/daemon/config"
	"sublet/lease/confine"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/socket"
)

func (a *app) doctor() *cobra.Command {
	return explained(command("doctor [AGENT]", "Check all that sublet needs, and say how to get it", cobra.MaximumNArgs(1), a.runDoctor),
		"With an agent of the settings, only that one is checked, by a turn: it is to answer one word. That may cost as much as any\n"+
			"short question does; without its name, agents only open a session. Whatever it asks for meanwhile is refused.",
		"  sublet doctor\n  sublet doctor claude")
}

// check is one line of doctor's output.
type check struct {
	name string
	run  func() (found string, err error)
	warn bool // a failure costs something, but sublet works
}

func (a *app) runDoctor(args []string) error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	if len(args) > 0 {
		return a.tryAgent(ctx, args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var conn *client.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	checks := []check{
		{name: "version", run: func() (string, error) { return versionLine(), nil }},
	}
	paths, err := a.paths()
	checks = append(checks, check{name: "shell", run: func() (string, error) { return checkShell(paths.Config) }})
	if err != nil { // the other checks need the folders
		return a.examine(append(checks, check{name: "folders", run: func() (string, error) { return "", err }}))
	}
	checks = append(checks, []check{
		{name: "folders", run: func() (string, error) { return paths.Runtime + ", " + paths.State, paths.Prepare() }},
		{name: "settings", run: func() (string, error) { return checkSettings(paths.Config) }},
		{name: "daemon", run: func() (found string, err error) {
			if conn, err = a.dial(ctx, autoStart); err != nil {
				return "", err
			}
			d := conn.Ready().Daemon
			return fmt.Sprintf("pid %d, version %s, protocol %d", d.PID, plain(d.Version), conn.Ready().Protocol), nil
		}},
		{name: "upgrade", warn: true, run: func() (string, error) { return sameBuild(conn) }},
		{name: "one only", warn: true, run: func() (string, error) {
			others := socket.Elsewhere(ctx, paths, a.env, os.Getuid())
			if len(others) == 0 {
				return "no daemon of yours in another runtime folder", nil
			}
			return "", hinted{
				"another daemon of yours listens on " + strings.Join(others, ", "),
				"shells with different XDG_RUNTIME_DIR do not see each other's: set SUBLET_RUNTIME_DIR for all, and stop the other one",
			}
		}},
		{name: "store", run: func() (string, error) { return checkStore(ctx, conn, paths) }},
		{name: "disk", run: func() (string, error) { return checkDisk(paths.State) }},
		{name: "log", warn: true, run: func() (string, error) { return checkLog(paths.Log()) }},
		{name: "model", warn: true, run: func() (string, error) { return checkModel(conn, paths) }},
		{name: "terminal", warn: true, run: func() (string, error) {
			if !isTerminal(a.stdin) || !isTerminal(os.Stdout) {
				return "", hinted{"standard input or output is not a terminal", "run it in the terminal where you use sublet"}
			}
			if t := a.env("TERM"); t == "" || t == "dumb" {
				return "", hinted{"TERM is " + t, "use a terminal that can move its cursor"}
			}
			return a.env("TERM"), nil
		}},
		{name: "reach", warn: true, run: checkReach},
		{name: "git", warn: true, run: func() (string, error) {
			path, err := exec.LookPath("git")
			if err != nil {
				return "", hinted{"not found", "agents see what changed with it: install git"}
			}
			return path, nil
		}},
	}...)
	return a.examine(append(append(checks, checkServers(ctx, paths.Config)...), checkHosted(ctx, paths.Config)...))
}

// checkReach checks that the launcher can confine a command.
func checkReach() (string, error) {
	path, err := confine.Find()
	if err != nil {
		return "", err
	}
	support := confine.Probe(path)
	if support.Missing != "" {
		return "", hinted{support.Missing, "until then commands are judged by their words alone, the mode auto is not offered, and MCP servers are not confined"}
	}
	return "read, project: held by " + support.How, nil
}

// checkShell looks for the shell that would be lent.
func checkShell(settings string) (string, error) {
	if c, err := config.Load(settings); err == nil && c.Shell.Path != "" {
		d, version, err := shell.Identify(c.Shell.Path)
		if err != nil {
			return "", hinted{"shell.path: " + err.Error(), "name a bash, zsh or fish there, or take the line out for $SHELL (`sublet config edit`)"}
		}
		return c.Shell.Path + " " + version + " (" + d.Name + ", of your settings)", nil
	}
	path, _, version, err := shell.Find(os.Environ())
	return path + " " + version, err
}

// serverPatience is how long doctor waits for MCP servers. It may be too short for one that is downloaded first.
const serverPatience = 15 * time.Second

// checkServers starts the MCP servers of the settings, each for its own line.
func checkServers(ctx context.Context, settings string) []check {
	c, err := config.Load(settings)
	if err != nil {
		return nil // the check of the settings reports it
	}
	started := sync.OnceValue(func() []daemon.ServerCheck {
		return daemon.CheckServers(ctx, c, Version(), serverPatience)
	})
	var checks []check
	for i, name := range slices.Sorted(maps.Keys(c.MCP)) {
		checks = append(checks, check{name: "mcp", warn: true, run: func() (string, error) {
			s := started()[i] // they are in the order of the names, too
			reach, hint := "", ""
			if s.Reach != "free" {
				reach = ", held to " + s.Reach
				hint = "; reach = \"free\" there lets it do what you may"
			}
			if s.Err != nil {
				return "", hinted{
					fmt.Sprintf("%s (%s): %s", name, plain(s.What), plain(s.Err.Error())),
					"agents go on without its tools; run its command by hand, or change [mcp." + name + "] in the settings" + hint,
				}
			}
			found := name + " starts" + reach + "; it has no tools"
			if len(s.Tools) > 0 {
				found = name + " starts" + reach + "; its tools: " + plain(strings.Join(s.Tools, ", "))
			}
			if s.Left != "" {
				found += "; left out: " + plain(s.Left)
			}
			return found, nil
		}})
	}
	return checks
}

// examine runs the checks and prints a line for each, with a hint below one that failed. A check that fails with the same error as an
// earlier one names that check instead of the error. One that only lacks the daemon is a warning, since the check "daemon" has failed.
func (a *app) examine(checks []check) error {
	failed, firstWith := 0, map[string]string{} // the name of the first check with an error
	for _, c := range checks {
		found, err := c.run()
		if err == nil {
			a.printf("ok       %-9s %s\n", c.name, oneLine(found))
			continue
		}
		word := "error"
		if c.warn || errors.Is(err, errNoDaemonToAsk) {
			word = "warning"
		} else {
			failed++
		}
		text, hint := oneLine(err.Error()), oneLine(hintOf(err))
		if first := firstWith[text]; first != "" {
			text, hint = "not before `"+first+"` is mended", ""
		} else if !errors.Is(err, errNoDaemonToAsk) {
			firstWith[text] = c.name
		}
		a.printf("%-8s %-9s %s\n", word, c.name, text)
		if hint != "" {
			a.printf("         %-9s hint: %s\n", "", hint)
		}
	}
	if failed > 0 {
		return exitCode(exitFailed)
	}
	return nil
}

// sameBuild checks whether the running daemon is of the same build as this program.
func sameBuild(c *client.Conn) (string, error) {
	if c == nil {
		return "", errNoDaemonToAsk
	}
	if theirs := c.Ready().Daemon.Version; theirs != Version() {
		return "", hinted{
			fmt.Sprintf("the daemon is version %s, this program %s", plain(theirs), Version()),
			"run `sublet daemon restart`; running turns are finished first",
		}
	}
	return "the daemon is of this build", nil
}

var errNoDaemonToAsk = errors.New("not known without a daemon")

// checkStore checks that the sessions can be read.
func checkStore(ctx context.Context, c *client.Conn, p socket.Paths) (string, error) {
	if c == nil {
		return "", errNoDaemonToAsk
	}
	if _, err := c.Request(ctx, &wire.SessionRequest{Op: "list", Limit: 1}); err != nil {
		return "", fmt.Errorf("sessions cannot be read: %w", err)
	}
	s, err := wire.Call(ctx, c, &wire.StatusRequest{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %.1f MiB", p.Database(), float64(s.StoreSize)/(1<<20)), nil
}

// checkDisk checks that there is room for the store.
func checkDisk(dir string) (string, error) {
	const least = 64 << 20 // bytes
	var st unix.Statfs_t
	at := dir
	for { // a folder that does not exist yet will be on the disk of its parent
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := unix.Statfs(at, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", dir, err)
	}
	free := st.Bavail * uint64(st.Bsize)
	found := fmt.Sprintf("%d MiB free for %s", free>>20, dir)
	if free < least {
		return "", hinted{found, "a turn that cannot be written down ends: make room, or set SUBLET_STATE_DIR to another disk"}
	}
	return found, nil
}

// checkLog searches the log for recent errors.
func checkLog(path string) (string, error) {
	text, err := endOf(path, 256<<10)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "none yet", nil
	}
	if err != nil {
		return "", err
	}
	count, last := 0, ""
	for line := range strings.Lines(text) {
		if strings.Contains(line, " level=ERROR ") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			count, last = count+1, line
		}
	}
	if count > 0 {
		return "", hinted{fmt.Sprintf("%d errors, the last: %s", count, plain(last)), "`sublet daemon logs` shows what led to them"}
	}
	return path + ", no errors", nil
}

// endOf returns the last most bytes of a file, or all.
func endOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	return string(b), err
}

// checkModel reports which model answers.
func checkModel(c *client.Conn, p socket.Paths) (string, error) {
	if c == nil {
		return "", errNoDaemonToAsk
	}
	models := c.Ready().Models
	if len(models) == 0 {
		return "", errors.New("the daemon has no model")
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
		return "", hinted{name + " cannot be used yet", missingKey(p.Config, m.Provider)}
	}
	return fmt.Sprintf("%s, context window %s tokens", name, tokens(m.ContextWindow)), nil
}

// missingKey returns how to give a provider its key.
func missingKey(settings, provider string) string {
	where := "see `sublet config show`, provider." + plain(provider)
	if c, err := config.Load(settings); err == nil {
		if name := c.Providers[provider].APIKeyEnv; name != "" {
			return "its key is missing: set " + plain(name) + " where you start sublet, or api_key_command; " + where
		}
	}
	return "its key is missing: " + where
}
