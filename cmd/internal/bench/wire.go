package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// wireRows compare the whole connection (reader, writer, queue, checks) with the least a unix socket can do, and a stream of
// chunks with the way most peers send theirs: server-sent events of JSON. They count processor time of both ends together,
// which is what they take where nothing else runs.
func wireRows(s *site) []row {
	ln := must(net.Listen("unix", filepath.Join(s.dir, "s")))
	s.cleanup(ln.Close)
	pair := func() (client, server net.Conn) {
		client = must(net.Dial("unix", ln.Addr().String()))
		s.cleanup(client.Close)
		return client, must(ln.Accept())
	}
	conns := func() (client, server *wire.Conn) {
		a, b := pair()
		client, server = wire.NewConn(a), wire.NewConn(b)
		s.cleanup(client.Close)
		s.cleanup(server.Close)
		return client, server
	}
	client, server := conns()
	go echo(server)
	raw, rawServer := pair()
	go rawEcho(rawServer)
	source, sink := conns()
	return []row{
		{
			"W1", "round trip, 100 B, whole connection", "us", 1.4, 9, roundTrips(client),
			"raw socket echo, one write, bufio read", rawRoundTrips(raw),
		},
		{
			"W4", "one way, a chunk of 40 B of text", "us", 1.0 / 6, 7, streamChunks(source, sink),
			"server-sent events of JSON over HTTP", serverSentEvents(s),
		},
		{"W9", "the slowest of 10 MiB made to be slow", "ms", 50, 5, slowestPayload(), "", nil},
	}
}

// work measures the processor time of one of n calls.
func work(n int, call func(i int)) measure {
	return func() float64 {
		begun := processorTime()
		for i := range n {
			call(i)
		}
		return (processorTime() - begun) / float64(n)
	}
}

const (
	trips    = 5000
	tripSize = 100 // bytes
)

// rawEcho ends when the other end closes.
func rawEcho(c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	frame := make([]byte, tripSize+4)
	for {
		if _, err := io.ReadFull(r, frame); err != nil {
			return
		}
		if _, err := c.Write(frame); err != nil {
			return
		}
	}
}

func rawRoundTrips(c net.Conn) measure {
	frame := make([]byte, tripSize+4)
	r := bufio.NewReaderSize(c, 64<<10)
	return work(trips, func(int) {
		must(c.Write(frame))
		must(io.ReadFull(r, frame))
	})
}

// echo ends when the other end closes.
func echo(c *wire.Conn) {
	for {
		m, err := c.Receive()
		if err != nil || c.Send(m) != nil {
			return
		}
	}
}

func roundTrips(c *wire.Conn) measure {
	m := &wire.CommandOutput{LeaseRef: wire.LeaseRef{LeaseID: "l", Fence: 1}, ExecutionID: "e", Data: bytes.Repeat([]byte{'x'}, tripSize)}
	return work(trips, func(int) {
		check(c.Send(m))
		must(c.Receive())
	})
}

const chunks = 20_000

func chunk(text string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{
		Event: wire.Event{SessionID: wire.SessionID(wire.NewID()), TurnID: wire.TurnID(wire.NewID()), RequestID: "r1", Seq: 1, AtMS: 1_790_000_000_000},
		Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text},
	}
}

// streamChunks sends as fast as it can, and measures the processor time of sending and receiving one; each chunk names another agent's
// turn so that none may be merged.
func streamChunks(source, sink *wire.Conn) measure {
	pair := [2]*wire.AgentStreamChunk{chunk(strings.Repeat("x", 40)), chunk(strings.Repeat("y", 40))}
	all := work(1, func(int) {
		received := make(chan error, 1)
		go func() { // ends with the last, or with the connection
			var err error
			for i := 0; i < chunks && err == nil; i++ {
				_, err = sink.Receive()
			}
			received <- err
		}()
		for i := range chunks {
			check(source.Send(pair[i%2]))
		}
		check(<-received)
	})
	return func() float64 { return all() / chunks }
}

// serverSentEvents measures the stream that most peers use, over the same kind of socket.
func serverSentEvents(s *site) measure {
	path := filepath.Join(s.dir, "http")
	ln := must(net.Listen("unix", path))
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		m := chunk(strings.Repeat("x", 40))
		flush := http.NewResponseController(w)
		for range chunks {
			raw, err := json.Marshal(m)
			if err == nil {
				_, err = fmt.Fprintf(w, "data: %s\n\n", raw)
			}
			if err != nil || flush.Flush() != nil {
				return // the client misses events
			}
		}
	})}
	s.cleanup(srv.Close)
	go func() { _ = srv.Serve(ln) }() // ends with Close
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	all := work(1, func(int) {
		resp := must(hc.Get("http://unix/"))
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		n := 0
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
				var m wire.AgentStreamChunk
				check(json.Unmarshal(data, &m))
				n++
			}
		}
		check(lines.Err())
		if n != chunks {
			check(fmt.Errorf("got %d events, want %d", n, chunks))
		}
	})
	return func() float64 { return all() / chunks }
}

// slowestPayload measures the processor time of decoding the slowest of ten megabytes made to be slow: of each the least of
// three runs. Some payloads are messages and some are errors; what counts is what either takes.
func slowestPayload() measure {
	worst := wiretest.Worst(10 << 20)
	return func() (slowest float64) {
		for _, payload := range worst {
			decode := work(1, func(int) { _, _ = wire.Unmarshal(payload) })
			least := math.Inf(1)
			for range 3 {
				least = min(least, decode())
			}
			slowest = max(slowest, least)
		}
		return slowest
	}
}
