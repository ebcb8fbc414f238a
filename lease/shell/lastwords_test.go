package shell

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a shell printed last was cut short where whoever takes the output was slow in the moment of its end.
func TestLastWords(t *testing.T) {
	t.Parallel()
	const text = "echo first; sleep 0.2; seq 1 500; "
	for _, c := range []Command{leased(text + "kill -9 $$"), user(text + "exit 4")} {
		s := start(t, nil)
		pid, waited := s.PID(), false
		c.Output = func([]byte) {
			for end := time.Now().Add(patience); !waited && syscall.Kill(pid, 0) == nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if !waited {
				time.Sleep(2 * lastWords)
			}
			waited = true
		}
		r, err := s.Run(t.Context(), c)
		if err != nil || !strings.HasSuffix(strings.TrimSuffix(string(r.Output), "exit\n"), "\n499\n500\n") {
			t.Errorf("user %v: got %v, %q", c.User, err, string(r.Output[max(0, len(r.Output)-40):]))
		}
	}
}
