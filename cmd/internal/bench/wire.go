package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"

	"sublet/wire"
)

// work runs n calls and returns the microseconds of processor time for one, both ends together. All of it is on one CPU, so
// that is what they take where nothing else runs; what else runs does not count.
func work(n int, call func() error) (float64, error) {
	begun := processorTime()
	for range n {
		if err := call(); err != nil {
			return 0, err
		}
	}
	return (processorTime() - begun) * 1e3 / float64(n), nil
}

// processorTime returns the processor time that this process has used, in milliseconds.
func processorTime() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it takes no argument that could be wrong
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e6
}

// wireRows compares the whole connection (reader, writer, queue, checks) with the least a unix socket can do, and a
// stream of chunks with the way most peers send theirs: server-sent events of JSON.
func wireRows(s *site) ([]row, error) {
	ln, err := net.Listen("unix", filepath.Join(s.dir, "s"))
	if err != nil {
		return nil, err
	}
	s.cleanup(ln.Close)
	pair := func() (client, server net.Conn, err error) {
		if client, err = net.Dial("unix", ln.Addr().String()); err != nil {
			return nil, nil, err
		}
		s.cleanup(client.Close)
		server, err = ln.Accept()
		return client, server, err
	}

	rawClient, rawServer, err := pair()
	if err != nil {
		return nil, err
	}
	go rawEcho(rawServer)
	a, b, err := pair()
	if err != nil {
		return nil, err
	}
	client, server := wire.NewConn(a, wire.Options{}), wire.NewConn(b, wire.Options{})
	s.cleanup(client.Close)
	s.cleanup(server.Close)
	go echo(server)

	rows := []row{{
		id: "W1", name: "round trip, 100 B, whole connection", unit: "us", baseline: "raw socket echo, one write, bufio read", goal: 1.4, rounds: 9,
		ours: func() (float64, error) { return roundTrips(client) },
		base: func() (float64, error) { return rawRoundTrips(rawClient) },
	}}

	c, d, err := pair()
	if err != nil {
		return nil, err
	}
	source, sink := wire.NewConn(c, wire.Options{}), wire.NewConn(d, wire.Options{})
	s.cleanup(source.Close)
	s.cleanup(sink.Close)
	rawSource, rawSink, err := pair()
	if err != nil {
		return nil, err
	}
	events, err := serverSentEvents(s)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{
		id: "W4", name: "one way, a chunk of 40 B of text", unit: "us", baseline: "server-sent events of JSON over HTTP", goal: 1.0 / 6, rounds: 7,
		ours: func() (float64, error) { return streamChunks(source, sink) },
		base: events,
	}, row{
		id: "W8", name: "one way, 64 KiB chunks of output", unit: "s/GB", baseline: "the same frames over a raw socket", goal: 1.3, rounds: 9,
		ours: func() (float64, error) { return streamOutput(source, sink) },
		base: func() (float64, error) { return streamBytes(rawSource, rawSink) },
	})
	return append(rows, hostileRow()), nil
}

