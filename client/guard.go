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

	"sublet/client/internal/tui"
)

// guardScript outlives a client that is killed; its own comment says how. It gets a process group of its own, so that
// Ctrl-C does not reach it, and stays in the terminal's session, so that it may set its modes.
//
//go:embed guard.sh
var guardScript string

// guard is the client's side of it. A nil guard guards nothing.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuard starts the guard of a terminal, whose modes are still those to put back, and of a folder. done must be
// called.
func startGuard(o Options, tty *os.File, folder string) (*guard, error) {
	name := ttyName(tty)
	// An open file of its own: nothing it does to its descriptor's flags concerns anybody else.
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
		o.Log.Warn("terminal modes not known to the guard", "err", err) // it makes them sane then
		saved = nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer r.Close()
	// By standard input and environment: a list of processes shows two words.
	script, in, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer script.Close()
	_, err = in.WriteString(guardScript) // less than a pipe holds: it does not wait
	in.Close()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-s")
	cmd.Args[0] = "sublet-guard"
	cmd.Dir, cmd.Stdin = "/", script
	cmd.Env = append(env, "GUARD_TTY="+name, "GUARD_MODES="+strings.TrimSpace(string(saved)), "GUARD_RESET="+tui.ResetSequences(), "GUARD_FOLDER="+folder)
	cmd.ExtraFiles = []*os.File{r, own}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: w}, nil
}

// shell names the shell to end: a new one after a respawn.
func (g *guard) shell(pid int) { g.tell("shell " + strconv.Itoa(pid)) }

func (g *guard) tell(line string) {
	if g == nil {
		return
	}
	// A pipe holds 4 KiB at least and the guard reads: this does not wait. A guard that is gone is none.
	_, _ = g.pipe.WriteString(line + "\n")
}

// done sends the guard away and waits for it.
func (g *guard) done() {
	if g == nil {
		return
	}
	g.tell("done")
	g.pipe.Close()
	timer := time.AfterFunc(2*time.Second, func() { g.cmd.Process.Kill() })
	defer timer.Stop()
	_ = g.cmd.Wait() // its status tells nothing
}

// ttyName is the path of a terminal, "/dev/tty" where it cannot be told.
func ttyName(f *os.File) string {
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil && strings.HasPrefix(name, "/dev/") {
		return name
	}
	return "/dev/tty"
}
