package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/client"
	"sublet/wire"
)

// processRows times whole processes: the start of the daemon, an answer from one that runs, its memory and its sleep (O8).
func processRows(s *site) ([]row, error) {
	binary, dir, env, sublet := s.binary, s.dir, s.env, s.sublet
	running := false
	stopRunning := func() error {
		if !running {
			return nil
		}
		running = false
		return sublet("daemon", "stop")
	}
	s.cleanup(func() error { return sublet("daemon", "stop") })
	// begun is how long f takes, where no daemon runs before.
	begun := func(f func() error) func() (float64, error) {
		return func() (float64, error) {
			return quantile(0.5, 10, func() (float64, error) {
				if err := stopRunning(); err != nil {
					return 0, err
				}
				running = true
				return timed(f)
			})
		}
	}
	version := func() (float64, error) { return once(15, func() error { return sublet("version") }) }
	idle := func(measure func(pid int) (float64, error)) func() (float64, error) {
		return func() (float64, error) { return s.idle(measure) }
	}
	rows := []row{
		{"S1", "no daemon: start it and get an answer", "us", "exec to exit of the same binary", 3, 5, begun(func() error { return sublet("daemon", "start") }), version},
		{"S1d", "no daemon: from a running client to its answer", "us", "exec to exit of the same binary", 1.5, 5, begun(func() error { return dialNew(binary, dir, env) }), version},
		{"S2", "daemon up: `daemon status`", "us", "exec to exit of the same binary", 1.5, 5, func() (float64, error) {
			return once(15, func() error { return sublet("daemon", "status") })
		}, version},
		{"S4", "idle daemon: resident memory", "MB", "the 15 MB it may have", 1, 1, idle(resident("VmRSS:")), fixed(15)},
		{"S4a", "idle daemon: of which its own, not the program's file", "MB", "the 15 MB it may have", 1, 1, idle(resident("RssAnon:")), fixed(15)},
		{"S4w", "idle daemon: context switches in 3 s", "", "10 a second", 1, 1, idle(switchesIn3s), fixed(30)},
	}
	more, err := startRows(binary, dir)
	if err != nil {
		return nil, err
	}
	return append(rows, more...), nil
}

// dialNew starts the daemon, as a client does that finds none, and waits for its Ready.
func dialNew(binary, dir string, env []string) error {
	paths, err := pathsIn(env)
	if err != nil {
		return err
	}
	c, err := client.Dial(context.Background(), client.Options{Paths: paths, Executable: binary, Env: env, Cwd: dir})
	if err != nil {
		return err
	}
	return c.Close()
}

// shakeHands connects to the daemon and waits for its Ready, as every command does that needs it.
func shakeHands(path string) (*wire.Conn, error) {
	nc, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	c := wire.NewConn(nc, wire.Options{})
	err = c.Send(&wire.EnvSnapshot{ProtocolMin: wire.MinVersion, ProtocolMax: wire.Version, Cwd: "/", AfterSeq: -1})
	if err == nil {
		var m wire.Message
		if m, err = c.Receive(); err == nil && m.Kind() != "Ready" {
			err = fmt.Errorf("handshake: answered with %s", m.Kind())
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// idle measures the daemon, and starts it if none runs.
func (s *site) idle(measure func(pid int) (float64, error)) (float64, error) {
	if err := s.sublet("daemon", "start"); err != nil {
		return 0, err
	}
	cmd := exec.Command(s.binary, "daemon", "status", "--json")
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	var status struct{ PID int }
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, err
	}
	return measure(status.PID)
}

// dozes is how long an idle daemon takes to return the memory of its start, and a little more.
const dozes = 12 * time.Second

func resident(field string) func(pid int) (float64, error) {
	return func(pid int) (float64, error) {
		time.Sleep(dozes)
		kb, err := procField(pid, field)
		return kb / 1024, err
	}
}

func switchesIn3s(pid int) (float64, error) {
	before, err := switches(pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(3 * time.Second)
	after, err := switches(pid)
	return after - before, err
}

// switches returns the context switches of all threads: those of the main thread alone mean nothing for a Go program.
func switches(pid int) (float64, error) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is well-formed
	if len(threads) == 0 {
		return 0, fmt.Errorf("no threads of %d in /proc", pid)
	}
	var total float64
	for _, t := range threads {
		for _, name := range []string{"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"} {
			n, err := fileField(t, name)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

func procField(pid int, name string) (float64, error) {
	return fileField(fmt.Sprintf("/proc/%d/status", pid), name)
}

func fileField(path, name string) (float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, path)
}
