package mcp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway"
)

const (
	// idleSession is how long a client may be silent: its connection to the daemon outlives a request.
	idleSession = time.Hour
	// stopBound is how long requests may take to end when the server stops.
	stopBound = 2 * time.Second
)

// ErrNotLoopback refuses to serve other machines: what is sent is not encrypted.
var ErrNotLoopback = errors.New("only an address of this machine can be served, such as 127.0.0.1:0")

// ServeHTTP serves any number of clients by streamable HTTP until ctx ends. Each request must bear the token, name this server
// as its host, and come from no page of another origin. When the connection of a request drops, what runs for it is cancelled. ln is
// closed at the end. The error is ErrNotLoopback if other machines could reach ln, or o.Token is empty.
func ServeHTTP(ctx context.Context, o Options, ln net.Listener) error {
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() || o.Token == "" {
		ln.Close()
		return ErrNotLoopback
	}
	ctx, cancel := context.WithCancel(ctx)
	s := newServer(ctx, o)
	defer s.close()
	defer cancel()
	m := s.sdkServer()
	m.AddReceivingMiddleware(s.posts.endCalls)
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, &sdk.StreamableHTTPOptions{
		SessionTimeout: idleSession, MaxRequestBodyBytes: int64(o.Daemon.Limited().MessageBytes),
	})
	web := &http.Server{
		Handler: s.guarded(gateway.NewGuard(addr, s.o.Token, nil, nil), protocol), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	over := make(chan error, 1)
	go func() { over <- web.Serve(ln) }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer done()
	if web.Shutdown(stop) != nil {
		web.Close()
	}
	<-over
	return nil
}

// guarded lets only those through who know the token, and no page of somebody else's.
func (s *server) guarded(g *gateway.Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !g.Named(r.Host):
			http.Error(w, "the host is not this server's name", http.StatusForbidden)
		case !g.MayConnect(r.Header.Values("Origin")):
			http.Error(w, "pages of other origins may not connect", http.StatusForbidden)
		case !g.Bears(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
		default:
			r, done := s.posts.add(r)
			defer done()
			next.ServeHTTP(w, r)
		}
	})
}
