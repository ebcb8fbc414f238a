// Package acp serves agents to editors that speak the Agent Client Protocol, version 1, over standard input and output. The SDK
// implements the protocol's envelope and types; sessions and agents are left to the daemon.
package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

const (
	closeBound = 5 * time.Second // for running prompts to report their end when the server stops

	// sdkMost is the longest line that the SDK reads, in bytes: its buffer has 10 MiB, with the newline. At a longer one it
	// gives the connection up without a word.
	sdkMost = gateway.MaxLine - 1
)

// Options for Serve. Daemon, In and Out are required. The daemon's log must not go to Out.
type Options struct {
	Daemon *gateway.Daemon
	In     io.Reader
	Out    io.Writer
	// Show is a program with its first arguments that calls Show with one more, a path in Runtime, a folder that only the
	// user can enter: the output of commands is then shown in terminals of an editor that has them. nil = in tool calls.
	Show    []string
	Runtime string
}

// Serve talks to one editor until In ends or ctx does; prompts that run are cancelled then. The error is that of a daemon
// that cannot be reached at the start. A Read of In that is under way when ctx ends is left behind.
func Serve(ctx context.Context, o Options) error {
	log := o.Daemon.Logger()
	if err := o.Daemon.Check(ctx); err != nil {
		return err
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	limits := o.Daemon.Limited()
	g := &gate{limit: limits.RequestsPerSecond, out: gateway.NewWriter(o.Out), ctx: own, log: log, quiet: make(chan struct{}, 1)}
	a := &agent{o: o, log: log, ctx: own, sessions: map[sdk.SessionId]*session{}}
	a.turns.Handed = &a.handed
	inR, inW := io.Pipe()
	conn := sdk.NewAgentSideConnection(a, g, inR)
	conn.SetLogger(log)
	a.conn = conn
	over := make(chan struct{})
	go func() { // a blocked read of a pipe cannot be taken back: it ends with the process
		defer close(over)
		g.read(gateway.NewLineReader(o.In, min(limits.MessageBytes, sdkMost)), inW)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	a.turns.Cancel(nil, "", "", "the editor left")
	g.wait(closeBound)
	inW.Close() // ends the SDK's reader, and with it its prompts
	<-conn.Done()
	cancel(gateway.ErrClosed)
	a.close()
	_ = g.out.CloseWithin(own.Done(), closeBound) // an error: the editor has ended
	return nil
}

// gate filters the editor's lines for the SDK, which ends a connection at a line that is too long and leaves one that is not a message
// unanswered.
type gate struct {
	out   *gateway.Writer
	ctx   context.Context
	log   *slog.Logger
	limit int           // requests in a second; answers and notifications do not count
	rate  gateway.Rate  // the reader's
	open  atomic.Int64  // requests of the editor that were not answered
	quiet chan struct{} // capacity 1: open became 0
}

type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
}

// read passes lines on that are messages and answers the others.
func (g *gate) read(in *gateway.LineReader, to *io.PipeWriter) {
	err := in.Each(func(line []byte) error {
		var m envelope
		if err := json.Unmarshal(line, &m); err != nil {
			if json.Valid(line) {
				return g.refuse(nil, -32600, "Invalid request", "a message is an object")
			}
			return g.refuse(nil, -32700, "Parse error", err.Error())
		}
		hasID := len(m.ID) > 0
		switch {
		case hasID && !bytes.ContainsAny(m.ID[:1], `"-0123456789`):
			return g.refuse(nil, -32600, "Invalid request", "id: want a number or a string")
		case m.Method == nil && !hasID:
			return g.refuse(nil, -32600, "Invalid request", "a message has a method, or answers a request by its id")
		case m.Method != nil && hasID:
			if ok, retry := g.rate.Take(g.limit); !ok { // the SDK would begin them all at once
				return g.refuse(m.ID, -32600, "Invalid request", fmt.Sprintf("rate limit: more than %d requests in a second; try again in %v", g.limit, retry))
			}
			g.count(1)
		}
		_, err := to.Write(slices.Concat(line, []byte("\n")))
		return err
	}, func(long *gateway.LineTooLongError) error {
		return g.refuse(nil, -32600, "Invalid request", long.Error())
	})
	g.log.Debug("the editor's messages have ended", "err", err)
}

// refuse answers a message that the SDK does not get. The error is that of an editor that has ended.
func (g *gate) refuse(id json.RawMessage, code int, message, details string) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	g.log.Warn("refused", "code", code, "details", details)
	return g.out.Send(g.ctx, gateway.Line(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message, "data": map[string]string{"details": details}},
	}))
}

// Write implements io.Writer for the SDK, which writes whole messages.
func (g *gate) Write(p []byte) (int, error) {
	if err := g.out.Send(g.ctx, p); err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(p, []byte(`{"jsonrpc":"2.0","method":`)) {
		var m envelope
		if err := json.Unmarshal(p, &m); err == nil && m.Method == nil {
			g.count(-1)
		}
	}
	return len(p), nil
}

func (g *gate) count(n int64) {
	if g.open.Add(n) == 0 {
		select {
		case g.quiet <- struct{}{}:
		default:
		}
	}
}

// wait waits until every request was answered, for at most bound.
func (g *gate) wait(bound time.Duration) {
	for timeout := time.After(bound); g.open.Load() > 0; {
		select {
		case <-g.quiet:
		case <-timeout:
			g.log.Warn("requests were left without an answer")
			return
		}
	}
}

// requestError is an error of the daemon, or of the way to it, in the protocol's terms.
func requestError(err error) error {
	data := map[string]any{"details": err.Error()}
	if hint := wire.HintOf(err); hint != "" {
		data["hint"] = hint
	}
	return sdk.NewInternalError(data)
}

func invalid(format string, args ...any) error {
	return sdk.NewInvalidParams(map[string]any{"details": fmt.Sprintf(format, args...)})
}
