package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sublet/daemon"
	"sublet/daemon/config"
)

// agentPatience is how long an agent may take to start, and again to answer a prompt.
const agentPatience = 25 * time.Second

func (a *app) agents() *cobra.Command {
	var asJSON bool
	c := command("agents", "List agents of other programs: hosted, or ready to be", cobra.NoArgs, func([]string) error {
		conf, err := a.settings()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(context.Background())
		defer stop()
		list := checkAgents(ctx, conf, "")
		if asJSON {
			return a.printAgentsJSON(list)
		}
		return a.printAgentTable(list)
	})
	return withJSON(explained(c, "agents starts each agent that has a command in the settings, as /agent NAME would, opens a session, and ends it; no prompt is\n"+
		"sent. Known programs that are installed follow, with the line of the settings that hosts them.", ""), &asJSON, "agent")
}

// checkAgents is daemon.CheckAgents in the current folder.
func checkAgents(ctx context.Context, conf config.Config, prompt string) []daemon.AgentCheck {
	dir, _ := os.Getwd() // "" where it was removed: then no agent opens a session
	return daemon.CheckAgents(ctx, conf, Version(), dir, prompt, agentPatience)
}

func (a *app) printAgentsJSON(list []daemon.AgentCheck) error {
	for _, one := range list {
		line := struct {
			daemon.AgentCheck
			Error string `json:"error"`
		}{AgentCheck: one}
		if one.Err != nil {
			line.Error = one.Err.Error()
		}
		if err := a.printJSON(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printAgentTable(list []daemon.AgentCheck) error {
	w := a.table("AGENT\tVERSION\tPROTOCOL\tCAN\tITS OWN SHELL\tTRIED WITH")
	for _, one := range list {
		if one.Configured && one.Err == nil {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", one.Name, plain(one.Version), one.Protocol, agentCan(one), ownShell(one), cmp.Or(one.Tried, "-"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, one := range list {
		for _, has := range []struct {
			what, used string
			all        []string
		}{{"models", one.Model, one.Models}, {"modes", one.Mode, one.Modes}} {
			if len(has.all) > 0 {
				a.printf("%s: its %s: %s; in use: %s\n", one.Name, has.what, plain(strings.Join(has.all, ", ")), plain(has.used))
			}
		}
		switch {
		case one.Err != nil:
			a.printNotice(one.Name, agentFault(one), plain(hintOf(one.Err)))
		case !one.Configured:
			a.printf("%s is installed; to host it, add to the settings:\n%s\n", one.Name, one.Setting())
		}
	}
	return nil
}

// agentFault returns why an agent cannot be used, without its name.
func agentFault(one daemon.AgentCheck) string {
	return strings.TrimPrefix(plain(one.Err.Error()), one.Name+": ")
}

// agentCan lists an agent's capabilities.
func agentCan(one daemon.AgentCheck) string {
	can := []string{"prompts"}
	if one.Resumes {
		can = append(can, "resume")
	}
	if one.Images {
		can = append(can, "images")
	}
	return strings.Join(can, ", ")
}

func ownShell(one daemon.AgentCheck) string {
	if one.ShellOff {
		return "off"
	}
	return "as it likes"
}

// checkHosted returns a check for each agent of the settings: that it starts and opens a session.
func checkHosted(ctx context.Context, settings string) (checks []check) {
	conf, err := config.Load(settings)
	if err != nil {
		return nil // the check of the settings reports it
	}
	started := sync.OnceValue(func() []daemon.AgentCheck { return checkAgents(ctx, conf, "") })
	for _, name := range slices.Sorted(maps.Keys(conf.Agents)) {
		if len(conf.Agents[name].Command) == 0 {
			continue
		}
		checks = append(checks, check{name: "agent", warn: true, run: func() (string, error) {
			list := started()
			one := list[slices.IndexFunc(list, func(c daemon.AgentCheck) bool { return c.Configured && c.Name == name })]
			if one.Err != nil {
				return "", hinted{name + ": " + agentFault(one), plain(hintOf(one.Err))}
			}
			return name + " opens a session (" + plain(one.Version) + "); its own shell: " + ownShell(one), nil
		}})
	}
	return checks
}

// tryAgent has an agent of the settings answer a short prompt, and describes what came of it.
func (a *app) tryAgent(ctx context.Context, name string) error {
	conf, err := a.settings()
	if err != nil {
		return err
	}
	one, ok := conf.Agents[name]
	if !ok || len(one.Command) == 0 {
		return hinted{"no agent " + plain(name) + " with a command is in the settings", "`sublet agents` lists those that are, and what hosts the others"}
	}
	conf.Agents = map[string]config.Agent{name: one}
	return a.examine([]check{{name: "agent", run: func() (string, error) {
		got := checkAgents(ctx, conf, "Answer with the one word: ready")[0]
		switch {
		case got.Err != nil:
			return "", hinted{name + ": " + agentFault(got), plain(hintOf(got.Err))}
		case !strings.Contains(strings.ToLower(got.Answer), "ready"):
			return "", hinted{name + " was to answer `ready`, and answered: " + plain(got.Answer), "that may be an error of its model or its sign-in"}
		}
		return name + " answers (" + plain(got.Version) + "); its own shell: " + ownShell(got), nil
	}}})
}
