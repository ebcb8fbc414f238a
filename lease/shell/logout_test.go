package shell

import (
	"errors"
	"fmt"
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
			for {
				stood, err := keptInUse(t, rc)
				if err == nil {
					break
				}
				if stood < time.Second {
					t.Fatal(err)
				}
				t.Logf("once more, for the machine stood still for %v, which bash counts: %v", stood, err)
			}
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

// keptInUse has a shell in use for longer than its TMOUT, and then not. It tells how long this process stood still, too.
func keptInUse(t *testing.T, rc string) (stood time.Duration, err error) {
	s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
	do(t, s, user("false"))
	stateOf(t, s)
	const often = 50 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	last, end := time.Now(), time.Now().Add(4500*time.Millisecond)
	for time.Now().Before(end) {
		select {
		case <-tick.C:
			s.InUse()
			stood, last = max(stood, time.Since(last)-often), time.Now()
		case <-s.Exited():
			return max(stood, time.Since(last)-often), errors.New("it ended while it was in use")
		}
	}
	r, err := s.Run(t.Context(), user("echo $?"))
	if stood = max(stood, time.Since(last)-often); err != nil || string(r.Output) != "1\n" {
		return stood, fmt.Errorf("got %q, %v", r.Output, err)
	}
	await(t, s.Exited(), "the end of a shell that nobody uses")
	return 0, nil
}
