package shell

import "testing"

// What the user had set of what is put back behind a borrower's command is as it was, not as it comes with bash.
func TestGuardsKeepWhatTheUserHad(t *testing.T) {
	t.Parallel()
	cases := []struct{ users, leased, look string }{
		{"unset IFS", "IFS=,", `echo "${IFS-unset}"`},
		{"IFS=:", "unset IFS", `echo "$IFS"`},
		{"IFS=:", "IFS=,", `echo "$IFS"`},
		{"trap 'echo mine' USR1; trap '' USR2", "trap 'echo theirs' USR1; trap - USR2", "trap -p"},
		{"trap 'echo \"it'\\''s\"; :' USR1", "trap '' CHLD", "trap -p"},
		{"trap 'n=1' DEBUG; trap 'e=1' ERR; trap 'r=1' RETURN", "trap - DEBUG ERR RETURN", "trap -p"},
		{"set -f -C -o pipefail", "set +f +C +o pipefail", "set -o"},
		{"shopt -s nullglob extglob; shopt -u sourcepath", "shopt -u nullglob extglob; shopt -s sourcepath", "shopt"},
	}
	for _, c := range cases {
		t.Run(c.users, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user(c.users))
			want := string(do(t, s, user(c.look)).Output)
			for range 2 {
				do(t, s, leased(c.leased))
				if got := string(do(t, s, user(c.look)).Output); got != want {
					t.Errorf("behind %q: got %q, want %q", c.leased, got, want)
				}
			}
		})
	}
}

// A prompt hook that the user adds is run before the shell is ready: what it prints is not the next command's.
func TestAddedHookComesBeforeTheNextCommand(t *testing.T) {
	t.Parallel()
	for _, add := range []string{"PROMPT_COMMAND+=('sleep 0.05; echo HOOK')", "h() { PROMPT_COMMAND+=('sleep 0.05; echo HOOK'); }; h", "PROMPT_COMMAND='sleep 0.05; echo HOOK'"} {
		t.Run(add, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user(add))
			for _, u := range []bool{true, false, true, false} {
				if r := do(t, s, Command{Text: "echo a", User: u}); string(r.Output) != "a\n" {
					t.Errorf("user %v: got %q", u, r.Output)
				}
			}
		})
	}
}
