package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// rcFile writes a start-up file.
func rcFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bashrc")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The mechanism lives with what people have in their ~/.bashrc (T1b).
func TestStartUpFiles(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, rc string
		unowned  string // what the hooks print between commands
		prompt   string
		check    string // a user's command that proves that the hook ran
		prints   string
	}{
		{name: "empty", rc: ""},
		{name: "prompt", rc: `PS1='me@\w '`, prompt: "me@/"},
		{name: "coloured prompt with a title", rc: `PS1='\[\e]0;title\a\]\[\e[32m\]\W\[\e[0m\]> '`, prompt: "\x1b]0;title\a\x1b[32m"},
		{name: "prompt that runs programs", rc: `PS1='$(echo computed)$ '`, prompt: "computed$ "},
		{name: "prompt with the status", rc: `PS1='[$?] '`, prompt: "[0] "},
		{name: "PROMPT_COMMAND string", rc: `PROMPT_COMMAND='n=$((n+1))'`, check: "[ $n -gt 2 ] && echo counted", prints: "counted"},
		{name: "PROMPT_COMMAND array", rc: `PROMPT_COMMAND=('n=$((n+1))' 'm=$((m+1))')`, check: "[ $n = $m ] && echo same", prints: "same"},
		{name: "PROMPT_COMMAND exported", rc: `export PROMPT_COMMAND='n=1'`, check: "bash --norc -ic 'echo inner' 2>&1", prints: "inner"},
		{name: "PROMPT_COMMAND ends in a semicolon", rc: `PROMPT_COMMAND='n=1; '`, check: "echo $n", prints: "1"},
		{name: "PROMPT_COMMAND that prints", rc: `PROMPT_COMMAND='echo HOOK-OUTPUT'`, unowned: "HOOK-OUTPUT"},
		{name: "PROMPT_COMMAND that spoils the status", rc: `PROMPT_COMMAND='false; true'`},
		{name: "PROMPT_COMMAND that fails", rc: `PROMPT_COMMAND='nosuch_hook 2>/dev/null'`},
		{name: "PROMPT_COMMAND sees the status", rc: `PROMPT_COMMAND='seen=$?'`, check: "(exit 7)\necho", prints: ""},
		{name: "PROMPT_COMMAND sets PS1", rc: `PROMPT_COMMAND='PS1="st=$? > "'`, prompt: "st=0 > "},
		{name: "PROMPT_COMMAND extends PS1", rc: `PS1='base> '; PROMPT_COMMAND='[[ $PS1 == x* ]] || PS1="x$PS1"'`, prompt: "xbase> "},
		{name: "DEBUG trap", rc: `trap 'd=$((d+1))' DEBUG`, check: "[ $d -gt 3 ] && echo traced", prints: "traced"},
		{name: "DEBUG trap that spoils the status", rc: `trap 'true' DEBUG`},
		{name: "DEBUG trap with functrace", rc: `set -T; trap ': $BASH_COMMAND' DEBUG`},
		{name: "ERR and EXIT traps", rc: `trap 'e=1' ERR; trap 'echo bye' EXIT`},
		{name: "PS0 of the user", rc: `PS0='[start]'`},
		{name: "vi", rc: `set -o vi`},
		{name: "emacs", rc: `set -o emacs`},
		{name: "bind", rc: `bind '"\C-x": "hello"'; bind 'set show-all-if-ambiguous on'`},
		{name: "slow", rc: `sleep 0.3`},
		{name: "prints", rc: `echo Welcome; echo to the shell >&2`, unowned: "Welcome"},
		{name: "changes directory", rc: `cd /usr`, check: "pwd", prints: "/usr"},
		{name: "HISTCONTROL", rc: `HISTCONTROL=ignoreboth:erasedups; HISTIGNORE='ls:pwd'`},
		{name: "history options", rc: `shopt -s histappend; PROMPT_COMMAND='history -a'; HISTFILE=$HOME/h`},
		{name: "no history", rc: `set +o history`},
		{name: "no promptvars", rc: `shopt -u promptvars; PS1='plain> '`, prompt: "plain> "},
		{name: "set -u", rc: `set -u`},
		{name: "set -x", rc: `set -x`},
		{name: "set -a", rc: `set -a`},
		{name: "set -k", rc: `set -k`},
		{name: "noclobber", rc: `set -C`},
		{name: "noglob", rc: `set -f`},
		{name: "posix", rc: `set -o posix`},
		{name: "extdebug", rc: `shopt -s extdebug`},
		{name: "odd IFS", rc: `IFS=x`},
		{name: "builtins shadowed by functions", rc: "printf() { command printf \"$@\"; }; read() { builtin read \"$@\"; }; cd() { builtin cd \"$@\"; }; return_() { :; }"},
		{name: "builtins shadowed by aliases", rc: "alias read=false local=false history=false trap=false eval=false return=false"},
		{name: "bash-preexec", rc: preexecLike, check: "echo $pre_ran $post_ran", prints: "yes yes"},
		{name: "starship-like", rc: starshipLike, prompt: "status 0 pipe 0"},
		{name: "returns early", rc: "return 0\necho never"},
		{name: "syntax error", rc: "if true; then echo x", unowned: "syntax error"},
		{name: "fails", rc: "false"},
		{name: "errexit off again", rc: "set -e; true; set +e"},
		{name: "bracketed paste and friends", rc: "printf '\\e[?2004h'", unowned: "\x1b[?2004h"},
		{name: "LC_ALL", rc: "export LC_ALL=C"},
		{name: "LINENO and friends", rc: "unset LINENO RANDOM SECONDS HISTCMD"},
		{name: "TMOUT", rc: "TMOUT=1000"},
		{name: "readonly PS1", rc: "readonly PS1='ro> '"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var between collector
			s := start(t, func(o *Options) { o.RC = rcFile(t, c.rc); o.Unowned = between.add })
			for i := range 2 {
				for _, text := range []string{"echo one", "printf two", "(exit 3)", "cd .", "echo 'multi\nline'"} {
					for _, u := range []bool{true, false} {
						r := do(t, s, Command{Text: text, User: u})
						want := map[string]string{"echo one": "one\n", "printf two": "two", "echo 'multi\nline'": "multi\nline\n"}[text]
						got := withoutTrace(string(r.Output))
						if c.name == "PS0 of the user" {
							got = strings.TrimPrefix(got, "[start]")
						} else if c.name == "readonly PS1" {
							got = strings.TrimPrefix(got, "ro> ") // it cannot be hidden
						}
						if got != want {
							t.Errorf("%q (user %v, round %d): got %q, want %q", text, u, i, got, want)
						}
						if want := map[string]int{"(exit 3)": 3}[text]; exit(r) != want {
							t.Errorf("%q (user %v): got exit %d, want %d", text, u, exit(r), want)
						}
					}
				}
			}
			do(t, s, user("(exit 3)"))
			if r := do(t, s, user("echo $?")); !strings.HasSuffix(string(r.Output), "3\n") {
				t.Errorf("$?: got %q", r.Output)
			}
			if c.check != "" {
				if r := do(t, s, user(c.check)); strings.TrimSpace(string(r.Output)) != c.prints {
					t.Errorf("%s: got %q, want %q", c.check, r.Output, c.prints)
				}
			}
			do(t, s, user("true"))
			p, err := s.Prompt(t.Context())
			if err != nil || !strings.Contains(p.Text, c.prompt) {
				t.Errorf("prompt: got %q, %v, want %q in it", p, err, c.prompt)
			}
			if want := map[string]string{"vi": "vi", "emacs": "emacs"}[c.name]; p.Editing != want {
				t.Errorf("editing mode: got %q, want %q", p.Editing, want)
			}
			if c.unowned != "" && !strings.Contains(between.String(), c.unowned) {
				t.Errorf("between commands: got %q, want %q", between.String(), c.unowned)
			}
			if strings.Contains(between.String(), "7701;") || c.name != "set -x" && c.name != "readonly PS1" && strings.Contains(between.String(), "__sublet") {
				t.Errorf("our own text shows: %q", between.String())
			}
		})
	}
}

