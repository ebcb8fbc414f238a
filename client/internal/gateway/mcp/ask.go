package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// askOut is the result of the tool ask_user.
type askOut struct {
	Answered bool   `json:"answered"`
	Answer   string `json:"answer" jsonschema:"one of the choices, the user's own words, or why there is none"`
}

func (s *server) addAsk(m *sdk.Server) {
	no := false
	sdk.AddTool(m, &sdk.Tool{
		Name:  "ask_user",
		Title: "Ask the user",
		Description: "Ask the user a question, in their sublet window, with choices or without. Only for what you cannot find out yourself. " +
			"An answer approves no command: shell asks about those by itself.",
		Annotations: &sdk.ToolAnnotations{Title: "Ask the user", ReadOnlyHint: true, OpenWorldHint: &no},
		Meta:        sdk.Meta{"anthropic/alwaysLoad": true},
	}, s.ask)
}

// ask is a call of the tool.
func (s *server) ask(ctx context.Context, req *sdk.CallToolRequest, in wire.UserQuestion) (*sdk.CallToolResult, askOut, error) {
	r, err := s.tool(ctx, req, &wire.ToolRequest{Tool: wire.ToolAskUser}, in)
	if err != nil {
		return nil, askOut{}, err
	}
	return nil, askOut{Answered: r.Status == wire.StatusSuccess, Answer: string(r.Output)}, nil
}
