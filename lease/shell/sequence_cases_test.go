package shell

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines are what sequences are made of: for whoever, for the person alone (what a guard keeps from a borrower), and what is
// interrupted.
var (
	lines = []string{
		"true", "false", "(exit 7)", "echo hi", "echo 'x y' \"z\"; false", "nosuchcommand", "! true", "a=1", "a=$((a+1)); echo $a", "b='x  y'",
		"export a", "export E=1 F='2 3'", "unset a E", "declare -i n=3; n+=4", "declare -r ro$RANDOM_NOT=1 2>/dev/null", "declare -u up=abc", "declare -n ref=a; ref=9", "unset -n ref",
		"arr=(1 2 3)", "arr+=(4 'f i v e')", "unset 'arr[1]'", "declare -A map=([k]=v ['a b']=c)", "map[z]=$a", "echo ${arr[@]} ${!map[@]} | wc -w", "unset arr map",
		"f() { echo in f $1; return 3; }", "f x", "f() { local a=5; c=$a; }; f", "unset -f f", "function g { cd /; }; g", "declare -f f g", "f() ( cd /usr; pwd )",
		"alias hi='echo aliased'", "hi there", "alias e=echo l='ls -d'", "unalias hi e l 2>/dev/null",
		"cd /", "cd /usr", "cd -", "cd nosuch", "cd", "cd .. && pwd", "pushd /tmp", "pushd /usr >/dev/null", "popd", "dirs", "(cd /usr; pwd)", "cd /usr/bin/..; pwd -P", "cd -P /bin; pwd",
		"sleep 1000 & true", "sleep 1001 &", "kill %%; wait %% 2>/dev/null", "kill -9 $(jobs -p) 2>/dev/null; wait", "jobs", "disown", "bg", "true & wait $!", "(sleep 0.01; exit 4) & wait $!",
		"exec 3>&1; echo three >&3", "exec 3>&-", "echo to3 >&3", "exec 4</dev/null; read x <&4; echo $?", "{ echo o; echo e >&2; } 2>/dev/null", "echo f >file; cat file; rm file", "cat <<< here", "read x y <<< 'p q r'; echo $y",
		"echo one | cat | (cat; exit 5)", "false | true", "true | while read x; do :; done; echo ${PIPESTATUS[*]}", "seq 3 | while read i; do echo $i; done", "x=$(echo sub; exit 9)", "echo $(false) `echo b`", "diff <(echo a) <(echo b) >/dev/null",
		"for i in a b; do echo $i; done", "while :; do break; done", "i=0; until ((i++ > 2)); do :; done", "case x in x) echo m;; esac", "[[ $a == 1* ]]", "((a > 1))", "let a=a*2 2>/dev/null", "select s in q; do break; done <<< 1",
		"if [ -n \"$a\" ]; then echo set; else echo unset; fi", "{ a=7; false; }", "( a=8; exit 2 )", "eval 'a=5; echo ev'", "eval 'exit_code() { return 6; }'; exit_code", ". /dev/stdin <<< 'd=sourced; return 4'",
		"printf '%s\\n' a b; printf no-newline", "printf -v v '%03d' 7", "mapfile -t m < <(seq 3)", "getopts ab o -a; echo $o; OPTIND=1", "umask 077", "umask 022", "hash -r", "hash ls 2>/dev/null", "type f 2>&1 | head -1", "ulimit -n 300",
		"echo $?", "echo ${nosuch-d} ${nosuch:=e}; unset nosuch", "echo ${x?gone}", "echo $((1/0))", "cat nosuchfile", ">/nonexistent/x", "kill -0 $$", "/etc/passwd", "sh -c 'kill -TERM $$'", "sh -c 'exit 130'",
		"HISTCONTROL=ignoredups", "CDPATH=/usr", "TIMEFORMAT=%0lR", "GLOBIGNORE='*.x'", "unset CDPATH GLOBIGNORE HISTCONTROL", "LC_ALL=C", "unset LC_ALL", "PATH=$PATH:/extra", "OLDPWD=/", "PS4='> '", "HOSTFILE=/dev/null", "MAILCHECK=-1", "REPLY=r", "SECONDS=5",
		"enable -n test", "enable test", "echo {1..3} ~root *nosuch*", "echo a # comment", "  echo  spaced ", "echo ünï 漢", "echo \"$-\" | grep -c i", "coproc cat; p=$COPROC_PID; kill -9 $p; wait $p 2>/dev/null; unset p", "break", "shift 1", "local q=1",
		"echo \"$BASH_SUBSHELL $#\"", "true; false; true", "printf '\\e[31mred\\e[m\\n'", "tty | grep -c pts", "stty size", "exec 5<&0 5<&-", "test -t 0 && test -t 1", "if true\nthen echo a\nfi", "cat <<X\ndoc $a\nX", "f() {\n\techo long f\n}",
	}
	personal = []string{
		"set -u", "set +u", "set -f", "set +f", "set -C", "set +C", "set -o pipefail", "set +o pipefail", "set -a", "set +a", "set -b", "set +B", "set -B", "set -h", "set +h", "set -k", "set +k", "set -P", "set +P", "set -T", "set +T", "set -E", "set +E", "set -e", "set +e",
		"set -o posix", "set +o posix", "set +m", "set -m", "set +H", "set -H", "set +o history", "set -o history", "set -o ignoreeof", "set +o ignoreeof",
		"set -- p q r", "set --", "shift", "IFS=:", "IFS=", "unset IFS", "IFS=$' \\t\\n'", "IFS=, x=a,b; echo $x",
		"shopt -s extglob", "shopt -s nullglob", "shopt -s failglob", "shopt -s dotglob globstar", "shopt -u extglob nullglob failglob dotglob globstar", "shopt -s nocasematch", "shopt -u nocasematch", "shopt -s lastpipe", "shopt -u lastpipe", "shopt -s autocd cdspell",
		"shopt -s xpg_echo", "shopt -u xpg_echo", "shopt -u expand_aliases", "shopt -s expand_aliases", "shopt -s localvar_inherit inherit_errexit", "shopt -u cmdhist", "shopt -s cmdhist", "shopt -s lithist", "shopt -u lithist", "shopt -s histverify histreedit", "shopt -u checkwinsize", "shopt -u interactive_comments sourcepath", "shopt -s histappend", "shopt -s execfail", "shopt -s huponexit checkjobs", "shopt -u huponexit checkjobs",
		"trap 'echo E' ERR", "trap - ERR", "trap 'echo USR1' USR1; kill -USR1 $$", "trap - DEBUG", "trap 'echo INT' INT", "trap - INT", "trap '' TERM", "trap 'echo bye' EXIT", "trap - EXIT", "trap 'echo W' WINCH",
		"history -c", "history -d 1", "history -s forged", "HISTCONTROL=ignoreboth", "HISTCONTROL=erasedups", "HISTCONTROL=ignorespace", "HISTIGNORE='echo*:&'", "unset HISTIGNORE HISTCONTROL", "HISTSIZE=5", "HISTSIZE=-1", "unset HISTSIZE", " echo hidden", "!!", "!-3", "^hi^ho", "echo !$", "!nosuch", "fc -l -1", "history 2 | wc -l", "history | tail -1 | wc -w", "HISTTIMEFORMAT='%F '", "unset HISTTIMEFORMAT",
		"PROMPT_COMMAND=:", "PROMPT_COMMAND=('true' ':')", "PROMPT_COMMAND=true", "PROMPT_COMMAND='history -a'", "PS0=", "unset PS0", "false | true | (exit 3)", "echo ${PIPESTATUS[*]} $?", "echo \"$_\"", "echo last word", "BASH_COMPAT=4.2", "unset BASH_COMPAT", "POSIXLY_CORRECT=1", "unset POSIXLY_CORRECT", "kill -INT $$", "printf() { echo mine; }", "unset -f printf", "read -t 0.01 x", "stty -echo; stty echo", "echo $LINENO >/dev/null", "unset HISTCMD", "FUNCNEST=20",
	}
	struck = []string{
		"stop", "stop; echo after", "stop | cat", "(stop; echo no)", "k() { stop; echo no; }; k", "for i in 1 2; do stop; done", "echo go; while :; do :; done", "echo go; read x", "{ stop; } 2>/dev/null", "a=1; stop; a=2", "cd /; stop; cd /usr", "sh -c 'trap \"exit 3\" INT; echo go; sleep 1000 & wait'", "stop || echo or", "if stop; then echo yes; else echo no; fi", "echo go; cat",
	}
)

