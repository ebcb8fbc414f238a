package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// serveRows times `serve jsonrpc` in front of a real daemon against the targets of its document (O1 to O5).
func serveRows(place *site) ([]row, error) {
	s := &served{site: place, gate: filepath.Join(place.dir, "gate")}
	s.cleanup(s.stop)
	if err := s.start(); err != nil {
		return nil, err
	}
	const words = 2000
	return []row{
		{"J1", "jsonrpc: connect and initialize", "ms", "the document's 50 ms", 1, 9, s.handshake, fixed(50)},
		{"J2", "jsonrpc: agent.query to its answer", "ms", "the document's 10 ms", 1, 9, s.submit, fixed(10)},
		{"J3", "jsonrpc: model to token (5 ms: the script)", "ms", "the document's 50 ms", 1, 9, func() (float64, error) { return s.reaction("token", "stream.token") }, fixed(50)},
		{"J4", "jsonrpc: call to tool.request_approval", "ms", "the document's 100 ms", 1, 9, func() (float64, error) { return s.reaction("question", "tool.request_approval") }, fixed(100)},
		{"J5", "jsonrpc: 1000 tokens", "ms", "a second", 1, 5, func() (float64, error) { ms, err := s.flood(); return ms * 1000 / words, err }, fixed(1000)},
	}, nil
}

// served is a daemon with a scripted model, and `serve jsonrpc` in front of it.
type served struct {
	*site
	gate, socket string
	cmd          *exec.Cmd
}

func (s *served) start() error {
	script := []map[string]any{
		{"match": "^say$", "steps": []any{map[string]any{"text": "hello"}}},
		{"match": "^token$", "steps": []any{map[string]any{"wait_file": s.gate, "text": "hello"}}},
		{"match": "^question$", "steps": []any{map[string]any{"wait_file": s.gate, "tool_calls": []any{
			map[string]any{"name": "bash", "arguments": map[string]any{"command": "touch made"}},
		}}}},
		{"match": "^flood$", "steps": []any{map[string]any{"text": strings.Repeat("word ", 2000), "chunk_bytes": 5}}},
	}
	if err := scripted(s.dir, script); err != nil {
		return err
	}
	s.socket = filepath.Join(s.dir, "rpc.sock")
	s.cmd = exec.Command(s.binary, "serve", "jsonrpc", "--socket", s.socket)
	s.cmd.Env, s.cmd.Dir, s.cmd.Stderr = s.env, s.dir, os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	_, err = bufio.NewReader(out).ReadString('\n') // its socket's path: it serves
	return err
}

func (s *served) stop() error {
	var err error
	if s.cmd != nil && s.cmd.Process != nil {
		err = errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
	}
	return errors.Join(err, s.sublet("daemon", "stop", "--drain", "0s"))
}

// rpc is one client.
type rpc struct {
	net.Conn
	lines *bufio.Reader
}

func (s *served) dial() (*rpc, error) {
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		return nil, err
	}
	r := &rpc{c, bufio.NewReaderSize(c, 1<<20)}
	return r, r.call("initialize", map[string]any{"protocol_version": "1.0.0"})
}

// call makes a request and waits for its answer; nothing else comes before it here.
func (r *rpc) call(method string, params any) error {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := r.Write(append(line, '\n')); err != nil {
		return err
	}
	return r.until("")
}

// until reads to the next notification of a method, or, with "", to the next answer.
func (r *rpc) until(method string) error {
	for {
		line, err := r.lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m["error"] != nil {
			return fmt.Errorf("jsonrpc: %s", line)
		}
		if got, _ := m["method"].(string); got == method {
			return nil
		}
	}
}

func millis(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1e3 }

func (s *served) handshake() (float64, error) {
	begun := time.Now()
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	return millis(begun), c.Close()
}

func (s *served) submit() (float64, error) {
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	begun := time.Now()
	if err := c.call("agent.query", map[string]any{"message": "say"}); err != nil {
		return 0, err
	}
	took := millis(begun)
	err = c.until("stream.complete")
	return took, err
}

// reaction is the time from the moment at which the model may answer to the notification that it leads to.
func (s *served) reaction(prompt, method string) (float64, error) {
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.call("agent.query", map[string]any{"message": prompt}); err != nil {
		return 0, err
	}
	if err := c.until("agent.thinking"); err != nil { // it began
		return 0, err
	}
	begun := time.Now()
	if err := os.WriteFile(s.gate, nil, 0o600); err != nil {
		return 0, err
	}
	err = c.until(method)
	return millis(begun), errors.Join(err, os.Remove(s.gate))
}

func (s *served) flood() (float64, error) {
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	begun := time.Now()
	if _, err := io.WriteString(c, `{"jsonrpc":"2.0","id":2,"method":"agent.query","params":{"message":"flood"}}`+"\n"); err != nil {
		return 0, err
	}
	err = c.until("stream.complete")
	return millis(begun), err
}
