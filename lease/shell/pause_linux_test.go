package shell

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// pause has what takes part stand still, as a frozen container does: this process by SIGSTOP, what the shell started by
// ptrace, which the shell does not see, and so it waits as well. They go on a moment later than this process does. What
// happens before is done when they are held.
func pause(t *testing.T, shell int, d time.Duration, before func()) {
	t.Helper()
	h := newHolder()
	var held []int
	for {
		var found []int
		eachProcess(inSession(shell), func(st procStat) {
			if st.PID != shell && !slices.Contains(held, st.PID) {
				found = append(found, st.PID)
			}
		})
		if len(found) == 0 {
			break
		}
		if now := h.hold(found...); len(now) < len(found) {
			t.Errorf("held %v of %v", now, found)
		}
		held = append(held, found...)
	}
	before()
	time.Sleep(5 * pressEvery) // what is due is sent, and nobody there takes it
	cmd := exec.Command("sh", "-c", `kill -STOP "$0"; sleep "$1"; kill -CONT "$0"`, itoa(os.Getpid()), itoa(int(d.Seconds())))
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * pressEvery)
	for _, pid := range held {
		h.letGo(pid, 0)
	}
	h.end()
}

// Where the machine stands still for a while the clock goes on: what was cancelled just before was ended by SIGTERM or SIGKILL
// the moment after, or its shell was, for none of them had answered in time.
func TestCancelBeforeAPause(t *testing.T) {
	needsTracing(t)
	s := start(t, nil)
	pid := s.PID()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan struct{})
	done := make(chan Result, 1)
	go func() {
		res, err := s.Run(ctx, Command{Text: "x=1; sleep 1000; echo after", Started: func() { close(began) }})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	await(t, began, "the start")
	for len(children(pid)) == 0 || isFork(children(pid)[0]) {
		time.Sleep(time.Millisecond)
	}
	pause(t, pid, killAfter, cancel)
	res := <-done
	if res.Status != "cancelled" || exit(res) != 130 || res.Respawned || s.PID() != pid {
		t.Errorf("got %s, exit %d, respawned %v: %q %q", res.Status, exit(res), res.Respawned, res.Output, res.Notes)
	}
	if r := do(t, s, leased(`echo "$x"`)); string(r.Output) != "1\n" {
		t.Errorf("then got %q", r.Output)
	}
}
