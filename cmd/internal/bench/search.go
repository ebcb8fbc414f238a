package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/wire"
)

const (
	searches = 5                     // of one measurement
	tick     = 10 * time.Millisecond // of the times in /proc/PID/stat; USER_HZ is 100 on every Linux that Go runs on
)

// searchRows measure the processor time of the grep tool, that of git which lists the files included, over the source of Go's
// standard library in a git work tree.
func searchRows(s *site) ([]row, error) {
	d, err := startNative(s, 1)
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	tree := filepath.Join(s.dir, "tree")
	err = errors.Join(os.Mkdir(tree, 0o700), os.CopyFS(filepath.Join(tree, "src"), os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))))
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "source"}} {
		err = errors.Join(err, call(d.env, "git", append([]string{"-C", tree}, args...)...))
	}
	if err != nil {
		return nil, err
	}
	find := func(id, name, pattern string, ignoreCase bool) row {
		return row{
			id, "`grep` " + name + ", processor time", "ms", "git grep -I", 1.5, 5,
			func() (float64, error) { return d.search(tree, pattern, ignoreCase) },
			func() (float64, error) { return gitSearch(d.env, tree, pattern, ignoreCase) },
		}
	}
	return []row{
		find("G1", "for a text", "SIGWINCH", false),
		find("G2", "for a text in any case", "sigwinch", true),
		find("G3", "for a pattern", `func (Test|Example)[A-Za-z]+Deadline\(`, false),
	}, nil
}

// search returns the milliseconds of one search by the daemon.
func (d *native) search(tree, pattern string, ignoreCase bool) (float64, error) {
	args, err := json.Marshal(map[string]any{"pattern": pattern, "ignore_case": ignoreCase})
	if err != nil {
		return 0, err
	}
	return d.idle(func(pid int) (float64, error) {
		before, err := usedBy(pid)
		if err != nil {
			return 0, err
		}
		for range searches {
			if err := useTool(d.conns[0], "grep", string(args), tree); err != nil {
				return 0, err
			}
		}
		after, err := usedBy(pid)
		return float64((after - before).Milliseconds()) / searches, err
	})
}

// useTool has a tool run, and waits for its end.
func useTool(c *wire.Conn, tool, args, cwd string) error {
	err := c.Send(&wire.ToolRequest{RequestID: wire.RequestID(wire.NewID()), Tool: tool, Arguments: args, Cwd: wire.OSString(cwd)})
	for err == nil {
		var m wire.Message
		m, err = c.Receive()
		switch m := m.(type) {
		case *wire.Error:
			return m
		case *wire.AgentComplete:
			if m.Status != wire.StatusSuccess {
				return fmt.Errorf("%s ended with %s", tool, m.Status)
			}
			return nil
		}
	}
	return err
}

func gitSearch(env []string, tree, pattern string, ignoreCase bool) (float64, error) {
	args := []string{"-C", tree, "grep", "-InE"}
	if ignoreCase {
		args = append(args, "-i")
	}
	var took time.Duration
	for range searches {
		cmd := exec.Command("git", append(args, pattern)...)
		cmd.Env = env
		if err := cmd.Run(); err != nil {
			return 0, err
		}
		took += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return float64(took.Microseconds()) / 1e3 / searches, nil
}

// usedBy is what a process and its children that ended have used: fields 14 to 17 of /proc/PID/stat, proc_pid_stat(5).
func usedBy(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // from the third on
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields)+2)
	}
	sum := 0
	for _, f := range fields[11:15] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
