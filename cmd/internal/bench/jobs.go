package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/wire"
)

// jobRows time background jobs in a session's private shell, against what somebody who waits for one does not notice.
func jobRows(s *site) ([]row, error) {
	if err := s.sublet("daemon", "start"); err != nil {
		return nil, err
	}
	s.cleanup(func() error { return s.sublet("daemon", "stop", "--drain", "0s") })
	begin := func(c *wire.Conn) (float64, error) {
		begun := time.Now()
		_, err := background(c, "true", false)
		return ms(time.Since(begun)), err
	}
	return []row{
		{"B1", "a background job: request to its id, median", "ms", "the limit", 1, 5, s.ofJobs(20, begin), fixed(20)},
		{"B2", "the end of a job to its agent's turn, median", "ms", "the limit", 1, 5, s.ofJobs(9, wake), fixed(50)}, // an agent is woken ten times an hour
	}, nil
}

// wake returns the milliseconds from a job's last command, which prints when it ran, to the turn of the agent that the job's end wakes.
func wake(c *wire.Conn) (float64, error) {
	request, err := background(c, "date +%s%N", true)
	if err != nil {
		return 0, err
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return 0, err
		}
		if started, ok := m.(*wire.TurnStarted); ok && started.TurnID != request {
			now := time.Now()
			if err := finished(c, started.TurnID); err != nil {
				return 0, err
			}
			ended, err := newestOutput(c)
			return ms(now.Sub(ended)), err
		}
	}
}

// newestOutput returns the time that the newest job printed.
func newestOutput(c *wire.Conn) (time.Time, error) {
	if err := c.Send(&wire.JobRequest{RequestID: wire.RequestID(wire.NewID()), Op: "list"}); err != nil {
		return time.Time{}, err
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return time.Time{}, err
		}
		if list, ok := m.(*wire.JobReply); ok {
			newest := slices.MaxFunc(list.Jobs, func(a, b wire.Job) int { return cmp.Compare(a.StartedAtMS, b.StartedAtMS) })
			text, err := os.ReadFile(string(newest.OutputPath))
			if err != nil {
				return time.Time{}, err
			}
			ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return time.Unix(0, ns), err
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ofJobs returns the median of n jobs of a session of their own, whose shell runs already.
func (s *site) ofJobs(n int, measure func(*wire.Conn) (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		c, err := shakeHands(filepath.Join(s.dir, "run", "daemon.sock"))
		if err != nil {
			return 0, err
		}
		defer c.Close()
		if _, err := background(c, "true", false); err != nil {
			return 0, err
		}
		return quantile(0.5, n, func() (float64, error) {
			time.Sleep(20 * time.Millisecond) // a client may send 100 requests in a second
			return measure(c)
		})
	}
}

// background starts a job and returns the turn of its request when its id has come.
func background(c *wire.Conn, command string, wake bool) (wire.TurnID, error) {
	args, err := json.Marshal(map[string]any{"command": command, "background": true, "wake": wake})
	if err != nil {
		return "", err
	}
	if err := c.Send(&wire.ToolRequest{RequestID: wire.RequestID(wire.NewID()), Tool: "bash", Arguments: string(args)}); err != nil {
		return "", err
	}
	for {
		m, err := c.Receive()
		switch m := m.(type) {
		case *wire.Error:
			return "", m
		case *wire.CommandResult:
			if m.Status != wire.StatusSuccess {
				return "", errors.New(string(m.Output))
			}
			return m.TurnID, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// finished waits for the end of a turn.
func finished(c *wire.Conn, turn wire.TurnID) error {
	for {
		m, err := c.Receive()
		if end, ok := m.(*wire.AgentComplete); ok && end.TurnID == turn || err != nil {
			return err
		}
	}
}
