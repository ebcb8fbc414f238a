package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/client"
	"sublet/wire"
)

// processRows measure whole processes: the start of the daemon, an answer from one that runs, its memory and its sleep (O8),
// and a command that does nothing.
func processRows(s *site) []row {
	s.cleanup(s.stopDaemon)
	// fromNothing is how long f takes, where no daemon runs before and one does after.
	fromNothing := func(f func()) measure {
		return median(10, func() float64 {
			took := timed(f)
			check(s.stopDaemon())
			return took
		})
	}
	source, hello := filepath.Join(s.dir, "hello.go"), filepath.Join(s.dir, "hello")
	check(os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600))
	call(nil, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", hello, source)

	const exec = "exec to exit of the same binary"
	version := runs(15, s.env, s.binary, "version")
	return []row{
		{"S1", "no daemon: start it and get an answer", "us", 3, 5, fromNothing(func() { s.sublet("daemon", "start") }), exec, version},
		{"S1d", "no daemon: from a running client to its answer", "us", 1.5, 5, fromNothing(func() { s.dial(nil).Close() }), exec, version},
		{"S2", "daemon up: `daemon status`", "us", 1.5, 5, func() float64 {
			s.sublet("daemon", "start")
			return runs(15, s.env, s.binary, "daemon", "status")()
		}, exec, version},
		{"S4", "idle daemon: resident memory", "MB", 15, 1, func() float64 { return megabytes(s.idle(), "VmRSS:") }, "", nil},
		{"S4a", "idle daemon: of which its own, not the program's file", "MB", 15, 1, func() float64 { return megabytes(s.idle(), "RssAnon:") }, "", nil},
		{"S4w", "idle daemon: context switches in 3 s", "", 30, 1, func() float64 {
			pid := s.idle()
			before := switches(pid)
			time.Sleep(3 * time.Second)
			return switches(pid) - before
		}, "", nil},
		{"S5", "`version`", "us", 4, 7, version, "hello world in Go", runs(15, nil, hello)},
		{"S6", "the program's size", "MB", 35, 1, func() float64 { return float64(must(os.Stat(s.binary)).Size()) / (1 << 20) }, "", nil},
	}
}

// pid returns the process of the daemon, which is started if none runs.
func (s *site) pid() int {
	c := s.dial(nil)
	defer c.Close()
	return c.Ready().Daemon.PID
}

// idle is pid, once the daemon has returned the memory of its start.
func (s *site) idle() int {
	pid := s.pid()
	time.Sleep(12 * time.Second) // it does so after 10
	return pid
}

// megabytes returns a field of /proc/PID/status.
func megabytes(pid int, name string) float64 {
	return field(fmt.Sprintf("/proc/%d/status", pid), name) / 1024
}

// switches returns the context switches of all threads: those of the main thread alone mean nothing for a Go program.
func switches(pid int) (total float64) {
	threads := must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)))
	for _, t := range threads {
		total += field(t, "voluntary_ctxt_switches:") + field(t, "nonvoluntary_ctxt_switches:")
	}
	return total
}

// field returns the number after a name in a file of /proc.
func field(path, name string) float64 {
	for line := range strings.Lines(string(must(os.ReadFile(path)))) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return must(strconv.ParseFloat(f[1], 64))
		}
	}
	panic(failure{fmt.Errorf("no %s in %s", name, path)})
}

// jobRows measure background jobs in a session's private shell, against what somebody who waits for one does not notice.
func jobRows(s *site) []row {
	s.scripted()
	return []row{
		{"B1", "a background job: request to its id, median", "ms", 20, 5, func() float64 {
			c := s.dial(nil)
			defer c.Close()
			background(c, "true", false) // starts the shell
			return median(20, func() float64 { return background(c, "true", false) })()
		}, "", nil},
		{"B2", "the end of a job to its agent's turn, median", "ms", 50, 5, s.woken, "", nil},
	}
}

