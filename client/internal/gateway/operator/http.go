package operator

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// handler answers HTTP: a WebSocket upgrade, the page if there is one, otherwise a refusal.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.headers(w, r)
		if !s.guard.Named(r.Host) {
			refuse(w, http.StatusForbidden, fmt.Sprintf("the host %q is not this server's name", clip(r.Host)))
			return
		}
		if origin := r.Header.Values("Origin"); !s.guard.MayConnect(origin) {
			s.log.Warn("a foreign page was refused", "origin", clip(strings.Join(origin, ", ")))
			refuse(w, http.StatusForbidden, "pages of this origin may not connect; --allow-origin lets one")
			return
		}
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			s.upgrade(ctx, w, r)
			return
		}
		if s.o.Page == nil {
			w.Header().Set("Upgrade", "websocket")
			refuse(w, http.StatusUpgradeRequired, "this port speaks newline-delimited JSON and WebSocket; `sublet serve operator --ui` also has a page")
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered")
			return
		}
		http.FileServerFS(s.o.Page).ServeHTTP(w, r)
	})
}

// headers prevent the page from being framed or cached, and from loading or reaching anything else.
func (s *Server) headers(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	connect := "'self'"
	if s.guard.Named(r.Host) {
		connect += " ws://" + r.Host // 'self' covers WebSocket only in browsers of 2022 and later
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "+connect+
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// refuse answers a request with an error, after which the server closes the connection.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, status)
}

// upgrade makes a WebSocket of a request and serves it until it ends. It answers 401 for a wrong token. A client that sends none is
// served, but is not authorized unless the server has no token: it can send the token in a message.
func (s *Server) upgrade(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	authorized := s.o.Token == ""
	if r.Header.Get("Authorization") != "" && s.o.Token != "" {
		if authorized = s.guard.Bears(r); !authorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "the token is not this server's")
			return
		}
	}
	// The origin was checked above, also against names that the library does not know.
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		s.log.Debug("no WebSocket", "peer", r.RemoteAddr, "err", err) // Accept has answered the request
		return
	}
	s.serve(ctx, newWS(ctx, c), r.RemoteAddr, authorized)
}
