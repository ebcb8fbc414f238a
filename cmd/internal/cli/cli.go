// Package cli is the command line: commands, flags, wording, exit codes and hints. What commands do is left to client and
// daemon.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon"
	"sublet/daemon/config"
	"sublet/wire"
	"sublet/wire/socket"
)

// version and commit are set by the linker; see the Makefile.
var version, commit string

// Version is the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// app is one run of the program.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	env            func(string) string
	began          bool           // a command's own code runs: later errors are no usageError
	command        string         // its path, such as "sublet session ls"
	called         *cobra.Command // set by Main for report, also after a wrong call
}

// Main runs the program with its arguments, without its name, and returns the exit status.
func Main(args []string) int {
	slog.SetLogLoggerLevel(slog.LevelWarn) // of libraries: the one for agents logs the end of each connection
	out := &output{File: os.Stdout}
	a := &app{stdin: os.Stdin, stdout: out, stderr: os.Stderr, env: os.Getenv}
	root := a.root()
	a.explainCommands(root)
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	var err error
	a.called, err = root.ExecuteContextC(context.Background())
	failed := out.failed.Load()
	switch {
	case err == nil && failed == nil:
		return exitOK
	case err == nil:
		err = fmt.Errorf("standard output: %w", *failed)
	case !a.began:
		err = &usageError{err}
	}
	return a.report(err)
}

// Commands returns sublet's commands, for what describes them.
func Commands() *cobra.Command { return (&app{env: os.Getenv}).root() }

func (a *app) root() *cobra.Command {
	var continueLast, version bool
	root := &cobra.Command{
		Use:   "sublet",
		Short: "Lend your shell to AI agents, on your terms",
		Long: "sublet opens a terminal program: your own shell, and agents that borrow it, one\n" +
			"at a time, in front of your eyes. Tab on an empty line switches between the\n" +
			"shell ($) and asking (>).\n\n" +
			"Exit statuses: 0 success, 1 failure, 2 wrong call, 3 it was refused or needed a\n" +
			"question, 4 no daemon, 5 time is up, 130 cancelled. `sublet lease run --help`\n" +
			"explains its own.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			a.began, a.command = true, c.CommandPath()
		},
		RunE: func(*cobra.Command, []string) error {
			if version {
				a.printf("%s\n", versionLine())
				return nil
			}
			return a.open("", continueLast)
		},
	}
	root.Flags().BoolVarP(&continueLast, "continue", "c", false, "continue the last session")
	// Not cobra's own flag: it would be -v, and its format is a text/template, which finds methods by name and so keeps the linker from removing unused ones.
	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Work:"},
		&cobra.Group{ID: "look", Title: "Inspect and configure:"},
	)
	root.SetHelpCommandGroupID("look")
	root.SetCompletionCommandGroupID("look")
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("work", a.ask(), a.review(), a.explain(), a.lease(), a.job(), a.session(), a.tool(), a.serve(), a.connect())
	add("look", a.policy(), a.models(), a.agents(), a.trust(), a.audit(), a.daemon(), a.config(), a.doctor(), a.versionCommand())
	return root
}

// open runs the terminal program on a session: the last one with continueLast, else that with the id, "" = a new one.
func (a *app) open(session wire.SessionID, continueLast bool) error {
	if !isTerminal(a.stdin) || !isTerminal(os.Stdout) {
		return &usageError{hinted{"sublet needs a terminal, and this is not one", "scripts use `sublet ask 'PROMPT'`"}}
	}
	if a.env("TERM") == "dumb" { // an editor's shell window
		return &usageError{hinted{"sublet moves the cursor, and this terminal cannot (TERM=dumb)", "`sublet ask 'PROMPT'` works here"}}
	}
	paths, noDaemon := a.paths()
	o, err := a.optionsFor(paths)
	if err != nil {
		return err
	}
	o.Session, o.Continue, o.NoDaemon = session, continueLast, noDaemon
	o.Stdin, o.Stdout = a.stdin, os.Stdout
	if c, err := config.Load(o.Paths.Config); err == nil { // the daemon reports an invalid file
		o.OutputHead, o.OutputTail, o.ShellPath, o.Patience = c.Shell.OutputHead, c.Shell.OutputTail, c.Shell.Path, c.Lease.Patience.Duration
		o.SwitchKey, _ = config.Key(c.Shell.SwitchKey) // checked by Load
	}
	code, err := client.Run(context.Background(), o)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

func (a *app) paths() (socket.Paths, error) { return socket.FindPaths(a.env, os.Getuid()) }

// settings reads the settings file.
func (a *app) settings() (config.Config, error) {
	paths, err := a.paths()
	if err != nil {
		return config.Config{}, err
	}
	return daemon.LoadSettings(paths.Config)
}

// options returns the options that every connection needs.
func (a *app) options() (client.Options, error) {
	paths, err := a.paths()
	if err != nil {
		return client.Options{}, err
	}
	return a.optionsFor(paths)
}

func (a *app) optionsFor(paths socket.Paths) (client.Options, error) {
	exe, err := os.Executable()
	if err != nil {
		return client.Options{}, err
	}
	return client.Options{
		Paths: paths, Executable: exe, Version: Version(), Env: os.Environ(), Credentials: credentials(paths.Config),
		Log: slog.New(slog.DiscardHandler), AfterSeq: -1, Name: a.command,
	}, nil
}

// credentials returns the names of the variables with the providers' keys. If the settings are invalid it takes the default settings:
// a running daemon keeps its earlier ones.
func credentials(path string) []string {
	c, err := config.Load(path)
	if err != nil {
		c = config.Default()
	}
	var names []string
	for _, p := range c.Providers {
		if p.APIKeyEnv != "" {
			names = append(names, p.APIKeyEnv)
		}
	}
	return names
}

// Values of start for dial: without a daemon, start one, or return client.ErrNoDaemon.
const autoStart, noStart = true, false

// dial connects a command to the daemon. change adapts the options.
func (a *app) dial(ctx context.Context, start bool, change ...func(*client.Options)) (*client.Conn, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	if start {
		// Invalid settings are reported here: a daemon that they keep from starting reports them in its log only.
		if _, err := os.Stat(o.Paths.Socket); err != nil {
			if _, err := daemon.LoadSettings(o.Paths.Config); err != nil {
				return nil, err
			}
		}
	}
	o.NoStart = !start
	for _, f := range change {
		f(&o)
	}
	return client.Dial(ctx, o)
}

// connected calls do with a connection made by dial, and closes it. The context of do ends with SIGINT, SIGTERM or SIGHUP.
func (a *app) connected(start bool, do func(ctx context.Context, c *client.Conn) error, change ...func(*client.Options)) error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	c, err := a.dial(ctx, start, change...)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

// interruptible returns a context that ends with SIGINT, SIGTERM or SIGHUP; then its cause is errInterrupted.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with ctx, which the returned function cancels
		select {
		case <-signals:
			cancel(errInterrupted)
			signal.Stop(signals) // a second one ends the program at once
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}

func versionLine() string {
	from := ""
	if commit != "" {
		from = "commit " + commit + ", "
	}
	return fmt.Sprintf("sublet %s (protocol %d, %s%s, %s/%s)",
		Version(), wire.Version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	return withJSON(command("version", "Print the version", cobra.NoArgs, func([]string) error {
		if asJSON {
			return a.printJSON(map[string]any{
				"version": Version(), "commit": commit, "protocol": wire.Version, "protocol_min": wire.MinVersion,
				"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		}
		a.printf("%s\n", versionLine())
		return nil
	}), &asJSON, "")
}