// withoutTrace takes out what set -x prints.
func withoutTrace(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "+") && line != "line'\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What bash-preexec does: it takes PROMPT_COMMAND over at the first prompt and runs a DEBUG trap from then on.
const preexecLike = `
__bp_inside=
__bp_preexec() { [[ $__bp_inside ]] && return; pre_ran=yes; }
__bp_precmd() { local st=$?; __bp_inside=1; post_ran=yes; return $st; }
__bp_interactive() { __bp_inside=; }
__bp_install() {
	PROMPT_COMMAND="${PROMPT_COMMAND/__bp_install/}"
	trap '__bp_preexec "$_"' DEBUG
	PROMPT_COMMAND=$'__bp_precmd\n'"${PROMPT_COMMAND}"$'\n__bp_interactive'
}
PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}__bp_install"
`

// How bash-preexec (0.4, 0.5) tells a person's line from its own hooks: what comes behind the last of PROMPT_COMMAND, and does
// not stand in it. It takes PROMPT_COMMAND over from a hook of its own, which it takes out.
const preexecParts = `
__bp_install_string=$'__bp_traps="$(trap -p DEBUG)"\ntrap - DEBUG\n__bp_install'
__bp_mode= lines=() ends=()
__bp_precmd_invoke_cmd() { ends+=("$?"); }
__bp_interactive_mode() { __bp_mode=on; }
__bp_in_prompt_command() {
	local hooks hook
	IFS=$'\n;' read -rd '' -a hooks <<<"${PROMPT_COMMAND@}"
	for hook in "${hooks[@]}"; do
		hook=${hook#"${hook%%[![:space:]]*}"}
		[[ ${hook%"${hook##*[![:space:]]}"} == "$1" ]] && return
	done
	return 1
}
__bp_preexec_invoke_exec() {
	[[ -t 1 && $__bp_mode ]] || return
	((BASH_SUBSHELL)) || __bp_mode=
	if __bp_in_prompt_command "$BASH_COMMAND"; then
		__bp_mode=
		return
	fi
	lines+=("$(HISTTIMEFORMAT= builtin history 1 | sed '1 s/^ *[0-9]*[* ] //')")
}
__bp_install() {
	[[ ${PROMPT_COMMAND[*]} != *__bp_precmd_invoke_cmd* ]] || return 1
	trap '__bp_preexec_invoke_exec "$_"' DEBUG
	local old=${PROMPT_COMMAND//"$__bp_install_string"/:}
	PROMPT_COMMAND=__bp_precmd_invoke_cmd$'\n'$old
	PROMPT_COMMAND+=@
	__bp_precmd_invoke_cmd
	__bp_interactive_mode
}
PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}$__bp_install_string
`

