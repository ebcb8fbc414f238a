package operator

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
)

// speaksJSON reports whether a peer's first byte that is not white space begins a JSON object, array or string, and waits for it. No
// HTTP method begins so (RFC 9110, token): what a browser can be made to send, with a body of JSON lines in it, is never read as
// messages. It consumes only white space.
func speaksJSON(r *bufio.Reader) (bool, error) {
	for {
		first, err := r.ReadByte()
		switch {
		case err != nil:
			return false, err
		case !strings.ContainsRune(" \t\r\n", rune(first)):
			return strings.ContainsRune(`{["`, rune(first)), r.UnreadByte()
		}
	}
}

// sniffed is a connection whose first bytes were read already.
type sniffed struct {
	net.Conn
	r      *bufio.Reader
	closed func()
}

func (c *sniffed) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *sniffed) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}

// handover is a net.Listener whose connections come from serveConn.
type handover struct {
	net.Listener
	ctx   context.Context // the server's
	conns chan net.Conn
}

// serve passes a connection to Accept, and waits until the HTTP server, or the WebSocket that it became, has closed it.
func (h *handover) serve(c *sniffed) {
	closed := make(chan struct{})
	c.closed = sync.OnceFunc(func() { close(closed) })
	select {
	case h.conns <- c:
		<-closed
	case <-h.ctx.Done():
	}
}

// Close does nothing: Accept ends with ctx.
func (h *handover) Close() error { return nil }

func (h *handover) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}
