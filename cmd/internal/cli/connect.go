package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"sublet/cmd/internal/connect"
	"sublet/wire/visible"
)

// connectFlags is the arguments of `connect`.
type connectFlags struct{ undo, print, yes bool }

func (a *app) connect() *cobra.Command {
	var o connectFlags
	c := explained(command("connect claude|codex|crush|gemini|goose|opencode|qwen", "Let another agent run its commands in your shell", cobra.ExactArgs(1),
		func(args []string) error { return a.runConnect(args[0], o) }),
		"connect adds `sublet serve mcp` to the settings of an agent of another program, raises its time limit and turns its own shell\n"+
			"tool off, so that its commands run in your shell, under sublet's policy. It shows what changes, asks, keeps a backup, and\n"+
			"changes nothing else. Then it names the settings that the installed agent has taken. For another name it prints what most\n"+
			"programs take.",
		"  sublet connect codex\n  sublet connect codex --undo")
	c.Flags().BoolVar(&o.undo, "undo", false, "take the changes back; what else was changed since stays")
	c.Flags().BoolVar(&o.print, "print", false, "print what would change, and change nothing")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

// generic is the form of MCP settings that most programs accept.
const generic = `{"mcpServers": {"sublet": {"command": "sublet", "args": ["serve", "mcp"]}}}`

func (a *app) runConnect(name string, o connectFlags) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	agent, known := connect.Find(connect.Agents(home, selfCommand(), a.env), name)
	if !known {
		a.printf("%s is not known. Most programs take this in their settings, below mcpServers:\n\n    %s\n\nTurn its own shell tool off there too, and raise its time limit for tools.\n", plain(name), generic)
		return nil
	}
	a.printVersion(agent)
	changed := false
	for _, f := range agent.Files {
		c, err := f.Connect()
		if o.undo {
			c, err = f.Undo()
		}
		if errors.Is(err, connect.ErrNoBackup) {
			a.printf("%s: %v\n", plain(f.Path), err)
			continue
		}
		if err != nil {
			return hinted{err.Error(), "nothing more was changed; docs/agents.md has the settings to add by hand"}
		}
		changed = changed || !c.Empty()
		a.printf("%s", visible.Text(c.Diff()))
		if o.print || c.Empty() && !o.undo {
			continue
		}
		if !o.yes && !c.Empty() {
			verb := "Change "
			if c.After == nil {
				verb = "Remove "
			}
			if ok, err := a.confirmed(verb + plain(c.Path) + "?"); err != nil || !ok {
				return err
			}
		}
		if err := c.Write(); err != nil {
			return err
		}
	}
	if !changed && len(agent.Files) > 0 {
		a.printf("nothing to change\n")
	}
	if !o.print && !o.undo {
		a.printChecks(agent)
	}
	if agent.Note != "" && !o.undo {
		a.printf("%s: %s\n", agent.Name, agent.Note)
	}
	return nil
}

// selfCommand returns how others start this program: by its name if PATH leads to this very file, else by its path.
func selfCommand() string {
	self, err := os.Executable()
	if err != nil {
		return "sublet"
	}
	if found, err := exec.LookPath("sublet"); err == nil {
		there, errA := os.Stat(found)
		here, errB := os.Stat(self)
		if errA == nil && errB == nil && os.SameFile(there, here) {
			return "sublet"
		}
	}
	return self
}

// versionBound is how long a program may take to print its version.
const versionBound = 10 * time.Second

// printVersion prints the installed version of the agent, and the version that these settings were tested with.
func (a *app) printVersion(agent connect.Agent) {
	tried := ""
	if agent.Tried != "" {
		tried = "; these settings were tried with " + agent.Tried
	}
	path, err := exec.LookPath(agent.Name)
	if err != nil {
		a.printf("%s is not on PATH%s\n", agent.Name, tried)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionBound)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		a.printf("%s does not print its version%s\n", agent.Name, tried)
		return
	}
	a.printf("%s: %s%s\n", agent.Name, firstLine(plain(string(out)), 80), tried)
}

// checkBound is how long an agent may take for a check; some start each of their servers for it.
const checkBound = time.Minute

// printChecks asks the agent which settings it has taken, and names those that it has not, or does not show.
func (a *app) printChecks(agent connect.Agent) {
	path, err := exec.LookPath(agent.Name)
	if err != nil {
		return // printVersion has reported it
	}
	var taken, missed []string
	unseen := slices.Clone(agent.Unseen)
	for _, c := range agent.Checks {
		words := agent.Name + " " + strings.Join(c.Args, " ")
		ctx, cancel := context.WithTimeout(context.Background(), checkBound)
		cmd := exec.CommandContext(ctx, path, c.Args...)
		cmd.WaitDelay = time.Second      // its own children may keep its output open
		out, err := cmd.CombinedOutput() // Gemini CLI prints the list on its standard error
		cancel()
		answer := ansi.Strip(string(out))
		for _, s := range c.Traces {
			shown, ok := s.In(answer)
			if ok && s.Show {
				a.printf("%s: %s\n", words, firstLine(plain(strings.Join(strings.Fields(shown), " ")), 200))
			}
			switch {
			case ok:
				taken = append(taken, s.Setting)
			case s.Proof:
				unseen = append(unseen, s.Setting)
			case err != nil:
				a.printf("%s could not be checked: %s: %v\n", s.Setting, words, err)
			default:
				missed = append(missed, s.Setting)
			}
		}
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"has taken", taken}, {"has not recognised", missed}, {"does not show whether it has taken", unseen}} {
		if len(l.list) > 0 {
			a.printf("%s %s %s\n", agent.Name, l.what, strings.Join(l.list, ", "))
		}
	}
}

// confirmed asks at the terminal, and reports whether the answer was y or yes.
func (a *app) confirmed(question string) (bool, error) {
	if !isTerminal(a.stdin) {
		return false, hinted{"there is no terminal to ask on", "--yes changes it without a question, --print changes nothing"}
	}
	a.printf("%s [y/N] ", question)
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && line == "" {
		return false, errors.New("no answer: nothing was changed")
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
