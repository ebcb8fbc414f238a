package mcp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
	"sublet/wire/visible"
)

// shellIn are the arguments of the tool shell.
type shellIn struct {
	Command    string `json:"command" jsonschema:"text for the user's shell (bash, zsh or fish), one or more lines"`
	Cwd        string `json:"cwd,omitempty" jsonschema:"absolute folder to run it in; the shell stays there. Left out: where the shell is"`
	TimeoutMS  int64  `json:"timeout_ms,omitempty" jsonschema:"then the command is ended or, in a private shell, goes on as a job; 1 to 3600000, 120000 if left out"`
	Purpose    string `json:"purpose,omitempty" jsonschema:"what it is for, in a few words; shown to the user"`
	Background bool   `json:"background,omitempty" jsonschema:"for what runs long, such as a server: starts it as a job of the shell and returns at once; the tool job looks at it"`
	Where      string `json:"where,omitempty" jsonschema:"live: the user's own shell, the default; private: a shell of the daemon's, held to the project"`
}

// shellOut is its result.
type shellOut struct {
	Output     string `json:"output" jsonschema:"what it printed, at most 10,000 bytes of both ends, then notes in brackets"`
	Status     string `json:"status" jsonschema:"success, error, timeout, cancelled or denied (it did not run)"`
	ExitCode   *int   `json:"exit_code" jsonschema:"null where it did not come to its end, or goes on as a job"`
	Cwd        string `json:"cwd" jsonschema:"where the shell is afterwards; empty where it did not run"`
	Where      string `json:"where" jsonschema:"live or private"`
	Reach      string `json:"reach" jsonschema:"what the kernel held it to: read, project; empty: nothing"`
	DurationMS int64  `json:"duration_ms"`
	Rest       string `json:"rest,omitempty" jsonschema:"file that holds the whole output, where some of it is left out"`
}

func (s *server) addShell(m *sdk.Server) {
	sdk.AddTool(m, about("shell", "The user's live shell", "Run a command in the user's own live shell, in front of their eyes: with its directory, environment, aliases and functions. "+
		"cd, export and the like stay for the next call. The user may be asked first, in their window; a refusal is final. "+
		"Most commands run held by the kernel to reading, or to the project; the notes say what was denied.", &sdk.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}), s.shell)
}

// shell is a call of the tool.
func (s *server) shell(ctx context.Context, req *sdk.CallToolRequest, in shellIn) (*sdk.CallToolResult, shellOut, error) {
	out := shellOut{Where: "live", Status: wire.StatusError}
	if err := in.check(); err != nil {
		return nil, out, err
	}
	if in.Where != "" {
		out.Where = in.Where
	}
	arguments := map[string]any{"command": in.Command}
	if in.Purpose != "" {
		arguments["description"] = in.Purpose
	}
	if in.Background {
		arguments["background"] = true
	}
	if in.TimeoutMS != 0 {
		arguments["timeout_ms"] = in.TimeoutMS
	}
	r, err := s.tool(ctx, req, &wire.ToolRequest{Tool: "bash", Cwd: wire.OSString(in.Cwd), Private: in.Where == "private"}, arguments)
	if err != nil {
		return nil, out, err
	}
	out.fill(r)
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text()}}}
	ran := out.ExitCode != nil && out.Status == wire.StatusError // its exit code is a result like another
	res.IsError = out.Status != wire.StatusSuccess && !ran
	return res, out, nil
}

// check returns what is wrong with the arguments, beyond their schema.
func (in *shellIn) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return errors.New("command: is empty")
	case in.Cwd != "" && !filepath.IsAbs(in.Cwd):
		return fmt.Errorf("cwd: %q is not absolute", in.Cwd)
	case !slices.Contains([]string{"", "live", "private"}, in.Where):
		return fmt.Errorf("where: %q is neither live nor private", in.Where)
	}
	return nil
}

// fill writes a command's outcome into the result.
func (o *shellOut) fill(r *wire.CommandResult) {
	o.Status, o.ExitCode, o.Cwd, o.Reach, o.DurationMS = r.Status, r.ExitCode, visible.Line(string(r.Cwd)), r.Reach, r.DurationMS
	o.Output, o.Rest = string(r.Output), rest(r)
}

// rest returns the file that has the whole output where some of it is left out, else "".
func rest(r *wire.CommandResult) string {
	if r.Truncated == nil {
		return ""
	}
	return string(r.Truncated.SpoolPath)
}

// text is a result for models whose client shows them no structure.
func (o *shellOut) text() string {
	text := strings.TrimRight(o.Output, "\n") // its notes report how it ended, but for exit code 0
	if o.ExitCode != nil && *o.ExitCode == 0 {
		text += "\n[exit code 0]"
	}
	if o.Cwd != "" {
		text += "\n[the shell is in " + o.Cwd + "]"
	}
	return text
}
