package shell

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
		{"un-exported and changed", "export E=old", "export -n E PATH; E=new PATH=/evil:$PATH", "changed E, PATH, look at PATH: it decides what later commands run", `printenv E; echo $PATH`},
		{"newly exported", "E=old", "export E", "set E", "declare -p E"},
		{"plain", "p=$'a\\nb'", "p=other; q=1", "set q, changed p", `echo "$p ${q-none}"`},
		{"array", "a=(1 '2 3' [7]=x)", "a=(other); b=(1)", "set b, changed a", `declare -p a; echo ${b-none}`},
		{"array made a string", "a=(1 2)", "unset a; a=s; v=1", "set v, changed a", `declare -p a`},
		{"map", "declare -A m=([k]='v w')", "m[k]=x; m[l]=y; v=1", "set v, changed m", `echo "${m[k]} ${#m[@]}"`},
		{"integer", "declare -i n=3", "n=4; v=1", "set v, changed n", "declare -p n"},
		{"removed array", "a=(1 2)", "unset a", "unset a", "declare -p a"},
		{"reference", "export E=old; p=plain", "declare -n r=E q=p; v=1", "set q, r, v", `echo "$E $p ${r-none}"; printenv E`},
		{"reference in place of a variable", "export E=old X=x; p=plain y=y", "unset X y; declare -n X=E y=p; v=1", "set v, changed X, y", `echo "$E $p $X $y"; printenv E X`},
		{"removed reference", "export E=old; declare -n r=E", "unset -n r; v=1", "set v, unset r", `echo "$E $r"; r=new; printenv E; r=old`},
		{"reference of a subshell", "E=old; p=plain; declare -n r=E q=p", "set -e; unset -n r q; q=1; v=1", "set v, changed q, unset r", `echo "$E $p $r"`},
		{"prompt", "PS1='old> '", "PS1='$(date) new> '", "changed PS1, look at PS1: it decides what later commands run", `echo "$PS1"`},
		{"history file", "", "unset HISTFILE", "unset HISTFILE", `echo "$HISTFILE"`},
		{"function", "f() { echo old; }", "f() { echo new; }; g() { :; }", "defined function g, f", `f; type -t g`},
		{"removed function", "f() { echo old; }", "unset -f f", "removed function f", "f"},
		{"alias", "alias h='echo old'", "alias h=ls i=ls", "set alias i, h", "alias"},
		{"option", "", "eval 'shopt -s nullglob'; umask 077", "changed the umask to 0077", "shopt nullglob; umask"},
		{"PATH", "", "PATH=/evil:$PATH", "changed PATH, look at PATH: it decides what later commands run", "echo $PATH"},
		{"prompt hook", "", "PROMPT_COMMAND=:", "changed PROMPT_COMMAND, look at PROMPT_COMMAND: it decides what later commands run", `declare -p PROMPT_COMMAND | grep -c '"hook='`},
		{"loader", "", "export LD_PRELOAD=/nonexistent.so GIT_PAGER=x BASH_ENV=/y PAGER=z", "set BASH_ENV, GIT_PAGER, LD_PRELOAD, PAGER, look at BASH_ENV, GIT_PAGER, LD_PRELOAD, PAGER: it decides what later commands run", `echo "${LD_PRELOAD-none} ${GIT_PAGER-none} ${BASH_ENV-none} ${PAGER-none}"`},
		{"completion", "complete -W old -o nospace x; complete -C old y; complete -W 'a\nb' z", "complete -F f x; complete -r y; complete -W n -D; complete -C 'a b' c-d", "set the completion of -D, c-d, x, removed the completion of y", "complete -p | sort"},
		{"completion by an option", "complete -W old x", "eval 'compopt -o nospace x'", "set the completion of x", "complete -p"},
		{"exported function", "f() { :; }; g() { :; }; export -f g", "export -f f; export -fn g", "exported function f, no longer exports function g", "declare -Fx"},
		{"attributes of an exported variable", "export E=old F=old I=7; declare -u F; declare -i I", "declare -u E; declare +u F; I=2; declare +i I; v=1", "set v, changed E, F, I", `declare -p E F I; (E=x F=x; echo $E $F)`},
		{"directory stack", "cd /; pushd /usr >/dev/null; pushd /etc >/dev/null", "popd; pushd /tmp; pushd /var", "left you in /var, changed the directory stack", "dirs -l"},
		{"emptied directory stack", "cd /; pushd /usr >/dev/null; pushd /etc >/dev/null", "dirs -c", "changed the directory stack", "dirs -l"},
		{"the same directory stack", "cd /; pushd /usr >/dev/null", "pushd /etc; popd", "", "dirs -l"},
		{"positional parameters hold for the command", "set -- a 'b c'", "set -- x; shift; set a; shift; eval 'set -- y'", "", `printf '<%s>' "$@"`},
		{"positional parameters by name", "set --", "set -o pipefail foo", "", `printf '<%s>' "$@"`},
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
			if err := s.Undo(t.Context(), before, after); err != nil {
				t.Fatal(err)
			}
			if left := Difference(before, stateOf(t, s)); left != "" && !strings.Contains(left, "OLDPWD") {
				t.Errorf("after the undo still: %q", left)
			}
			if got := string(do(t, s, user(c.look)).Output); got != look {
				t.Errorf("undone: %s prints %q, was %q", c.look, got, look)
			}
		})
	}
}

