package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

func (a *app) tool() *cobra.Command {
	return &cobra.Command{
		Use:   "tool NAME [--argument VALUE]... [--json-in] [--json-out]",
		Short: "Run one of the agents' tools, under the same policy",
		Long: "tool runs bash, jobs, read, write, edit, glob, grep or fetch as an agent would, and prints what the agent would see.\n" +
			"--path, --command and so on are the tool's arguments; with --json-in they are read as one JSON object from standard\n" +
			"input, with --json-out the result is printed as one. mcp__SERVER__TOOL is a tool of an MCP server; `sublet doctor` lists\n" +
			"them. Its arguments are JSON where they can be read as such, else text.",
		Example:            "  sublet tool read --path go.mod --limit 10\n  echo '{\"pattern\":\"TODO\"}' | sublet tool grep --json-in --json-out",
		DisableFlagParsing: true, // the arguments are the tool's
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "--help") || args[0] == "-h" {
				return c.Help()
			}
			call, err := parseTool(args)
			if err != nil {
				return &usageError{err}
			}
			return a.runTool(call)
		},
	}
}

// mcpPrefix begins the names of MCP servers' tools.
const mcpPrefix = "mcp__"

type toolCall struct {
	name            string
	arguments       map[string]any
	jsonIn, jsonOut bool
}

// parseTool reads NAME and --key value, --key=value or --flag. The values are text, of which the daemon makes what the tool takes; of an
// MCP server's tool, whose arguments are named as they are, every value that is JSON is taken as that.
func parseTool(args []string) (toolCall, error) {
	call := toolCall{name: args[0], arguments: map[string]any{}}
	if strings.HasPrefix(call.name, "-") {
		return call, errors.New("the tool's name comes first")
	}
	remote := strings.HasPrefix(call.name, mcpPrefix)
	for rest := args[1:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		name, value, has := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !strings.HasPrefix(word, "--") || name == "" {
			return call, fmt.Errorf("%q is not a --argument", word)
		}
		if !remote {
			name = strings.ReplaceAll(name, "-", "_")
		}
		switch {
		case word == "--json-in":
			call.jsonIn = true
			continue
		case word == "--json-out":
			call.jsonOut = true
			continue
		case has:
		case !remote && slices.Contains([]string{"ignore_case", "replace_all", "private"}, name):
			value = "true"
		case len(rest) == 0:
			return call, fmt.Errorf("--%s lacks its value", name)
		default:
			value, rest = rest[0], rest[1:]
		}
		call.arguments[name] = value
		if remote && json.Valid([]byte(value)) {
			call.arguments[name] = json.RawMessage(value)
		}
	}
	return call, nil
}

func (a *app) runTool(call toolCall) error {
	arguments, err := json.Marshal(call.arguments)
	if err != nil {
		return err
	}
	if call.jsonIn {
		if len(call.arguments) > 0 {
			return &usageError{errors.New("--json-in and arguments exclude each other")}
		}
		if arguments, err = io.ReadAll(io.LimitReader(a.stdin, maxStdin+1)); err != nil {
			return err
		}
		switch {
		case len(arguments) > maxStdin:
			return fmt.Errorf("standard input is over %d MiB", maxStdin>>20)
		case !json.Valid(arguments):
			return errors.New("standard input is not JSON")
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	asker := newAsker(a, call.jsonOut)
	defer asker.close()
	var result *wire.CommandResult
	var failed *wire.Error
	var end *wire.AgentComplete
	err = a.connected(autoStart, func(ctx context.Context, c *client.Conn) (err error) {
		r := &wire.ToolRequest{Tool: call.name, Arguments: string(arguments), Cwd: wire.OSString(dir)}
		end, err = c.Turn(ctx, r, func(m wire.Message) {
			switch m := m.(type) {
			case *wire.ConfirmationRequest:
				if asker != nil {
					asker.ask(ctx, c, m)
				}
			case *wire.CommandResult:
				result = m
			case *wire.Error:
				failed = m
			}
		})
		return err
	}, func(o *client.Options) { o.Confirm = asker != nil })
	if err != nil {
		return err
	}
	if result != nil {
		if call.jsonOut {
			if err := a.printView(result); err != nil {
				return err
			}
		} else {
			a.printOutput(result)
		}
		if result.Status != wire.StatusSuccess && result.Status != wire.StatusOK {
			return statusOfTurn(&wire.AgentComplete{Status: result.Status})
		}
	}
	if failed != nil {
		return failed
	}
	return statusOfTurn(end)
}

// printOutput prints a result as it is where it succeeded, and on standard error where it did not.
func (a *app) printOutput(r *wire.CommandResult) {
	to := a.stdout
	if r.Status != wire.StatusSuccess && r.Status != wire.StatusOK {
		to = a.stderr
	}
	text := forTerminal(to, string(r.Output))
	fmt.Fprint(to, text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(to)
	}
}
