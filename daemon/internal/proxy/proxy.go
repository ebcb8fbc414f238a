// Package proxy connects confined commands to the hosts that the settings allow. A command has a network namespace of its own,
// in which its launcher opens a listening socket and sends it here. Connections to that socket are served as by an HTTP proxy,
// CONNECT and plain http, if their host is allowed. It uses net/http's ReverseProxy, because proxy libraries come with TLS
// interception. Which commands get such a socket is left to others.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"sublet/wire/socket"
)

const (
	dialBound = 30 * time.Second
	maxDenied = 20  // hosts reported to one launcher
	maxOpen   = 256 // connections of one command, so that it does not take all descriptors of the daemon; another waits
)

// Options of Serve.
type Options struct {
	Hosts func() []string // returns the hosts allowed now; see CheckHost
	Log   *slog.Logger

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests; nil = net.Dialer with outside as its check
}

// Serve accepts launchers on ln until ctx is done. Each sends one listening socket of its command's network namespace, which is
// served until the launcher's connection ends; the names of denied hosts are written to that connection, one a line. Serve
// owns ln and returns after every goroutine it started has ended.
func Serve(ctx context.Context, ln net.Listener, o Options) error {
	return socket.Serve(ctx, ln, o.Log, func(ctx context.Context, c net.Conn) {
		if err := serve(ctx, c, o); err != nil {
			o.Log.Warn("a confined command cannot reach the allowed hosts", "err", err)
		}
	})
}

// serve serves one launcher.
func serve(ctx context.Context, c net.Conn, o Options) error {
	ln, err := receive(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.dial == nil {
		dialer := &net.Dialer{Timeout: dialBound, Control: func(_, address string, _ syscall.RawConn) error { return outside(address) }}
		o.dial = dialer.DialContext
	}
	g := newGate(ctx, o, c)
	s := &http.Server{
		Handler: g, BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: dialBound,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { c.Close(); s.Close() })
	defer stop()
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { // ends with the launcher, or with ctx
		_, _ = io.Copy(io.Discard, c)
		cancel()
	})
	err = s.Serve(netutil.LimitListener(ln, maxOpen))
	cancel()
	g.wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// receive receives the listening socket that a launcher sends.
func receive(c net.Conn) (net.Listener, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a %T cannot carry descriptors", c)
	}
	if err := c.SetReadDeadline(time.Now().Add(dialBound)); err != nil {
		return nil, err
	}
	rights := make([]byte, syscall.CmsgSpace(4)) // room for one descriptor, an int
	_, n, _, _, err := unix.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no socket came"), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return ln, c.SetReadDeadline(time.Time{})
}

// A gate is the HTTP proxy of one command.
type gate struct {
	o        Options
	ctx      context.Context // of the command
	plain    http.Handler
	requests sync.WaitGroup

	mu     sync.Mutex // also held while a request is added to requests
	to     io.Writer  // the launcher
	denied []string   // guarded by mu
}

// newGate returns the proxy of one command, which ends with ctx. It writes denied hosts to to.
func newGate(ctx context.Context, o Options, to io.Writer) *gate {
	transport := &http.Transport{DialContext: o.dial}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	return &gate{o: o, ctx: ctx, to: to, plain: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.URL.Host }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "sublet: "+err.Error(), http.StatusBadGateway)
		},
	}}
}

// begin counts a request, and reports whether the command still runs. The caller calls requests.Done.
func (g *gate) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.requests.Add(1)
	return true
}

// wait waits for the requests. The gate's context must have ended.
func (g *gate) wait() {
	g.begin() // returns after every call that counted a request
	g.requests.Wait()
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.begin() {
		return
	}
	defer g.requests.Done()
	address := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy of sublet: it accepts CONNECT, and http with an absolute URL", http.StatusBadRequest)
			return
		}
		if address = r.URL.Host; r.URL.Port() == "" {
			address = net.JoinHostPort(r.URL.Hostname(), "80")
		}
	}
	switch {
	case !Allows(g.o.Hosts(), address):
		g.deny(address)
		http.Error(w, fmt.Sprintf("sublet: %q is not among the hosts that confined commands may reach; to allow it, add it to hosts under [policy.project]", address), http.StatusForbidden)
	case r.Method == http.MethodConnect:
		g.tunnel(w, r, address)
	default:
		g.plain.ServeHTTP(w, r)
	}
}

// deny reports a denied address to the launcher, once for each, at most maxDenied.
func (g *gate) deny(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.denied) == maxDenied || slices.Contains(g.denied, address) {
		return
	}
	g.denied = append(g.denied, address)
	_, _ = fmt.Fprintf(g.to, "%s\n", address) // an error means that the launcher has ended
}

// tunnel connects a client to an address until both directions have ended, or one fails.
func (g *gate) tunnel(w http.ResponseWriter, r *http.Request, address string) {
	out, err := g.o.dial(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "sublet: "+err.Error(), http.StatusBadGateway)
		return
	}
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		http.Error(w, "sublet: "+err.Error(), http.StatusInternalServerError)
		return
	}
	stop := context.AfterFunc(g.ctx, func() { in.Close(); out.Close() })
	defer stop()
	defer in.Close()
	defer out.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var up sync.WaitGroup
	defer up.Wait()
	up.Go(func() { copyAll(out, buffered.Reader) })
	copyAll(in, out)
}

// copyAll copies until EOF and then closes the writing side of to, if it can be closed by itself, or all of it.
func copyAll(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // it may be closed already
		return
	}
	to.Close()
}
