package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"sublet/wire/socket"
)

// debugServer serves /debug/pprof on a unix socket beside the daemon's own, if the settings ask for it. It is off by default
// because profiles contain memory.
type debugServer struct {
	path string
	log  *slog.Logger

	server *http.Server // nil: off
	served sync.WaitGroup
}

// set starts or stops the server. It is not safe for concurrent use.
func (s *debugServer) set(on bool) {
	switch {
	case on && s.server == nil:
		if err := s.start(); err != nil {
			s.log.Warn("profiles are not served", "err", err)
		}
	case !on && s.server != nil:
		if err := s.server.Close(); err != nil {
			s.log.Warn("profiles", "err", err)
		}
		s.served.Wait()
		s.server = nil
	}
}

func (s *debugServer) start() error {
	ln, err := socket.Listen(s.path)
	if err != nil {
		return err
	}
	unix, ok := ln.(*net.UnixListener)
	if !ok {
		return errors.Join(fmt.Errorf("a %T is no socket", ln), ln.Close())
	}
	unix.SetUnlinkOnClose(true) // the socket is this server's alone
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.served.Go(func() { // ends with set(false)
		if err := s.server.Serve(peers{unix}); !errors.Is(err, http.ErrServerClosed) {
			s.log.Warn("profiles", "err", err)
		}
	})
	s.log.Info("profiles are served", "socket", s.path)
	return nil
}

// peers is a listener that accepts processes of the same user only.
type peers struct{ net.Listener }

func (p peers) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil || socket.CheckPeer(c) == nil {
			return c, err
		}
		c.Close()
	}
}
