package operator

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"sublet/client/internal/gateway"
)

const (
	// maxConns bounds connections of all kinds, so that one client's mistake does not take all of the user's descriptors.
	maxConns = 1024
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
	Token   string   // what every request must carry, or a WebSocket's Authorization header; "" = none asked for
	Page    fs.FS    // the page and its module; nil = none. With it clients may answer questions
	Hosts   []string // names, beside those of the listener, under which browsers may call
	Origins []string // such as http://localhost:5173: pages of others that may connect

	RequestsPerSecond int // 0 = 100 (N2)
	RunningQueries    int // 0 = 3 (N3)
	MaxMessage        int // bytes of one that comes in; 0 = 10 MiB (N1)

	Log *slog.Logger // nil = none
}

// Server serves S3 and S4. It has no state beyond its connections.
type Server struct {
	o     Options
	log   *slog.Logger
	guard *gateway.Guard // set by Serve

	handed gateway.Handed

	mu sync.Mutex
	// guarded by mu
	open map[net.Conn]struct{}
}

// New returns a Server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RequestsPerSecond <= 0 {
		o.RequestsPerSecond = 100
	}
	if o.RunningQueries <= 0 {
		o.RunningQueries = 3
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = maxMessage
	}
	return &Server{o: o, log: o.Log, open: map[net.Conn]struct{}{}}
}

// Serve accepts connections until ctx is done. It owns ln and every goroutine it starts, and returns after the last of
// them has ended. Turns that S3 clients began are cancelled with their connections.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	s.guard = gateway.NewGuard(ln.Addr(), s.o.Token, s.o.Hosts, s.o.Origins)
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	web := &handover{addr: ln.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}
	hs := &http.Server{
		Handler: s.handler(ctx), ReadHeaderTimeout: helloBound, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = hs.Serve(web) }) // ends with Close below
	defer func() {
		cancel()
		web.Close()
		hs.Close()
		s.closeAll()
		conns.Wait()
		serving.Wait()
		if err := s.handed.Close(); err != nil {
			s.log.Warn("files of clients could not be removed", "err", err)
		}
	}()
	return gateway.Accept(ctx, ln, s.log, func(nc net.Conn) {
		if !s.admit(nc) {
			s.log.Warn("connection refused: too many", "limit", maxConns)
			nc.Close()
			return
		}
		conns.Go(func() {
			if s.serveConn(ctx, nc, &conns, web) {
				return // the HTTP server owns it now
			}
			nc.Close()
			s.forget(nc)
		})
	})
}

func (s *Server) admit(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxConns {
		return false
	}
	s.open[nc] = struct{}{}
	return true
}

func (s *Server) forget(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, nc)
}

// closeAll closes all connections, after a moment in which queued lines may be sent.
func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nc := range s.open {
		_ = nc.SetReadDeadline(time.Now())
		_ = nc.SetWriteDeadline(time.Now().Add(stopBound))
	}
}

// serveConn detects what a peer speaks. It returns true if the connection was passed to the HTTP server, which closes it and
// calls conns.Done then.
func (s *Server) serveConn(ctx context.Context, nc net.Conn, conns *sync.WaitGroup, web *handover) bool {
	if s.o.Token == "" && !loopback(nc.RemoteAddr()) { // without a token only this machine is served
		s.log.Warn("connection refused: not from this machine, and there is no token", "peer", nc.RemoteAddr())
		return false
	}
	r := bufio.NewReaderSize(nc, sniffSize)
	switch sniff(nc, r) {
	case speaksHTTP:
		conns.Add(1)
		web.give(&sniffed{Conn: nc, r: r, closed: func() {
			s.forget(nc)
			conns.Done()
		}})
		return true
	case speaksTLS:
		s.log.Debug("TLS is not spoken here", "peer", nc.RemoteAddr())
		return false
	case speaksNothing:
		return false
	}
	s.serve(ctx, &raw{nc: nc, lines: gateway.NewLineReader(r, s.o.MaxMessage)}, s.o.Token == "")
	return false
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback() // what is not TCP does not leave the machine
}

// serve serves one transport until it ends.
func (s *Server) serve(ctx context.Context, t transport, authorized bool) {
	c := newConn(ctx, s, t, authorized)
	err := c.serve()
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		s.log.Debug("connection ended", "peer", t.peer(), "err", err)
	}
}
