package hub

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease"
	"sublet/wire"
)

// A window that was killed does not come back: who waits for its shell, or for the end of a command in it, is told within
// a second. They waited out the minute that a window has whose link alone was lost.
func TestEndOfAClientIsSeen(t *testing.T) {
	h := newHub(t)
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	was := ownerOf(1, ended.Process.Pid)
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		owner owner
		after time.Duration
	}{
		{"alive", ownerOf(1, os.Getpid()), lease.Grace},
		{"not told by the kernel", owner{says: 1}, lease.Grace},
		{"ended", was, goneEvery},
		{"its pid was used again", owner{says: 1, pid: os.Getpid(), started: 1}, goneEvery},
	} {
		if c.owner.started == 1 && runtime.GOOS != "linux" {
			continue // cannot be told there
		}
		synctest.Test(t, func(t *testing.T) {
			client := &Client{hub: h, peer: deaf{}, info: wire.ClientInfo{PID: 1}, owner: c.owner}
			ln := h.lenderOf(client)
			if !ln.link(client, &wire.EnvSnapshot{}, &wire.Ready{}) {
				t.Fatal("not linked")
			}
			b := ln.ask(t.Context(), wish{holder: "lease run", wait: time.Hour})
			begun := time.Now()
			ln.unlink(client)
			<-b.ended
			if waited := time.Since(begun); waited != c.after || b.outcome != lease.NoShell {
				t.Errorf("%s: told %s after %v, want %s after %v", c.name, b.outcome, waited, lease.NoShell, c.after)
			}
			if next := h.lenderOf(client); next == ln {
				t.Errorf("%s: the shell is still lent", c.name)
			} else {
				next.close(lease.NoShell)
			}
		})
	}
}

// deaf is a connection whose other end says nothing.
type deaf struct{}

func (deaf) Send(wire.Message) error     { return nil }
func (deaf) Flush(context.Context) error { return nil }
func (deaf) PID() int                    { return 0 }
