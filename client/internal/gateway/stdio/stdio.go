// Package stdio serves agents over standard input and output, one JSON object a line, as the agent runtime's IPC protocol 1.0.0
// specifies. Sessions and agents are left to the daemon.
package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sublet/client/internal/gateway"
)

const (
	// protocolVersion is the document's.
	protocolVersion = "1.0.0"

	closeBound = 5 * time.Second // for running requests to report their end when the server stops
)

// Options for Serve. Daemon, In and Out are required. The daemon's log must not go to Out (A20).
type Options struct {
	Daemon *gateway.Daemon
	In     io.Reader
	Out    io.Writer
	Mode   string // policy mode of every request: plan, ask, auto, full; nobody can be asked
}

// server is one Serve.
type server struct {
	o     Options
	log   *slog.Logger
	out   *gateway.Writer
	begun time.Time
	ctx   context.Context // its lifetime
	work  sync.WaitGroup
	turns gateway.Turns
	limit gateway.Limits
	rate  gateway.Rate // used by the goroutine of read only

	mu sync.Mutex
	// guarded by mu
	talks map[string]*gateway.Session
}

// Serve sends ready and answers lines until In ends, and then finishes running requests. When ctx ends, it cancels them, reports
// that, and returns nil (C4). An error means that the daemon cannot be reached at the start, or that Out cannot be written to. A
// blocked Read of In is not interrupted when ctx ends.
func Serve(ctx context.Context, o Options) error {
	s := &server{o: o, log: o.Daemon.Logger(), begun: time.Now(), limit: o.Daemon.Limited(), talks: map[string]*gateway.Session{}}
	if err := o.Daemon.Check(ctx); err != nil {
		return err
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.ctx = own
	s.out = gateway.NewWriter(o.Out)
	err := s.send(message{Type: "ready", Version: protocolVersion, Capabilities: []string{"streaming", "tools", "attachments"}})
	if err == nil {
		err = s.serve(ctx)
	}
	closed := s.out.CloseWithin(ctx.Done(), closeBound)
	cancel(gateway.ErrClosed)
	s.mu.Lock()
	talks := slices.Collect(maps.Values(s.talks))
	s.mu.Unlock()
	for _, t := range talks {
		t.Close()
	}
	s.work.Wait()
	return errors.Join(err, closed)
}

// serve reads lines until there are no more or ctx ends, and waits for what runs.
func (s *server) serve(ctx context.Context) error {
	over := make(chan error, 1)
	go func() { over <- s.read(ctx) }() // a blocked read of a pipe cannot be interrupted: it ends with the process
	var err error
	select {
	case err = <-over:
	case <-ctx.Done():
	}
	if err == nil && s.turns.Wait(ctx, nil) {
		return nil
	}
	s.turns.Cancel(nil, "", "", "the runtime stops")
	stopping, cancel := context.WithTimeout(s.ctx, closeBound)
	defer cancel()
	if !s.turns.Wait(stopping, nil) {
		for _, t := range s.turns.Running(nil) {
			s.log.Warn("a request did not end in time", "id", t.ID)
		}
	}
	return err
}

// message is a response. Its fields are in the order of the document.
type message struct {
	Type         string   `json:"type"`
	ID           string   `json:"id,omitempty"` // of its request (E21); only ready has none
	Version      string   `json:"version,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Token        string   `json:"token,omitempty"`
	Data         any      `json:"data,omitempty"`
	Error        string   `json:"error,omitempty"`
	Timestamp    int64    `json:"timestamp"` // milliseconds since 1970 (F18)
}

// toolData is that of tool_use and of tool_result.
type toolData struct {
	ID     string `json:"toolId"`
	Name   string `json:"toolName"`
	Input  any    `json:"input,omitempty"`
	Result any    `json:"result,omitempty"`
}

// send writes one message. The error is that of writing to a parent that has ended.
func (s *server) send(m message) error {
	m.Timestamp = time.Now().UnixMilli()
	s.log.Debug("sent", "type", m.Type, "id", m.ID)
	return s.out.Send(s.ctx, gateway.Line(&m))
}

// fail answers a request with an error.
func (s *server) fail(id, text string) error {
	return s.send(message{Type: "error", ID: id, Error: text})
}
