# sublet's integration for zsh, read as the first .zshenv. It sees to it that zsh goes on with the user's own start-up files,
# and adds after them what lets sublet lend this shell: marks in the terminal's output (OSC 7701) before each prompt and each
# command, and a key that calls __sublet_widget. The protocol is described in the package comment of lease/shell/dialect.
#
# Functions begin with `emulate -L zsh`, so that the user's options do not hold in them; those that zsh calls by itself also switch
# set -x off, unseen. The text of a borrowed command is sourced at the top level, where the user's options do hold. Names of local
# variables begin as all others do, because the state is listed from inside of them.

# Sends the record $1, with the text $2 after the process id, and prints its mark. For each call of a function inside of another
# zsh maps new memory: marks without a record are printed where they are due.
__sublet_report() {
	builtin print -rn -- "$1 $$ $2"$'\0' >| "$__sublet_folder/up"
	builtin print -rn -- $'\e]7701;'"$1;$$;$__sublet_nonce"$'\a'
}

# Zsh calls this before each prompt, first in precmd_functions. Zsh itself keeps the status for the hooks that follow.
__sublet_prompt() {
	{ builtin local __sublet_found=$?; builtin emulate -L zsh +x; } 2>/dev/null
	__sublet_resume # where the line never came to __sublet_begin
	if [[ -n $__sublet_running ]]; then
		__sublet_running=
	else
		__sublet_status=$__sublet_found
	fi
	__sublet_report P "$__sublet_found $PWD"
}

# Zsh calls this when a line of the user's begins, not for the borrowed line: __sublet_widget sees to that.
__sublet_command() {
	{ builtin emulate -L zsh +x; } 2>/dev/null
	__sublet_report B "${${1:-$3}[1,3000]}"
}

# The line that __sublet_widget sets calls these two before and after the text of a borrowed command. End is called after ^C and
# after an error too, and has zsh go on, so that __sublet_status can restore the user's own status and, by its argument, $_.
__sublet_begin() {
	builtin emulate -L zsh
	__sublet_resume
	__sublet_running=1
	builtin print -rn -- $'\e]7701;S;'"$$;$__sublet_nonce"$'\a'
}
__sublet_end() {
	builtin local __sublet_found=$?
	builtin emulate -L zsh
	TRY_BLOCK_ERROR=0 TRY_BLOCK_INTERRUPT=0
	__sublet_report E "$__sublet_nonce $__sublet_found $PWD"
}
__sublet_status() {
	__sublet_running=
	builtin return $__sublet_status
}

# Runs $__sublet_job_text as a background job, in the process that zsh forked for it. $1 is what `jobs` shows. A window
# that closes sends SIGHUP to the shell's jobs; a borrower's goes on.
sublet_job() {
	builtin trap '' HUP
	(
		builtin trap '' HUP # which a subshell of zsh does not keep
		builtin set --
		builtin eval "$__sublet_job_text"
	) </dev/null >> "$__sublet_job_folder/output" 2>&1
	builtin print -rn -- $? >| "$__sublet_job_folder/status"
}

# Puts back what __sublet_widget set aside so that the borrowed line is not seen by the user's hooks and history.
__sublet_resume() {
	if [[ -n $__sublet_aside ]]; then
		__sublet_aside=
		builtin fc -P
		preexec_functions=("${__sublet_preexec[@]}")
		zshaddhistory_functions=("${__sublet_zshaddhistory[@]}")
		(( ! $+functions[__sublet_own_preexec] )) || __sublet_rename __sublet_own_preexec preexec
		(( ! $+functions[__sublet_own_zshaddhistory] )) || __sublet_rename __sublet_own_zshaddhistory zshaddhistory
	fi
}

__sublet_rename() {
	builtin functions -c $1 $2
	builtin unfunction $1
}

# The line editor calls this when the client types the hold key. It reports the half-typed line and blocks until a directive of the
# client's ends it. It runs under the user's options, which __sublet_state
# reports; the functions that it calls do not.
__sublet_widget() {
	builtin local __sublet_found_last="$_" __sublet_context=ready __sublet_flags=- __sublet_directive __sublet_held=
	builtin local -A __sublet_options
	[[ $CONTEXT == start ]] || __sublet_context=continuation
	[[ ! -o errexit ]] || __sublet_flags=e
	if [[ -z ${precmd_functions[(r)__sublet_prompt]} ]]; then
		__sublet_flags+=h
		__sublet_arm
	fi
	while __sublet_follow; do
		__sublet_options=("${(@kv)options[@]}")
		__sublet_state
	done
	[[ -n $__sublet_aside ]] || builtin print -rn -- $'\e]7701;I;'"$$;$__sublet_nonce"$'\a'
}

