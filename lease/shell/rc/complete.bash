
# Completion and other questions, part of the start-up file. They are functions: an alias named like a reserved word bends a
# text that is sourced later. Go asks with the variables words, cword, lead, word, line and point set, local to the
# prompt hook. Candidates go to the file o, one a line; a line of SOH and a kind stands before those of that kind, and the
# kind "o " with the spec's options before nothing.

# candidates runs in a subshell, so whatever a user's completion function does stays in there.
__sublet_candidates() {
	\builtin local __sublet__cmd="${__sublet__words[0]}" __sublet__spec= __sublet__fn= __sublet__opts= __sublet__r
	\builtin local -a __sublet__rest
	__sublet__rest=()
	if [[ $__sublet__lead ]]; then # as bash 5.3 does by itself
		\builtin printf '\1x %s\n' "$__sublet__lead"
		__sublet__words[__sublet__cword]=$__sublet__word
	elif [[ $__sublet__word == '${'* ]]; then
		\builtin printf '\1variable\n' && \builtin compgen -v -P '${' -S '}' -- "${__sublet__word#\$\{}"
		\builtin return
	elif [[ $__sublet__word == '~'* && $__sublet__word != */* ]]; then
		\builtin printf '\1user\n' && \builtin compgen -u -P '~' -- "${__sublet__word#\~}"
		\builtin return
	elif [[ $__sublet__word == '$'* ]]; then
		\builtin printf '\1variable\n' && \builtin compgen -v -P '$' -- "${__sublet__word#\$}"
		\builtin return
	fi
	if ((__sublet__cword == 0)); then
		if [[ $__sublet__word != */* ]]; then
			\builtin printf '\1alias\n' && \builtin compgen -a -- "$__sublet__word"
			\builtin printf '\1function\n' && \builtin compgen -A function -- "$__sublet__word"
			\builtin printf '\1builtin\n' && \builtin compgen -b -- "$__sublet__word"
			\builtin printf '\1keyword\n' && \builtin compgen -k -- "$__sublet__word"
		fi
		\builtin printf '\1command\n' && \builtin compgen -c -- "$__sublet__word"
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$__sublet__word"
		\builtin return
	fi
	COMP_WORDS=("${__sublet__words[@]}") COMP_CWORD=$__sublet__cword COMP_LINE=$__sublet__line COMP_POINT=$__sublet__point COMP_KEY=9 COMP_TYPE=9
	COMPREPLY=()
	for __sublet__r in 1 2; do
		__sublet__spec=$(\builtin complete -p -- "$__sublet__cmd") || __sublet__spec=$(\builtin complete -p -- "${__sublet__cmd##*/}") ||
			__sublet__spec=$(\builtin complete -p -D) || __sublet__spec=
		[[ $__sublet__spec ]] || \builtin break
		\builtin eval "set -- ${__sublet__spec#complete }"
		__sublet__fn= __sublet__opts= __sublet__rest=()
		while (($#)); do
			case $1 in
			-F) __sublet__fn=$2 && \builtin shift ;;
			-o) __sublet__opts+=" $2" && \builtin shift ;;
			-A | -G | -W | -P | -S | -X | -C) __sublet__rest+=("$1" "$2") && \builtin shift ;;
			-D | -E | -I) ;;
			-*) __sublet__rest+=("$1") ;;
			esac
			\builtin shift
		done
		if [[ $__sublet__fn ]]; then
			"$__sublet__fn" "$__sublet__cmd" "$__sublet__word" "${__sublet__words[__sublet__cword - 1]}"
			(($? != 124)) || \builtin continue # it loaded a spec: look again
			((${#COMPREPLY[@]} == 0)) || \builtin printf '%s\n' $'\1word' "${COMPREPLY[@]}"
		elif ((${#__sublet__rest[@]})); then
			\builtin printf '\1word\n' && \builtin compgen "${__sublet__rest[@]}" -- "$__sublet__word"
		fi
		\builtin break
	done
	if [[ ! $__sublet__spec && $__sublet__cmd == @(cd|pushd|rmdir) ]]; then # as bash-completion has it
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$__sublet__word"
	elif [[ ! $__sublet__spec || " $__sublet__opts " == *default* ]]; then
		((${#COMPREPLY[@]})) || \builtin printf '\1file\n' && \builtin compgen -f -- "$__sublet__word"
	elif [[ " $__sublet__opts " == *dirs* || " $__sublet__opts " == *dirnames* ]]; then
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$__sublet__word"
	fi
	\builtin printf '\1o %s\n' "$__sublet__opts"
}

# load does in the shell itself what a loader did in the subshell, behind the answer, so that the next time is faster.
__sublet_load() {
	\builtin local __sublet__cmd="${__sublet__words[0]}" __sublet__spec=
	\builtin complete -p -- "$__sublet__cmd" >/dev/null && \builtin return
	\builtin complete -p -D >|"$__sublet_dir/h" || \builtin return
	\builtin read -r __sublet__spec <"$__sublet_dir/h"
	[[ $__sublet__spec == *' -F '* ]] || \builtin return
	__sublet__spec=${__sublet__spec##* -F }
	"${__sublet__spec%% *}" "$__sublet__cmd" '' "$__sublet__cmd"
	__sublet_f=df # no borrower's command will have changed it
}

__sublet_complete() {
	{
		\builtin local - # the hook keeps the options only where the user has odd ones
		\builtin set +m
		(__sublet_candidates) </dev/null >|"$__sublet_dir/o"
	} 2>/dev/null
	__sublet_answer "$1" 0
	((__sublet__cword == 0)) || __sublet_load </dev/null >/dev/null 2>&1
}

# list writes the history down for Go: the time before each entry is a SOH, or stands on a line of its own where the user
# made HISTTIMEFORMAT read-only.
__sublet_list() {
	if [[ ${HISTTIMEFORMAT@a} == *r* ]]; then
		\builtin history -w "$__sublet_dir/o"
	else
		HISTTIMEFORMAT=$'\1' \builtin history >|"$__sublet_dir/o"
	fi
}

# expands tells whether history expansion takes a line, what it makes of it (file h), and what bash says where it does not.
# history -p takes out the entry that was made last, as its own line: then one is made for it to take.
__sublet_expands() {
	\builtin printf '' >|"$__sublet_dir/o"
	[[ :$SHELLOPTS: == *:histexpand:* && :$SHELLOPTS: == *:history:* ]] || \builtin return 0
	(
		\builtin local __sublet__i __sublet__t=
		for __sublet__i in HISTCONTROL HISTIGNORE HISTTIMEFORMAT; do
			[[ ${!__sublet__i@a} == *r* ]] || \builtin unset -v "$__sublet__i"
		done
		if [[ ${HISTTIMEFORMAT@a} == *r* ]]; then # it stands before the text; written to a file, it does not
			\builtin history -w "$__sublet_dir/h"
			while IFS= \builtin read -r __sublet__i; do
				[[ $__sublet__i =~ ^#[0-9]+$ ]] && __sublet__t= || __sublet__t+=$__sublet__i$'\n'
			done <"$__sublet_dir/h"
		else
			\builtin history 1 >|"$__sublet_dir/h"
			IFS= \builtin read -r -d '' __sublet__t <"$__sublet_dir/h"
			[[ $__sublet__t =~ ^\ *[0-9]+\*?\ +(.*)$ ]] && __sublet__t=${BASH_REMATCH[1]}
		fi
		__sublet__t=${__sublet__t%$'\n'}
		if [[ $__sublet__t && $(\builtin history -p '!!') != "$__sublet__t" ]]; then
			\builtin history -s -- "$__sublet__t " # another text: a read-only HISTCONTROL may leave out the same
			\builtin history -d -1 || \builtin :   # bash 5.0 and later
		fi
		\builtin history -p -- "$1" >|"$__sublet_dir/h"
	) </dev/null >/dev/null 2>|"$__sublet_dir/o"
}