// Variables that prompt hooks and traps change by themselves are no borrower's: neither told nor put back.
func TestHooksAreNotTold(t *testing.T) {
	t.Parallel()
	const told = "changed x"
	cases := []struct{ name, rc, change, told string }{
		{"none", "", "x=2", told},
		{"counter", `PROMPT_COMMAND='n=$((n+1))'`, "x=2", told},
		{"counter in a function", `hook() { local st=$?; n=$((n+1)); last=$st; }; PROMPT_COMMAND=hook`, "x=2; (exit 3)", told},
		{"a hook of an array", `PROMPT_COMMAND=(true 'n=$((n+1))')`, "x=2", told},
		{"one that tells what failed", `PROMPT_COMMAND='st=$?; old=$now; now=$RANDOM'`, "x=2; (exit 4)", told},
		{"one that makes and takes away", `PROMPT_COMMAND='[[ $odd ]] && unset odd || odd=1'`, "x=2", told},
		{"a timer", `trap 't0=${t0:-$EPOCHREALTIME}' DEBUG; PROMPT_COMMAND='took=$EPOCHREALTIME; unset t0'`, "x=2; sleep 0.01", told},
		{"the command itself", `note() { last=$BASH_COMMAND; k=$((k+1)); }; trap note DEBUG`, "x=2", told},
		{"a start mark", `PS0='${none[began=SRANDOM]}'; PROMPT_COMMAND='unset began'`, "x=2", told},
		{"in a subshell", `PROMPT_COMMAND='n=$((n+1))'`, "x=2; exit 3", told},
		{"cancelled", `PROMPT_COMMAND='n=$((n+1))'`, "x=2; kill -INT $$; sleep 5", told},
		{"a prompt", `PROMPT_COMMAND='n=$((n+1)); PS1="$n> "'`, "x=2", told},
		{"by a hook and by the command", `PROMPT_COMMAND='n=$((n+1))'`, "x=2; n=70", "changed n, x"},
		{"nothing", `PROMPT_COMMAND='n=$((n+1))'`, "y=$x; unset y", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, c.rc) })
			do(t, s, user("x=1; n=0"))
			before := stateOf(t, s)
			for range 2 { // questions run the hooks, too
				if _, err := s.Prompt(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			do(t, s, leased(c.change))
			left, err := s.Left(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := Difference(before, left); got != c.told {
				t.Errorf("told at once %q, want %q", got, c.told)
			}
			after := stateOf(t, s)
			if got := Difference(before, after); got != c.told {
				t.Errorf("told %q, want %q", got, c.told)
			}
			do(t, s, user("mine=1; cd /usr"))
			count := func() int {
				n, err := strconv.Atoi(strings.TrimSpace(string(do(t, s, user("echo $n")).Output)))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			n := count()
			if err := s.Undo(t.Context(), before, after); err != nil {
				t.Fatal(err)
			}
			if got := string(do(t, s, user("echo $x $mine $PWD")).Output); got != "1 1 /usr\n" {
				t.Errorf("undone: got %q", got)
			}
			if m := count(); strings.Contains(c.rc, "n+1") && m <= n {
				t.Errorf("the undo took the hook's count back from %d to %d", n, m)
			}
		})
	}
}

// What a borrower's command left behind is known before a prompt hook of the user is through, and without what that does.
func TestLeftBeforeHooks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"named": "export E=1; cd /usr", "anything": "eval 'export E=1; f() { :; }; alias al=ls; cd /usr'", "bent": "set -f; export E=1; cd /usr; eval :",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := filepath.Join(t.TempDir(), "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			s := start(t, func(o *Options) {
				o.RC = rcFile(t, `PROMPT_COMMAND='if [[ ${E-} && ! ${HOOK-} ]]; then read -r HOOK <'`+gate+`'; export HOOK; alias hook=ls; cd /; fi'`)
			})
			before := stateOf(t, s)
			do(t, s, leased(change))
			left, err := s.Left(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := "left you in /usr, set E"
			if name == "anything" {
				want += ", set alias al, defined function f"
			}
			if got := Difference(before, left); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
			write(t, gate, "held\n") // opens when the hook does: what it does is not done yet
			after := stateOf(t, s)
			if after.Vars["HOOK"] != "held" || after.Aliases["hook"] == "" || after.Dir != "/" {
				t.Errorf("what the hook did is not known: HOOK=%q, %v, in %s", after.Vars["HOOK"], after.Aliases, after.Dir)
			}
			if err := s.Undo(t.Context(), before, left); err != nil {
				t.Fatal(err)
			}
			if st := stateOf(t, s); st.Vars["E"] != "" || st.Vars["HOOK"] != "held" || st.Aliases["al"] != "" || st.Aliases["hook"] == "" {
				t.Errorf("undone: E=%q HOOK=%q %v", st.Vars["E"], st.Vars["HOOK"], st.Aliases)
			}
		})
	}
}

