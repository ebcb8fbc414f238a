package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runs tells whether a program runs in the shell's session.
func runs(s *Shell, line string) (found bool) {
	for _, p := range leftovers(s.PID(), 0) {
		found = found || p.Command == line
	}
	return found
}

// A question that took too long, the completion of a word, had everything ended that ran in the shell's own group: also what
// the user had started there, a logger (`exec 3> >(logger)`) or a job without job control; and the hooks that run behind an answer.
func TestAbandonedQuestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text string }{
		{"a program", `slow() { sleep 1003; }`},
		{"slow hook behind it", `PROMPT_COMMAND='x=$(sleep 0.3)'; slow() { sleep 1003; }`},
		{"a loop", `slow() { while :; do :; done; }`},
		{"programs one after the other", `slow() { while :; do sleep 1003; done; }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user(`set +m; sleep 1001 & set -m; exec 3> >(exec sleep 1002); complete -F slow slow; `+c.text))
			awaitTrue(t, "the user's programs", func() bool { return runs(s, "sleep 1002") && runs(s, "sleep 1001") })
			do(t, s, user("(exit 3)"))
			if _, cs, err := s.Complete(t.Context(), "slow x", 6); err != nil || len(cs) > 0 {
				t.Errorf("got %v, %v", cs, err)
			}
			if r := do(t, s, user("echo $?")); string(r.Output) != "3\n" {
				t.Errorf("then got %q, want 3", r.Output)
			}
			for name, want := range map[string]bool{"sleep 1001": true, "sleep 1002": true, "sleep 1003": false} {
				if got := runs(s, name); got != want {
					t.Errorf("%s runs: %v, want %v", name, got, want)
				}
			}
		})
	}
}

// A question that stands behind hooks of the user is taken back where they take too long: a program of theirs was killed.
func TestQuestionBehindSlowHooks(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	s := start(t, func(o *Options) { o.Env = append(o.Env, "TOLD="+told) })
	do(t, s, user(`PROMPT_COMMAND='x=$(sleep 1); echo "hook $?" >>"$TOLD"'`))
	stateOf(t, s) // it is idle
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if _, err := s.Run(ctx, Command{Text: "true", Dir: "/usr"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer in time", err)
	}
	if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" || s.Dir() == "/usr" {
		t.Errorf("then got %q in %s", r.Output, s.Dir())
	}
	raw, err := os.ReadFile(told)
	if err != nil || strings.ReplaceAll(string(raw), "hook 0\n", "") != "" {
		t.Errorf("the hooks told %q, %v", raw, err)
	}
}
