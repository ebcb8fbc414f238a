package client

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
	"sublet/lease/shell"
)

const (
	envInside = shell.EnvInside
	// envPlain marks a plain shell that a nested sublet became: a third one, called by its start-up file, does nothing.
	envPlain = "SUBLET_PLAIN"
	// startingName is a file in a client's folder while its shell reads its start-up files.
	startingName = "starting"
)

// enterAgain is what a sublet does that was started inside the shell of another: called by the start-up file of that
// very shell it steps aside, so that the file goes on; called by the user it becomes a plain shell.
func enterAgain(o Options) (code int, inside bool, err error) {
	owner, err := strconv.Atoi(lookup(o.Env, envInside))
	if err != nil || !descends(os.Getpid(), owner) {
		return 0, false, nil // not inside, or in something that outlived it: a tmux server, a detached job
	}
	if lookup(o.Env, envPlain) != "" {
		return 0, true, nil
	}
	for _, folder := range []string{clientFolder(o, owner), spareFolder(owner)} {
		if _, err := os.Stat(filepath.Join(folder, startingName)); err == nil {
			return 0, true, nil
		}
	}
	path, d, _, err := shell.Find(o.Env)
	if err != nil {
		return 1, true, err
	}
	fmt.Fprintf(os.Stderr, "sublet: this shell is lent already; here is a plain %s, its exit leads back\n", d.Name())
	if err := unix.Exec(path, []string{d.Name()}, append(o.Env[:len(o.Env):len(o.Env)], envPlain+"=1")); err != nil {
		return 1, true, fmt.Errorf("start %s: %w", path, err)
	}
	return 0, true, nil // not reached
}

// descends reports whether process pid has the live process ancestor above it. Where that cannot be read, being alive
// has to do.
func descends(pid, ancestor int) bool {
	if ancestor <= 1 || !alive(ancestor) {
		return false
	}
	above, err := procstat.Ancestors(pid)
	return err != nil || slices.Contains(above, ancestor)
}

// alive reports whether a process runs. One that has ended and was not collected by its new parent does not.
func alive(pid int) bool {
	if err := unix.Kill(pid, 0); err != nil {
		return err == unix.EPERM
	}
	st, err := procstat.Read(pid)
	return err != nil || st.State != 'Z' && st.State != 'X'
}

// sweep removes the folders of clients that are gone and whose guard is gone too.
func sweep(o Options) {
	left, err := filepath.Glob(filepath.Join(o.Paths.Runtime, "client-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "client-"))
		if err == nil && !alive(pid) {
			os.RemoveAll(dir)
		}
	}
}

func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
