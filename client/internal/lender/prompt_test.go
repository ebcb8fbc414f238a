package lender

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
)

// ask begins to ask for the prompt and returns what it will be.
func (d *desk) ask(wait time.Duration) <-chan string {
	got := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		p, err := d.l.Prompt(ctx)
		if err != nil {
			p.Text = err.Error()
		}
		got <- p.Text
	}()
	synctest.Wait()
	return got
}

// The screen wants the prompt twice at the end of each borrowed command. A borrower with several of them waited for both
// each time, and a prompt may run git.
func TestPromptGivesWayToBorrowers(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		var asked []<-chan string
		for n := 1; n <= 3; n++ {
			d.begin(n, "x", "make")
			d.sh.finish(0, shell.State{})
			d.take("CommandCompleted")
			asked = append(asked, d.ask(time.Minute))
			d.release(n, "completed")
			d.take("ShellLeaseReleased")
			asked = append(asked, d.ask(time.Minute))
			time.Sleep(promptRest / 2)
		}
		synctest.Wait()
		d.sh.mu.Lock()
		if n := d.sh.prompts; n != 0 {
			t.Errorf("the shell was asked for its prompt %d times while it was borrowed", n)
		}
		d.sh.mu.Unlock()
		time.Sleep(promptRest / 2)
		for _, got := range asked {
			if p := <-got; p != "1$ " { // one answer for all who waited
				t.Errorf("got prompt %q, want the first", p)
			}
		}
		if p := <-d.ask(time.Minute); p != "2$ " {
			t.Errorf("got prompt %q for who asked after that, want another", p)
		}
	})
}

// The prompt after the user's own command does not wait for borrowers to rest.
func TestUsersPromptDoesNotWait(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x", "make")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		ended := d.run("ls", false)
		d.sh.finish(0, shell.State{})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if p := <-d.ask(time.Minute); p != "1$ " || time.Since(begun) != 0 {
			t.Errorf("got prompt %q after %v, want the first at once", p, time.Since(begun))
		}
		// Who cannot wait as long as borrowers go on has none: the last one known may tell another folder.
		d.execute(1, "y", "make")
		d.take("CommandStarted")
		d.sh.finish(0, shell.State{})
		if p := <-d.ask(promptRest / 2); p != context.DeadlineExceeded.Error() {
			t.Errorf("got prompt %q, want none", p)
		}
	})
}

// A prompt that takes long keeps whoever wants the shell waiting for promptDue from its beginning, and no longer. Where nobody
// wants the shell it is told, however long that took.
func TestSlowPromptGivesWay(t *testing.T) {
	borrower := func(d *desk) {
		d.acquire(1)
		d.execute(1, "x", "ls")
	}
	for _, c := range []struct {
		name  string
		since time.Duration // the expansion began
		want  func(d *desk)
		waits time.Duration
		dirty bool // the state is not known
		lent  bool
	}{
		{"the user, soon", promptDue / 5, func(d *desk) { d.run("ls", false) }, promptDue - promptDue/5, false, false},
		{"the user, late", 3 * promptDue, func(d *desk) { d.run("ls", false) }, 0, false, false},
		{"a borrower, whose lease waits for a look at the state", 3 * promptDue, func(d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			d.execute(1, "x", "ls")
		}, 0, true, false},
		{"a borrower, soon", promptDue / 5, borrower, promptDue - promptDue/5, false, false},
		{"a borrower that has the lease", 3 * promptDue, func(d *desk) { d.execute(1, "x", "ls") }, 0, false, true},
		{"a borrower, late", 3 * promptDue, borrower, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			atDesk(t, func(t *testing.T, d *desk) {
				d.sh.expands = time.Hour
				if p := <-d.ask(2 * time.Hour); p != "1$ " {
					t.Errorf("got prompt %q of a shell that nobody wants", p)
				}
				d.l.mu.Lock()
				d.l.dirty = c.dirty
				d.l.mu.Unlock()
				if c.lent {
					d.acquire(1)
					time.Sleep(promptRest)
				}
				asked := d.ask(2 * time.Hour)
				time.Sleep(c.since)
				c.want(d)
				if ran := d.sh.ran(); len(ran) > 0 && c.waits > 0 {
					t.Errorf("%q ran while the shell expanded the prompt", ran)
				}
				time.Sleep(c.waits)
				synctest.Wait()
				if ran := d.sh.ran(); len(ran) != 1 {
					t.Fatalf("%q ran after %v, want ls", ran, c.waits)
				}
				if p := <-asked; p != context.Canceled.Error() {
					t.Errorf("got prompt %q, want none", p)
				}
				d.sh.finish(0, shell.State{})
				d.kinds()
			})
		})
	}
}

// Nor does one begin while the user's command waits for the shell.
func TestPromptBehindTheUser(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		if err := d.l.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.sh.expands = time.Hour
		asked := d.ask(2 * time.Hour)
		ended := d.run("ls", false)
		d.l.give()
		synctest.Wait()
		d.sh.finish(0, shell.State{})
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if p := <-asked; p != ErrBusy.Error() && p != "1$ " {
			t.Errorf("got prompt %q", p)
		}
	})
}

// Who presses Tab does not wait for it either.
func TestCompletionBehindASlowPrompt(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.expands = time.Hour
		asked := d.ask(2 * time.Hour)
		begun := time.Now()
		if _, _, err := d.l.Complete(t.Context(), "l", 1); err != nil || time.Since(begun) != promptDue {
			t.Errorf("got %v after %v, want completions after %v", err, time.Since(begun), promptDue)
		}
		if p := <-asked; p != context.Canceled.Error() {
			t.Errorf("got prompt %q, want none", p)
		}
	})
}
