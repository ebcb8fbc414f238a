# Completion, part of the start-up file. Go asks with the variables words, cword, word, line and point set, which are
# local to the prompt hook. Candidates go to the file o, one a line; a line of SOH and a kind stands before those of that
# kind, and the kind "o " with the spec's options before nothing.

# candidates runs in a subshell, so whatever a user's completion function does stays in there.
__sublet_candidates() {
	\builtin local cmd="${words[0]}" spec= fn= opts= r
	\builtin local -a rest
	rest=()
	if [[ $word == '$'* ]]; then
		\builtin printf '\1variable\n' && \builtin compgen -v -P '$' -- "${word#\$}"
		\builtin return
	fi
	if ((cword == 0)); then
		if [[ $word != */* ]]; then
			\builtin printf '\1alias\n' && \builtin compgen -a -- "$word"
			\builtin printf '\1function\n' && \builtin compgen -A function -- "$word"
			\builtin printf '\1builtin\n' && \builtin compgen -b -- "$word"
			\builtin printf '\1keyword\n' && \builtin compgen -k -- "$word"
		fi
		\builtin printf '\1command\n' && \builtin compgen -c -- "$word"
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$word"
		\builtin return
	fi
	COMP_WORDS=("${words[@]}") COMP_CWORD=$cword COMP_LINE=$line COMP_POINT=$point COMP_KEY=9 COMP_TYPE=9
	COMPREPLY=()
	for r in 1 2; do
		spec=$(\builtin complete -p -- "$cmd") || spec=$(\builtin complete -p -- "${cmd##*/}") ||
			spec=$(\builtin complete -p -D) || spec=
		[[ $spec ]] || \builtin break
		\builtin eval "set -- ${spec#complete }"
		fn= opts= rest=()
		while (($#)); do
			case $1 in
			-F) fn=$2 && \builtin shift ;;
			-o) opts+=" $2" && \builtin shift ;;
			-A | -G | -W | -P | -S | -X | -C) rest+=("$1" "$2") && \builtin shift ;;
			-D | -E | -I) ;;
			-*) rest+=("$1") ;;
			esac
			\builtin shift
		done
		if [[ $fn ]]; then
			"$fn" "$cmd" "$word" "${words[cword - 1]}"
			(($? != 124)) || \builtin continue # it loaded a spec: look again
			((${#COMPREPLY[@]} == 0)) || \builtin printf '%s\n' $'\1word' "${COMPREPLY[@]}"
		elif ((${#rest[@]})); then
			\builtin printf '\1word\n' && \builtin compgen "${rest[@]}" -- "$word"
		fi
		\builtin break
	done
	if [[ ! $spec && $cmd == @(cd|pushd|rmdir) ]]; then # as bash-completion has it
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$word"
	elif [[ ! $spec || " $opts " == *default* ]]; then
		((${#COMPREPLY[@]})) || \builtin printf '\1file\n' && \builtin compgen -f -- "$word"
	elif [[ " $opts " == *dirs* || " $opts " == *dirnames* ]]; then
		\builtin printf '\1directory\n' && \builtin compgen -d -- "$word"
	fi
	\builtin printf '\1o %s\n' "$opts"
}

# load does in the shell itself what a loader did in the subshell, behind the answer, so that the next time is faster.
__sublet_load() {
	\builtin local cmd="${words[0]}" spec=
	\builtin complete -p -- "$cmd" >/dev/null && \builtin return
	\builtin complete -p -D >|"$__sublet_dir/h" || \builtin return
	\builtin read -r spec <"$__sublet_dir/h"
	[[ $spec == *' -F '* ]] || \builtin return
	spec=${spec##* -F }
	"${spec%% *}" "$cmd" '' "$cmd"
}

__sublet_complete() {
	{
		\builtin local - # the hook keeps the options only where the user has odd ones
		\builtin set +m
		(__sublet_candidates) </dev/null >|"$__sublet_dir/o"
	} 2>/dev/null
	__sublet_answer "$1" 0
	((cword == 0)) || __sublet_load </dev/null >/dev/null 2>&1
}
