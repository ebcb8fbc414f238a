package shell

import (
	"context"
	"slices"
	"syscall"
	"testing"
)

// What its user meant to outlive the window does: in the foreground, and what they took off the list of jobs where the shell
// cannot be asked any more.
func TestCloseLeaves(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nohup sleep 1003 >/dev/null 2>&1", "nohup sleep 1003 2>&1 | cat"} {
		s := start(t, nil)
		do(t, s, user("bgd() { \"$@\" & disown; }; bgd sleep 1004; sleep 1005 &"))
		session := s.PID()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Run(context.Background(), user(text))
		}()
		awaitTrue(t, "nohup to have begun", func() bool { return runs(s, "sleep 1003") })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
		left := leftovers(session, 0)
		for name, want := range map[string]bool{"sleep 1003": true, "sleep 1004": true, "sleep 1005": false} {
			if got := slices.ContainsFunc(left, func(p Process) bool { return p.Command == name }); got != want {
				t.Errorf("%s: %s is left: %v, want %v", text, name, got, want)
			}
		}
		for _, p := range left {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
