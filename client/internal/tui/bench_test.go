package tui

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/creack/pty"
)

// T1: from a key on the terminal to its picture on the terminal, through the whole program.
func BenchmarkKeyToTerminal(b *testing.B) {
	master, slave, err := pty.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	p := New(Options{
		Daemon: &fakeDaemon{}, Shell: newFakeShell(), Stdin: slave, Stdout: slave,
		Env: []string{"TERM=xterm-256color", "LANG=C.UTF-8"},
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		_, _ = p.Run(ctx)
		close(done)
	}()
	seen := make(chan int, 1000)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				close(seen)
				return
			}
			seen <- n
		}
	}()
	time.Sleep(300 * time.Millisecond) // the first pictures
	for len(seen) > 0 {
		<-seen
	}
	var total time.Duration
	bytes := 0
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		time.Sleep(20 * time.Millisecond) // keys come slower than pictures
		b.StartTimer()
		key := "x"
		if i%40 >= 20 {
			key = "\x7f"
		}
		start := time.Now()
		_, _ = io.WriteString(master, key)
		bytes += <-seen
		total += time.Since(start)
	}
	b.StopTimer()
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/key")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/key")
	cancel()
	<-done
	slave.Close()
	master.Close()
	for range seen {
	}
}