// The hooks of bash-preexec, and with it of what stands on it (atuin, iTerm2, WezTerm), see each line of the person once, as it
// stands in the history, and nothing of ours.
func TestPreexec(t *testing.T) {
	t.Parallel()
	array := strings.NewReplacer("${PROMPT_COMMAND@}", "${PROMPT_COMMAND[*]}", "PROMPT_COMMAND+=@", "PROMPT_COMMAND+=(__bp_interactive_mode)")
	text := strings.NewReplacer("${PROMPT_COMMAND@}", "$PROMPT_COMMAND", "PROMPT_COMMAND+=@", `PROMPT_COMMAND+=$'\n__bp_interactive_mode'`)
	for name, rc := range map[string]string{
		"array":           array.Replace(preexecParts),
		"text":            text.Replace(preexecParts),
		"beside a hook":   "PROMPT_COMMAND='n=$((n+1))'" + array.Replace(preexecParts),
		"text and a hook": "PROMPT_COMMAND='n=$((n+1));'" + text.Replace(preexecParts),
		"with options":    "set -o functrace" + array.Replace(preexecParts),
		"traced":          "exec 9>/dev/null; BASH_XTRACEFD=9; set -x" + array.Replace(preexecParts),
	} {
		for _, old := range []bool{false, true} {
			if old && strings.Contains(rc, "+=(") {
				continue // there are no arrays there
			}
			t.Run(fmt.Sprint(name, old), func(t *testing.T) {
				t.Parallel()
				s := start(t, func(o *Options) { o.RC, o.old = rcFile(t, rc), old })
				var want []string
				for range 2 {
					for _, c := range []Command{
						user("echo one"), leased("true"), leased("x=1"), leased("set -e; false"), user("(exit 3) | cat"), leased("echo l"),
						user("echo two\necho three"), leased("PS1='> '"), user("false"), user("echo \"a;b\""),
					} {
						do(t, s, c)
						if c.User {
							want = append(want, c.Text)
						}
						if _, err := s.Prompt(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				show := `printf '<%s>\n' "${lines[@]}"`
				want = append(want, show)
				r := do(t, s, user(show))
				if got := string(r.Output); got != "<"+strings.Join(want, ">\n<")+">\n" {
					t.Errorf("the hooks saw %s\nwant %q", got, want)
				}
			})
		}
	}
}

// A start-up file that asks for vi or emacs keys can be sourced again, by whomever: bash without its line editor has no
// prompt hook run behind that.
func TestEditingModeSourced(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"vi", "emacs"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rc := rcFile(t, "set -o "+mode+"; n=$((n+1))")
			s := start(t, func(o *Options) { o.RC = rc })
			plain := start(t, nil)
			for _, s := range []*Shell{s, plain} {
				pid := s.PID()
				for _, c := range []Command{
					leased(". " + rc), user("echo a"), leased("x=1; echo b"), user(". " + rc), user("echo a"), leased("echo b"),
					leased("set -o " + mode + "; x=2"), user("echo a"), user("set -o " + mode + "\nx=3"), user("echo a"), leased("exit 0"),
					user("set -o " + mode), leased(". " + rc + "; exit 0"), user("echo a"), leased("set -e; . " + rc), user("echo a"),
				} {
					r := do(t, s, c)
					want := map[string]string{"echo a": "a\n", "echo b": "b\n", "x=1; echo b": "b\n"}[c.Text]
					if string(r.Output) != want || exit(r) != 0 || s.PID() != pid {
						t.Fatalf("%q (user %v): got %q, exit %d, pid %d, was %d", c.Text, c.User, r.Output, exit(r), s.PID(), pid)
					}
				}
				for _, c := range []Command{user("set -o " + mode + "\n(sleep 0.2; echo go) & sleep 100"), leased("set -o " + mode + "; (sleep 0.2; echo go) & sleep 100")} {
					if r := drive(t, s, c, []keys{{"go", "\x03"}}); exit(r) != 130 || s.PID() != pid {
						t.Errorf("%q (user %v): got exit %d, pid %d, was %d", c.Text, c.User, exit(r), s.PID(), pid)
					}
					if r := do(t, s, user("echo a")); string(r.Output) != "a\n" || s.PID() != pid {
						t.Errorf("behind %q (user %v): got %q, pid %d, was %d", c.Text, c.User, r.Output, s.PID(), pid)
					}
				}
				if p, err := s.Prompt(t.Context()); err != nil || p.Editing != mode {
					t.Errorf("got %q, %v, want %s", p, err, mode)
				}
			}
		})
	}
}

