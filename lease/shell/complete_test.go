package shell

import (
	"testing"
)

// What a question of ours switches off for itself is on again behind it: with job control gone, ^Z would stop nothing.
func TestQuestionsLeaveOptions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const options = "printf '%s\\n' \"$-\" \"$SHELLOPTS\" \"$BASHOPTS\""
	before := string(do(t, s, leased(options)).Output)
	questions := map[string]func() error{
		"complete":          func() error { _, _, err := s.Complete(t.Context(), "ls ma", 5); return err },
		"complete command":  func() error { _, _, err := s.Complete(t.Context(), "ec", 2); return err },
		"complete variable": func() error { _, _, err := s.Complete(t.Context(), "echo $HO", 8); return err },
		"prompt":            func() error { _, err := s.Prompt(t.Context()); return err },
		"history":           func() error { _, err := s.History(t.Context()); return err },
		"state":             func() error { _, err := s.State(t.Context()); return err },
	}
	for name, ask := range questions {
		if err := ask(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after := string(do(t, s, leased(options)).Output); after != before {
			t.Errorf("%s: options were %q, are %q", name, before, after)
		}
	}
}