# Reports, the first time, that the line is held, and follows the client's directives. It succeeds where the state is asked for,
# and fails where the editor is to go on.
__sublet_follow() {
	builtin emulate -L zsh
	builtin trap '' INT # before the client hears of the line: from then on ^C is the client's
	if [[ -z $__sublet_held ]]; then
		__sublet_held=1
		__sublet_report A "$__sublet_context $__sublet_flags $CURSOR"$'\n'"$BUFFER"$'\n'
	fi
	while builtin read -rk 20 -u 0 __sublet_directive < "$__sublet_folder/down"; do
		case $__sublet_directive in
			none*) builtin break ;;
			state*) builtin return 0 ;;
			screen*) __sublet_erase ;;
			line*)
				IFS= builtin read -rd '' BUFFER < "$__sublet_folder/line"
				CURSOR=${__sublet_directive#line} POSTDISPLAY=
				builtin break
				;;
			run*)
				__sublet_nonce=$__sublet_directive[5,17]
				__sublet_erase
				__sublet_preexec=("${preexec_functions[@]}") preexec_functions=()
				__sublet_zshaddhistory=("${zshaddhistory_functions[@]}") zshaddhistory_functions=()
				(( ! $+functions[preexec] )) || __sublet_rename preexec __sublet_own_preexec
				(( ! $+functions[zshaddhistory] )) || __sublet_rename zshaddhistory __sublet_own_zshaddhistory
				__sublet_aside=1 __sublet_last=$__sublet_found_last
				builtin fc -p
				BUFFER=' { __sublet_begin; builtin . "$__sublet_folder/text"; } always { { __sublet_end; } 2>/dev/null; }; { __sublet_status "$__sublet_last"; } 2>/dev/null'
				builtin zle .accept-line
				builtin break
				;;
		esac
	done
	builtin return 1
}

# Erases what zle shows: it then believes that the cursor is at the beginning of an empty prompt. The rows of the prompt are erased
# before, and the cursor put back: tmux keeps in its scrollback what zle erases from the top left corner. A line feed in a condition or
# an expansion may be no row of it, so only those after the last bracket count; the brackets of colours and of %{...%} are no such brackets.
__sublet_erase() {
	builtin local __sublet_rows=${(S)PS1//\%[FK]\{*\}/}
	__sublet_rows=${__sublet_rows//\%[\{\}]/}
	__sublet_rows=${${__sublet_rows##*[\)\}\`]}//[^$'\n']/}
	builtin local PS1= RPS1=
	BUFFER= POSTDISPLAY=
	builtin print -rn -- $'\r\e[K'${__sublet_rows//?/$'\e[A\e[K'}${__sublet_rows//?/$'\e[B'}
	builtin zle .reset-prompt
	builtin zle -R
	builtin print -rn -- $'\e]7701;C;'"$$;$__sublet_nonce"$'\a'
}

# Writes what a command can change in the shell, for ReadState in zsh.go: fields that end with NUL. A table is a count, so many
# names, and as many values.
__sublet_state() {
	builtin emulate -L zsh
	builtin local __sublet_name __sublet_type
	builtin setopt no_hash_list_all # otherwise zsh would look for all programs
	{
		builtin umask
		builtin print -rN -- "" $#__sublet_options "${(@k)__sublet_options}" "${(@v)__sublet_options}"
		builtin print -rN -- $#aliases "${(@k)aliases}" "${(@v)aliases}" $#galiases "${(@k)galiases}" "${(@v)galiases}"
		builtin print -rN -- $#saliases "${(@k)saliases}" "${(@v)saliases}" $#functions "${(@k)functions}" "${(@v)functions}"
		builtin print -rN -- $#commands "${(@k)commands}" "${(@v)commands}" $#dis_builtins "${(@k)dis_builtins}"
		for __sublet_name __sublet_type in "${(@kv)parameters}"; do
			case $__sublet_name:$__sublet_type in
				__sublet_* | *:*undefined*) builtin continue ;;
				*:*-export*)
					builtin print -rN -- x $__sublet_name "${(P)__sublet_name}"
					builtin continue
					;;
				(IFS|FPATH|CDPATH|WORDCHARS|KEYTIMEOUT|TMOUT):*) ;;
				*:*special* | *:array*tied*) builtin continue ;;
			esac
			builtin print -rn -- l$'\0'$__sublet_name$'\0'
			builtin typeset -p -- $__sublet_name
			builtin print -n '\0'
		done
	} >| "$__sublet_folder/state" 2>/dev/null
	builtin print -rn -- $'\e]7701;T;'"$$;$__sublet_nonce"$'\a'
}

# Puts the hooks where zsh looks for them, and binds the hold key: at the start, and when the widget is called after a start-up
# file that replaced them.
__sublet_arm() {
	builtin emulate -L zsh
	builtin local __sublet_map
	builtin typeset -ga precmd_functions preexec_functions zshaddhistory_functions
	precmd_functions=(__sublet_prompt $precmd_functions)
	preexec_functions=(__sublet_command $preexec_functions)
	builtin zle -N __sublet_widget
	for __sublet_map in ${keymaps:#.safe}; do
		builtin bindkey -M $__sublet_map '\eO~' __sublet_widget
	done
}

# Zsh calls this once, before the first prompt and after the user's own hooks.
__sublet_install() {
	__sublet_arm
	builtin eval "$__sublet_restore"
	builtin unset __sublet_restore SUBLET_STARTING
	__sublet_prompt
}

__sublet_status=0 __sublet_running= __sublet_aside=
builtin sched +0 __sublet_install
if [[ -n $__sublet_zdotdir ]]; then
	ZDOTDIR=$__sublet_zdotdir
else
	builtin unset ZDOTDIR
fi
if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
	builtin . "${ZDOTDIR:-$HOME}/.zshenv"
fi