// What starship does: a prompt hook that reads PIPESTATUS and sets PS1, and a start time in PS0.
const starshipLike = `
starship_preexec() { start=$SECONDS; }
starship_precmd() {
	st=$? pipe=("${PIPESTATUS[@]}")
	PS1="status $st pipe ${pipe[*]} > "
}
PS0='${start:$((start=1,0)):0}'
PROMPT_COMMAND=starship_precmd
`

// The hook is lost and comes back: an rc that is sourced again, a variable that is set or unset (T1b).
func TestHookSurvives(t *testing.T) {
	t.Parallel()
	rc := rcFile(t, "PROMPT_COMMAND='n=$((n+1))'; PS1='a> '")
	for _, text := range []string{
		". " + rc, "source " + rc, "eval '. " + rc + "'", "reload", "PROMPT_COMMAND=", "PROMPT_COMMAND='x=1'", "unset PROMPT_COMMAND",
		"PROMPT_COMMAND=(true false)", "PROMPT_COMMAND+=('x=2')", `PROMPT_COMMAND="x=3; $PROMPT_COMMAND"`,
		"declare -x PROMPT_COMMAND", "wipe", "wipearray", "PS0=; PS1=; wipe", "unset PS0 PS1 PS2", "PS1='[new] '", "export PS1 PS0",
		"unset -f bind; trap - DEBUG", "set -o vi", "set -o emacs", "set +o history", "exec 2>&1", "shopt -u promptvars", "readonly PROMPT_COMMAND",
		"trap 'true' DEBUG", "shopt -s extdebug",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rc })
			do(t, s, user("wipe() { unset PROMPT_COMMAND; }; wipearray() { PROMPT_COMMAND=(true); }; alias reload='. "+rc+"'"))
			if r := do(t, s, user(text)); r.Status != "ok" || strings.Contains(string(r.Output), "__sublet") {
				t.Errorf("got %s %q", r.Status, r.Output)
			}
			for _, u := range []bool{true, false, true} {
				if r := do(t, s, Command{Text: "echo still; (exit 4)", User: u}); string(r.Output) != "still\n" || exit(r) != 4 {
					t.Errorf("user %v: got %q, exit %d", u, r.Output, exit(r))
				}
			}
			if _, err := s.Prompt(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("hooks are not doubled", func(t *testing.T) {
		t.Parallel()
		s := start(t, func(o *Options) { o.RC = rc })
		do(t, s, user("eval '. "+rc+"'"))
		do(t, s, user("n=0"))
		do(t, s, user("true"))
		if r := do(t, s, user("echo $n")); string(r.Output) != "2\n" {
			t.Errorf("the hook ran %q times for 2 prompts", r.Output)
		}
	})
	for _, c := range []struct {
		name string
		text []string
		want string // how often each hook ran at 2 prompts
	}{
		{"guarded by PROMPT_COMMAND itself", []string{"guard", "guard", "guard"}, "2 0 0"},
		{"two that are", []string{"guard; other", "guard; other"}, "2 2 0"},
		{"element 0 is assigned", []string{"PROMPT_COMMAND=('a=$((a+1))' 'b=$((b+1))')", "PROMPT_COMMAND='c=$((c+1))'"}, "0 2 2"},
		{"and assigned again", []string{"PROMPT_COMMAND=('a=$((a+1))' 'b=$((b+1))')", "PROMPT_COMMAND='c=$((c+1))'", "PROMPT_COMMAND=true"}, "0 2 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			for _, hook := range []string{"guard() { case $PROMPT_COMMAND in *'a='*) ;; *) PROMPT_COMMAND='a=$((a+1))'", "other() { case $PROMPT_COMMAND in *'b='*) ;; *) PROMPT_COMMAND='b=$((b+1))'"} {
				do(t, s, user(hook+`"${PROMPT_COMMAND:+;$PROMPT_COMMAND}" ;; esac; }`))
			}
			for _, text := range append(c.text, "a=0 b=0 c=0", "true") {
				do(t, s, user(text))
			}
			if r := do(t, s, user("echo $a $b $c")); string(r.Output) != c.want+"\n" {
				t.Errorf("got %q, want %q", r.Output, c.want)
			}
		})
	}
}

