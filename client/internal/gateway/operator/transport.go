package operator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// ws is a WebSocket with one object in each message (A6), read and written as lines.
type ws struct {
	c       *websocket.Conn
	ctx     context.Context // the connection's
	message io.Reader       // what is left of the message that is read, and a newline; nil = none
	close   func()
}

func newWS(ctx context.Context, c *websocket.Conn) *ws {
	c.SetReadLimit(-1) // the reader of lines enforces the limit, and continues after a message over it
	t := &ws{c: c}
	var cancel context.CancelFunc
	t.ctx, cancel = context.WithCancel(ctx)
	t.close = sync.OnceFunc(func() {
		c.Close(websocket.StatusNormalClosure, "") // a close frame, which the library bounds by 5 s for each direction
		cancel()
		c.CloseNow()
	})
	return t
}

func (t *ws) Read(p []byte) (int, error) {
	for {
		if t.message == nil {
			_, r, err := t.c.Reader(t.ctx)
			switch websocket.CloseStatus(err) {
			case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
				return 0, io.EOF
			}
			if err != nil {
				return 0, err
			}
			t.message = io.MultiReader(r, strings.NewReader("\n"))
		}
		n, err := t.message.Read(p)
		if errors.Is(err, io.EOF) {
			t.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write sends each line as a message of its own.
func (t *ws) Write(p []byte) (int, error) {
	for l := range bytes.Lines(p) {
		if err := t.c.Write(t.ctx, websocket.MessageText, bytes.TrimSuffix(l, []byte("\n"))); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close implements io.Closer.
func (t *ws) Close() error {
	t.close()
	return nil
}