// what keeps borrowers' commands from agreeing from then on, as docs/shell.md says
var unlike = regexp.MustCompile(`^(set -[exvTEk]|set -o posix|POSIX|BASH_COMPAT|trap .*(ERR|DEBUG|RETURN|INT)$|HISTSIZE|printf\(\)|trap 'echo bye)`)

var ofHistory = regexp.MustCompile(`history|fc|[!^]|\$_`)

// sequence reads a sequence: two bytes a step.
func sequence(data []byte) (steps []step) {
	alone, deaf := false, false
	for ; len(data) >= 2 && len(steps) < 12; data = data[2:] {
		kind, pick := data[0], int(data[1])
		c := step{}
		switch {
		case kind < 100:
			c.text = lines[(pick+int(kind&1)*128)%len(lines)]
			c.leased = kind&2 != 0 && !alone
			if strings.Contains(c.text, "\n") && !c.leased {
				continue // a person's entry in the history has its line ends, as with lithist
			}
		case kind < 235:
			c.text = personal[(pick+int(kind&1)*128)%len(personal)]
			if ofHistory.MatchString(c.text) && (len(steps) == 0 || slices.ContainsFunc(steps, func(s step) bool { return s.leased })) {
				continue // a borrower's lines are not in it
			}
			deaf = deaf || c.text == "trap 'echo INT' INT" || c.text == "set -e" // bash lost in its own variables: pop_var_context
			alone = alone || unlike.MatchString(c.text)
		case deaf:
			continue
		default:
			c.text, c.stop = struck[pick%len(struck)], true
			c.leased = kind&2 != 0 && !alone
		}
		steps = append(steps, c)
	}
	return steps
}

