package shell

import (
	"strings"
	"testing"
)

// Every kind of change that a borrower's command leaves behind is told in one line and put back (checklist I: undo).
func TestChangeToldAndUndone(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, before, change, told, look string }{
		{"directory", "cd /", "cd /usr", "left you in /usr", "pwd"},
		{"directory, set, unset", "BAR=1", "cd /usr; FOO=1; unset BAR", "left you in /usr, set FOO, unset BAR", `echo $PWD ${FOO-none} $BAR`},
		{"exported", "export E=old", "export E=new N=1", "set N, changed E", `echo $E ${N-none}; printenv E N`},
		{"un-exported", "export E=old", "export -n E", "", "printenv E"},
		{"newly exported", "E=old", "export E", "set E", "declare -p E"},
		{"plain", "p=$'a\\nb'", "p=other; q=1", "set q", `echo "$p ${q-none}"`},
		{"array", "a=(1 '2 3' [7]=x)", "a=(other); b=(1)", "set b", `declare -p a; echo ${b-none}`},
		{"array made a string", "a=(1 2)", "unset a; a=s; v=1", "set v", `declare -p a`},
		{"map", "declare -A m=([k]='v w')", "m[k]=x; m[l]=y; v=1", "set v", `echo "${m[k]} ${#m[@]}"`},
		{"integer", "declare -i n=3", "n=4; v=1", "set v", "declare -p n"},
		{"removed array", "a=(1 2)", "unset a", "unset a", "declare -p a"},
		{"function", "f() { echo old; }", "f() { echo new; }; g() { :; }", "defined function g, f", `f; type -t g`},
		{"removed function", "f() { echo old; }", "unset -f f", "removed function f", "f"},
		{"alias", "alias h='echo old'", "alias h=ls i=ls", "set alias i, h", "alias"},
		{"option", "", "eval 'shopt -s nullglob'; umask 077", "changed the umask to 0077", "shopt nullglob; umask"},
		{"PATH", "", "PATH=/evil:$PATH", "changed PATH, look at PATH: it decides what later commands run", "echo $PATH"},
		{"prompt hook", "", "PROMPT_COMMAND=:", "changed PROMPT_COMMAND, look at PROMPT_COMMAND: it decides what later commands run", `declare -p PROMPT_COMMAND | grep -c '"hook='`},
		{"loader", "", "export LD_PRELOAD=/nonexistent.so GIT_PAGER=x BASH_ENV=/y PAGER=z", "set BASH_ENV, GIT_PAGER, LD_PRELOAD, PAGER, look at BASH_ENV, GIT_PAGER, LD_PRELOAD, PAGER: it decides what later commands run", `echo "${LD_PRELOAD-none} ${GIT_PAGER-none} ${BASH_ENV-none} ${PAGER-none}"`},
		{"traps and IFS hold for the command", "trap 'echo u' USR1", "trap 'echo v' USR1; IFS=x; set -f", "", `trap -p; printf %q "$IFS"; echo $-`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, "PROMPT_COMMAND='hook=$((hook+1))'") })
			do(t, s, user(c.before+"\n:"))
			look := string(do(t, s, user(c.look)).Output)
			before := stateOf(t, s)
			do(t, s, leased(c.change))
			after := stateOf(t, s)
			told := Difference(before, after)
			if told != c.told {
				t.Errorf("told %q, want %q", told, c.told)
			}
			if err := s.Restore(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if got := string(do(t, s, user(c.look)).Output); got != look {
				t.Errorf("undone: %s prints %q, was %q", c.look, got, look)
			}
			if left := Difference(before, stateOf(t, s)); left != "" && !strings.Contains(left, "OLDPWD") {
				t.Errorf("after the undo still: %q", left)
			}
		})
	}
}
