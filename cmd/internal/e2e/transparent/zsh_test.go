package transparent

import (
	"strings"
	"testing"
)

func TestZsh(t *testing.T) { test(t, zshRows) }

// zshrc is a start-up file with the prompt that rows wait for.
func zshrc(lines ...string) map[string]string {
	return map[string]string{".zshrc": "PS1='> '\nHISTFILE=~/.zsh_history HISTSIZE=100 SAVEHIST=100\n" + strings.Join(lines, "\n") + "\n"}
}

const (
	compinit     = "autoload -U compinit; compinit -C -d $COMPLETIONS"
	fzfZsh       = "/usr/share/doc/fzf/examples/key-bindings.zsh"
	suggestions  = "/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh"
	highlighting = "/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh"
)

var zshRows = []row{
	{
		name: "completion menus", shell: "zsh",
		files: with(zshrc(compinit, "zmodload zsh/complist", "zstyle ':completion:*' menu select", "zstyle ':completion:*:descriptions' format '[%d]'",
			"zstyle ':completion:*' matcher-list 'm:{a-z}={A-Z}'"), "alpha/one", "", "alpine.txt", "in alpine\n", "Album", ""),
		steps: []step{
			{keys: "cat al\t", until: `^> cat al▮\n\[file\]`},
			{keys: "\t", until: `^> cat Album▮$`},
			{keys: "\t", until: `^> cat alpha/▮$`},
			{keys: "\t", until: `^> cat alpine\.txt▮`},
			{keys: "\x1b[D", until: `^> cat alpha/▮`},
			{keys: "\x1b[C\r", until: `^> cat alpine\.txt ▮$`},
			{keys: "\r", until: `^in alpine\n> ▮$`},
			{keys: "sort --rev\t", until: `^> sort --reverse ▮$`},
			{keys: "\x15kill -WIN\t", until: `^> kill -WINCH ▮$`},
			{keys: "\x15cd al\t", until: `^> cd alpha/▮$`},
			{keys: "\x03", until: `alpha/\n> ▮$`},
		},
	},
	{
		name: "vi mode", shell: "zsh", first: `^> ▮ +\[\]$`,
		files: zshrc("bindkey -v; KEYTIMEOUT=5; setopt prompt_subst; RPS1='[$mode]'", `zle-keymap-select() { mode=$KEYMAP; [[ $KEYMAP = vicmd ]] && printf '\e[2 q' || printf '\e[6 q'; zle reset-prompt }`, "zle -N zle-keymap-select"),
		steps: []step{
			{keys: "echo one two three", until: `three▮ +\[\]$`},
			{keys: "\x1b", until: `^> echo one two thre▮e +\[vicmd\]`},
			{keys: "bbcw", until: `^> echo one ▮ three +\[main\]$`},
			{keys: "2\x1b", until: `^> echo one ▮2 three +\[vicmd\]$`},
			{keys: "A four\r", until: `^one 2 three four\n> ▮ +\[`},
			{keys: "\x1b", until: `^> ▮ +\[vicmd\]`},
			{keys: "k", until: `^> echo one 2 three fou▮r +\[`},
			{keys: "0d", until: `^> ▮echo one 2 three four +\[`},
			{keys: "w", until: `^> ▮one 2 three four +\[`},
			{keys: "u", until: `^> ▮echo one 2 three four +\[`},
			{keys: "vee", until: `^> echo on▮e 2 three`},
			{keys: "\x1b/thr", until: `^\?thr_$`},
			{keys: "\x03", until: `^> ▮ +\[`},
		},
	},
	{
		name: "autosuggestions", shell: "zsh", needs: []string{suggestions},
		files: with(zshrc(". "+suggestions), ".zsh_history", "echo suggested words here\n"),
		steps: []step{
			{keys: "ec", until: `^> ec▮ho suggested words here$`},
			{keys: "\x1bf", until: `^> echo ▮suggested words here$`},
			{keys: "\x1b[C", until: `^> echo suggested words here▮$`},
			{keys: "\r", until: `^suggested words here\n> ▮$`},
			{keys: "echo x\r", until: `^x\n> ▮$`},
			{keys: "echo ", until: `^> echo ▮x$`},
			{keys: "s", until: `^> echo s▮uggested words here$`},
			{keys: "\x03", until: `^> echo s.*\n> ▮$`},
		},
	},
	{
		name: "syntax highlighting", shell: "zsh", needs: []string{highlighting},
		files: zshrc("ZSH_HIGHLIGHT_HIGHLIGHTERS=(main brackets)", ". "+highlighting),
		steps: []step{
			{keys: "echo 'quoted' $HOME", until: `HOME▮$`},
			{keys: "\r", until: `home\n> ▮$`},
			{keys: "nosuchcommand (", until: `\(▮$`},
			{keys: "\x15if true; then ls ~; fi", until: `fi▮$`},
			{keys: "\x15echo done\r", until: `^done\n> ▮$`},
		},
	},
	{
		name: "suggestions and highlighting together", shell: "zsh", needs: []string{suggestions, highlighting},
		files: with(zshrc(compinit, "setopt share_history", ". "+suggestions, ". "+highlighting), ".zsh_history", "echo from history\n"),
		steps: []step{
			{keys: "ech", until: `^> ech▮o from history$`},
			{keys: "\x05", until: `^> echo from history▮$`},
			{keys: "\r", until: `^from history\n> ▮$`},
			{keys: "\x1b[A\x1b[A", until: `^> echo from history▮$`},
			{keys: "\x15\x12from", until: `^(failing )?bck-i-search: from_$`},
			{keys: "\x07echo done\r", until: `^done\n> ▮$`},
		},
	},
	{
		name: "right prompt", shell: "zsh", files: zshrc("RPS1='%? right'", "setopt transient_rprompt"), first: `^> ▮ +0 right$`,
		steps: []step{
			{keys: "false\r", until: `^> false\n> ▮ +1 right$`},
			{keys: "echo " + strings.Repeat("long ", 14), until: `long ▮$`},
			{keys: "\x15", until: `^> ▮ +1 right$`},
			{keys: "unset RPS1\r", until: `^> unset RPS1\n> ▮$`},
		},
	},
	{
		name: "precmd and preexec", shell: "zsh",
		files: zshrc("autoload -U add-zsh-hook", `precmd() { echo "precmd $?" }`, `preexec() { echo "preexec $1" }`, `mine() { echo "mine $?" }`, "add-zsh-hook precmd mine", "add-zsh-hook preexec mine",
			"add-zsh-hook chpwd mine", `add-zsh-hook zshaddhistory mine`),
		first: `^precmd 0\nmine 0\n> ▮$`,
		steps: []step{
			{keys: "echo one; false\r", until: `^preexec echo one; false\nmine 0\none\nprecmd 1\nmine 1\n> ▮$`},
			{keys: "\r", until: `^>\nmine 1\nprecmd 1\nmine 1\n> ▮$`},
			{keys: "cd /\r", until: `^preexec cd /\nmine 1\nmine 1\nprecmd 0\nmine 0\n> ▮$`},
			{keys: "precmd() { echo another $? }\r", until: `^another 0\nmine 0\n> ▮$`},
			{keys: "unset precmd_functions; (exit 3)\r", until: `^another 3\n> ▮$`},
		},
	},
	{
		name: "prompt that is computed", shell: "zsh", files: zshrc("setopt prompt_subst", `PS1='%? $((n++)) %(1j.%j jobs.)%# '`, `zmodload zsh/datetime`), first: `^0 0 . ▮$`,
		steps: []step{
			{keys: "(exit 3)\r", until: `^3 1 # ▮$`},
			{keys: "\r", until: `^3 1 #\n3 2 # ▮$`},
			{keys: "true | false; echo $pipestatus\r", until: `^0 1\n0 3 # ▮$`},
			{keys: "echo last; echo $_\r", until: `^last\nlast\n0 4 # ▮$`},
			{keys: "printf 'no line end'\r", until: `^no line end#\n0 5 # ▮$`},
		},
	},
	{
		name: "user widgets", shell: "zsh",
		files: with(zshrc("autoload -U edit-command-line; zle -N edit-command-line; bindkey '^X^E' edit-command-line", "EDITOR=$HOME/edit; bindkey -e",
			`upper() { BUFFER=${(U)BUFFER}; CURSOR=3; zle -M 'a message' }`, "zle -N upper; bindkey '^Gu' upper",
			`zle-line-init() { zle -R "" }; zle -N zle-line-init`, `zle-line-finish() { print -n '[finished]' }; zle -N zle-line-finish`, "bindkey -s '^Gm' 'echo macro\\n'"),
			"edit", "#!/bin/sh\nprintf ' and edited' >>$1\n"),
		steps: []step{
			{keys: "some words\x07u", until: `^> SOM▮E WORDS\na message$`},
			{keys: "\x15\x0b\x07m", until: `^macro\n> ▮$`},
			{keys: "echo typed\x18\x05", until: `^> echo typed▮\n and edited$`},
			{keys: "\x03", until: `edited.*\n> ▮$`},
			{keys: "pushed\x1bqecho between\r", until: `between\n> pushed▮$`},
		},
		leave: "\x15exit\r",
	},
	{
		name: "fzf", shell: "zsh", needs: []string{"fzf", fzfZsh},
		files: with(zshrc(fzfOptions, "bindkey -e", ". "+fzfZsh, `PS1='%1~> '`), ".zsh_history", "echo first\necho second\n", "blue/file", "text\n", "green/file", ""),
		first: `^~> ▮$`,
		steps: []step{
			{keys: "\x12", until: `fzf:▮`},
			{keys: "first", until: `fzf:first▮`},
			{keys: "\r", until: `^~> echo first▮$`},
			{keys: "\r", until: `^first\n~> ▮$`},
			{keys: "cat \x14", until: `fzf:▮`},
			{keys: "blue/f", until: `fzf:blue/f▮`},
			{keys: "\r", until: `^~> cat blue/file ▮$`},
			{keys: "\r", until: `^text\n~> ▮$`},
			{keys: "\x1bc", until: `fzf:▮`},
			{keys: "green", until: `fzf:green▮`},
			{keys: "\r", until: `^green> ▮$`},
		},
	},
	{
		name: "direnv and zoxide", shell: "zsh", needs: []string{"direnv", "zoxide"},
		files: with(zshrc(`eval "$(direnv hook zsh)"; eval "$(zoxide init zsh)"`), "project/.envrc", "export COLOUR=blue\n"),
		steps: []step{
			{keys: "direnv allow project; cd project\r", until: `^direnv: export \+COLOUR\n> ▮$`},
			{keys: "echo $COLOUR\r", until: `^blue\n> ▮$`},
			{keys: "cd ..\r", until: `^direnv: unloading\n> ▮$`},
			{keys: "z proj; pwd\r", until: `home/project\n(direnv.*\n)*> ▮$`},
		},
	},
	{
		name: "history", shell: "zsh", files: with(zshrc("setopt hist_ignore_space hist_ignore_dups hist_verify extended_glob inc_append_history"), ".zsh_history", "old one\nold two\n"),
		steps: []step{
			{keys: "echo one\r", until: `^one\n> ▮$`},
			{keys: "echo one\r echo spaced\r", until: `^spaced\n> ▮$`},
			{keys: "\x1b[A", until: `^> ( echo spaced|echo one)▮$`},
			{keys: "\x1b[A\x1b[A", until: `^> old .*▮$`},
			{keys: "\x03", until: `old .*\n> ▮$`},
			{keys: "fc -l\r", until: `(?s)> fc -l\n.*\n> ▮$`},
			{keys: "!ec\r", until: `^> echo one▮$`},
			{keys: " two\r", until: `^one two\n> ▮$`},
			{keys: "\x12old", until: `^bck-i-search: old_$`},
			{keys: "\x12", until: `^> ▮old one$`},
			{keys: "\x07wc -l <.zsh_history\r", until: `^\d+\n> ▮$`},
		},
	},
	{
		name: "here-documents and continuation lines", shell: "zsh", files: zshrc(),
		steps: []step{
			{keys: "cat <<END\r", until: `^heredoc> ▮$`},
			{keys: "in $((6 * 7))\rEND\r", until: `^in 42\n> ▮$`},
			{keys: "for i in 1 2; do\r", until: `^for> ▮$`},
			{keys: "echo \"$i\r", until: `^for dquote> ▮$`},
			{keys: "quoted\"; done\r", until: `^1\nquoted\n2\nquoted\n> ▮$`},
			{keys: "echo one \\\r", until: `one \\\n> ▮$`},
			{keys: "two\r", until: `^one two\n> ▮$`},
			{keys: "if true; then\r", until: `^then> ▮$`},
			{keys: "\x03", until: `^then>\n> ▮$`},
			{keys: "echo $?\r", until: `^(130|1)\n> ▮$`},
			{keys: "\x1b[A\x1b[A", until: `^> if true; then▮$`},
			{keys: "\x1b[A", until: `two▮$`},
			{keys: "\x03", until: `two\n> ▮$`},
		},
	},
}
