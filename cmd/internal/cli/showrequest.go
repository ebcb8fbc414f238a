package cli

import (
	"context"
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
		return a.printView(reply)
	}
	tokens, bytes := int64(0), 0
	for _, p := range reply.Parts {
		tokens, bytes = tokens+p.Tokens, bytes+len(p.Text)
		fmt.Fprintf(a.stdout, "── %s, %d tokens\n%s\n", visible.Line(p.Name), p.Tokens, visible.Text(strings.TrimSpace(p.Text)))
	}
	fmt.Fprintf(a.stdout, "── %s would be sent about %d tokens in %d bytes\n", visible.Line(reply.Model), tokens, bytes)
	return nil
}
