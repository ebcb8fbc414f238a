package mcp

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// deafDaemon greets and answers nothing; connections are counted while they are open. before runs ahead of each.
func deafDaemon(open *atomic.Int64, before func()) *gateway.Daemon {
	return &gateway.Daemon{Open: func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
		before()
		client, daemon := net.Pipe()
		open.Add(1)
		go func() {
			io.Copy(io.Discard, daemon) //nolint:errcheck // the client ends it
			daemon.Close()
			open.Add(-1)
		}()
		return wire.NewConn(client), &wire.Ready{Session: wire.SessionInfo{ID: "s"}}, nil
	}}
}

// A daemon that is slow to greet one client holds up no other; of two calls that connect for one client, one connection stays.
func TestConnectingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var open atomic.Int64
		slow := make(chan struct{})
		s := newServer(ctx, Options{Daemon: deafDaemon(&open, func() { <-slow })})
		var links [2]*link
		var work sync.WaitGroup
		for i := range links {
			work.Go(func() {
				var err error
				if links[i], err = s.link(ctx, &sdk.ServerSession{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if !s.mu.TryLock() {
			t.Fatal("another client would wait")
		}
		s.mu.Unlock()
		close(slow)
		work.Wait()
		synctest.Wait()
		if links[0] != links[1] || open.Load() != 1 {
			t.Errorf("got %p and %p, %d connections", links[0], links[1], open.Load())
		}
		cancel()
		s.close()
	})
}
