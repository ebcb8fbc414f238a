package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"sync"
	"time"

	"sublet/wire/socket"
)

// sideServer serves on a socket beside the daemon's own, while the settings ask for it.
type sideServer struct {
	path  string
	what  string                                           // it does, for the log
	serve func(ctx context.Context, ln net.Listener) error // returns after ctx is done; it owns ln
	log   *slog.Logger

	stop   context.CancelFunc // nil: off
	served sync.WaitGroup
}

// set starts or stops the server. It is not safe for concurrent use.
func (s *sideServer) set(on bool) {
	switch {
	case on && s.stop == nil:
		ln, err := socket.Listen(s.path)
		if err != nil {
			s.log.Error("cannot "+s.what, "err", err)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		s.served.Go(func() { // ends with set(false)
			if err := s.serve(ctx, ln); err != nil {
				s.log.Error("cannot "+s.what, "err", err)
			}
		})
		s.log.Info("ready to "+s.what, "socket", s.path)
	case !on && s.stop != nil:
		s.stop()
		s.stop = nil
		s.served.Wait()
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("a socket is left", "err", err)
		}
	}
}

// serveProfiles serves /debug/pprof. It is off by default because profiles contain memory.
func serveProfiles(ctx context.Context, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(peers{ln}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
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
