package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// jsonrpcRows measure `serve jsonrpc` in front of a real daemon against the targets of its document (O1 to O5).
func jsonrpcRows(s *site) []row {
	const words = 2000
	gate := filepath.Join(s.dir, "gate") // the model waits for this file
	s.scripted(
		object{"match": "^say$", "steps": []any{object{"text": "hello"}}},
		object{"match": "^token$", "steps": []any{object{"wait_file": gate, "text": "hello"}}},
		object{"match": "^question$", "steps": []any{object{"wait_file": gate, "tool_calls": []any{
			object{"name": "bash", "arguments": object{"command": "touch made"}},
		}}}},
		object{"match": "^flood$", "steps": []any{object{"text": strings.Repeat("word ", words), "chunk_bytes": 5}}},
	)
	path := filepath.Join(s.dir, "rpc.sock")
	cmd := exec.Command(s.binary, "serve", "jsonrpc", "--socket", path)
	cmd.Env, cmd.Dir, cmd.Stderr = s.env, s.dir, os.Stderr
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	s.cleanup(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return cmd.Wait()
	})
	must(bufio.NewReader(out).ReadString('\n')) // its socket's path: it serves

	// reaction measures the time from the moment at which the model may answer to the notification that it leads to.
	reaction := func(prompt, method string) measure {
		return func() float64 {
			c := dialRPC(path)
			defer c.Close()
			c.call("agent.query", object{"message": prompt})
			c.until("agent.thinking") // it began
			begun := time.Now()
			check(os.WriteFile(gate, nil, 0o600))
			c.until(method)
			took := since(begun)
			check(os.Remove(gate))
			return took
		}
	}
	return []row{
		{"J1", "jsonrpc: connect and initialize", "ms", 50, 9, func() float64 {
			return timed(func() { dialRPC(path).Close() })
		}, "", nil},
		{"J2", "jsonrpc: agent.query to its answer", "ms", 10, 9, func() float64 {
			c := dialRPC(path)
			defer c.Close()
			took := timed(func() { c.call("agent.query", object{"message": "say"}) })
			c.until("stream.complete")
			return took
		}, "", nil},
		{"J3", "jsonrpc: model to token (5 ms: the script)", "ms", 50, 9, reaction("token", "stream.token"), "", nil},
		{"J4", "jsonrpc: call to tool.request_approval", "ms", 100, 9, reaction("question", "tool.request_approval"), "", nil},
		{"J5", "jsonrpc: 1000 tokens", "ms", 1000, 5, func() float64 {
			c := dialRPC(path)
			defer c.Close()
			return timed(func() {
				c.send("agent.query", object{"message": "flood"})
				c.until("stream.complete")
			}) * 1000 / words
		}, "", nil},
	}
}

// rpc is one client.
type rpc struct {
	net.Conn
	lines *bufio.Reader
}

func dialRPC(path string) *rpc {
	c := must(net.Dial("unix", path))
	r := &rpc{c, bufio.NewReaderSize(c, 1<<20)}
	r.call("initialize", object{"protocol_version": "1.0.0"})
	return r
}

func (r *rpc) send(method string, params any) {
	line := must(json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	must(r.Write(append(line, '\n')))
}

// call makes a request and waits for its answer; nothing else comes before it here.
func (r *rpc) call(method string, params any) {
	r.send(method, params)
	r.until("")
}

// until reads to the next notification of a method, or, with "", to the next answer.
func (r *rpc) until(method string) {
	for {
		line := must(r.lines.ReadBytes('\n'))
		var m object
		check(json.Unmarshal(line, &m))
		if m["error"] != nil {
			check(fmt.Errorf("jsonrpc: %s", line))
		}
		if got, _ := m["method"].(string); got == method {
			return
		}
	}
}
