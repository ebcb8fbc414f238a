package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
	"sublet/wire/visible"
)

// stateOut is what the live shell looks like.
type stateOut struct {
	Cwd       string            `json:"cwd"`
	Shell     string            `json:"shell" jsonschema:"name and version"`
	Exported  []string          `json:"exported" jsonschema:"names of exported variables, without values"`
	Aliases   map[string]string `json:"aliases"`
	Functions []string          `json:"functions" jsonschema:"names"`
	Recent    []recentCommand   `json:"recent" jsonschema:"the user's own last commands, oldest first"`
}

type recentCommand struct {
	Command  string `json:"command"`
	ExitCode *int   `json:"exit_code"`
	Output   string `json:"output" jsonschema:"its end"`
}

// maxTail bounds the end of an output of a recent command, in characters.
const maxTail = 800

// queueOut is who has the user's shells.
type queueOut struct {
	Window  int      `json:"window_pid"`
	Holder  string   `json:"holder"`
	Purpose string   `json:"purpose"`
	Waiting []string `json:"waiting"`
}

func (s *server) addState(m *sdk.Server) {
	sdk.AddTool(m, about("shell_state", "What the user's live shell looks like", "Where the user's live shell is, which shell it is, its aliases and functions, the names of its exported variables, and the user's "+
		"own last commands with exit code and end of output. Runs nothing.", &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}), func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, stateOut, error) {
		out, _, err := s.liveShell(ctx, req.ClientInfo(), req.Session)
		return nil, out, err
	})
	for uri, r := range map[string]struct {
		title string
		read  func(stateOut, []wire.LeaseStatus) any
	}{
		"sublet://cwd": {"Current directory of the user's live shell", func(st stateOut, _ []wire.LeaseStatus) any { return st.Cwd }},
		"sublet://last-command": {"The user's last command", func(st stateOut, _ []wire.LeaseStatus) any {
			if len(st.Recent) == 0 {
				return nil
			}
			return st.Recent[len(st.Recent)-1]
		}},
		"sublet://lease": {"Who has the user's shells, and who waits", func(_ stateOut, leases []wire.LeaseStatus) any { return queueOf(leases) }},
	} {
		m.AddResource(&sdk.Resource{URI: uri, Name: strings.TrimPrefix(uri, "sublet://"), Title: r.title, MIMEType: "application/json"},
			func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				st, leases, err := s.liveShell(ctx, req.ClientInfo(), req.Session)
				if err != nil {
					return nil, err
				}
				text, err := json.Marshal(r.read(st, leases))
				if err != nil {
					return nil, err
				}
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
			})
	}
}

// errNoWindow reports that no window lends a shell.
var errNoWindow = errors.New("no sublet window is open: there is no live shell")

// liveShell asks the daemon for the state of the shell that would be lent, and for the leases of all shells. Without a shell it
// returns errNoWindow.
func (s *server) liveShell(ctx context.Context, info *sdk.Implementation, session *sdk.ServerSession) (out stateOut, leases []wire.LeaseStatus, err error) {
	l, _, err := s.client(ctx, info, session)
	if err != nil {
		return out, nil, worded(err)
	}
	reply, err := wire.Call(ctx, l.gs, &wire.StatusRequest{Shells: true, Look: true})
	if err != nil {
		return out, nil, worded(err)
	}
	for _, lease := range reply.Leases {
		if lease.Look != nil {
			return stateOf(lease.Look), reply.Leases, nil
		}
	}
	return out, nil, errNoWindow
}

func stateOf(l *wire.ShellLook) stateOut {
	out := stateOut{
		Cwd: visible.Line(string(l.Cwd)), Shell: visible.Line(l.Shell), Exported: lines(l.Exported), Functions: lines(l.Functions),
		Aliases: map[string]string{}, Recent: []recentCommand{},
	}
	for name, value := range l.Aliases {
		out.Aliases[visible.Line(name)] = visible.Text(string(value))
	}
	for _, c := range l.Recent {
		tail := []rune(visible.Text(string(c.OutputTail)))
		if over := len(tail) - maxTail; over > 0 {
			tail = tail[over:]
		}
		out.Recent = append(out.Recent, recentCommand{Command: visible.Text(string(c.Command)), ExitCode: c.ExitCode, Output: string(tail)})
	}
	return out
}

// lines returns names for display, each in one line.
func lines(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = visible.Line(name)
	}
	return list
}

func queueOf(leases []wire.LeaseStatus) []queueOut {
	list := []queueOut{}
	for _, l := range leases {
		q := queueOut{Window: l.ClientPID, Holder: visible.Line(l.Holder), Purpose: visible.Line(l.Purpose), Waiting: []string{}}
		for _, w := range l.Queue {
			q.Waiting = append(q.Waiting, visible.Line(w.Agent+": "+w.Purpose))
		}
		list = append(list, q)
	}
	return list
}
