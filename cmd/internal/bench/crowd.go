package main

import (
	"errors"
	"fmt"
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
func crowdRows(s *site) ([]row, error) {
	d, err := startNative(s, crowd)
	if err != nil {
		return nil, err
	}
	return []row{{
		id: "M1", name: "500 clients stream at once: an event", unit: "us", baseline: "one client that streams as much", goal: 1.2, rounds: 3,
		ours: func() (float64, error) { return d.stream(d.conns, "short") },
		base: func() (float64, error) { return d.stream(d.conns[:1], "long") },
	}, {
		id: "M2", name: "the daemon's own memory after five rounds of it", unit: "MB", baseline: "after the first", goal: 1.2, rounds: 1,
		ours: func() (float64, error) { return d.idle(resident("RssAnon:")) },
		base: func() (float64, error) { return d.first, nil },
	}}, nil
}

// native is a daemon with a scripted model, and clients that speak its own protocol.
type native struct {
	*site
	conns []*wire.Conn
	first float64 // MB of memory after the first round
}

// startNative starts the daemon, connects the clients and lets each stream once.
func startNative(s *site, clients int) (*native, error) {
	d := &native{site: s}
	text := func(pieces int) string { return strings.Repeat("0123456789", 4*pieces) }
	err := scripted(s.dir, []map[string]any{
		{"match": "^short$", "steps": []any{map[string]any{"text": text(crowdPieces), "chunk_bytes": 40}}},
		{"match": "^long$", "steps": []any{map[string]any{"text": text(crowdPieces * clients), "chunk_bytes": 40}}},
	})
	if err == nil {
		err = s.sublet("daemon", "start")
	}
	if err != nil {
		return nil, err
	}
	s.cleanup(func() error { return s.sublet("daemon", "stop", "--drain", "0s") })
	for range clients {
		c, err := shakeHands(filepath.Join(s.dir, "run", "daemon.sock"))
		if err != nil {
			return nil, err
		}
		s.cleanup(c.Close)
		d.conns = append(d.conns, c)
	}
	if _, err := d.stream(d.conns, "short"); err != nil {
		return nil, err
	}
	d.first, err = s.idle(resident("RssAnon:")) // once garbage has been given back
	return d, err
}

// stream lets each of the clients have a turn, all at once, and returns the microseconds for each event.
func (d *native) stream(conns []*wire.Conn, prompt string) (float64, error) {
	events, failed := make([]int, len(conns)), make([]error, len(conns))
	took, err := timed(func() error {
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
