package shell

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/term"
)

// start starts a shell in a session of its own on a new terminal.
func start(path string, l dialect.Launch, dir string, size Size, o Options) (*process, *exec.Cmd, error) {
	t, slave, err := term.Open(size, o.Termios, o.Private)
	if err != nil {
		return nil, nil, err
	}
	defer slave.Close()
	cmd := exec.Command(path, l.Args[1:]...)
	cmd.Args[0] = l.Args[0]
	cmd.Env, cmd.Dir = l.Env, dir
	// The login files may have set it to the terminal of the window. A pinentry would draw there, and its keys would go elsewhere.
	for i, kv := range cmd.Env {
		if strings.HasPrefix(kv, "GPG_TTY=") {
			cmd.Env[i] = "GPG_TTY=" + t.Name
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	catchIgnored()
	if err := cmd.Start(); err != nil {
		t.Close()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &process{pid: cmd.Process.Pid, term: t, exited: make(chan struct{})}, cmd, nil
}

// passedOn are the signals that stay ignored in a shell, and in all that it runs, if they are ignored when it starts.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGTSTP}

// catchIgnored has this process catch the signals that it ignores: exec resets caught signals, but not ignored ones. A client
// started by `&` in a script or by nohup ignores SIGINT, and its shell would ignore every ^C.
func catchIgnored() {
	for _, sig := range passedOn {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig) // nobody reads it
		}
	}
}