// What was changed since the borrower's command, by the user, is not undone with it.
func TestUndoIsOfTheBorrower(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("a=1 b=1; export E=1; alias al=ls; f() { echo 1; }; shopt -s nullglob; cd /usr"))
	before := stateOf(t, s)
	do(t, s, leased("a=2 b=2 c=2; export E=2 F=2; alias al=cat am=cat; f() { echo 2; }; g() { echo 2; }; eval 'umask 077'; cd /etc"))
	after := stateOf(t, s)
	do(t, s, user("b=3 d=3; export F=3 G=3; alias an=df; g() { echo 3; }; h() { echo 3; }; shopt -s dotglob; cd /var"))
	if err := s.Undo(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
	r := do(t, s, user(`echo $a $b ${c-none} $d $E $F $G $PWD $(f) $(g) $(h) $(umask); alias; shopt -p nullglob dotglob`))
	want := "1 3 none 3 1 3 3 /var 1 3 3 0022\nalias al='ls'\nalias an='df'\nshopt -s nullglob\nshopt -s dotglob\n"
	if string(r.Output) != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
}

// What cannot be put back is told with what it is, once, and only of a borrower's command.
func TestLostIsTold(t *testing.T) {
	t.Parallel()
	type change struct{ text, told string }
	for _, c := range []struct {
		before  string
		changes []change
	}{
		{"export E=1; plain=1", []change{
			{"readonly E plain; declare -r new=1", "set new, changed plain, made read-only E, new, plain, cannot be put back: E, new, plain"},
			{"v=1", "set v"},
			{"eval true", ""},
		}},
		{"echo one\necho two", []change{
			{"eval true", ""},
			{"history -s new; history -s other", "added 2 lines to the history"},
			{"history -d 3", "took lines out of the history, cannot be put back: the history"},
			{"eval 'history -c'", "took lines out of the history, cannot be put back: the history"},
			{"history -c", ""},
			{"v=1; eval true", "set v"},
			{"history >/dev/null; fc -l >/dev/null", ""},
		}},
	} {
		for _, rc := range []string{"", "HISTCONTROL=ignoreboth:erasedups", "PROMPT_COMMAND=:; HISTSIZE=4", "set -a -u"} {
			t.Run(c.before+rc, func(t *testing.T) {
				t.Parallel()
				s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
				for text := range strings.Lines(c.before) {
					do(t, s, user(strings.TrimSpace(text)))
				}
				for _, c := range c.changes {
					before := stateOf(t, s)
					do(t, s, leased(c.text))
					after := stateOf(t, s)
					if got := Difference(before, after); got != c.told && !strings.Contains(rc, "-a") {
						t.Errorf("%s: told %q, want %q", c.text, got, c.told)
					}
					if err := s.Undo(t.Context(), before, after); err != nil {
						t.Fatal(err)
					}
					if got := Difference(after, stateOf(t, s)); strings.Contains(got, "history") || strings.Contains(got, "read-only") {
						t.Errorf("%s: the undo is told as %q", c.text, got)
					}
				}
			})
		}
	}
	t.Run("jobs", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		do(t, s, user("sleep 100 &"))
		pid := strings.TrimSpace(string(do(t, s, user("echo $!")).Output))
		for _, c := range []change{
			{"eval true", ""},
			{"sleep 0.01 & disown", ""},
			{"disown %1", "disowned process " + pid + ", cannot be put back: process " + pid},
			{"eval true", ""},
		} {
			before := stateOf(t, s)
			do(t, s, leased(c.text))
			if got := Difference(before, stateOf(t, s)); got != c.told {
				t.Errorf("%s: told %q, want %q", c.text, got, c.told)
			}
		}
		do(t, s, user("kill "+pid))
	})
}

// Completions that a loader brought in when the user asked for them are no borrower's.
func TestLoadedCompletionsAreNotTold(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, `load() { eval "_$1() { COMPREPLY=(loaded); }"; complete -F _$1 $1; return 124; }; complete -D -F load`)
	})
	before := stateOf(t, s)
	if _, cs, err := s.Complete(t.Context(), "tool x", 6); err != nil || len(cs) != 1 {
		t.Fatalf("got %v, %v", cs, err)
	}
	before.Dir = "/"
	loaded := stateOf(t, s)
	if got := Difference(before, loaded); !strings.Contains(got, "set the completion of tool") {
		t.Errorf("the loader's: told %q", got)
	}
	do(t, s, leased("eval true"))
	if got := Difference(loaded, stateOf(t, s)); got != "" {
		t.Errorf("told %q", got)
	}
}

// Options of the user that sublet's own lines do without are not told to be switched off, though hooks have it told early.
func TestOptionsBehindHooksAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.RC = rcFile(t, "PROMPT_COMMAND=:; set -u -C -f -T -E") })
	before := stateOf(t, s)
	do(t, s, leased("x=1"))
	left, err := s.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := Difference(before, left); got != "set x" {
		t.Errorf("told %q", got)
	}
}
