package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// askIn are the arguments of the tool ask_user.
type askIn struct {
	Question string   `json:"question" jsonschema:"what to ask, at most 2000 bytes"`
	Choices  []string `json:"choices,omitempty" jsonschema:"answers on offer, at most 9; the user may answer in their own words as well"`
}

// askOut is its result.
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
func (s *server) ask(ctx context.Context, req *sdk.CallToolRequest, in askIn) (*sdk.CallToolResult, askOut, error) {
	var out askOut
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var c call
	c.say("waits for the calls before it")
	stop := s.report(ctx, req, &c)
	defer stop()
	l, from, err := s.client(ctx, req.ClientInfo(), req.Session)
	if err != nil {
		return nil, out, worded(err)
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return nil, out, err
	}
	defer leave()
	text, err := json.Marshal(in)
	if err != nil {
		return nil, out, err
	}
	end, err := l.gs.Tool(ctx, &wire.ToolRequest{Tool: wire.ToolAskUser, Arguments: string(text), Borrower: from, AnswerMS: s.o.Answer.Milliseconds()}, c.event)
	switch {
	case err != nil:
		return nil, out, worded(err)
	case c.result == nil:
		return nil, out, errors.New(end.Summary)
	}
	out.Answered, out.Answer = c.result.Status == wire.StatusSuccess, string(c.result.Output)
	return nil, out, nil
}
