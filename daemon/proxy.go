package daemon

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"sublet/daemon/internal/proxy"
	"sublet/wire/socket"
)

// hostProxy is the proxy for confined commands, on a socket beside the daemon's own, if the settings allow any host.
type hostProxy struct {
	path  string
	hosts func() []string
	log   *slog.Logger

	stop   context.CancelFunc // nil: off
	served sync.WaitGroup
}

// set starts or stops the proxy. It is not safe for concurrent use.
func (p *hostProxy) set(on bool) {
	switch {
	case on && p.stop == nil:
		ln, err := socket.Listen(p.path)
		if err != nil {
			p.log.Error("held commands reach no host", "err", err)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.served.Go(func() { // ends with set(false)
			if err := proxy.Serve(ctx, ln, proxy.Options{Hosts: p.hosts, Log: p.log}); err != nil {
				p.log.Error("held commands reach no host", "err", err)
			}
		})
		p.log.Info("held commands reach allowed hosts", "hosts", len(p.hosts()))
	case !on && p.stop != nil:
		p.stop()
		p.stop = nil
		p.served.Wait()
		if err := os.Remove(p.path); err != nil {
			p.log.Warn("the proxy's socket", "err", err)
		}
	}
}