// typeLine types a line and returns what it printed, rendered; ended tells that bash has gone.
func (b *baseline) typeLine(t *testing.T, c step) (out string, ended bool) {
	t.Helper()
	if _, err := b.master.WriteString(c.text + "\n"); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for strike := (<-chan time.Time)(nil); ; {
		if c.stop && strike == nil && strings.Contains(string(b.buf), "\ngo\r\n") {
			strike = strikes(t)
		}
		if before, after, ok := strings.Cut(string(b.buf), baselinePrompt); ok {
			b.buf = []byte(after)
			if _, rest, ok := strings.Cut(before, strings.ReplaceAll(c.text, "\n", "\r\n")+"\r\n"); ok {
				before = rest
			}
			return string(Render([]byte(before), 80)), false
		}
		select {
		case p, ok := <-b.out:
			if !ok {
				return "", true
			}
			b.buf = append(b.buf, p...)
		case <-strike:
			_, _ = b.master.Write([]byte{3})
		case <-limit.C:
			t.Fatalf("bash alone: no prompt behind %q; got %q", c.text, b.buf)
		}
	}
}

// strikes ticks when ^C is pressed, until the test ends: once what is to be struck runs, mostly, and again, for what bash
// had only forked at that moment has lost it.
func strikes(t *testing.T) <-chan time.Time {
	ticker := time.NewTicker(30 * time.Millisecond)
	t.Cleanup(ticker.Stop)
	first, rest := make(chan time.Time, 1), ticker.C
	ctx := t.Context()
	go func() {
		for n := 0; ; n++ {
			select {
			case at := <-rest:
				if n%20 == 0 {
					select {
					case first <- at:
					default:
					}
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return first
}

// interruptedRun is stopped once it has printed go, by ^C where it is a person's.
func interruptedRun(t *testing.T, s *Shell, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out collector
	gone := make(chan struct{})
	c.Output = func(p []byte) {
		out.add(p)
		if !closed(gone) && strings.Contains(out.String(), "go\r\n") {
			close(gone)
		}
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-gone:
		case <-ctx.Done():
			return
		}
		for strike := strikes(t); ; {
			select {
			case <-over:
				return
			case <-strike:
			}
			if c.User {
				_, _ = s.Write([]byte{3})
			} else {
				cancel()
			}
		}
	}()
	r, err := s.Run(ctx, c)
	close(over)
	cancel()
	<-done
	if err != nil {
		t.Fatalf("run %q: %v", c.Text, err)
	}
	return r
}
