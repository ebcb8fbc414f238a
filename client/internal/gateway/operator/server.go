package operator

import (
	"bufio"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire/socket"
)

const (
	// helloBound is how long a peer may take for the rest of an HTTP request's head.
	helloBound = 10 * time.Second
	// stopBound is how long connections may take to end when the server stops.
	stopBound = 5 * time.Second
)

// Options for New. Daemon and Project are required.
type Options struct {
	Daemon  *gateway.Daemon
	Project string   // folder of requests that name none; absolute
	Mode    string   // policy mode of the turns that clients begin: plan, ask, auto, full
	Token   string   // in each request's metadata or a WebSocket's Authorization header; "" = none is required
	Page    fs.FS    // the page and its module; nil = none. Only with it clients may answer questions
	Hosts   []string // names, besides those of the listener, under which browsers may call
	Origins []string // of other servers' pages that may connect, such as http://localhost:5173
}

// Server serves S3 and S4. It has no state beyond its connections.
type Server struct {
	o      Options
	log    *slog.Logger
	limits gateway.Limits
	guard  *gateway.Guard // set by Serve
	handed gateway.Handed
}

// New returns a Server.
func New(o Options) *Server { return &Server{o: o, log: o.Daemon.Logger(), limits: o.Daemon.Limited()} }

// Serve accepts connections until ctx is done. It owns ln and every goroutine it starts, and returns after the last of
// them has ended. Turns that S3 clients began are cancelled with their connections.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	s.guard = gateway.NewGuard(ln.Addr(), s.o.Token, s.o.Hosts, s.o.Origins)
	ctx, cancel := context.WithCancel(ctx)
	web := &handover{Listener: ln, ctx: ctx, conns: make(chan net.Conn)}
	hs := &http.Server{
		Handler: s.handler(ctx), ReadHeaderTimeout: helloBound, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = hs.Serve(web) }) // ends with ctx
	context.AfterFunc(ctx, func() { hs.Close() })
	err := socket.Serve(ctx, ln, s.log, func(ctx context.Context, nc net.Conn) { s.serveConn(ctx, nc, web) })
	cancel()
	serving.Wait()
	if err := s.handed.Close(); err != nil {
		s.log.Warn("files of clients could not be removed", "err", err)
	}
	return err
}

// serveConn detects what a peer speaks, and serves it until it leaves or ctx ends.
func (s *Server) serveConn(ctx context.Context, nc net.Conn, web *handover) {
	if s.o.Token == "" && !loopback(nc.RemoteAddr()) { // without a token only this machine is served
		s.log.Warn("connection refused: not from this machine, and there is no token", "peer", nc.RemoteAddr())
		return
	}
	defer context.AfterFunc(ctx, func() { // a deadline in the past ends reads; queued lines may still be sent
		_ = nc.SetReadDeadline(time.Unix(1, 0))
		_ = nc.SetWriteDeadline(time.Now().Add(stopBound))
	})()
	c := &sniffed{Conn: nc, r: bufio.NewReader(nc), closed: func() {}} // handover.serve sets closed
	switch isJSON, err := speaksJSON(c.r); {
	case err != nil: // it has left, or ctx has ended
	case isJSON:
		s.serve(ctx, c, nc.RemoteAddr().String(), s.o.Token == "")
	default:
		web.serve(c)
	}
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback() // what is not TCP does not leave the machine
}
