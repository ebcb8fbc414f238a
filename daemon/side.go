package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
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

// serveProfiles serves below /debug/pprof the profiles that package runtime/pprof has by their names, and profile and trace, which are
// recorded while the request waits. It is off by default because profiles contain memory. Package net/http/pprof would do the same, but
// its initialisation makes every start of sublet slower.
func serveProfiles(ctx context.Context, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			http.NotFound(w, r)
			return
		}
		format, _ := strconv.Atoi(r.FormValue("debug")) // 0: for `go tool pprof`
		_ = p.WriteTo(w, format)                        // an error: the client is gone
	})
	mux.HandleFunc("/debug/pprof/profile", record(pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("/debug/pprof/trace", record(trace.Start, trace.Stop))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(peers{ln}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// record returns a handler that records from start to stop, for as many seconds as the request asks for, 1 by default.
func record(start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(cmp.Or(r.FormValue("seconds"), "1"), 64)
		if err == nil {
			err = start(w)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer stop()
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
		case <-r.Context().Done():
		}
	}
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
