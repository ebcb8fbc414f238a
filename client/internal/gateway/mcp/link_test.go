package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
		return wire.NewConn(client, wire.Options{}), &wire.Ready{Session: wire.SessionInfo{ID: "s"}}, nil
	}}
}

// A client without a session is forgotten after a time without a call, so that others are served; one whose call runs is not.
func TestIdleClientsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var open atomic.Int64
		s := newServer(ctx, Options{Daemon: deafDaemon(&open, func() {})})
		s.idle = time.Minute
		link := func(name int) (*link, error) { return s.link(ctx, fmt.Sprint(name), &sdk.ServerSession{}) }
		for i := range maxClients {
			l, err := link(i)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 { // the call of the first one goes on
				s.done(l)
			}
		}
		if _, err := link(maxClients); !errors.Is(err, errTooMany) {
			t.Errorf("one too many: got %v", err)
		}
		time.Sleep(time.Minute / 2)
		again, err := link(1)
		if err != nil {
			t.Fatal(err)
		}
		s.done(again)
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if n := open.Load(); n != 2 {
			t.Errorf("%d connections are open, want those of the call that runs and of the client that called since", n)
		}
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections are open, want the one whose call runs", n)
		}
		if _, err := link(maxClients); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		cancel()
		s.close()
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A daemon that is slow to greet one client holds up no other; of two calls that connect for one client, one connection stays.
func TestConnectingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var open, greeted atomic.Int64
		slow := make(chan struct{})
		s := newServer(ctx, Options{Daemon: deafDaemon(&open, func() {
			if greeted.Add(1) <= 2 {
				<-slow
			}
		})})
		var links [2]*link
		var work sync.WaitGroup
		for i := range links {
			work.Go(func() {
				var err error
				if links[i], err = s.link(ctx, "slow", &sdk.ServerSession{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, err := s.link(ctx, "quick", &sdk.ServerSession{}); err != nil {
			t.Error(err)
		}
		close(slow)
		work.Wait()
		synctest.Wait()
		if links[0] != links[1] || links[0].calls != 2 || open.Load() != 2 {
			t.Errorf("got %p and %p, %d connections", links[0], links[1], open.Load())
		}
		cancel()
		s.close()
	})
}
