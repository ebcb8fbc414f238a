package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/wire"
	"sublet/wire/socket"
)

const (
	// showBound is how long each step of using an editor's terminal may take: to create it, to connect to it, to end it.
	showBound = 5 * time.Second
	// showMost bounds output that waits to be shown, in bytes; the oldest is dropped. The tool's result is not affected.
	showMost = 1 << 20
	// showKept is how many bytes of output the editor should keep.
	showKept = 1 << 20
)

// print is a message to the process in the editor's terminal, as JSON: output, or the exit status at the end.
type print struct {
	Output []byte `json:"output,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
}

// terminal is a terminal of the editor that shows the output of one command. The command itself runs in the session's own shell
// as usual; this program runs again in the terminal (Show), and ending that ends the command. Only the goroutine that translates events uses a
// terminal; its goroutine ends with finish or the connection.
type terminal struct {
	s       *session
	call    wire.ExecutionID
	turn    wire.TurnID   // that the command belongs to
	changed chan struct{} // capacity 1: there is output, or the end
	done    chan struct{} // closed when the goroutine has ended
	id      string        // the editor's name for it; set before done is closed
	shown   bool          // all was shown there; set before done is closed

	mu sync.Mutex
	// guarded by mu
	pending []byte
	over    bool
	status  int
	failed  bool // it cannot be used: output goes into the tool call
}

// terminal makes one for a command with output; nil if the editor supports none.
func (s *session) terminal(call wire.ExecutionID, turn wire.TurnID) *terminal {
	if !s.a.terminals.Load() || len(s.a.o.Show) == 0 {
		return nil
	}
	t := &terminal{s: s, call: call, turn: turn, changed: make(chan struct{}, 1), done: make(chan struct{})}
	s.a.work.Go(func() { // ends with finish, or the connection; close waits for it
		defer close(t.done)
		if err := t.run(s.a.ctx); err != nil {
			s.a.log.Warn("a command's output could not be shown in the editor's terminal", "err", err)
			t.mu.Lock()
			t.failed = true
			t.mu.Unlock()
		}
	})
	return t
}

// write shows output; false if that is not possible.
func (t *terminal) write(data []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed {
		return false
	}
	t.pending = append(t.pending, data...)
	if n := len(t.pending) - showMost; n > 0 {
		t.pending = t.pending[n:]
	}
	t.wake()
	return true
}

func (t *terminal) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// finish ends the terminal's process with the command's status, and waits up to showBound for the editor. The result is the
// content of the tool call from then on; nil if nothing was shown in a terminal.
func (t *terminal) finish(m *wire.CommandResult) []sdk.ToolCallContent {
	status := 0
	switch {
	case m.ExitCode != nil:
		status = *m.ExitCode
	case m.Status != wire.StatusSuccess:
		status = 1
	}
	t.mu.Lock()
	t.over, t.status = true, status
	t.mu.Unlock()
	t.wake()
	<-t.done // each step of run has its bound
	if !t.shown {
		return nil
	}
	return []sdk.ToolCallContent{sdk.ToolTerminalRef(t.id)}
}

// run creates the terminal, adds it to the tool call, sends the output, and releases it.
func (t *terminal) run(ctx context.Context) error {
	a := t.s.a
	path := filepath.Join(a.o.Runtime, "acp-"+wire.NewID()[24:]+".sock")
	ln, err := socket.Listen(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer ln.Close()
	making, cancel := context.WithTimeout(ctx, showBound)
	defer cancel()
	cwd, kept := t.s.gs.Place().Cwd, showKept
	made, err := a.conn.CreateTerminal(making, sdk.CreateTerminalRequest{
		SessionId: t.s.id, Command: a.o.Show[0], Args: append(append([]string{}, a.o.Show[1:]...), path), Cwd: &cwd, OutputByteLimit: &kept,
	})
	if err != nil {
		return fmt.Errorf("terminal/create: %w", err)
	}
	t.id = made.TerminalId
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, showBound)
		defer cancel()
		if _, err := a.conn.ReleaseTerminal(ctx, sdk.ReleaseTerminalRequest{SessionId: t.s.id, TerminalId: t.id}); err != nil && ctx.Err() == nil {
			a.log.Warn("the editor did not take its terminal back", "err", err)
		}
	}()
	nc, err := accept(making, ln)
	if err != nil {
		return fmt.Errorf("the editor's terminal did not begin: %w", err)
	}
	defer nc.Close()
	t.s.update(sdk.UpdateToolCall(
		sdk.ToolCallId(t.call), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolTerminalRef(t.id)}),
	))
	err = t.feed(ctx, nc)
	t.shown = true
	switch {
	case err == nil:
		ending, stop := context.WithTimeout(ctx, showBound)
		defer stop()
		_, err = a.conn.WaitForTerminalExit(ending, sdk.WaitForTerminalExitRequest{SessionId: t.s.id, TerminalId: t.id})
	case errors.Is(err, errEnded):
		a.turns.Cancel(t.s.gs, "", t.turn, "ended in the editor's terminal")
		return nil
	}
	if err != nil {
		killing, stop := context.WithTimeout(ctx, showBound)
		defer stop()
		_, _ = a.conn.KillTerminal(killing, sdk.KillTerminalRequest{SessionId: t.s.id, TerminalId: t.id}) // the deferred release follows
	}
	return err
}

// errEnded reports that the user ended the process that shows the output.
var errEnded = errors.New("ended in the editor's terminal")

// accept accepts the connection of the process that shows the output, of the same user.
func accept(ctx context.Context, ln net.Listener) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	nc, err := ln.Accept()
	if err != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	if err := socket.CheckPeer(nc); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// feed sends output as it arrives, and the exit status. Errors are errEnded, and that of writing.
func (t *terminal) feed(ctx context.Context, nc net.Conn) error {
	gone := make(chan struct{})
	t.s.a.work.Go(func() { // ends with the connection, which run closes
		defer close(gone)
		_, _ = nc.Read(make([]byte, 1)) // the process sends nothing: this returns when it ends
	})
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	for {
		t.mu.Lock()
		data, over, status := t.pending, t.over, t.status
		t.pending = nil
		t.mu.Unlock()
		if len(data) > 0 {
			if err := t.send(nc, print{Output: data}); err != nil {
				return err
			}
			continue
		}
		if over {
			return t.send(nc, print{Exit: &status})
		}
		select {
		case <-t.changed:
		case <-gone:
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send writes with a deadline, so that a terminal that does not read does not delay the command. Any other error of writing is errEnded: the
// process has closed its connection.
func (t *terminal) send(nc net.Conn, p print) error {
	_ = nc.SetWriteDeadline(time.Now().Add(showBound)) // if that fails, so does the write
	err := json.NewEncoder(nc).Encode(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return errEnded
	}
	return err
}

// Show prints to w what the server at path sends, and returns the exit status that it sends at the end. It runs in an editor's
// terminal.
func Show(ctx context.Context, path string, w io.Writer) (status int, err error) {
	nc, err := socket.Dial(ctx, path)
	if err != nil {
		return 1, err
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	for d := json.NewDecoder(nc); ; {
		var p print
		if err := d.Decode(&p); err != nil {
			return 1, fmt.Errorf("the command's output broke off: %w", err)
		}
		if _, err := w.Write(p.Output); err != nil {
			return 1, err
		}
		if p.Exit != nil {
			return *p.Exit, nil
		}
	}
}
