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
		// Who cannot wait as long as borrowers go on has the last one known.
		d.execute(1, "y", "make")
		d.take("CommandStarted")
		d.sh.finish(0, shell.State{})
		if p := <-d.ask(promptRest / 2); p != "1$ " {
			t.Errorf("got prompt %q, want the last one known", p)
		}
	})
}