func rawEcho(c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	var buf []byte
	for {
		head, err := r.Peek(4)
		if err != nil {
			return // the other end closed: measured
		}
		n := int(binary.BigEndian.Uint32(head)) + 4
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

const (
	trips    = 5000
	tripSize = 100 // bytes
)

func rawRoundTrips(c net.Conn) (float64, error) {
	frame := make([]byte, tripSize+4)
	binary.BigEndian.PutUint32(frame, tripSize)
	r := bufio.NewReaderSize(c, 64<<10)
	back := make([]byte, len(frame))
	return work(trips, func() error {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		_, err := io.ReadFull(r, back)
		return err
	})
}

func echo(c *wire.Conn) {
	for {
		m, err := c.Receive()
		if err != nil {
			return // the other end closed: measured
		}
		if err := c.Send(m); err != nil {
			return
		}
	}
}

func roundTrips(c *wire.Conn) (float64, error) {
	m := &wire.CommandOutput{LeaseRef: wire.LeaseRef{LeaseID: "l", Fence: 1}, ExecutionID: "e", Data: bytes.Repeat([]byte{'x'}, tripSize)}
	return work(trips, func() error {
		if err := c.Send(m); err != nil {
			return err
		}
		back, err := c.Receive()
		if err == nil && back.Kind() != m.Kind() {
			err = fmt.Errorf("got %s back", back.Kind())
		}
		return err
	})
}

const chunks = 20_000

func chunk(text string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{
		Event: wire.Event{SessionID: wire.SessionID(wire.NewID()), TurnID: wire.TurnID(wire.NewID()), RequestID: "r1", Seq: 1, AtMS: 1_790_000_000_000},
		Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text},
	}
}

// oneWay returns the processor time of n sends and as many receives, in microseconds.
func oneWay(n int, send func(i int) error, receive func() error) (float64, error) {
	repeat := func(f func(i int) error) error {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- repeat(func(int) error { return receive() }) }() // ends with the last, or with the connection
	return work(1, func() error {
		if err := repeat(send); err != nil {
			return err
		}
		return <-done
	})
}

// streamChunks sends as fast as it can; each chunk names another agent's turn so that none may be merged.
func streamChunks(source, sink *wire.Conn) (float64, error) {
	pair := [2]*wire.AgentStreamChunk{chunk(strings.Repeat("x", 40)), chunk(strings.Repeat("y", 40))}
	took, err := oneWay(chunks, func(i int) error { return source.Send(pair[i%2]) }, func() error {
		_, err := sink.Receive()
		return err
	})
	return took / chunks, err
}

const (
	outputs    = 4000
	outputSize = 64 << 10
)

// perGB is the seconds that a gigabyte takes at the rate of outputs that took so many microseconds.
func perGB(us float64) float64 { return us / 1e6 / (outputs * outputSize) * 1e9 }

// streamOutput sends a leased command's output. It keeps less than 4 MiB queued, from which live output would be dropped.
func streamOutput(source, sink *wire.Conn) (float64, error) {
	m := &wire.CommandOutput{LeaseRef: wire.LeaseRef{LeaseID: "l", Fence: 1}, ExecutionID: "e", Data: bytes.Repeat([]byte{'x'}, outputSize)}
	took, err := oneWay(outputs, func(int) error {
		if source.Pending() > 1<<20 {
			if err := source.Flush(context.Background()); err != nil {
				return err
			}
		}
		m.Offset += outputSize
		return source.Send(m)
	}, func() error {
		m, err := sink.Receive()
		if out, ok := m.(*wire.CommandOutput); err == nil && (!ok || len(out.Data) != outputSize) {
			err = fmt.Errorf("got %s", m.Kind())
		}
		return err
	})
	return perGB(took), err
}

// streamBytes is the same without a queue, a codec or a message: one write and one read each.
func streamBytes(source, sink net.Conn) (float64, error) {
	frame, into := make([]byte, 4+outputSize), make([]byte, 4+outputSize)
	r := bufio.NewReaderSize(sink, 32<<10)
	took, err := oneWay(outputs, func(int) error {
		_, err := source.Write(frame)
		return err
	}, func() error {
		_, err := io.ReadFull(r, into)
		return err
	})
	return perGB(took), err
}

// serverSentEvents measures the stream that most peers use, over the same kind of socket.
func serverSentEvents(s *site) (measure func() (float64, error), err error) {
	path := filepath.Join(s.dir, "http")
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		m := chunk(strings.Repeat("x", 40))
		flush := http.NewResponseController(w)
		for range chunks {
			raw, err := json.Marshal(m)
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", raw); err != nil {
				return
			}
			if flush.Flush() != nil {
				return
			}
		}
	})}
	s.cleanup(srv.Close)
	go func() { _ = srv.Serve(ln) }() // ends with Close
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	return func() (float64, error) {
		took, err := work(1, func() error {
			resp, err := hc.Get("http://unix/")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			n := 0
			for lines.Scan() {
				data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
				if !ok {
					continue
				}
				var m wire.AgentStreamChunk
				if err := json.Unmarshal(data, &m); err != nil {
					return err
				}
				n++
			}
			if n != chunks {
				return fmt.Errorf("got %d events, want %d", n, chunks)
			}
			return lines.Err()
		})
		return took / chunks, err
	}, nil
}
