package client

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/client/internal/tui/paint"
)

// guardScript restores the terminal after a client that was killed, which it notices by the end of the pipe on descriptor 3. The client
// writes lines there: "shell PID", and "done" to end it. It runs in a process group of its own, so that Ctrl-C does not reach it, but
// in the terminal's session, so that it may set the modes.
//
//go:embed guard.sh
var guardScript string

// guard is the client's side of the guard process. The methods of a nil guard do nothing.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuard starts a guard, which restores the terminal's current modes, ends the shell and removes folder if this process dies. The
// caller must call done.
func startGuard(o Options, tty *os.File, folder string) (*guard, error) {
	name := ttyName(tty)
	// Open the terminal again, so that flags of the descriptor are not shared.
	own, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer own.Close()
	env := []string{"PATH=/usr/bin:/bin:" + lookup(o.Env, "PATH"), "LC_ALL=C"}
	stty := exec.Command("/bin/sh", "-c", "exec stty -g")
	stty.Env, stty.Stdin = env, own
	saved, err := stty.Output()
	if err != nil {
		return nil, fmt.Errorf("guard: stty -g: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-s")
	cmd.Args[0] = "sublet-guard"
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(guardScript) // not an argument, so that a list of processes shows a short command
	// What is behind the cursor is the rest of what the client drew.
	reset := paint.ResetSequences() + "\x1b[J"
	cmd.Env = append(env, "GUARD_TTY="+name, "GUARD_MODES="+strings.TrimSpace(string(saved)), "GUARD_RESET="+reset, "GUARD_FOLDER="+folder)
	cmd.ExtraFiles = []*os.File{r, own} // 3 and 4; with own open, its name cannot become another terminal's
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: w}, nil
}

// shell names the process of the shell, which the guard ends. Call it again after a restart of the shell.
func (g *guard) shell(pid int) { g.send("shell " + strconv.Itoa(pid)) }

func (g *guard) send(line string) {
	if g == nil {
		return
	}
	// Does not block: the line fits in a pipe's buffer. An error means that the guard has ended.
	_, _ = g.pipe.WriteString(line + "\n")
}

// done ends the guard and waits for it.
func (g *guard) done() {
	if g == nil {
		return
	}
	g.send("done")
	g.pipe.Close()
	timer := time.AfterFunc(2*time.Second, func() { g.cmd.Process.Kill() })
	defer timer.Stop()
	_ = g.cmd.Wait() // its exit status does not matter
}

// ttyName returns the path of a terminal, "/dev/tty" if it is not known.
func ttyName(f *os.File) string {
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil && strings.HasPrefix(name, "/dev/") {
		return name
	}
	return "/dev/tty"
}
