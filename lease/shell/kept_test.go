package shell

import (
	"strings"
	"testing"
)

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

// The directory is told with the end of a command, not behind the user's prompt hooks (D12).
func TestDirComesWithTheEnd(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.RC = rcFile(t, "PROMPT_COMMAND='sleep 0.1'") })
	for i, dir := range []string{"/usr", "/", "/etc", "/usr/bin"} {
		if r := do(t, s, Command{Text: "cd " + dir, User: i%2 == 0}); r.Dir != dir {
			t.Errorf("cd %s: got %s", dir, r.Dir)
		}
	}
}

// What a cancelled command changed is told as its own, and what a prompt hook changed is not; a subshell hands back what it
// had changed until then.
func TestChangesOfCancelled(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.RC = rcFile(t, "n=0; PROMPT_COMMAND='n=$((n+1))'") })
	theirs := 0
	for _, c := range []struct{ text, told string }{
		{"plain=1; cd /usr; echo go; sleep 100", "left you in /usr, set plain"},
		{"set -e; plain=2; cd /etc; echo go; sleep 100", "left you in /etc, changed plain"},
		{"plain=3; cd /; echo go; while :; do :; done", "left you in /, changed plain"},
		{"plain=5; cd /etc; echo go; sleep 100", "left you in /etc, changed plain"},
		{"set -e; plain=4; cd /usr; echo go; sleep 100", "left you in /usr, changed plain"},
	} {
		before := stateOf(t, s)
		if r, _ := cancelled(t, s, leased(c.text)); r.Status != "cancelled" {
			t.Fatalf("%s: got %+v", c.text, r)
		}
		told := Difference(before, stateOf(t, s))
		if !strings.HasPrefix(told, c.told) {
			t.Errorf("%s: told %q, want %q", c.text, told, c.told)
		}
		if strings.HasSuffix(told, ", changed n") && !strings.HasPrefix(c.text, "set -e") {
			theirs++
		}
	}
	if theirs == 3 { // a second SIGINT may strike our part of the hook, which then comes behind theirs
		t.Error("what the prompt hook changed is told each time")
	}
}

// A start-up file that binds keys is not told each time that there is no line editor.
func TestBindIsSilent(t *testing.T) {
	t.Parallel()
	var said collector
	s := start(t, func(o *Options) {
		o.RC, o.Unowned = rcFile(t, `bind '"\C-x": "y"'; bind 'set completion-ignore-case on'; bind -x '"\C-t": true'`), said.add
	})
	if r := do(t, s, user("type -t bind")); string(r.Output) != "builtin\n" {
		t.Errorf("then bind is %q", r.Output)
	}
	if strings.Contains(said.String(), "bind") {
		t.Errorf("it is said %q", said.String())
	}
}

// What the user made of IFS, PS1 and promptvars bends neither what is told nor what is asked.
func TestOddSettingsAreTheUsersOnly(t *testing.T) {
	t.Parallel()
	t.Run("IFS", func(t *testing.T) {
		t.Parallel()
		s := start(t, func(o *Options) { o.RC = rcFile(t, "IFS='dfaqwo 0123456789-'") })
		do(t, s, leased("NEW=1; export NEW; f() { :; }"))
		if st := stateOf(t, s); st.Vars["NEW"] != "1" || st.Functions["f"] == "" {
			t.Errorf("the state has no NEW or no f: %v", st.Vars)
		}
		if r := do(t, s, user(`printf %s "$IFS"`)); string(r.Output) != "dfaqwo 0123456789-" {
			t.Errorf("IFS: got %q", r.Output)
		}
	})
	t.Run("promptvars", func(t *testing.T) {
		t.Parallel()
		s := start(t, func(o *Options) { o.RC = rcFile(t, "shopt -u promptvars; PS1='$HOME> '") })
		for range 2 {
			if p, err := s.Prompt(t.Context()); err != nil || p.Text != "$HOME> " {
				t.Errorf("prompt: got %q, %v", p.Text, err)
			}
			do(t, s, user("true"))
		}
	})
	t.Run("PS1", func(t *testing.T) {
		t.Parallel()
		var said collector
		s := start(t, func(o *Options) { o.RC, o.Unowned = rcFile(t, "readonly PS1='p> '"), said.add })
		for _, u := range []bool{true, false, true} {
			r := do(t, s, Command{Text: "echo a", User: u})
			if exit(r) != 0 || strings.Contains(string(r.Output), "readonly") {
				t.Errorf("user %v: got %q, exit %d", u, r.Output, exit(r))
			}
		}
		if strings.Contains(said.String(), "readonly") {
			t.Errorf("it is said %q", said.String())
		}
	})
	t.Run("SRANDOM", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		do(t, s, user("unset SRANDOM"))
		seen := make(map[string]bool)
		for range 3 {
			do(t, s, leased("true"))
			stateOf(t, s)
			s.mu.Lock()
			nonce := s.nonce
			s.mu.Unlock()
			if len(nonce) < 12 || seen[nonce] {
				t.Errorf("a nonce is %q", nonce)
			}
			seen[nonce] = true
		}
	})
}

// Where hooks or traps of the user change variables, too, a command answers for what it changed itself: for what it assigns,
// where that can be told from its text, and else for what differs around it.
func TestWhoChangedWhat(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{
		"PROMPT_COMMAND='n=$((n+1))'",
		"PROMPT_COMMAND=('n=$((n+1))' 'm=$n')",
		"trap '(( ++n ))' DEBUG",
	} {
		t.Run(rc, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) {
				o.RC = rcFile(t, "n=0 m=0 target=0 value=0; declare -n ref=target; declare -i number=0; declare -a array=(a); "+rc)
			})
			do(t, s, user("x=1")) // the hook has run
			for _, c := range []struct{ text, told string }{
				{"cd /usr && export A=1", "left you in /usr, set A"},
				{"B=1; for i in 1 2; do :; done", "set B, i"},
				{"unalias -a; printf %s x >/dev/null; pushd /tmp; popd", ""},
				{"B=2 /bin/true; cd /usr", ""},
				{"ref=5", "changed target"},
				{"number=k=3", "set k, changed number"},
				{"array=([value=7]=x)", "changed array, value"},
				{"eval C=1", "set C"},
				{"echo ${D:=1}", "set D"},
				{"read E <<<1", "set E"},
				{"f() { F=1; }; f", "set F, defined function f"},
				{"f", ""},
				{"unset A B; export -n k", "unset A, B"},
			} {
				before := stateOf(t, s)
				do(t, s, leased(c.text))
				if got := Difference(before, stateOf(t, s)); got != c.told {
					t.Errorf("%s: got %q, want %q", c.text, got, c.told)
				}
			}
		})
	}
}
