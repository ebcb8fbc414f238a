# sublet's integration for bash, read in place of ~/.bashrc, which it reads at its end. It adds what lets sublet lend this
# shell: marks in the terminal's output (OSC 7701) before each prompt and each command, and a key that
# calls __sublet_widget. The protocol is described in the package comment of lease/shell/dialect.

# Bash calls this before each prompt, first in PROMPT_COMMAND, so that no hook of the user has changed anything yet. It
# returns the status that it finds, or that of the user's last command after a borrowed one, for the hooks that follow.
__sublet_prompt() {
	builtin local __sublet_found=$? __sublet_found_last="$_" __sublet_text -
	builtin set +eufxvk
	__sublet_ps1=${PS1-} # which the hooks that follow may set: see ReadState in bash.go
	__sublet_line=${BASH_LINENO[0]}
	__sublet_resume # where the line never came to __sublet_begin
	if [[ ${__sublet_running-} ]]; then # ^C ended the borrowed command's line before the end of __sublet_end
		__sublet_running=
	else
		__sublet_status=$__sublet_found __sublet_last=$__sublet_found_last
	fi
	if [[ ${HISTCMD-} != "${__sublet_histcmd-}" ]]; then
		__sublet_histcmd=$HISTCMD
		# The file is not truncated first, as ext4 would then write it to the disk at once: what follows the NUL is older.
		{ HISTTIMEFORMAT= builtin history 1; builtin printf '\0'; } 1<>"$__sublet_folder/last"
		IFS= builtin read -r -d '' -n 3000 __sublet_text <"$__sublet_folder/last"
		builtin printf 'B %s %s\0' "$$" "${__sublet_text#*[0-9][ *] }" >"$__sublet_folder/up"
	fi
	builtin printf 'P %s %s %s\0' "$$" "$__sublet_found" "$PWD" >"$__sublet_folder/up"
	builtin printf '\e]7701;P;%s;%s\a' "$$" "$__sublet_nonce"
	builtin return "$__sublet_status"
} 2>/dev/null # what set -x prints

# The line that __sublet_widget sets calls these two before and after the text of a borrowed command. The argument of the second, which
# it does not use, is what $_ is afterwards; so is that of __sublet_widget.
__sublet_begin() {
	__sublet_resume
	__sublet_running=1
	builtin printf '\e]7701;S;%s;%s\a' "$$" "$__sublet_nonce"
}
__sublet_end() {
	builtin local __sublet_found=$? -
	builtin set +eufxvk
	builtin printf 'E %s %s %s %s\0' "$$" "$__sublet_nonce" "$__sublet_found" "$PWD" >"$__sublet_folder/up"
	builtin printf '\e]7701;E;%s;%s\a' "$$" "$__sublet_nonce"
	__sublet_running=
	builtin return "$__sublet_status"
}

# Runs $__sublet_job_text as a background job, in the process that bash forked for it. $1 is what `jobs` shows. A window
# that closes sends SIGHUP to the shell's jobs; a borrower's goes on.
sublet_job() {
	builtin trap '' HUP
	builtin trap 'builtin printf %s "$?" >|"$__sublet_job_folder/status"' EXIT
	(
		builtin set --
		builtin eval "$__sublet_job_text"
	) </dev/null >>"$__sublet_job_folder/output" 2>&1
}

# The borrowed line begins with a space and is read under HISTCONTROL=ignorespace; this puts the user's value back, once.
__sublet_resume() {
	[[ ${__sublet_aside-} ]] || builtin return 0
	__sublet_aside=
	if [[ ${__sublet_histcontrol+set} ]]; then
		HISTCONTROL=$__sublet_histcontrol
	else
		builtin unset -v HISTCONTROL
	fi
	builtin unset -v __sublet_histcontrol
}