// Shells that do not come to a prompt are told, with what they printed, and nothing of them is left.
func TestStartFails(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, rc, output string }{
		{"asks", "read -p 'Name? ' x", "Name?"},
		{"hangs", "sleep 1000", ""},
		{"exits", "echo leaving; exit 3", "leaving"},
		{"execs another shell", "exec sh -i", ""},
		{"loops", "while :; do :; done", ""},
		{"keeps the prompt hook", "readonly PROMPT_COMMAND='history -a'", "PROMPT_COMMAND read-only"},
		{"keeps PS0", "readonly PS0=", "PS0 read-only"},
		{"keeps the prompt hooks", "readonly -a PROMPT_COMMAND=('history -a' :)", "PROMPT_COMMAND read-only"},
		{"keeps functions from nesting", "readonly FUNCNEST=2", "FUNCNEST is read-only"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			folder := t.TempDir()
			s, err := Start(ctx, Options{RC: rcFile(t, c.rc), Folder: folder, Env: testEnv(t)})
			if err == nil {
				s.Close()
				t.Fatal("got a shell")
			}
			var se *StartError
			if !errors.As(err, &se) || !strings.Contains(se.Output, c.output) || se.Hint() == "" {
				t.Errorf("got %v (%+v)", err, se)
			}
			if ents, _ := os.ReadDir(folder); len(ents) > 0 {
				t.Errorf("left behind: %v", ents)
			}
		})
	}
}

// A shell in which nothing runs any more is told of within two seconds, and why.
func TestStartSkipsEverything(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only /proc tells that a shell reads lines")
	}
	for _, trap := range []string{"return 2", "return", "false"} {
		t.Run(trap, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			s, err := Start(t.Context(), Options{RC: rcFile(t, "shopt -s extdebug; trap '"+trap+"' DEBUG"), Folder: t.TempDir(), Env: testEnv(t), Path: os.Getenv(envBash)})
			if err == nil {
				s.Close()
				t.Fatal("got a shell")
			}
			se, ok := errors.AsType[*StartError](err)
			if !ok || !errors.Is(err, errDeaf) || !strings.Contains(se.Hint(), "extdebug") || time.Since(began) > patience/2 {
				t.Errorf("got %v after %v, hint %q", err, time.Since(began), se.Hint())
			}
		})
	}
	// What only takes its time, or asks, is waited for.
	for _, rc := range []string{"sleep 1.5", "read -t 1.5 x"} {
		s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
		do(t, s, user("true"))
	}
}

