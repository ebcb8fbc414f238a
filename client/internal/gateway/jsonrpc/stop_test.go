package jsonrpc

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"sublet/client/internal/gateway"
)

// A server that was to stop waited for ever for a client that writes and does not read.
func TestStopWithAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &gateway.Daemon{}
		s := &server{o: Options{Daemon: d}, log: d.Logger(), limits: d.Limited()}
		client, ours := net.Pipe()
		defer client.Close()
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.serve(ctx, ours)
		}()
		go func() { // until the server closes its end
			for {
				if _, err := client.Write([]byte("{}\n")); err != nil {
					return
				}
			}
		}()
		synctest.Wait() // the answers fill the writer
		stop()
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Error("it still waits")
		}
		ours.Close()
	})
}
