package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sublet/client"
	"sublet/wire"
	"sublet/wire/visible"
)

// showRequest prints the first request of req to the model: each part under a line with its tokens, then their sum.
func (a *app) showRequest(ctx context.Context, c *client.Conn, req *wire.AgentRequest, asJSON bool) error {
	reply, err := wire.Call(ctx, c, &wire.ShowRequest{Request: *req})
	if err != nil {
		return err
	}
	if asJSON {
		type part struct {
			Name   string `json:"name"`
			Tokens int64  `json:"tokens"`
			Text   string `json:"text"`
		}
		out := struct {
			Model string `json:"model"`
			Parts []part `json:"parts"`
		}{Model: reply.Model}
		for _, p := range reply.Parts {
			out.Parts = append(out.Parts, part(p))
		}
		return json.NewEncoder(a.stdout).Encode(out)
	}
	tokens, bytes := int64(0), 0
	for _, p := range reply.Parts {
		tokens, bytes = tokens+p.Tokens, bytes+len(p.Text)
		fmt.Fprintf(a.stdout, "── %s, %d tokens\n%s\n", visible.Line(p.Name), p.Tokens, visible.Text(strings.TrimSpace(p.Text)))
	}
	fmt.Fprintf(a.stdout, "── %s would be sent about %d tokens in %d bytes\n", visible.Line(reply.Model), tokens, bytes)
	return nil
}
