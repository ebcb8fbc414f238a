package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sublet/daemon"
	"sublet/daemon/config"
	"sublet/wire"
)

// commandText returns an error unless the arguments have the text of a command.
func commandText(_ *cobra.Command, args []string) error {
	if strings.TrimSpace(strings.Join(args, " ")) == "" {
		return errors.New("the command to judge is missing")
	}
	return nil
}

func (a *app) explain() *cobra.Command {
	var asJSON bool
	c := explained(command("explain 'CMD'", "Show what a command would do and how risky it is; runs nothing", commandText, func(args []string) error {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		settings, err := a.settings()
		if err != nil {
			return err
		}
		if asJSON && len(args) == 1 && args[0] == "-" {
			return a.explainLines(dir, settings.Policy)
		}
		command := strings.Join(args, " ")
		v, outcomes := daemon.ExplainModes(command, dir, settings)
		if asJSON {
			return a.printVerdict(command, v)
		}
		a.drawVerdict(command, v)
		a.drawOutcomes(outcomes, "")
		return nil
	}), "explain judges a command as the agents' commands are judged, for a fresh shell of yours in the\n"+
		"current folder, without a daemon and without running anything: its level, what in it is the reason, and what each mode\n"+
		"would do with it, rules aside. With --json and - it reads one {\"command\", \"cwd\"} a line and answers each, in order,\n"+
		"for bash. `sublet policy test` goes by the rules too, and with --live by the shell of your window.",
		"  sublet explain 'rm -rf build && git push --force'\n  jq -c '{command: .}' list.json | sublet explain --json -")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printVerdict prints a command and its verdict as one JSON object.
func (a *app) printVerdict(command string, v wire.Verdict) error {
	fields, err := view(&wire.PolicyReply{Verdict: &v})
	if err != nil {
		return err
	}
	return a.printJSON(map[string]any{"command": command, "verdict": fields["verdict"]})
}

const maxExplainLine = 16 << 20 // bytes of one line of input

// explainLines reads one object a line and answers each at once, in dir where it names no folder. It answers any other line with an
// error object, and returns an error at the end.
func (a *app) explainLines(dir string, policy config.Policy) error {
	lines := bufio.NewScanner(a.stdin)
	lines.Buffer(nil, maxExplainLine)
	bad := 0
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var q struct {
			Command *string `json:"command"`
			Cwd     string  `json:"cwd"`
		}
		err := json.Unmarshal(lines.Bytes(), &q)
		if err == nil && q.Command == nil {
			err = errors.New(`no "command"`)
		}
		if err != nil {
			bad++
			err = a.printJSON(map[string]string{"error": fmt.Sprintf("line %d: %v", n, err)})
		} else {
			err = a.printVerdict(*q.Command, daemon.Explain(*q.Command, cmp.Or(q.Cwd, dir), policy))
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if bad > 0 {
		return fmt.Errorf("lines of input that are no {\"command\", \"cwd\"}: %d", bad)
	}
	return nil
}
