package operator

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"sync"
	"time"

	"sublet/client/internal/gateway"
)

// Protocols by a peer's first bytes.
const (
	speaksJSON    = iota // also anything else, which is answered as invalid JSON
	speaksHTTP           // a request line
	speaksTLS            // a handshake record
	speaksNothing        // it closed the connection, or sent a line that is too long
)

// sniffSize holds an HTTP request line of reasonable length.
const sniffSize = 32 << 10

// httpLine is a line that begins an HTTP request, whatever its method. A browser can be made to send one to any port of
// this machine, with a body of JSON lines behind it: none of that may ever be read as messages.
var httpLine = gateway.Pattern(`(?i)\sHTTP/[0-9.]+\s*$`)

const uriTooLong = "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// sniff returns the protocol of a peer. It waits without a bound for the first byte that is not white space. A line that could be
// HTTP must then be complete within helloBound. It consumes only white space. r holds sniffSize.
func sniff(nc net.Conn, r *bufio.Reader) int {
	for {
		first, err := r.Peek(1)
		if err != nil {
			return speaksNothing
		}
		switch first[0] {
		case ' ', '\t', '\r', '\n':
			if _, err := r.Discard(1); err != nil {
				return speaksNothing
			}
			continue
		case '{':
			return speaksJSON // no HTTP method begins so: RFC 9110, token
		case 0x16:
			return speaksTLS
		}
		break
	}
	_ = nc.SetReadDeadline(time.Now().Add(helloBound)) // the caller resets it
	for n := 1; ; n = r.Buffered() + 1 {
		if n > sniffSize { // what follows must not be parsed as messages
			_, _ = nc.Write([]byte(uriTooLong)) // the peer may have left
			return speaksNothing
		}
		_, err := r.Peek(n)
		head, _ := r.Peek(r.Buffered())
		if l, _, whole := bytes.Cut(head, []byte("\n")); whole || err != nil {
			if httpLine().Match(l) {
				return speaksHTTP
			}
			return speaksJSON
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
