package shell

import (
	"strings"
	"testing"
	"time"
)

// A function that does not parse where it is put back (patterns of extglob, a name that is an alias) ended the file it stood in:
// nothing behind it was put back, the question had no answer, and the shell was replaced for that, jobs and all.
func TestFunctionsThatDoNotParse(t *testing.T) {
	t.Parallel()
	const made = "clean() { echo !(*.c|Makefile); }; ll() { echo long; }; tail_() { echo whole; }"
	for _, c := range []struct{ name, before, text, look, want string }{
		{
			"handed back", "alias ll='ls -l' echo='echo x'", "set -euo pipefail; shopt -s extglob\nunalias ll echo; shopt -u expand_aliases\n" + made,
			`unalias -a; type -t clean; \ll; tail_; shopt -p extglob expand_aliases`, "function\nlong\nwhole\nshopt -u extglob\nshopt -s expand_aliases\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user(c.before))
			pid := s.PID()
			r := do(t, s, leased(c.text))
			if exit(r) != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "were handed back") {
				t.Errorf("got %+v %q", r, r.Output)
			}
			if got := string(do(t, s, user(c.look)).Output); got != c.want || s.PID() != pid {
				t.Errorf("got %q, want %q; the shell %d was %d", got, c.want, s.PID(), pid)
			}
		})
	}
}

// Undo has those back, too.
func TestUndoOfFunctionsThatDoNotParse(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("shopt -s extglob"))
	do(t, s, user("clean() { echo !(*.c); }; later() { echo later; }"))
	do(t, s, user("shopt -u extglob"))
	pid, before := s.PID(), stateOf(t, s)
	do(t, s, leased("unset -f clean later; x=1"))
	if err := s.Undo(t.Context(), before, stateOf(t, s)); err != nil {
		t.Error(err)
	}
	if got := string(do(t, s, user("later; type -t clean; echo $x; shopt -p extglob")).Output); got != "later\nfunction\n\nshopt -u extglob\n" || s.PID() != pid {
		t.Errorf("got %q; the shell %d was %d", got, s.PID(), pid)
	}
}

// And so has a shell that is started again, with all else that it can have.
func TestRespawnWithFunctionsThatDoNotParse(t *testing.T) {
	t.Parallel()
	var told collector
	s := start(t, func(o *Options) { o.Unowned = told.add })
	for _, text := range []string{
		"shopt -s extglob", "clean() { echo !(*.c); }; later() { echo later; }", "shopt -u extglob",
		"alias later='echo alias'", "umask 027; PS1='mine> '; set -o pipefail; cd /usr",
	} {
		do(t, s, user(text))
	}
	stateOf(t, s)
	s.mu.Lock()
	s.snap.State.Functions["a_bad"] = "a_bad () { fi; }" // as if bash had printed what it does not read again
	s.mu.Unlock()
	if res := do(t, s, user("kill -9 $$")); !res.Respawned {
		t.Fatalf("got %+v", res)
	}
	const want = "function\nalias\nlater\n/usr 0027\nset -o pipefail\nshopt -u extglob\n"
	if got := string(do(t, s, user(`type -t clean; later; \later; echo "$PWD $(umask)"; set +o | grep pipefail; shopt -p extglob`)).Output); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p, err := s.Prompt(t.Context()); err != nil || p.Text != "mine> " {
		t.Errorf("got prompt %q, %v", p.Text, err)
	}
	if !strings.Contains(told.String(), "does not take again: a_bad") {
		t.Errorf("told %q, want the name of what could not be put back", told.String())
	}
}

// A question that the shell cannot parse is an error, and costs the shell nothing.
func TestQuestionThatDoesNotParse(t *testing.T) {
	t.Parallel()
	for _, where := range []string{topLine, inHook} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user("x=mine; (exit 3)"))
			pid := s.PID()
			if err := s.lockTurn(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			ctx, stop := Patiently(t.Context(), 10*time.Second)
			defer stop()
			_, _, err := s.askShell(ctx, where, "fi )")
			<-s.turn
			if err != errUnanswered {
				t.Errorf("got %v, want %v", err, errUnanswered)
			}
			if got := string(do(t, s, user(`echo "$x $?"`)).Output); got != "mine 3\n" || s.PID() != pid {
				t.Errorf("got %q; the shell %d was %d", got, s.PID(), pid)
			}
		})
	}
}
