package mcp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// idleSession is how long a client of the older protocol, whose sessions outlive a request, may be silent.
	idleSession = time.Hour
	// stopBound is how long requests may take to end when the server stops.
	stopBound = 2 * time.Second
)

// ErrNotLoopback refuses to serve other machines: what is sent is not encrypted.
var ErrNotLoopback = errors.New("only an address of this machine can be served, such as 127.0.0.1:0")

// ServeHTTP serves any number of clients by streamable HTTP until ctx ends. Each request must bear the token, name this server
// as its host, and come from no page of another origin. A client whose connection drops takes what runs for it with it. ln is
// closed at the end; ErrNotLoopback where others could reach it.
func ServeHTTP(ctx context.Context, o Options, ln net.Listener) error {
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() || o.Token == "" {
		ln.Close()
		return ErrNotLoopback
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(ctx, o)
	defer s.close()
	defer cancel()
	m := s.sdkServer()
	m.AddReceivingMiddleware(s.posts.hangUps)
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, &sdk.StreamableHTTPOptions{
		SessionTimeout: idleSession, MaxRequestBodyBytes: int64(s.o.MaxMessage), PropagateRequestCancellation: true,
	})
	web := &http.Server{
		Handler: s.guard(addr.Port, protocol), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
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

// guard lets only those through who know the token, and no page of somebody else's, nor one that had its name point here (DNS
// rebinding).
func (s *server) guard(port int, next http.Handler) http.Handler {
	hosts := []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("[::1]:%d", port), fmt.Sprintf("localhost:%d", port)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case !slices.Contains(hosts, strings.ToLower(r.Host)):
			http.Error(w, "the host is not this server's name", http.StatusForbidden)
		case !ownOrigin(r.Header.Values("Origin"), hosts):
			http.Error(w, "pages of other origins may not connect", http.StatusForbidden)
		case !strings.EqualFold(bearer, "Bearer") || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(s.o.Token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
		default:
			r, done := s.posts.name(r)
			defer done()
			next.ServeHTTP(w, r)
		}
	})
}

// ownOrigin reports whether a request comes from no page, or from one of this server's.
func ownOrigin(origins, hosts []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" || !slices.Contains(hosts, strings.ToLower(u.Host)) {
			return false
		}
	}
	return true
}
