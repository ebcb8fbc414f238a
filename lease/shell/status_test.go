package shell

import (
	"testing"
)

// $? is the user's own, whatever borrowers ran since: in their next line, for their prompt hooks and in their prompt.
func TestStatusIsTheUsers(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{
		"", "PROMPT_COMMAND='seen=$?'", "set -a", "set -E; trap 'echo ERR $BASH_COMMAND' ERR", "trap 'echo ERR $BASH_COMMAND' ERR",
		"trap : DEBUG", "set -x", "set -e",
	} {
		t.Run(rc, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.RC, o.Unowned = rcFile(t, rc+"\nPS1='[$?] '"), said.add })
			for _, text := range []string{
				"true", "false", "x=1", "(exit 7)", "x=1; (exit 7)", "eval true", "eval false", "exit 4", "set -e; false", "set -f", "cat /dev/null", "sleep 0.01 & wait",
			} {
				if rc == "set -e" && (text != "true" && text != "x=1") {
					continue
				}
				first := "(exit 3)\n:; (exit 3)"
				want := "3\n"
				if rc == "set -e" {
					first, want = "true", "0\n"
				}
				do(t, s, user(first))
				for range 2 {
					do(t, s, leased(text))
				}
				if p, err := s.Prompt(t.Context()); err != nil || p.Text != "["+want[:1]+"] " {
					t.Errorf("behind %q the prompt is %q, %v", text, p.Text, err)
				}
				if got := withoutTrace(string(do(t, s, user("echo $?")).Output)); got != want {
					t.Errorf("behind %q: got %q, want %q", text, got, want)
				}
				if rc == "PROMPT_COMMAND='seen=$?'" {
					do(t, s, user("(exit 3)"))
					do(t, s, leased(text))
					if got := string(do(t, s, user("echo $seen")).Output); got != want {
						t.Errorf("behind %q the hook saw %q, want %q", text, got, want)
					}
				}
			}
		})
	}
}
