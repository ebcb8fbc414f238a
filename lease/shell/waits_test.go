package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A command that was cancelled between its line being typed and being read was told as ended while the line was still on
// its way; the shell then ran it, did not answer, and was killed (T2a). Here the line is held up for longer than anyone
// may guess: the shell prompts again after the ^C, and its prompt, which cannot be hidden, waits at a gate.
func TestCancelBeforeTheLineIsRead(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, fmt.Sprintf(`readonly PS1='$(trap "" INT; while [ -e %s ]; do sleep 0.02; done)'`, gate))
	})
	do(t, s, leased("true"))
	s.proc.awaitRead(10 * time.Second)
	pid := s.PID()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop(t, s.proc) // the line finds it in its read, but not running
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tty := s.proc.tty
	go func() {
		for limit := time.Now().Add(10 * time.Second); inputEmpty(tty) && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	release := time.AfterFunc(1500*time.Millisecond, func() { os.Remove(gate) })
	defer release.Stop()
	var begun atomic.Bool
	c := leased("while :; do :; done")
	c.Started = func() { begun.Store(true) }
	r, err := s.Run(ctx, c)
	if err != nil || r.Status != "cancelled" || r.Respawned || s.PID() != pid {
		t.Fatalf("got %+v, %v; shell %d, was %d", r, err, s.PID(), pid)
	}
	if !begun.Load() {
		t.Error("told as ended before it began")
	}
	if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
		t.Errorf("then got %q", r.Output)
	}
}

// stop stops a shell; where the system does not tell when that has happened, the test is skipped.
func stop(t *testing.T, p *process) {
	t.Helper()
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !stopped(p.pid); time.Sleep(time.Millisecond) {
		if _, seen := p.waits(); !seen || time.Now().After(deadline) {
			t.Skip("the system does not show what the shell does")
		}
	}
}

// That the shell is seen in the read of a line is no proof that it has taken in what was typed.
func TestWaits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, leased("true"))
	p := s.proc
	p.awaitRead(10 * time.Second)
	waits := func(when string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			got, seen := p.waits()
			if !seen {
				t.Skip("the system does not show what the shell does")
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: got waits %v, want %v", when, got, want)
			}
		}
	}
	waits("at the prompt", true)
	if _, err := p.write([]byte("ec")); err != nil {
		t.Fatal(err)
	}
	waits("part of a line typed", true)
	stop(t, p)
	waits("stopped in the read", true)
	for i := range 50 {
		if _, err := p.write([]byte("ho\n")); err != nil {
			t.Fatal(err)
		}
		if got, _ := p.waits(); got { // at once: the kernel's worker may not have passed it on yet
			t.Fatalf("%d: a line lies in the terminal, and the shell counts as waiting", i)
		}
	}
	if err := syscall.Kill(p.pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waits("when all is read", true)
}

// A ^C that strikes while the shell takes in a line can leave it with the rest, and that may want more lines. A question
// then interrupts it.
func TestTornLine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, leased("true"))
	s.proc.awaitRead(10 * time.Second)
	if _, err := s.proc.write([]byte("true \"open\n")); err != nil {
		t.Fatal(err)
	}
	s.shaky.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.Prompt(ctx); err != nil {
		t.Fatalf("the shell does not answer: %v", err)
	}
	if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
		t.Errorf("then got %q", r.Output)
	}
}

// A completion that is given up interrupts the shell, which may be idle again in that very moment: the line that came next
// lost its beginning, and the rest of it ran.
func TestLineBehindAnInterrupt(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, leased("true"))
	for i := range 200 {
		s.shaky.Store(true) // as abandon does
		if err := syscall.Kill(s.proc.pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" || r.Status != "ok" {
			t.Fatalf("%d: got %q, %s", i, r.Output, r.Status)
		}
	}
}
