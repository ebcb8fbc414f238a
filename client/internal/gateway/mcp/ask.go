package mcp

import (
	"context"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// askOut is the result of the tool ask_user.
type askOut struct {
	Answered bool   `json:"answered"`
	Answer   string `json:"answer" jsonschema:"one of the choices, the user's own words, or why there is none"`
}

func (s *server) addAsk(m *sdk.Server) {
	sdk.AddTool(m, about("ask_user", "Ask the user", "Ask the user a question, in their sublet window, with choices or without. Only for what you cannot find out yourself. "+
		"An answer approves no command: shell asks about those by itself.", &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}), s.ask)
}

// answerField names the elicitation, and the field of its form.
const answerField = "answer"

// ask is a call of the tool. Where no window is open, a client that can ask its own user does so (elicitation): the call is
// answered with the form, and comes again with what was filled in. For a hosted agent the daemon asks the user of its turn.
func (s *server) ask(ctx context.Context, req *sdk.CallToolRequest, in wire.UserQuestion) (*sdk.CallToolResult, askOut, error) {
	if r, ok := req.Params.InputResponses[answerField].(*sdk.ElicitResult); ok {
		return nil, elicited(r), nil
	}
	// A client that names neither form nor URL can show a form.
	if c := req.ClientCapabilities(); s.o.Hosted == "" && c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil) {
		if err := in.Check(); err != nil {
			return nil, askOut{}, err
		}
		if _, _, err := s.liveShell(ctx, req.ClientInfo(), req.Session); errors.Is(err, errNoWindow) {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{answerField: form(in)}}, askOut{}, nil
		}
	}
	r, err := s.tool(ctx, req, &wire.ToolRequest{Tool: wire.ToolAskUser}, in)
	if err != nil {
		return nil, askOut{}, err
	}
	return nil, askOut{Answered: r.Status == wire.StatusSuccess, Answer: string(r.Output)}, nil
}

// form is a question as an elicitation: one field, with the choices where there are some.
func form(q wire.UserQuestion) *sdk.ElicitParams {
	field := &jsonschema.Schema{Type: "string", Title: "Answer"}
	for _, c := range q.Choices {
		field.Enum = append(field.Enum, c)
	}
	return &sdk.ElicitParams{Message: q.Question, RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{answerField: field}, Required: []string{answerField},
	}}
}

// elicited is what the client's user filled in.
func elicited(r *sdk.ElicitResult) askOut {
	if answer, ok := r.Content[answerField].(string); ok && r.Action == "accept" {
		return askOut{Answered: true, Answer: answer}
	}
	return askOut{Answer: "the user did not answer"}
}
