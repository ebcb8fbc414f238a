package client

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
	"sublet/lease/shell"
)

// enterAgain handles a sublet that was started inside the shell of another. If that shell's start-up file started it, it
// returns so that the file goes on; if the user did, it becomes a plain shell, in which shell.EnvStarting stays.
func enterAgain(o Options) (code int, inside bool, err error) {
	owner, err := strconv.Atoi(lookup(o.Env, shell.EnvInside))
	if err != nil || !descends(os.Getpid(), owner) {
		return 0, false, nil // not inside, or in a process that outlived the window: a tmux server, a detached job
	}
	if lookup(o.Env, shell.EnvStarting) != "" {
		return 0, true, nil
	}
	path, d, _, err := shell.Find(o.Env)
	if err != nil {
		return 1, true, err
	}
	fmt.Fprintf(os.Stderr, "sublet: this shell already runs in sublet; this is a plain %s, leave it with exit\n", d.Name)
	if err := unix.Exec(path, []string{d.Name}, append(o.Env[:len(o.Env):len(o.Env)], shell.EnvStarting+"=1")); err != nil {
		return 1, true, fmt.Errorf("start %s: %w", path, err)
	}
	return 0, true, nil // not reached after exec
}

// descends reports whether ancestor is an ancestor of process pid. Without /proc it reports whether there is such a process.
func descends(pid, ancestor int) bool {
	above, err := procstat.Ancestors(pid)
	if err != nil {
		return ancestor > 1 && unix.Kill(ancestor, 0) == nil
	}
	return slices.Contains(above, ancestor)
}

func lookup(env []string, name string) string { return uv.Environ(env).Getenv(name) }
