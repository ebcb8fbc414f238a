package gateway

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Guard decides which HTTP requests a local server answers. It is immutable and safe for concurrent use.
type Guard struct {
	token   string
	origins []string
	names   map[string]bool // host:port, as Host headers have it
}

// NewGuard returns the guard of a server that listens on addr. hosts are names, besides those of the listener, that browsers may
// use; origins are other origins that may connect.
func NewGuard(addr net.Addr, token string, hosts, origins []string) *Guard {
	g := &Guard{token: token, origins: origins, names: map[string]bool{}}
	host, port, _ := net.SplitHostPort(addr.String()) // a TCP listener's address has both
	for _, h := range append([]string{host, "localhost", "127.0.0.1", "::1"}, hosts...) {
		g.names[strings.ToLower(net.JoinHostPort(h, port))] = true
	}
	return g
}

// Named reports whether a Host header names this server. A page that uses DNS rebinding sends its own name.
func (g *Guard) Named(host string) bool { return g.names[strings.ToLower(host)] }

// MayConnect reports whether a request with these Origin headers may connect: none (not a browser), the server's own, or one
// that the user named. More than one header is refused.
func (g *Guard) MayConnect(origins []string) bool {
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	if slices.ContainsFunc(g.origins, func(o string) bool { return strings.EqualFold(o, origins[0]) }) {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && u.Scheme == "http" && u.Host != "" && g.Named(u.Host)
}

// Bears reports whether a request has the token in its Authorization header.
func (g *Guard) Bears(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.IsToken(strings.TrimSpace(token))
}

// IsToken compares tokens in constant time.
func (g *Guard) IsToken(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(g.token)) == 1
}
