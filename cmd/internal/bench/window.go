package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client"
	"sublet/wire"
)

// window is a sublet on a PTY, and its shell alone on another.
type window struct {
	*site
	shell, path string
	outer, bare *terminal
}

// windowRows measure windows of each shell. E: a borrowed command end to end, with a lease of its own: a client asks the
// daemon, which leases the shell of the window and has it run the command, until the client knows exit code and directory.
// T: what the user sees of the window's shell on the outer terminal, compared with that shell alone on a terminal.
func windowRows(s *site) (rows []row) {
	for _, path := range installedShells() {
		w := openWindow(s, path)
		conn := w.connect(nil)
		waitForShell(conn)
		letter, alone := w.shell[:1], w.shell+" alone"
		bash := runs(200, nil, "bash", "-c", "true")
		rows = append(rows, row{"E1" + letter, "borrowed `true`, end to end, median, " + w.shell, "us", 0.4, 7, median(200, func() float64 {
			return must(borrow(conn))
		}), "bash -c true", bash})
		if w.shell == "bash" {
			rows = append(rows, row{"E5", "an MCP call of `true`, median, bash", "us", 1.3, 7, w.agent(), "`sublet lease run -- true`", runs(20, w.env, w.binary, "lease", "run", "--", "true")})
		}
		big := filepath.Join(w.dir, "big")
		check(os.WriteFile(big, bytes.Repeat([]byte("a line of a large file, as long as lines of text are in the mean\n"), 100_000_000/65), 0o600))
		first := func(program string) measure { return median(5, func() float64 { return w.firstPrompt(program) }) }
		output := func(t *terminal, command string) measure { return func() float64 { return t.output(command) } }
		rows = append(
			rows,
			row{"T1" + letter, "key to echo, " + w.shell, "+ms", 0.3, 5, w.outer.echo(), alone, w.bare.echo()},
			row{"T2" + letter, "Enter to prompt, " + w.shell, "+ms", 1, 5, median(30, w.outer.enter), alone, median(30, w.bare.enter)},
			row{"T3" + letter, "first prompt, a daemon runs, " + w.shell, "+ms", 20, 5, first(w.binary), alone, first(w.path)},
			row{"T4" + letter, "seq 1 2000000, " + w.shell, "ms", 1.1, 3, output(w.outer, "seq 1 2000000"), alone, output(w.bare, "seq 1 2000000")},
			row{"T5" + letter, "cat of 100 MB, " + w.shell, "ms", 1.1, 3, output(w.outer, "cat "+big), alone, output(w.bare, "cat "+big)},
			row{"T6" + letter, "the window's resident memory, " + w.shell, "MB", 20, 1, func() float64 {
				return megabytes(w.outer.cmd.Process.Pid, "VmRSS:")
			}, "", nil},
		)
	}
	return rows
}

// openWindow opens a window with a daemon of its own.
func openWindow(s *site, path string) *window {
	name := filepath.Base(path)
	dir := filepath.Join(s.dir, name)
	check(os.Mkdir(dir, 0o700))
	w := &window{site: newSite(s.binary, dir), shell: name, path: path}
	s.cleanup(func() error { w.leave(); return nil })
	w.env = append(w.env, "SHELL="+path)
	writeStartFiles(dir, name)
	w.scripted()
	w.sublet("daemon", "start")
	w.outer, w.bare = w.start(w.binary), w.start(w.path)
	w.cleanup(w.outer.close)
	w.cleanup(w.bare.close)
	return w
}

func (w *window) start(program string) *terminal {
	cmd := exec.Command(program)
	cmd.Env, cmd.Dir = w.env, w.dir
	return openTerminal(cmd)
}

// firstPrompt returns the time from the start of a program to its first prompt.
func (w *window) firstPrompt(program string) float64 {
	begun := time.Now()
	t := w.start(program)
	t.react("", func(_ []byte, prompt int) bool { return prompt > 0 })
	took := since(begun)
	t.settle()
	check(t.close())
	return took
}

// waitForShell waits until the window, which is still coming up, lends its shell.
func waitForShell(c *client.Conn) {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := borrow(c)
		if err == nil {
			return
		}
		if time.Since(begun) > 20*time.Second {
			check(err)
		}
	}
}

// borrow returns how long it takes until exit code and directory are known. The shell is given back after that.
func borrow(c *client.Conn) (took float64, err error) {
	begun := time.Now()
	end, err := c.LeaseRun(context.Background(), &wire.LeaseRunRequest{Command: "true"}, func(m wire.LeaseMessage) {
		if _, ok := m.(*wire.CommandCompleted); ok {
			took = since(begun)
		}
	})
	if err == nil && (end.ExitCode == nil || *end.ExitCode != 0 || end.Cwd == "") {
		err = fmt.Errorf("true: got %+v, want exit code 0 and a directory", end)
	}
	return took, err
}

// agent starts a gateway as an agent of another program does, and measures a call.
func (w *window) agent() measure {
	ctx := context.Background()
	cmd := exec.Command(w.binary, "serve", "mcp")
	cmd.Env, cmd.Dir = w.env, w.dir
	session := must(sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil))
	w.cleanup(session.Close)
	return median(20, func() float64 {
		return timed(func() {
			res := must(session.CallTool(ctx, &sdk.CallToolParams{Name: "shell", Arguments: object{"command": "true"}}))
			if res.IsError {
				check(fmt.Errorf("true: %+v", res.Content[0]))
			}
		})
	})
}
