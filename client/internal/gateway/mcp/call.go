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

// tool has the daemon run the tool that r names, once the client's earlier calls have ended, and returns the result. It fills in who
// asks and, as JSON, the arguments.
func (s *server) tool(ctx context.Context, req *sdk.CallToolRequest, r *wire.ToolRequest, arguments any) (*wire.CommandResult, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var c call
	c.set("waits for the calls before it")
	defer s.report(ctx, req, &c)()
	l, borrower, err := s.client(ctx, req.ClientInfo(), req.Session)
	if err != nil {
		return nil, worded(err)
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.set("runs, or waits for the shell")
	r.Hosted = s.o.Hosted
	r.Arguments, r.Borrower, r.AnswerMS = string(text), borrower, s.o.Answer.Milliseconds()
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

// worded returns an error whose text contains the hint of err, for the model.
func worded(err error) error { return errors.New(wire.Explain(err)) }

// call is the state of a call of a tool that runs.
type call struct {
	state  atomic.Value        // string: what it waits for; report reads it
	result *wire.CommandResult // nil until the daemon has sent it
}

func (c *call) set(state string) { c.state.Store(state) }

// event updates the call by a message of the daemon about it.
func (c *call) event(m wire.Message) {
	switch m := m.(type) {
	case *wire.ConfirmationRequest:
		c.set("waits for the user's answer in the sublet window")
	case *wire.ConfirmationResolved:
		c.set("runs, or waits for the shell")
	case *wire.ShellLeaseQueued:
		state := "waits for the shell, which " + m.Holder + " has"
		if m.Why != "" {
			state = "waits for the shell: " + m.Why
		}
		c.set(visible.Line(state))
	case *wire.CommandStarted:
		c.set("runs")
	case *wire.CommandResult:
		c.result = m
	}
}

// report sends the client progress notifications while the call runs, if it asked for them. stop ends that and waits for a notification
// that is being written, behind which the call's result could not be written either.
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
