package shell

import (
	"fmt"
	"path/filepath"
	"testing"
)

// tardyFork makes bash slow at beginning a program, once a file is there: it says so and waits before the fork, for a SIGINT
// too, which is blocked then and strikes right behind it; the child is slower still, and the shell stalls before it goes on.
const tardyFork = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

static int tardy, parent;

pid_t fork(void) {
	pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork");
	tardy = unlink(GATE) == 0 && write(1, "go", 2) == 2;
	for (int i = 0; tardy && i < WAIT; i += 10) {
		sigset_t s;
		if (sigpending(&s) == 0 && sigismember(&s, SIGINT)) break;
		usleep(10000);
	}
	pid_t pid = real();
	parent = pid != 0;
	if (!parent && tardy) usleep(5000);
	return pid;
}

int tcsetpgrp(int fd, pid_t pgrp) {
	int (*real)(int, pid_t) = dlsym(RTLD_NEXT, "tcsetpgrp"), err = real(fd, pgrp);
	if (parent && tardy) usleep(SHELL), tardy = 0;
	return err;
}
`

// A SIGINT that struck while the shell was beginning a program cost the shell now and then: bash took the terminal back, the
// child took it behind that, and bash exits where it can't read a line.
func TestCancelInAFork(t *testing.T) {
	t.Parallel()
	for _, stall := range []string{"0", "50000"} {
		for _, text := range []string{"sleep 1000", "sleep 1000; echo after", "set -o vi\nsleep 1000", "sleep 1000 | cat"} {
			for _, user := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s µs, user %v: %s", stall, user, text), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					gate := filepath.Join(dir, "gate")
					lib := compiled(t, dir, tardyFork, "-shared", "-fPIC", fmt.Sprintf("-DGATE=%q", gate), fmt.Sprintf("-DWAIT=%d", (waitWithin/2).Milliseconds()), "-DSHELL="+stall)
					s := start(t, func(o *Options) { o.Env = append(o.Env, "LD_PRELOAD="+lib) })
					pid := s.PID()
					res, took := cancelled(t, s, Command{Text: ": \"go\" >" + gate + "; " + text, User: user})
					if res.Status != "cancelled" || res.Respawned || s.PID() != pid || took >= termAfter || len(res.Leftovers) > 0 {
						t.Errorf("got %s after %v, respawned %v, left %v: %q", res.Status, took, res.Respawned, res.Leftovers, res.Notes)
					}
					if r := do(t, s, leased("echo whole; /bin/true")); string(r.Output) != "whole\n" || r.ExitCode == nil || *r.ExitCode != 0 {
						t.Errorf("then got %q", r.Output)
					}
				})
			}
		}
	}
}
