package transparent

import (
	"strings"
	"testing"
)

func TestFish(t *testing.T) { test(t, fishRows) }

// fishrc is a start-up file with the prompt that rows wait for.
func fishrc(lines ...string) map[string]string {
	return map[string]string{".config/fish/config.fish": "set -g fish_greeting\nfunction fish_prompt; echo -n '> '; end\n" + strings.Join(lines, "\n") + "\n"}
}

const (
	fzfFish     = "/usr/share/doc/fzf/examples/key-bindings.fish"
	fishHistory = ".local/share/fish/fish_history"
)

func fishLines(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("- cmd: " + line + "\n  when: 1700000000\n")
	}
	return b.String()
}

var fishRows = []row{
	{
		name: "suggestions", shell: "fish", files: with(fishrc(), fishHistory, fishLines("echo suggested words here", "true")),
		steps: []step{
			{keys: "ec", until: `^> ec▮ho suggested words here$`},
			{keys: "\x1bf", until: `^> echo▮ suggested words here$`},
			{keys: "\x1b[C", until: `^> echo suggested words here▮$`},
			{keys: "\r", until: `^suggested words here\n> ▮$`},
			{keys: "nosuch", until: `^> nosuch▮$`},
			{keys: "\x03", until: `^> ▮$`},
		},
	},
	{
		name: "abbreviations", shell: "fish", files: fishrc("abbr -a gs 'echo git status'", "abbr -a --position anywhere L '| tr a-z A-Z'"),
		steps: []step{
			{keys: "gs ", until: `^> echo git status ▮$`},
			{keys: "\r", until: `^git status\n> ▮$`},
			{keys: "gs\r", until: `^git status\n> echo git status\ngit status\n> ▮$`},
			{keys: "echo word L ", until: `A-Z ▮`},
			{keys: "\r", until: `^WORD\n> ▮$`},
		},
	},
	{
		name: "vi keys", shell: "fish", files: fishrc("fish_vi_key_bindings", "set -g fish_escape_delay_ms 50", "function fish_mode_prompt; echo -n \"[$fish_bind_mode]\"; end", "set -g fish_cursor_insert line", "set -g fish_vi_force_cursor 1"),
		first: `^\[insert\]> ▮$`,
		steps: []step{
			{keys: "echo one two three", until: `three▮$`},
			{keys: "\x1b", until: `^\[default\]> echo one two thre▮e$`},
			{keys: "bbcw", until: `^\[insert\]> echo one ▮ ?three$`},
			{keys: "2 \x1b", until: `^\[default\]> echo one 2`},
			{keys: "A four\r", until: `four\n\[insert\]> ▮$`},
			{keys: "\x1b", until: `^\[default\]> ▮$`},
			{keys: "k", until: `^\[default\]> echo one.*four`},
			{keys: "v", until: `^\[visual\]> echo one.*four`},
			{keys: "\x1b", until: `^\[default\]> echo one.*four`},
		},
		leave: "ccexit\r",
	},
	{
		name: "right prompt", shell: "fish", files: fishrc("function fish_right_prompt; echo -n \"$status right\"; end"), first: `^> ▮ +0 right$`,
		steps: []step{
			{keys: "false\r", until: `^> ▮ +1 right$`},
			{keys: "echo " + strings.Repeat("long ", 14), until: `long ▮$`},
			{keys: "\x15", until: `^> ▮ +1 right$`},
			{keys: "functions -e fish_right_prompt\r", until: `^> ▮$`},
		},
	},
	{
		name: "completion pager", shell: "fish", files: with(fishrc(), "alpha/one", "", "alpine.txt", "in alpine\n", "album", ""),
		steps: []step{
			{keys: "cat al\t", until: `^> cat al▮`},
			{keys: "\t", until: `^> cat album ▮`},
			{keys: "\t", until: `^> cat alpha/▮`},
			{keys: "\x1b[C", until: `^> cat alpine\.txt ▮`},
			{keys: "\r\r", until: `^in alpine\n> ▮$`},
			{keys: "cat al\t\x13", until: `^search: ▮`},
			{keys: "pi", until: `^search: pi▮`},
			{keys: "\r\r", until: `^in alpine\n> .*\nin alpine\n> ▮$`},
			{keys: "string rep\t", until: `rep.*▮`},
			{keys: "\x03\x03", until: `\^C\n> ▮$`},
		},
	},
	{
		name: "history search", shell: "fish", files: with(fishrc(), fishHistory, fishLines("echo alpha", "ls beta", "echo gamma")),
		steps: []step{
			{keys: "echo", until: `^> echo▮`},
			{keys: "\x1b[A", until: `^> echo alpha▮$`},
			{keys: "\x1b[B", until: `^> echo▮`},
			{keys: "\x15\x12", until: `^search: ▮`},
			{keys: "bet", until: `^search: bet▮`},
			{keys: "\r", until: `^> ls beta▮$`},
			{keys: "\x15 echo spaced\r", until: `^spaced\n> ▮$`},
			{keys: "\x1b[A", until: `^> ( echo spaced|echo gamma)▮$`},
			{keys: "\x1b[A", until: `^> (echo gamma|ls beta)▮$`},
			{keys: "\x15history delete --exact --case-sensitive 'ls beta'; history\r", until: `(?s)echo alpha\n> ▮$`},
		},
	},
	{
		name: "events and status", shell: "fish",
		files: fishrc("function b --on-event fish_preexec; echo \"preexec $argv\"; end", "function e --on-event fish_postexec; echo \"postexec $argv $status\"; end",
			"function p --on-event fish_prompt; echo 'prompt event'; end", "function fish_prompt; echo -n \"$status> \"; end", "function c --on-variable PWD; echo moved; end"),
		first: `^prompt event\n0> ▮$`,
		steps: []step{
			{keys: "echo one; false\r", until: `^preexec echo one; false\none\npostexec echo one; false 1\nprompt event\n1> ▮$`},
			{keys: "\r", until: `^1>\n(prompt event\n)?1> ▮$`},
			{keys: "cd /\r", until: `^preexec cd /\nmoved\npostexec cd / 0\nprompt event\n0> ▮$`},
			{keys: "true | false | true; echo $pipestatus\r", until: `^0 1 0\npostexec`},
			{keys: "printf 'no line end'\r", until: `^no line end`},
		},
	},
	{
		name: "key bindings", shell: "fish",
		files: with(fishrc("bind \\cgu 'commandline -r (commandline | string upper); commandline -C 3'", "bind \\cgm 'commandline -r \"echo macro\"'", "bind \\cgp 'echo; echo printed; commandline -f repaint'", "set -gx EDITOR $HOME/edit"),
			"edit", "#!/bin/sh\nfor last; do :; done\nprintf 'echo edited\\n' >$last\n"),
		steps: []step{
			{keys: "some words\x07u", until: `^> SOM▮E WORDS$`},
			{keys: "\x07p", until: `^printed\n> SOM▮E WORDS$`},
			{keys: "\x07m", until: `^> echo macro▮$`},
			{keys: "\r", until: `^macro\n> ▮$`},
			{keys: "echo typed", until: `typed▮`},
			{keys: "\x1be", until: `^> echo edited▮`},
			{keys: "\r", until: `^edited\n> ▮$`},
		},
	},
	{
		name: "fzf", shell: "fish", needs: []string{"fzf", fzfFish},
		files: with(fishrc("set -gx FZF_DEFAULT_OPTS '--no-color --no-info --prompt=fzf:'", "source "+fzfFish, "fzf_key_bindings", "function fish_prompt; echo -n (basename $PWD)'> '; end"),
			fishHistory, fishLines("echo first", "echo second"), "blue/file", "text\n", "green/file", ""),
		first: `^home> ▮$`,
		steps: []step{
			{keys: "\x12", until: `fzf:▮`},
			{keys: "first", until: `fzf:first▮`},
			{keys: "\r", until: `^home> echo first▮$`},
			{keys: "\r", until: `^first\nhome> ▮$`},
			{keys: "cat \x14", until: `fzf:▮`},
			{keys: "blue/f", until: `fzf:blue/f▮`},
			{keys: "\r", until: `^home> cat blue/file ▮$`},
			{keys: "\r", until: `^text\nhome> ▮$`},
			{keys: "\x1bc", until: `fzf:▮`},
			{keys: "green", until: `fzf:green▮`},
			{keys: "\r", until: `^green> ▮$`},
		},
	},
	{
		name: "direnv and zoxide", shell: "fish", needs: []string{"direnv", "zoxide"},
		files: with(fishrc("direnv hook fish | source; zoxide init fish | source"), "project/.envrc", "export COLOUR=blue\n"),
		steps: []step{
			{keys: "direnv allow project; cd project\r", until: `^direnv: export \+COLOUR\n> ▮$`},
			{keys: "echo $COLOUR\r", until: `^blue\n> ▮$`},
			{keys: "cd ..\r", until: `^direnv: unloading\n> ▮$`},
			{keys: "z proj; pwd\r", until: `home/project\n(direnv.*\n)*> ▮$`},
		},
	},
	{
		name: "blocks and quotes over several lines", shell: "fish", files: fishrc(),
		steps: []step{
			{keys: "for i in 1 2\r", until: `^ +▮$`},
			{keys: "echo \"$i\rquoted\"\rend\r", until: `^1\nquoted\n2\nquoted\n> ▮$`},
			{keys: "echo one \\\rtwo\r", until: `^one two\n> ▮$`},
			{keys: "if true\r", until: `^> if true\n +▮$`},
			{keys: "\x03", until: `\^C\n> ▮$`},
			{keys: "\x1b[A", until: `\^C\n> echo one`},
			{keys: "\x1b[A\x1b[A", until: `\^C\n> for i in 1 2`},
			{keys: "\r", until: `\^C\n> for(.*\n)+2\nquoted\n> ▮$`},
			{keys: "function f; echo in f $argv; end; funcsave -q f; f x\r", until: `^in f x\n> ▮$`},
		},
	},
	{
		name: "prompt of the start-up", shell: "fish", files: map[string]string{".config/fish/config.fish": "set -g fish_greeting 'hello there'\n"}, first: `^hello there\n.*~# ▮$`,
		steps: []step{
			{keys: "false\r", until: `~ \[1\]# ▮$`},
			{keys: "set -U colour blue; echo $colour\r", until: `^blue\n.*~# ▮$`},
		},
	},
}
