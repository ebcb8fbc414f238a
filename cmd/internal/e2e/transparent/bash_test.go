package transparent

import (
	"strings"
	"testing"
)

func TestBash(t *testing.T) { test(t, bashRows) }

// bashrc is a start-up file with the prompt that rows wait for.
func bashrc(lines ...string) map[string]string {
	return map[string]string{".bashrc": "PS1='> '\n" + strings.Join(lines, "\n") + "\n"}
}

// with adds files to a row's: names and what they hold take turns.
func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

const (
	bashCompletion = "/usr/share/bash-completion/bash_completion"
	fzfBash        = "/usr/share/doc/fzf/examples/key-bindings.bash"
	fzfOptions     = "export FZF_DEFAULT_OPTS='--no-color --no-info --prompt=fzf:'"
)

var bashRows = []row{
	{
		name: "completion", shell: "bash", needs: []string{bashCompletion},
		files: with(bashrc(". "+bashCompletion), "alpha/one", "", "alpine.txt", "in alpine\n"),
		steps: []step{
			{keys: "cat al\t", until: `^> cat alp▮$`},
			{keys: "\t\t", until: `^alpha/ +alpine\.txt\s*\n> cat alp▮$`},
			{keys: "i\t", until: `^> cat alpine.txt ▮$`},
			{keys: "\r", until: `^in alpine\n> ▮$`},
			{keys: "sort --rev\t", until: `^> sort --reverse ▮$`},
			{keys: "\x15umask -\t\t", until: `^> umask -▮$`},
		},
		leave: "\x15exit\r",
	},
	{
		name: "fzf history", shell: "bash", needs: []string{"fzf", fzfBash},
		files: with(bashrc(fzfOptions, ". "+fzfBash), ".bash_history", "echo first\necho second\nls\n"),
		steps: []step{
			{keys: "\x12", until: `fzf:▮`},
			{keys: "first", until: `fzf:first▮`},
			{keys: "\r", until: `^> echo first▮$`},
			{keys: "\r", until: `^first\n> ▮$`},
			{keys: "half \x12", until: `fzf:half ▮`},
			{keys: "\x1b", until: `^> half ▮$`},
		},
		leave: "\x15exit\r",
	},
	{
		name: "fzf files and folders", shell: "bash", needs: []string{"fzf", fzfBash},
		files: with(bashrc(fzfOptions, ". "+fzfBash, `PS1='\W> '`), "blue/file", "text\n", "green/file", ""),
		first: `^~> ▮$`,
		steps: []step{
			{keys: "cat \x14", until: `fzf:▮`},
			{keys: "blue/f", until: `fzf:blue/f▮`},
			{keys: "\r", until: `^~> cat blue/file ▮$`},
			{keys: "\r", until: `^text\n~> ▮$`},
			{keys: "\x1bc", until: `fzf:▮`},
			{keys: "green", until: `fzf:green▮`},
			{keys: "\r", until: `^green> ▮$`},
			{keys: "pwd -P\r", until: `/home/green\ngreen> ▮$`},
		},
	},
	{
		name: "bind -x", shell: "bash",
		files: bashrc(`upper() { READLINE_LINE=${READLINE_LINE^^}; READLINE_POINT=3; }`, `bind -x '"\C-gu": upper'`, `bind -x '"\C-gp": echo printed by a widget'`,
			`bind '"\C-gm": "echo macro\C-m"'`),
		steps: []step{
			{keys: "some words\x07u", until: `^> SOM▮E WORDS$`},
			{keys: "\x07p", until: `^printed by a widget\n> SOM▮E WORDS$`},
			{keys: "\x01\x0b\x07m", until: `^macro\n> ▮$`},
		},
	},
	{
		name: "inputrc", shell: "bash",
		files: with(bashrc(), ".inputrc", strings.Join([]string{
			"set completion-ignore-case on", "set show-all-if-ambiguous on", "set colored-stats on", "set bell-style none",
			`"\C-o": menu-complete`, `"\C-xq": "\C-aecho \"\C-e\""`, `"\e[A": history-search-backward`, "$if Bash", `"\C-g\C-g": "echo in bash\C-m"`, "$endif", "",
		}, "\n"), "UPPER.one", "1\n", "UPPER.two", "2\n"),
		steps: []step{
			{keys: "cat upp\t", until: `^UPPER\.one +UPPER\.two\s*\n> cat UPPER\.▮$`},
			{keys: "\x0f", until: `^> cat UPPER\.one ▮$`},
			{keys: "\x0f", until: `^> cat UPPER\.two ▮$`},
			{keys: "\r", until: `^2\n> ▮$`},
			{keys: "quoted words\x18q\r", until: `^quoted words\n> ▮$`},
			{keys: "cat\x1b[A", until: `^> cat▮ UPPER\.two`},
			{keys: "\x15\x0b\x07\x07", until: `^in bash\n> ▮$`},
		},
	},
	{
		name: "vi with mode strings", shell: "bash",
		files: with(bashrc(), ".inputrc", "set editing-mode vi\nset show-mode-in-prompt on\nset vi-ins-mode-string \"\\1\\e[6 q\\2i:\"\nset vi-cmd-mode-string \"\\1\\e[2 q\\2c:\"\nset keyseq-timeout 50\n"),
		first: `^i:> ▮$`,
		steps: []step{
			{keys: "echo one two three", until: `three▮$`},
			{keys: "\x1b", until: `^c:> echo one two thre▮e$`},
			{keys: "bbcw", until: `^i:> echo one ▮ three$`},
			{keys: "2\x1b", until: `^c:> echo one ▮2 three$`},
			{keys: "A four\r", until: `^one 2 three four\ni:> ▮$`},
			{keys: "echo five\r", until: `^five\ni:> ▮$`},
			{keys: "\x1b", until: `^c:> ▮$`},
			{keys: "k", until: `^c:> ▮echo five$`},
			{keys: "/thr", until: `/thr▮$`},
			{keys: "\r", until: `^c:> ▮echo one 2 three four$`},
		},
		leave: "ccexit\r",
	},
	{
		name: "set -o vi", shell: "bash", files: bashrc("set -o vi"),
		steps: []step{
			{keys: "echo abc def", until: `def▮$`},
			{keys: "\x1b", until: `^> echo abc de▮f$`},
			{keys: "0", until: `^> ▮echo abc def$`},
			{keys: "wdw", until: `^> echo ▮def$`},
			{keys: "u", until: `^> echo abc ▮def$`},
			{keys: "\r", until: `^abc def\n> ▮$`},
			{keys: "echo q", until: `^> echo q▮$`},
			{keys: "\x1b", until: `^> echo ▮q$`},
			{keys: "Rnew\r", until: `^new\n> ▮$`},
		},
	},
	{
		name: "direnv", shell: "bash", needs: []string{"direnv"}, files: with(bashrc(`eval "$(direnv hook bash)"`), "project/.envrc", "export COLOUR=blue\n"),
		steps: []step{
			{keys: "direnv allow project; cd project\r", until: `^direnv: export \+COLOUR\n> ▮$`},
			{keys: "echo $COLOUR\r", until: `^blue\n> ▮$`},
			{keys: "cd ..\r", until: `^direnv: unloading\n> ▮$`},
			{keys: "echo [$COLOUR]\r", until: `^\[\]\n> ▮$`},
		},
	},
	{
		name: "zoxide", shell: "bash", needs: []string{"zoxide"},
		files: with(bashrc(`eval "$(zoxide init bash)"; PS1='\W> '`), "deep/inside/file", ""), first: `^~> ▮$`,
		steps: []step{
			{keys: "cd deep/inside\r", until: `^inside> ▮$`},
			{keys: "cd\r", until: `^inside> cd\n~> ▮$`},
			{keys: "z ins\r", until: `^~> z ins\n(.*\n)?inside> ▮$`},
		},
	},
	{
		name: "PROMPT_COMMAND a string", shell: "bash", files: bashrc(`PROMPT_COMMAND='echo "status $?"; n=$((n+1)); PS1="$n> "'`), first: `^status 0\n1> ▮$`,
		steps: []step{
			{keys: "false\r", until: `^status 1\n2> ▮$`},
			{keys: "\r", until: `^status 1\n3> ▮$`},
			{keys: "(exit 7)\r", until: `^status 7\n4> ▮$`},
			{keys: "PROMPT_COMMAND+='; echo more'\r", until: `^status 0\nmore\n5> ▮$`},
			{keys: "echo last word; : $_\r", until: `^last word\nstatus 0\nmore\n6> ▮$`},
			{keys: "echo $_\r", until: `^word\nstatus 0\nmore\n7> ▮$`},
		},
	},
	{
		name: "PROMPT_COMMAND an array", shell: "bash", files: bashrc(`PROMPT_COMMAND=('echo "first $?"' 'echo "second $?"' third)`, `third() { echo "third $?"; }`),
		first: `^first 0\nsecond 0\nthird 0\n> ▮$`,
		steps: []step{
			{keys: "(exit 3)\r", until: `^first 3\nsecond 3\nthird 3\n> ▮$`},
			{keys: "PROMPT_COMMAND+=('echo fourth $?')\r", until: `^third 0\nfourth 0\n> ▮$`},
			{keys: "true | false | true\r", until: `fourth 0\n> true \| false \| true\n(.*\n){4}> ▮$`},
			{keys: "echo ${PIPESTATUS[@]}\r", until: `^0 1 0\n(.*\n){4}> ▮$`},
		},
	},
	{
		name: "PROMPT_COMMAND replaced", shell: "bash", files: bashrc(),
		steps: []step{
			{keys: "PROMPT_COMMAND='echo mine'\r", until: `^mine\n> ▮$`},
			{keys: "echo one\r", until: `^one\nmine\n> ▮$`},
			{keys: "unset PROMPT_COMMAND\r", until: `COMMAND\n> ▮$`},
			{keys: "false\r", until: `false\n> ▮$`},
			{keys: "echo $?\r", until: `^1\n> ▮$`},
		},
	},
	{
		name: "PS0 and numbers", shell: "bash", files: bashrc(`PS0='[begins \!]\n' PS1='\! \#> '`), first: `^1 1> ▮$`,
		steps: []step{
			{keys: "echo one\r", until: `^\[begins 1\]\none\n2 2> ▮$`},
			{keys: "\r", until: `^2 2>\n2 2> ▮$`},
			{keys: "PS0=\r", until: `PS0=\n\[begins 2\]\n3 3> ▮$`},
			{keys: "echo two\r", until: `two\ntwo\n4 4> ▮$`},
		},
	},
	{
		// The idiom that times a command, with its text in place of the time.
		name: "DEBUG trap that times", shell: "bash", files: bashrc(`trap 'timer=${timer:-$BASH_COMMAND}' DEBUG`, `PROMPT_COMMAND='echo "timed: $timer"; unset timer'`),
		first: `^timed: .*\n> ▮$`,
		steps: []step{
			{keys: "true one\r", until: `^timed: true one\n> ▮$`},
			{keys: "for i in 1 2; do true $i; done\r", until: `^timed: for i in 1 2.*\n> ▮$`},
			{keys: "true three\r", until: `^timed: true three\n> ▮$`},
		},
	},
	{
		name: "preexec and precmd", shell: "bash", files: with(bashrc("HISTCONTROL=ignoreboth", `PROMPT_COMMAND='echo "mine $?"'`, ". ~/preexec.sh",
			`precmd() { echo "precmd $?"; }`, `preexec() { echo "preexec $1"; }`), "preexec.sh", preexec),
		first: `^precmd \d+\n> ▮$`,
		steps: []step{
			{keys: "echo one; false\r", until: `^preexec echo one; false\none\nprecmd 1\nmine 1\n> ▮$`},
			{keys: "\r", until: `^>\nprecmd 1\nmine 1\n> ▮$`},
			{keys: "for i in a b; do\r", until: `do\n> ▮$`},
			{keys: "echo $i; done\r", until: `^preexec for i in a b; do echo \$i; done\na\nb\nprecmd 0\nmine 0\n> ▮$`},
			{keys: "sh -c 'exit 4'\r", until: `^precmd 4\nmine 4\n> ▮$`},
		},
	},
	{
		name: "history", shell: "bash", files: with(bashrc("HISTSIZE=50 HISTFILESIZE=50"), ".bash_history", "old one\nold two\n"),
		steps: []step{
			{keys: "history\r", until: `^ +1  old one\n +2  old two\n +3  history\n> ▮$`},
			{keys: "echo $((1 +\r", until: `1 \+\n> ▮$`},
			{keys: "1))\r", until: `^2\n> ▮$`},
			{keys: "\x1b[A", until: `^1\)\)▮$`},
			{keys: "\x15echo !!:0; fc -l -2\r", until: `fc -l -2\n(.*\n)+1\)\)\n> ▮$`},
			{keys: "history -d 1; history -c; echo kept\r", until: `^kept\n> ▮$`},
			{keys: "history\r", until: `> history\n +1  history\n> ▮$`},
			{keys: "\x12hist", until: "hist': ▮"},
			{keys: "\x07history -a; wc -l <.bash_history\r", until: `^\d+\n> ▮$`},
		},
	},
	{
		name: "HISTCONTROL ignoreboth", shell: "bash", files: bashrc("HISTCONTROL=ignoreboth HISTIGNORE='ls:bg *'"), steps: historySteps,
	},
	{
		name: "HISTCONTROL erasedups", shell: "bash", files: bashrc("HISTCONTROL=erasedups:ignorespace"), steps: historySteps,
	},
	{
		name: "HISTCONTROL ignoredups", shell: "bash", files: bashrc("HISTCONTROL=ignoredups", "shopt -s histverify"), steps: historySteps,
	},
	{
		name: "HISTTIMEFORMAT and no HISTCONTROL", shell: "bash", files: bashrc("unset HISTCONTROL; shopt -s histappend lithist"), steps: historySteps,
	},
	{
		name: "edit in an editor", shell: "bash", files: with(bashrc(`EDITOR=$HOME/edit`), "edit", "#!/bin/sh\necho 'echo edited; false' >>$1\n"),
		steps: []step{
			{keys: "echo typed\x18\x05", until: `^typed\necho edited; false\nedited\n> ▮$`},
			{keys: "\x1b[A", until: `false▮$`},
			{keys: "\x15fc\r", until: `^> fc\n(.*\n)+edited\n> ▮$`},
		},
	},
	{
		name: "here-documents and continuation lines", shell: "bash", files: bashrc("PS2='more> '"),
		steps: []step{
			{keys: "cat <<END\r", until: `^more> ▮$`},
			{keys: "in $((6 * 7))\rEND\r", until: `^in 42\n> ▮$`},
			{keys: "for i in 1 2\rdo\recho \"$i\r", until: `^more> echo "\$i\nmore> ▮$`},
			{keys: "quoted\"; done\r", until: `^1\nquoted\n2\nquoted\n> ▮$`},
			{keys: "echo one \\\rtwo\r", until: `^one two\n> ▮$`},
			{keys: "if true; then\r", until: `then\nmore> ▮$`},
			{keys: "\x03", until: `\^C\n> ▮$`},
			{keys: "echo $?; f() {\recho in f\r}; f\r", until: `^130\nin f\n> ▮$`},
		},
	},
}

