package shell

import (
	"testing"
	"time"
)

// TMOUT ends a shell that nobody uses, as in any terminal, and not one beside which somebody is at work; nor a private one, at
// which nobody sits. Bash counts seconds, so this test does, too.
func TestLogout(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{"TMOUT=3", "readonly TMOUT=3"} {
		t.Run(rc, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
			do(t, s, user("false"))
			stateOf(t, s)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for over := time.After(4500 * time.Millisecond); over != nil; {
				select {
				case <-tick.C:
					s.InUse()
				case <-over:
					over = nil
				case <-s.Exited():
					t.Fatal("it ended while it was in use")
				}
			}
			if r := do(t, s, user("echo $?")); string(r.Output) != "1\n" {
				t.Errorf("got %q", r.Output)
			}
			await(t, s.Exited(), "the end of a shell that nobody uses")
		})
	}
	t.Run("private", func(t *testing.T) {
		t.Parallel()
		s := start(t, func(o *Options) { o.RC, o.Private, o.Env = rcFile(t, "TMOUT=1"), true, append(o.Env, "TMOUT=1") })
		select {
		case <-time.After(2500 * time.Millisecond):
		case <-s.Exited():
			t.Error("it ended")
		}
		if st := stateOf(t, s); st.Vars["TMOUT"] != "" {
			t.Error("it has TMOUT")
		}
	})
}