// background starts a job, whose end wakes the agent with wake, and returns the time until its id has come.
func background(c *client.Conn, command string, wake bool) (took float64) {
	args := must(json.Marshal(object{"command": command, "background": true, "wake": wake}))
	begun := time.Now()
	check(turn(c, &wire.ToolRequest{Tool: "bash", Arguments: string(args)}, func(m wire.Message) {
		if _, ok := m.(*wire.CommandResult); ok {
			took = since(begun)
		}
	}))
	return took
}

// woken returns the median time from the last command of a job, which prints when it ran, to the turn of the agent that the job's
// end wakes.
func (s *site) woken() float64 {
	began, ended := make(chan time.Time, 1), make(chan struct{}, 1)
	var turn wire.TurnID // of the woken agent
	c := s.dial(func(m wire.Message) {
		switch m := m.(type) {
		case *wire.TurnStarted:
			if m.Prompt != "" { // else it is that of a tool
				turn = m.TurnID
				began <- time.Now()
			}
		case *wire.AgentComplete:
			if m.TurnID == turn {
				ended <- struct{}{}
			}
		}
	})
	defer c.Close()
	return median(9, func() float64 { // an agent is woken ten times an hour
		background(c, "date +%s%N", true)
		at := <-began
		<-ended
		jobs := must(wire.Call(context.Background(), c, &wire.JobRequest{Op: "list"})).Jobs
		newest := slices.MaxFunc(jobs, func(a, b wire.Job) int { return cmp.Compare(a.StartedAtMS, b.StartedAtMS) })
		printed := must(os.ReadFile(string(newest.OutputPath)))
		ns := must(strconv.ParseInt(strings.TrimSpace(string(printed)), 10, 64))
		return float64(at.UnixNano()-ns) / 1e3
	})()
}

// searchRows measure the processor time of the grep tool, that of git which lists the files included, over the source of Go's
// standard library in a git work tree.
func searchRows(s *site) []row {
	s.scripted()
	root := must(exec.Command("go", "env", "GOROOT").Output())
	tree := filepath.Join(s.dir, "tree")
	check(os.Mkdir(tree, 0o700))
	check(os.CopyFS(filepath.Join(tree, "src"), os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))))
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "source"}} {
		call(s.env, "git", append([]string{"-C", tree}, args...)...)
	}
	c, pid := s.connect(nil), s.pid()
	find := func(id, name, pattern string, ignoreCase bool) row {
		args := must(json.Marshal(object{"pattern": pattern, "ignore_case": ignoreCase}))
		gitArgs := []string{"-C", tree, "grep", "-InE", pattern}
		if ignoreCase {
			gitArgs = slices.Insert(gitArgs, 4, "-i")
		}
		return row{
			id, "`grep` " + name + ", processor time", "ms", 1.5, 5,
			func() float64 {
				const searches = 5 // what /proc/PID/stat counts is coarse
				before := usedBy(pid)
				for range searches {
					check(turn(c, &wire.ToolRequest{Tool: "grep", Arguments: string(args), Cwd: wire.OSString(tree)}, func(wire.Message) {}))
				}
				return (usedBy(pid) - before) / searches
			},
			"git grep -I", median(5, func() float64 {
				cmd := exec.Command("git", gitArgs...)
				cmd.Env = s.env
				check(cmd.Run())
				return float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds())
			}),
		}
	}
	return []row{
		find("G1", "for a text", "SIGWINCH", false),
		find("G2", "for a text in any case", "sigwinch", true),
		find("G3", "for a pattern", `func (Test|Example)[A-Za-z]+Deadline\(`, false),
	}
}

// usedBy returns the processor time, in microseconds, that a process and its ended children have used: fields 14 to 17 of /proc/PID/stat,
// proc_pid_stat(5).
func usedBy(pid int) (sum float64) {
	const tick = 10_000 // microseconds; USER_HZ is 100 on every Linux that Go runs on
	b := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))))
	fields := strings.Fields(b[strings.LastIndexByte(b, ')')+1:]) // from the third on
	for _, f := range fields[11:15] {
		sum += tick * must(strconv.ParseFloat(f, 64))
	}
	return sum
}