// historySteps are lines that HISTCONTROL's values treat differently.
var historySteps = []step{
	{keys: "echo one\r", until: `^one\n> ▮$`},
	{keys: "echo one\r echo spaced\r", until: `^spaced\n> ▮$`},
	{keys: "ls .bashrc\rcat <<E\ra\rE\r", until: `^a\n> ▮$`},
	{keys: "echo one\r", until: `^a\n> echo one\none\n> ▮$`},
	{keys: "echo !ec:1 two\r", until: `two\n?> (echo one two)?▮$`},
	{keys: "\rhistory\r", until: `  history\n> ▮$`},
	{keys: "\x1b[A", until: `^> history▮$`},
	{keys: "\x1b[A\x1b[A", until: `^> echo one▮$`},
	{keys: "\x15\x12echo o", until: `echo o': ▮`},
	{keys: "\x07\x15", until: `^> ▮$`},
}

// preexec does what bash-preexec does, in its way: a hook that installs itself at the first prompt, a DEBUG trap around each
// command, the text from the history, and HISTCONTROL without ignorespace.
const preexec = `install_preexec() {
	trap 'before_command "$_"' DEBUG
	PROMPT_COMMAND="before_prompt
${PROMPT_COMMAND//trap - DEBUG;install_preexec/}
interactive=on"
	HISTCONTROL=${HISTCONTROL//ignoreboth/ignoredups}
	before_prompt
	interactive=on
}
before_prompt() {
	status=$?
	set_status $status
	precmd
	return $status
}
set_status() { return $1; }
before_command() {
	[[ -t 1 && -z $COMP_LINE && $interactive ]] || return
	[ "$BASH_SUBSHELL" = 0 ] && interactive=
	local line
	while read -r line; do [ "$line" = "$BASH_COMMAND" ] && { interactive=; return; }; done <<<"${PROMPT_COMMAND//;/$'\n'}"
	preexec "$(HISTTIMEFORMAT= history 1 | sed '1 s/^ *[0-9][0-9]*[* ] //')"
	set_status "$status" "$1"
}
PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND;}trap - DEBUG;install_preexec"
`
