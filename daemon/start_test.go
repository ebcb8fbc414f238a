package daemon

import (
	"context"
	"testing"

	"sublet/wire"
	"sublet/wire/socket"
)

// BenchmarkStart is what a daemon adds to the start of its program: from Run to Ready, on a store that is there, and to
// its end.
func BenchmarkStart(b *testing.B) {
	p := home(b, "")
	if err := p.Prepare(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		lock, err := socket.TryLock(p.Lock)
		if err != nil {
			b.Fatal(err)
		}
		ln, err := socket.Listen(p.Socket)
		if err != nil {
			b.Fatal(err)
		}
		nc, err := socket.Dial(b.Context(), p.Socket)
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, Options{Paths: p, Listener: ln, LockFile: lock}) }()
		c := wire.NewConn(nc, wire.Options{})
		if err := c.Send(&wire.EnvSnapshot{ProtocolMin: 1, ProtocolMax: 1, Cwd: "/"}); err != nil {
			b.Fatal(err)
		}
		if m, err := c.Receive(); err != nil || m.Kind() != "Ready" {
			b.Fatal(m, err)
		}
		b.StopTimer()
		stop()
		c.Close()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
