package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/remote"
	"sublet/wire"
	"sublet/wire/visible"
)

// tool has the daemon run one of its tools, after the client's earlier calls, and returns the result. r names the tool and the place;
// arguments are encoded as the tool's.
func (s *server) tool(ctx context.Context, req *sdk.CallToolRequest, r *wire.ToolRequest, arguments any) (*wire.CommandResult, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var c call
	c.say("waits for the calls before it")
	defer s.report(ctx, req, &c)()
	l, from, err := s.client(ctx, req.ClientInfo(), req.Session)
	if err != nil {
		return nil, worded(err)
	}
	defer s.done(l)
	leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.say("runs, or waits for the shell")
	r.Hosted = s.o.Hosted
	r.Arguments, r.Borrower, r.AnswerMS = string(text), from, s.o.Answer.Milliseconds()
	end, err := l.gs.Tool(ctx, r, c.event)
	switch {
	case errors.Is(err, remote.ErrDisconnected):
		return nil, errors.New("the daemon was lost before the call's end was known; look whether it ran before you call again")
	case err != nil:
		return nil, worded(err)
	case c.result == nil:
		return nil, errors.New(end.Summary)
	}
	return c.result, nil
}

// worded is an error with its hint.
func worded(err error) error { return errors.New(wire.Explain(err)) }

// call is what is known of one that runs.
type call struct {
	state  atomic.Value // string: what it waits for
	result *wire.CommandResult
}

func (c *call) say(state string) { c.state.Store(state) }

// event follows the command.
func (c *call) event(m wire.Message) {
	switch m := m.(type) {
	case *wire.ConfirmationRequest:
		c.say("waits for the user's answer in the sublet window")
	case *wire.ConfirmationResolved:
		c.say("runs, or waits for the shell")
	case *wire.ShellLeaseQueued:
		state := "waits for the shell, which " + m.Holder + " has"
		if m.Why != "" {
			state = "waits for the shell: " + m.Why
		}
		c.say(visible.Line(state))
	case *wire.CommandStarted:
		c.say("runs")
	case *wire.CommandResult:
		c.result = m
	}
}

// report sends the client progress notifications while the call runs, where it asked for them. It owns its goroutine; stop waits for it, unless the
// client does not read.
func (s *server) report(ctx context.Context, req *sdk.CallToolRequest, c *call) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(s.o.Progress)
		defer tick.Stop()
		begun := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: time.Since(begun).Seconds(), Message: c.state.Load().(string),
			})
			if err != nil && ctx.Err() == nil {
				s.log.Debug("progress was not sent", "err", err)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}