# Readline calls this when the client types the hold key. It reports the half-typed line and blocks until a directive of
# the client's ends it. The user's options do not hold in it.
__sublet_widget() {
	builtin local __sublet_flags=- __sublet_context=ready __sublet_directive
	builtin local __sublet_options="$SHELLOPTS:$BASHOPTS" -
	[[ $- != *e* ]] || __sublet_flags=e
	[[ ${PROMPT_COMMAND-} == *__sublet_prompt* ]] || __sublet_flags+=h
	builtin set +eufxvk
	# At a continuation prompt the count of lines is further from that at the last prompt than one.
	((BASH_LINENO[0] - __sublet_line <= 1)) || __sublet_context=continuation
	__sublet_arm
	builtin printf 'A %s %s %s %s\n%s\n\0' "$$" "$__sublet_context" "$__sublet_flags" "$READLINE_POINT" "$READLINE_LINE" >"$__sublet_folder/up"
	builtin printf '\e]7701;A;%s;%s\a' "$$" "$__sublet_nonce"
	# Not with -N: what a read that ^C ended has left in its buffer would come before the next directive.
	while IFS= builtin read -r __sublet_directive <"$__sublet_folder/down" || (($? > 128)); do
		case $__sublet_directive in
		none*) builtin break ;;
		line*)
			IFS= builtin read -r -d '' READLINE_LINE <"$__sublet_folder/line"
			READLINE_POINT=$((${__sublet_directive#line}))
			builtin break
			;;
		state*) __sublet_state "$__sublet_options" ;;
		screen*) builtin printf '\e]7701;C;%s;%s\a' "$$" "$__sublet_nonce" ;;
		run*)
			__sublet_nonce=${__sublet_directive:4:13}
			builtin printf '\e]7701;C;%s;%s\a' "$$" "$__sublet_nonce"
			__sublet_aside=1
			[[ ! ${HISTCONTROL+set} ]] || __sublet_histcontrol=$HISTCONTROL
			HISTCONTROL=ignorespace
			READLINE_LINE=' __sublet_begin; . "$__sublet_folder/text"; { __sublet_end "${__sublet_last-}"; } 2>/dev/null'
			READLINE_POINT=${#READLINE_LINE}
			builtin return
			;;
		esac
		__sublet_directive= # a read that a signal ended leaves the last one
	done
	builtin printf '\e]7701;I;%s;%s\a' "$$" "$__sublet_nonce"
}

# Writes what a command can change in the shell, for ReadState in bash.go: fields that end with NUL. A table is a count, so many
# names, and as many values. $1 is the options, as they are outside of the widget.
__sublet_state() {
	builtin local __sublet_name
	builtin local -a __sublet_names
	{
		builtin umask
		builtin printf '\0%s\0' "$1"
		builtin printf '%s\0' "${#BASH_ALIASES[@]}" "${!BASH_ALIASES[@]}" "${BASH_ALIASES[@]}"
		builtin printf '%s\0' "${#BASH_CMDS[@]}" "${!BASH_CMDS[@]}" "${BASH_CMDS[@]}"
		__sublet_list disabled
		__sublet_list function -X '__sublet_*'
		for __sublet_name in "${__sublet_names[@]}"; do
			builtin declare -f "$__sublet_name"
			builtin printf '\0'
		done
		__sublet_list export
		for __sublet_name in "${__sublet_names[@]}"; do
			builtin printf '%s\0' "${!__sublet_name}"
		done
		builtin declare -p
		builtin printf '\0'
	} >|"$__sublet_folder/state" 2>/dev/null
	builtin printf '\e]7701;T;%s;%s\a' "$$" "$__sublet_nonce"
}

# Writes the names of a kind and their count; no process is started for them.
__sublet_list() {
	builtin compgen -A "$@" >|"$__sublet_folder/names"
	builtin mapfile -t __sublet_names <"$__sublet_folder/names"
	builtin printf '%s\0' "${#__sublet_names[@]}" "${__sublet_names[@]}"
}

# Puts the hooks where bash looks for them, unless they are there: at the start, and when the widget is called, for a
# start-up file that is read again may replace PROMPT_COMMAND and PS0. The hook is a line of the user's own PROMPT_COMMAND,
# so that what is appended to it runs after the user's, and frameworks that compare its lines with a command know it.
__sublet_arm() {
	[[ ${PROMPT_COMMAND-} == *__sublet_prompt* ]] || PROMPT_COMMAND=__sublet_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND}
	[[ ${PS0-} == *'7701;B;'* ]] || PS0='\e]7701;B;$$;${__sublet_nonce-}\a'${PS0-}
}

# Runs once, after the user's start-up file. It is one command, because the user's DEBUG trap runs before each.
__sublet_start() {
	builtin local __sublet_map
	__sublet_status=0 __sublet_line=0
	__sublet_arm
	for __sublet_map in emacs-standard vi-insert vi-command; do
		builtin bind -m "$__sublet_map" -x '"\eO~": __sublet_widget "${__sublet_last-}" 2>/dev/null'
		builtin bind -m "$__sublet_map" '"\eO}": accept-line'
	done 2>/dev/null
	[[ $__sublet_startup ]] || builtin export -n HISTFILE # a tmux server that is started here has shells of the user
	builtin eval "$__sublet_restore"
	builtin unset -v __sublet_restore __sublet_startup SUBLET_STARTING
	builtin unset -f __sublet_start
}

# The user's start-up file, at the top level so that what it declares is global.
[[ ! -r $__sublet_startup ]] || . "$__sublet_startup"
__sublet_start