// What bash takes from its environment holds in the shell, too, though it is not started with it: in posix mode it would read
// no start-up file but $ENV, under set -x show what is not the user's.
func TestInheritedOptions(t *testing.T) {
	t.Parallel()
	const asLong = "sublet: FUNCNEST was 2; its functions need 20, so it is 20 here\r\n"
	for _, c := range []struct{ env, prints, said string }{
		{"POSIXLY_CORRECT=1", "posix on 1 mine", ""},
		{"POSIXLY_CORRECT=", "posix on mine", ""},
		{"SHELLOPTS=posix:nounset:nosuch", "posix on y mine", ""},
		{"SHELLOPTS=braceexpand:xtrace:noexec:onecmd", "posix off mine", "+"},
		{"FUNCNEST=2", "posix off mine", asLong},
		{"BASHOPTS=extdebug:nullglob", "posix off mine", ""},
	} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.Env, o.RC, o.Unowned = append(o.Env, c.env), rcFile(t, "mine=mine"), said.add })
			for _, u := range []bool{true, false} {
				r := do(t, s, Command{Text: `echo $(set -o | grep posix) ${POSIXLY_CORRECT-} $mine; (exit 3)`, User: u})
				if got := strings.TrimSpace(withoutTrace(string(r.Output))); got != c.prints || exit(r) != 3 {
					t.Errorf("user %v: got %q, exit %d, want %q", u, got, exit(r), c.prints)
				}
			}
			if name, _, _ := strings.Cut(c.env, "="); name != "BASHOPTS" {
				if r := do(t, s, user("printenv "+name)); exit(r) != 0 {
					t.Error("it is no longer exported")
				}
			}
			if got := said.String(); got != c.said && (c.said != "+" || got == "") {
				t.Errorf("it is said %q, want %q", got, c.said)
			}
			pid := s.PID()
			do(t, s, leased("kill -9 $$"))
			if r := do(t, s, leased("set -o | grep -c 'posix.*on'; true")); s.PID() == pid || strings.Contains(c.prints, "on") != strings.Contains(string(r.Output), "1") {
				t.Errorf("started again: %q", r.Output)
			}
		})
	}
}

// Odd surroundings: no HOME, one that cannot be written, no PATH, a missing rc.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	ro := t.TempDir()
	if err := os.Chmod(ro, 0o500); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*Options){
		"no HOME":          func(o *Options) { o.RC = ""; o.Env = withoutEnv(o.Env, "HOME") },
		"read-only HOME":   func(o *Options) { o.RC = ""; o.Env = append(withoutEnv(o.Env, "HOME"), "HOME="+ro) },
		"no environment":   func(o *Options) { o.Env = []string{} },
		"missing rc":       func(o *Options) { o.RC = "/nonexistent/rc" },
		"private":          func(o *Options) { o.Private = true },
		"default size":     func(o *Options) { o.Size = Size{} },
		"dumb terminal":    func(o *Options) { o.Env = append(withoutEnv(o.Env, "TERM"), "TERM=dumb") },
		"prompts exported": func(o *Options) { o.Env = append(o.Env, "PROMPT_COMMAND=echo X", "PS0=Y", "PS1=Z") },
		"odd folder": func(o *Options) {
			o.Folder = filepath.Join(o.Folder, "a 'b' $(c)")
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, change)
			for _, u := range []bool{true, false} {
				if r := do(t, s, Command{Text: "echo on; (exit 2)", User: u}); string(r.Output) != "on\n" || exit(r) != 2 {
					t.Errorf("user %v: got %q, exit %d", u, r.Output, exit(r))
				}
			}
		})
	}
}

// The shell may tell that the line editor is back before Run has taken in the end of the command that brought it: the
// next line is still read without it.
func TestLineEditorGoesBeforeTheNextLine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.mu.Lock()
	p, nonce := s.proc, s.nonce
	s.mu.Unlock()
	c := user("set -o emacs; echo x")
	c.Output = func([]byte) { // the end mark is not read before this returns
		for told := false; !told && s.takeRecords(p); {
			s.mu.Lock()
			told = s.nonce != nonce
			s.mu.Unlock()
		}
	}
	do(t, s, c)
	if r := do(t, s, user("echo still")); string(r.Output) != "still\n" {
		t.Errorf("got %q", r.Output)
	}
}
