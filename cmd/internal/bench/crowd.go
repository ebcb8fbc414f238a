package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sublet/wire"
)

const (
	crowd       = 500 // clients
	crowdPieces = 8   // chunks of text of a turn
)

// crowdRows time five hundred clients that stream at once from a real daemon, against one client that streams as much, and
// what the daemon keeps of it.
func crowdRows(binary string) ([]row, func(), error) {
	dir, err := os.MkdirTemp("/tmp", "bench") // short: a socket's path holds 104 bytes
	if err != nil {
		return nil, nil, err
	}
	d := &native{binary: binary, dir: dir}
	stop := func() { _ = errors.Join(d.stop(), os.RemoveAll(dir)) } // measured already
	if err := d.start(crowd); err != nil {
		return nil, stop, err
	}
	return []row{{
		id: "M1", name: "500 clients stream at once: an event", unit: "us", baseline: "one client that streams as much", goal: 1.2, rounds: 3,
		ours: func() (float64, error) { return d.stream(d.conns, "short") },
		base: func() (float64, error) { return d.stream(d.conns[:1], "long") },
	}, {
		id: "M2", name: "the daemon's own memory after five rounds of it", unit: "MB", baseline: "after the first", goal: 1.2, rounds: 1,
		ours: func() (float64, error) { return idleDaemon(binary, d.env, resident("RssAnon:")) },
		base: func() (float64, error) { return d.first, nil },
	}}, stop, nil
}

// native is a daemon with a scripted model, and clients that speak its own protocol.
type native struct {
	binary, dir string
	env         []string
	conns       []*wire.Conn
	first       float64 // MB of memory after the first round
}

// start starts the daemon, connects the clients and lets each stream once.
func (d *native) start(clients int) error {
	text := func(pieces int) string { return strings.Repeat("0123456789", 4*pieces) }
	err := scripted(d.dir, []map[string]any{
		{"match": "^short$", "steps": []any{map[string]any{"text": text(crowdPieces), "chunk_bytes": 40}}},
		{"match": "^long$", "steps": []any{map[string]any{"text": text(crowdPieces * clients), "chunk_bytes": 40}}},
	})
	if err != nil {
		return err
	}
	d.env = sandbox(d.dir)
	if err := call(d.env, d.binary, "daemon", "start"); err != nil {
		return err
	}
	for range clients {
		c, err := shakeHands(filepath.Join(d.dir, "run", "daemon.sock"))
		if err != nil {
			return err
		}
		d.conns = append(d.conns, c)
	}
	if _, err := d.stream(d.conns, "short"); err != nil {
		return err
	}
	d.first, err = idleDaemon(d.binary, d.env, resident("RssAnon:")) // once garbage has been given back
	return err
}

func (d *native) stop() error {
	for _, c := range d.conns {
		_ = c.Close() // measured already
	}
	return call(d.env, d.binary, "daemon", "stop", "--drain", "0s")
}

// stream lets each of the clients have a turn, all at once, and returns the microseconds for each event.
func (d *native) stream(conns []*wire.Conn, prompt string) (float64, error) {
	events, failed := make([]int, len(conns)), make([]error, len(conns))
	took, err := each(1, func() error {
		var all sync.WaitGroup
		for i, c := range conns {
			all.Go(func() { events[i], failed[i] = turn(c, prompt) })
		}
		all.Wait()
		return errors.Join(failed...)
	})
	total := 0
	for _, n := range events {
		total += n
	}
	return took / float64(total), err
}

// turn asks for one turn and returns how many events it had.
func turn(c *wire.Conn, prompt string) (events int, err error) {
	if err := c.Send(&wire.AgentRequest{RequestID: wire.RequestID(wire.NewID()), Prompt: prompt}); err != nil {
		return 0, err
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return events, err
		}
		switch m := m.(type) {
		case *wire.AgentStreamChunk:
			events += int(m.Seq - m.SeqFirst) // merged ones count
		case *wire.Error:
			return events, m
		case *wire.AgentComplete:
			if m.Status != wire.StatusSuccess {
				return events, fmt.Errorf("the turn ended with %s", m.Status)
			}
			return events + 1, nil
		case *wire.Heartbeat:
			continue
		}
		events++
	}
}
