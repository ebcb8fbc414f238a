package operator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/coder/websocket"

	"sublet/client/internal/gateway"
)

// transport carries whole messages, one JSON object each.
type transport interface {
	// next returns a message, valid until the next call. After a *gateway.LineTooLongError it may be called again; errPlain and
	// every other error end the connection.
	next() ([]byte, error)
	// Write sends whole lines, and blocks while the peer does not read.
	io.Writer
	// close ends the connection and unblocks Write.
	close()
	peer() string
}

// errPlain reports that the peer began to speak HTTP in the middle of a connection.
var errPlain = errors.New("an HTTP request in place of a message")

// raw is newline-delimited JSON on a stream (A10).
type raw struct {
	nc    net.Conn
	lines *gateway.LineReader
}

func (t *raw) next() ([]byte, error) {
	l, err := t.lines.Next()
	if err == nil && l[0] != '{' && (len(l) > sniffSize || httpLine().Match(l)) {
		return nil, errPlain
	}
	return l, err
}

func (t *raw) Write(p []byte) (int, error) { return t.nc.Write(p) }
func (t *raw) close()                      { t.nc.Close() }
func (t *raw) peer() string                { return t.nc.RemoteAddr().String() }

// ws is a WebSocket with one object in each message (A6).
type ws struct {
	c      *websocket.Conn
	ctx    context.Context // the connection's
	from   string
	most   int      // bytes of a message
	queue  [][]byte // the rest of a message that had several lines
	buf    bytes.Buffer
	once   sync.Once
	cancel context.CancelFunc
}

func newWS(ctx context.Context, c *websocket.Conn, from string, most int) *ws {
	c.SetReadLimit(-1) // next enforces the limit, and continues after a message over it
	t := &ws{c: c, from: from, most: most}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

func (t *ws) next() ([]byte, error) {
	for {
		if len(t.queue) > 0 {
			m := t.queue[0]
			t.queue = t.queue[1:]
			if m = bytes.TrimSpace(m); len(m) > 0 {
				return m, nil
			}
			continue
		}
		_, r, err := t.c.Reader(t.ctx)
		if err != nil {
			return nil, wsEnd(err)
		}
		if t.buf.Cap() > 1<<20 {
			t.buf = bytes.Buffer{} // do not keep the memory of one long message
		}
		t.buf.Reset()
		if _, err := io.Copy(&t.buf, io.LimitReader(r, int64(t.most)+1)); err != nil {
			return nil, wsEnd(err)
		}
		if t.buf.Len() > t.most {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return nil, wsEnd(err)
			}
			return nil, &gateway.LineTooLongError{Limit: t.most}
		}
		t.queue = bytes.Split(t.buf.Bytes(), []byte("\n"))
		if len(bytes.TrimSpace(t.buf.Bytes())) == 0 {
			return []byte{}, nil // an empty message is wrong, and is answered
		}
	}
}

// wsEnd converts the error of a regular close to io.EOF.
func wsEnd(err error) error {
	switch websocket.CloseStatus(err) {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		return io.EOF
	}
	return err
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

// close sends a close frame, which the library bounds by 5 s for each direction.
func (t *ws) close() {
	t.once.Do(func() {
		t.c.Close(websocket.StatusNormalClosure, "")
		t.cancel()
		t.c.CloseNow()
	})
}

func (t *ws) peer() string { return t.from }
