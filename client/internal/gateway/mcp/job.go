package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// jobIn are the arguments of the tool job, those of the daemon's own.
type jobIn struct {
	ID        string  `json:"id,omitempty" jsonschema:"such as j1; left out: lists them"`
	Until     *string `json:"until,omitempty" jsonschema:"waits for a line of output that matches this regular expression; empty: for the job's end"`
	TimeoutMS int64   `json:"timeout_ms,omitempty" jsonschema:"of until; 30000 if left out"`
	Kill      bool    `json:"kill,omitempty" jsonschema:"ends it and all it started"`
}

// jobOut is its result.
type jobOut struct {
	Status string `json:"status" jsonschema:"success, error or cancelled"`
	Output string `json:"output" jsonschema:"the jobs, or one with what it printed since you last looked; at most 10,000 bytes of both ends"`
	Rest   string `json:"rest,omitempty" jsonschema:"file that holds the whole, where some of it is left out"`
}

func (s *server) addJob(m *sdk.Server) {
	sdk.AddTool(m, about("job", "Background jobs", "Your background jobs, which shell starts with background. {} lists them. {id} returns what one printed since you last looked. "+
		"{id, until} waits for a line that matches, or for its end. {id, kill} ends it.", &sdk.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)}), s.job)
}

// job is a call of the tool.
func (s *server) job(ctx context.Context, req *sdk.CallToolRequest, in jobIn) (*sdk.CallToolResult, jobOut, error) {
	r, err := s.tool(ctx, req, &wire.ToolRequest{Tool: "jobs"}, in)
	if err != nil {
		return nil, jobOut{}, err
	}
	out := jobOut{Status: r.Status, Output: string(r.Output), Rest: rest(r)}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.Output}}, IsError: r.Status != wire.StatusSuccess}, out, nil
}
