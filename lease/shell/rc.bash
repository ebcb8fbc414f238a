# What a lent shell reads at its start. Go writes a few assignments above this text:
#
#   __sublet_dir      the shell's private folder       __sublet_tty      its terminal
#   __sublet_rc       the user's start-up file, or ''  __sublet_private  1: no person types here
#   __sublet_restore  what puts a dead shell's state back, or ''
#   __sublet_inherit  what takes options over from the environment
#   __sublet_old      1: bash before 5.1, where PROMPT_COMMAND is no array and there is no SRANDOM
#
# h begins the prompt hook and tells the end of a command; z ends the hook and tells that the shell is ready; next makes it
# so; g and e stand before and behind a sourced text, h behind one that changes nothing; guard and y note and put back
# what a borrower may bend; d writes the state down. They return $?; h and z do so in an old bash only, for later ones put it
# back behind each element of PROMPT_COMMAND, and an ERR trap would see it. All is builtins, spelled so that no alias and no
# function of the user comes in between, and nothing forks. Local variables begin with __sublet__: bash refuses one whose
# name the user made read-only, and has it take over the attributes of theirs under localvar_inherit.

__sublet_n=                      # nonce of the command that runs; empty once its end was told
__sublet_p=                      # status of the line that ended last
__sublet_w=1                     # 2: PS0 was printed, so a command began; empty: the prompt hook has nothing to do; while h tells an end, its nonce
__sublet_quick=                  # $- where the end of a command that changes nothing is simple to tell; else empty
__sublet_st=0                    # status of the last line of the user's, which they find as $? also behind a borrower's
__sublet_f=                      # what Go wants done at the end of this command
__sublet_tr=                     # text for the top level, run behind z
__sublet_l=()                    # the command that runs it
__sublet_ps1=                    # the user's PS1 while it is hidden
__sublet_hid=                    # 1: PS1 is hidden; r: it is read-only
__sublet_pc=                     # PROMPT_COMMAND as arm left it
__sublet_alone=                  # 1: the user has no prompt hook
__sublet_trace=                  # x under set -x, v under set -v
__sublet_ok=                     # that the shell is ready was told: 1 at this prompt, q before it
__sublet_b=';'                   # what stands behind the kind of a mark
__sublet_i=0                     # how often the state was written down
__sublet_own=                    # the line that ran was ours, and must leave the history: its status
__sublet_hc=                     # number the next line will have in the history
__sublet_bp=                     # bash-preexec: 1 is to be installed, 2 is in use
__sublet_vars=                   # hooks or traps of the user run around a borrower's command: what it changed is told before them; $? of the user's
__sublet_so=                     # the options and IFS before a borrower's command
# Each variable is a system call more where all are written down, so what is seldom wanted is set only then: ed, the editing
# mode the user asked for (vi, emacs); x, their only prompt hook; traced, what trace was when arm ran; pv, -u where they want no
# promptvars; tz, the text that puts back what a borrower bent.
# PS0 is expanded in the shell itself, so it can note the start and give PS1 its value back without a command: what it notes
# is the kind of the mark, and what PS1 is would be taken off a semicolon if it stood there behind a 2. Expansion costs by the
# character. The prompt's own escapes are no control characters where somebody lists the variables.
__sublet_ours='\e]7701;$((__sublet_w=2))${__sublet_b%2${PS1:=$__sublet_ps1}}${__sublet_n}\a'

__sublet_ret() { \builtin return "$1"; }

# h tells the end once: first the mark on the terminal, then the record. It stands before the user's hooks, so what
# those print belongs to no command; with q, behind a sourced text that changes nothing of the shell. Such a text, and a
# line for which nothing lies in the file n, leave the shell as r found it: then the record tells that it is ready, too, and
# the prompt hook has nothing more to do. That way is short: bash copies a function whole before it runs it, and a call, a
# builtin or a hundred characters expanded cost as much as ten comparisons. The next nonce is there before the record: a ^C
# behind it must not have the end of the next command told.
__sublet_h() {
	case $- in # leaves $? alone, and an assignment would be exported under set -a
	$__sublet_quick)
		__sublet_p=$?
		if [[ -t 1 && ( $1 == $__sublet_fast || ! $1 && $__sublet_own$__sublet_w == 2 && ! -s $__sublet_dir/n ) ]]; then
			__sublet_w=$__sublet_n __sublet_n=${SRANDOM:-$RANDOM-$$-$EPOCHREALTIME}-$SRANDOM
			\builtin printf '\e]7701;E;%s\a' "$__sublet_w"
			\builtin printf '%s\0' "E $__sublet_w $__sublet_p 1 $$ $__sublet_n"$'\1'"$PWD" >"$__sublet_dir/fifo"
			if [[ ! $1 ]]; then
				[[ $__sublet_p != 130 ]] || __sublet_unlist # a ^C struck before it could leave the history by itself
				__sublet_st=$__sublet_p __sublet_hc=$HISTCMD
			elif [[ $HISTCMD == $__sublet_hc ]]; then
				\builtin history -d "$HISTCMD"
			fi
			PS1=
			if [[ ! -s $__sublet_dir/n ]]; then
				__sublet_w=
			elif [[ $1 ]]; then
				__sublet_ok=q __sublet_w=1 # the prompt hook stands still
			else
				__sublet_stand
				__sublet_ok=1 __sublet_w=1
			fi
			[[ ! $1 || $__sublet_st == 0 ]] || \builtin return "$__sublet_st"
		else
			__sublet_hook "$__sublet_p" "$@"
		fi
		;;
	*) __sublet_hook "$?" "$@" ;;
	esac
}
# HISTCMD is the number of the line that runs; before 5.2 that was not tried.
__sublet_fast=-
[[ $__sublet_old == 1 ]] || ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 502)) || __sublet_fast=q

# hook does all that h may have to do. With tail the end of the line tells it; with q it is left to the prompt. Where no
# command began, a question may lie in the file q (flag q in the file n).
__sublet_hook() {
	if [[ ${2-} == q ]]; then
		__sublet_own=$1
		\builtin return "$__sublet_st"
	fi
	if [[ $__sublet_ok == q && $__sublet_w != 2 ]]; then
		__sublet_stand
		\builtin return "$((__sublet_old * $1))"
	fi
	__sublet_ok=
	[[ ! $__sublet_so || :${__sublet_so%%;*}: == *:errexit:* ]] || \builtin set +e
	__sublet_trace=
	if [[ $- == *[aefkuvxCET]* ]]; then
		__sublet_trace=${-//[!xv]/}
		\builtin local -
		\builtin set +aefkuvxCET
	fi
	\builtin printf -v __sublet_ok 1
	[[ $__sublet_ok ]] || __sublet_mend
	__sublet_ok=
	if [[ $__sublet_f == *f* || -s $__sublet_dir/n ]]; then
		{ __sublet_needs; } 2>/dev/null
	fi
	if [[ $__sublet_n ]]; then
		__sublet_hid=
		if [[ -t 1 ]]; then
			\builtin printf '\e]7701;E;%s\a' "$__sublet_n"
		else
			\builtin printf '\e]7701;E;%s\a' "$__sublet_n" >"$__sublet_tty"
		fi
		\builtin printf '%s\0' "E $__sublet_n ${__sublet_own:-$1} $((__sublet_w == 2))"$'\1'"${PWD-}" >"$__sublet_dir/fifo"
		__sublet_n=
		[[ ! $__sublet_own && $1 != 130 ]] || __sublet_unlist # before a hook of the user saves it (history -a)
	fi
	if [[ $__sublet_vars && $# != 2 ]]; then # an interrupt skipped early
		{ __sublet_left i; } 2>/dev/null
	fi
	# Hidden, it does not see the shell's own standard error.
	[[ $# == 2 || -t 0 && -t 1 && ( $__sublet_traced || -t 2 ) ]] || __sublet_reopen
	__sublet_hid=
	if [[ $__sublet_w != 2 ]]; then
		[[ ${PS1-} ]] || PS1=$__sublet_ps1
		if [[ -s $__sublet_dir/n ]]; then
			\builtin local __sublet__s="$1" __sublet__f __sublet__n
			[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
			\builtin read -r __sublet__f __sublet__n <"$__sublet_dir/n"
			[[ $__sublet__f != *q* ]] || \builtin . "$__sublet_dir/q"
		fi
	fi
	\builtin return "$((__sublet_old * $1))"
}

# needs switches on what all here stands on, and takes away what cannot be gone round.
__sublet_needs() {
	\builtin enable . alias builtin compgen declare enable eval exec hash history local printf read return set shopt trap umask unset
	\builtin unset -f . exec # these two cannot be called by builtin: see fixedLine, reopen
	! \builtin unalias '{' '}' '[[' || \builtin : # reserved words of fixedLine, which cannot be quoted
}

# mend takes a function named builtin away. In posix mode unset is found before any function, and an assignment brings that
# about.
__sublet_mend() {
	POSIXLY_CORRECT=1
	\unset -f builtin enable
	\unset -v POSIXLY_CORRECT
	\enable builtin
	__sublet_needs
	\builtin printf 'sublet: a function in the place of `builtin`, or `enable -n`, would keep the shell from being lent: it was undone\n' >"$__sublet_tty"
}

# reopen puts the terminal back where an exec closed or redirected the shell's own input or output: without the one it
# would end, or run what lies in a file, and without the other nobody would see that a command begins.
__sublet_reopen() {
	\exec 0<>"$__sublet_tty" 1<>"$__sublet_tty" 2<>"$__sublet_tty" # builtin would take it back
	\builtin printf 'sublet: an exec had sent the input or output of the shell itself elsewhere; it is the terminal again\n'
}

# keys notes which editing mode the user has asked for: whoever edits the line, it is theirs.
__sublet_keys() {
	case :$SHELLOPTS: in
	*:vi:*) __sublet_v=' v' __sublet_ed=vi ;;
	*:emacs:*) __sublet_v=' v' __sublet_ed=emacs ;;
	esac
}

# next re-arms everything, hides the prompt (the screen draws its own) and makes the next nonce.
__sublet_next() {
	__sublet_st=$1
	if [[ ${PS1-} || ! $__sublet_hid ]]; then
		__sublet_ps1=${PS1-}
		__sublet_hid=r
		[[ ${PS1@a} == *r* ]] || PS1= __sublet_hid=1
	fi
	__sublet_w=1
	[[ ${PS0-} == "$__sublet_ours"* ]] || PS0=$__sublet_ours${PS0-}
	__sublet_v= # the line editor is back: only a typed line of Go's can switch it off
	[[ ! -o vi && ! -o emacs ]] || __sublet_keys
	if [[ :$BASHOPTS: != *:promptvars:* ]]; then # PS0 needs it; Prompt does without where the user does
		\builtin shopt -s promptvars
		__sublet_pv=-u
	fi
	# New for each command. Bash before 5.1 has no good random numbers: Go lays one beside the flags.
	[[ $__sublet_old == 1 ]] || __sublet_n=${SRANDOM:-${RANDOM-}-$$-${EPOCHREALTIME-}}-${SRANDOM-}
}

# z makes sure that the shell is ready and that it was told.
__sublet_z() {
	case $__sublet_ok in
	'') __sublet_ready "$?" ;;
	esac
	[[ ! $__sublet_tr ]] || __sublet_l=(builtin eval "$__sublet_tr")
}

# ready makes the shell ready and tells so. Flags: a the file q is for the top level, d write the state down, f with functions.
__sublet_ready() {
	if [[ $- == *[aefkuvxCET]* ]]; then
		\builtin local -
		\builtin set +aefkuvxCET
	fi
	\builtin local __sublet__s="$1"
	[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
	if [[ $__sublet_n ]]; then # a hook of the user was put in its place
		__sublet_hook "$__sublet__s"
		[[ ! $__sublet_ok ]] || \builtin return "$((__sublet_old * __sublet__s))"
	fi
	[[ ${PROMPT_COMMAND[*]-} == "$__sublet_pc" && $__sublet_trace == "${__sublet_traced-}" ]] || __sublet_arm
	if [[ -s $__sublet_dir/n ]]; then
		\builtin local __sublet__f
		__sublet_wait
		\builtin read -r __sublet__f __sublet_n <"$__sublet_dir/n"
		__sublet_f+=$__sublet__f
	fi
	__sublet_line "$__sublet__s"
	__sublet_next "$__sublet__s"
	[[ $__sublet_f != *a* ]] || __sublet_tr+='
\builtin . "$__sublet_dir/q"'
	[[ $__sublet_f != *d* ]] || __sublet_tr+='
\__sublet_d 2>/dev/null'
	if [[ $__sublet_tr ]]; then
		__sublet_tr+='
\__sublet_r'
	else
		__sublet_r
	fi
	\builtin return "$((__sublet_old * __sublet__s))"
}

# wait stands still while Go takes what was typed and nobody read (flag w): else it would be the next line. The flags
# are looked at after the end was told, so that whoever lays one knows whether it was seen.
__sublet_wait() {
	\builtin local __sublet__f __sublet__n __sublet__t
	[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
	while \builtin read -r __sublet__f __sublet__n <"$__sublet_dir/n" && [[ $__sublet__f == *w* ]]; do
		\builtin printf 'W\0' >"$__sublet_dir/fifo"
		\builtin read -r __sublet__t <"$__sublet_dir/w" || \builtin break
	done
}

# stand does so where the end told that the shell is ready, too, and tells that again.
__sublet_stand() {
	\builtin local __sublet__f __sublet__n
	[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
	\builtin read -r __sublet__f __sublet__n <"$__sublet_dir/n"
	if [[ $__sublet__f == *w* ]]; then
		__sublet_wait
		\builtin printf 'R %d %s%s\0' "$$" "$__sublet_n" "$__sublet_v" >"$__sublet_dir/fifo"
	fi
}

# r tells that the shell is ready, and whether its state was written down.
__sublet_r() {
	if [[ $- == *a* || ${__sublet_w@a} == *x* ]]; then # PS0 sets it under set -a
		\builtin local -
		\builtin set +a
		\builtin export -n "${!__sublet_@}"
	fi
	__sublet_tr= __sublet_l=() __sublet_quick=
	[[ $__sublet_alone$__sublet_hid$__sublet_v != 11 || ! ${HISTCMD-} || $- == *[aefkuvxCET]* ]] || __sublet_quick=$-
	\builtin printf 'R %d %s%s %s %d\0' "$$" "$__sublet_n" "$__sublet_v" "${__sublet_f//[!d]/}" "$__sublet_i" >"$__sublet_dir/fifo"
	__sublet_ok=1 __sublet_f= __sublet_vars=
}

# unlist takes our own line out of the history, if it is there: by its text, for HISTCONTROL and HISTIGNORE decide that.
__sublet_unlist() {
	__sublet_own=
	[[ -o history && ( ! ${HISTCMD-} || $HISTCMD != "$__sublet_hc" ) ]] || \builtin return 0
	\builtin local __sublet__n __sublet__t
	[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
	[[ ${HISTTIMEFORMAT@a} == *r* ]] || \builtin local HISTTIMEFORMAT=
	\builtin history 1 1<>"$__sublet_dir/h" # see d
	\builtin read -r __sublet__n __sublet__t <"$__sublet_dir/h"
	[[ $__sublet__t != *__sublet_* ]] || \builtin history -d "${__sublet__n%\*}"
}

# line notes the number of the next line, when ours has left the history: one that a ^C struck could not by itself.
__sublet_line() {
	[[ ! $__sublet_own && $1 != 130 ]] || __sublet_unlist
	__sublet_hc=${HISTCMD-}
}

# answer tells that a question was answered.
__sublet_answer() {
	\builtin printf 'Q %s %d\0' "$1" "$2" >"$__sublet_dir/fifo"
}

# arm puts h before and z behind the user's prompt hooks. A ^C ends the element it strikes, and bash goes on with the
# next: what z did not finish is done by the last. From 5.1 on PROMPT_COMMAND may be an array, and a plain assignment
# replaces element 0 only: z survives an rc file that is sourced again, and puts h back (T1b).
#
# Where there are no hooks but ours two elements do. The words are quoted in case IFS splits them; a line each, for bash is
# quicker at that than at a list.
__sublet_arm() {
	\builtin local __sublet__first='${__sublet_w:+"__sublet_h"}' __sublet__last='${__sublet_w:+"__sublet_z"}
"${__sublet_l[@]}"'
	\builtin local __sublet__sure="$__sublet__last"'
__sublet_w=1 __sublet_ok='
	# Bash-preexec takes for a person's line what comes behind its last hook and is no line of PROMPT_COMMAND; some versions look
	# at element 0 only. So where it is in use, that hook comes once more behind ours, and a line of element 0 is each of ours that
	# stands behind it, or first in a line that Go types. What installs it is to be gone once it is installed.
	\builtin local __sublet__again_bp='\__bp_interactive_mode' __sublet__known=$'\n\\builtin : \'\n'"$__sublet__first"$'\n'"$__sublet__sure"$'\n\\. "$__sublet_dir/c"\n\\__sublet_g\n\\__sublet_g h\n\\builtin set +e
\\builtin set +o vi +o emacs\n\\builtin trap -p >| "$__sublet_dir/t"\n\''
	__sublet_elements
}
__sublet_preexec() {
	__sublet_bp=
	[[ $1 != *__bp_install* ]] || __sublet_bp=1
	[[ $1 != *__bp_precmd_invoke_cmd* ]] || __sublet_bp=2
	[[ ! $__sublet_bp ]] || \builtin declare -F __bp_interactive_mode >/dev/null || __sublet_bp=
}
__sublet_strip() {
	__sublet__e=${__sublet__e//"$__sublet__known"/}
	__sublet__e=${__sublet__e//"$__sublet__again_bp"/}
	[[ $__sublet_bp != 2 ]] || __sublet__e=${__sublet__e//"${__bp_install_string-}"/}
	__sublet__e=${__sublet__e//"{ $__sublet__sure; } 2>/dev/null"/}
	__sublet__e=${__sublet__e//"{ $__sublet__last; } 2>/dev/null"/}
	__sublet__e=${__sublet__e//"{ $__sublet__first; } 2>/dev/null"/}
	__sublet__e=${__sublet__e//"$__sublet__sure"/}
	__sublet__e=${__sublet__e//"$__sublet__last"/}
	__sublet__e=${__sublet__e//"$__sublet__first"/}
	while [[ $__sublet__e == [[:space:]\;]* ]]; do __sublet__e=${__sublet__e#?}; done
	while [[ $__sublet__e == *[[:space:]\;] ]]; do __sublet__e=${__sublet__e%?}; done
}
if [[ $__sublet_old == 0 ]]; then
	__sublet_elements() {
		\builtin local -a __sublet__user __sublet__ours
		\builtin local __sublet__e __sublet__i=0 __sublet__replaced= __sublet__bp
		__sublet__user=("${PROMPT_COMMAND[@]}") __sublet__ours=("$__sublet__first" "$__sublet__last" "$__sublet__sure")
		__sublet_preexec "${__sublet__user[*]}"
		[[ ! $__sublet_bp ]] || __sublet__ours[0]+=$__sublet__known
		# Under set -x or -v they are hidden; where neither is, that would cost two system calls more each.
		[[ ! $__sublet_trace ]] || __sublet__ours=("{ ${__sublet__ours[0]}; } 2>/dev/null" "{ ${__sublet__ours[1]}; } 2>/dev/null" "{ ${__sublet__ours[2]}; } 2>/dev/null")
		# Bash prints the text of each under set -v: none after it was told that the shell is ready.
		[[ $__sublet_trace != *v* ]] || \builtin unset -v '__sublet__ours[1]'
		# Element 0 was assigned: the user's only hook, which followed it, was meant to go.
		[[ ${__sublet_x-} && ${__sublet__user[0]-} != *"$__sublet__first"* ]] && __sublet__replaced=1
		PROMPT_COMMAND=("${__sublet__ours[0]}")
		for __sublet__e in "${__sublet__user[@]}"; do
			[[ $__sublet__replaced && $((__sublet__i++)) -gt 0 && $__sublet__e == "$__sublet_x" ]] && continue
			__sublet__bp=$__sublet__e
			__sublet_strip
			if [[ $__sublet_bp == 2 && $__sublet__bp == *"${__bp_install_string:-__bp_install}"* ]]; then
				PROMPT_COMMAND=("${PROMPT_COMMAND[0]}" ${__sublet__e:+"$__sublet__e"} "${PROMPT_COMMAND[@]:1}")
			elif [[ $__sublet__e ]]; then
				PROMPT_COMMAND+=("$__sublet__e")
			fi
		done
		\builtin unset -v __sublet_x __sublet_traced
		__sublet_alone=
		[[ ! $__sublet_trace ]] || __sublet_traced=$__sublet_trace
		[[ ${#PROMPT_COMMAND[@]} != 2 ]] || __sublet_x=${PROMPT_COMMAND[1]}
		[[ ${#PROMPT_COMMAND[@]} != 1 ]] || __sublet_alone=1
		[[ ! $__sublet_alone ]] || \builtin unset -v '__sublet__ours[1]'
		PROMPT_COMMAND+=("${__sublet__ours[@]:1}")
		[[ ! $__sublet_bp ]] || PROMPT_COMMAND+=("$__sublet__again_bp")
		__sublet_pc=${PROMPT_COMMAND[*]}
	}
else
	__sublet_elements() {
		\builtin local __sublet__e="${PROMPT_COMMAND-}"
		__sublet_preexec "$__sublet__e"
		__sublet_strip
		\builtin unset -v PROMPT_COMMAND # an exported one would reach shells that have no such functions
		PROMPT_COMMAND=$__sublet__first${__sublet_bp:+$__sublet__known}$'\n'${__sublet__e:+$__sublet__e$'\n'}$__sublet__last$'\n'$__sublet__sure
		PROMPT_COMMAND+=${__sublet_bp:+$'\n'$__sublet__again_bp}
		__sublet_pc=$PROMPT_COMMAND
	}
fi

# g stands before a sourced text. Our own line leaves the history; with h the text takes its place there.
__sublet_g() {
	\builtin local -
	\builtin set +aefkuvxCET
	__sublet_quick=
	if [[ -o history && ${1-} == h ]]; then
		\builtin local __sublet__t
		IFS= \builtin read -r -d '' __sublet__t <"$__sublet_dir/c" || \builtin :
		\builtin history -s -- "${__sublet__t%$'\n'}" # takes the line it stands on out by itself
		[[ ! $__sublet_bp ]] || __bp_interactive_mode
	elif [[ $__sublet_fast == q && ${HISTCMD-} && $HISTCMD == "$__sublet_hc" ]]; then
		\builtin history -d "$HISTCMD"
	elif [[ $__sublet_fast != q || ${HISTCMD-} != "$((__sublet_hc - 1))" ]]; then # that is one HISTCONTROL left out
		__sublet_hc=
		__sublet_unlist
		[[ $__sublet_f != *f* ]] || __sublet_hq=$((${HISTCMD:-0} + 1))
	fi
	\builtin return "$__sublet_st"
}

# guard notes what a borrower may bend; its arguments are the flags for the end of the command, and an option that was
# switched off for it. Traps are noted at the top level before it: a function does
# not see DEBUG.
__sublet_guard() {
	\builtin set -- "$1" "$SHELLOPTS${2:+:$2};$BASHOPTS;${IFS-unset}"
	\builtin local -
	\builtin set +a # else its program would get what is assigned here
	__sublet_f=$1 __sublet_so=$2
	__sublet_tr='\__sublet_y || \builtin eval "$__sublet_tz"'
	if [[ $1 == *f* ]]; then
		__sublet_fd=() __sublet_hq=
		[[ $1 != *j* ]] || \builtin jobs -p >|"$__sublet_dir/j"
		# Where the text traps INT a cancel has bash end it by this signal, which does nothing elsewhere: interrupt in cancel.go.
		\builtin trap '\builtin trap - INT URG; \builtin kill -INT $$' URG
		__sublet_tr='\builtin set -- "${__sublet_at[@]}"; \builtin trap - URG; \builtin trap -p >|"$__sublet_dir/u"; '$__sublet_tr
	fi
	__sublet_vars=
	if [[ ! $__sublet_alone || ${PS0-} != "$__sublet_ours" || -s $__sublet_dir/t ]]; then
		[[ $1 == *b* ]] || __sublet_note # else Go knows which variables it may change
		__sublet_vars=$__sublet_st
		[[ ! -s $__sublet_dir/t ]] || __sublet_st=0 # an ERR trap would see what g returns
	fi
	\builtin return "$__sublet_st"
}

# note writes the variables down as a borrower's command finds them: hooks and traps of the user may have changed some since
# the state was. It has no variable of its own: declare would list it.
__sublet_note() {
	{ \builtin declare -p; \builtin printf '\0'; } 1<>"$__sublet_dir/v" 2>/dev/null # see d; what lies behind the NUL is old
}

# left writes down and tells what a borrower's command left behind before a hook of the user can change that or take its
# time; i: what it bent is not yet put back.
__sublet_left() {
	__sublet_vars=
	__sublet_d l # with the options as they are
	if [[ $- == *[aefkuvxCET]* ]]; then
		\builtin local -
		\builtin set +aefkuvxCET
	fi
	\builtin printf 'S %d %s %d\0' "$$" "${1-}" "$__sublet_i" >"$__sublet_dir/fifo"
}

# plain switches the line editor off that a sourced text brought in (`. ~/.bashrc`, `set -o vi` in it): bash ran no prompt hook
# any more. Here it may, for nothing else is read meanwhile; out of a text that is evaluated it would read on in the terminal.
__sublet_plain() {
	[[ $__sublet_so ]] || __sublet_keys # a borrower's holds for the command
	\builtin set +o vi +o emacs
	__sublet_v=
}

# e stands behind a sourced text and tells its end; h does where an interrupt skipped it.
__sublet_e() {
	case :$SHELLOPTS: in
	*:vi:* | *:emacs:*) __sublet_plain ;;
	esac
	__sublet_hook "$1" tail
	[[ ${PROMPT_COMMAND[*]-} == "$__sublet_pc" && $__sublet_trace == "${__sublet_traced-}" ]] || __sublet_again
	\builtin return "$1"
}

# again arms where options may be bent.
__sublet_again() {
	\builtin local -
	\builtin set +aefkuvxCET
	[[ ${IFS@a} == *r* ]] || \builtin local IFS=$' \t\n'
	__sublet_arm
}

# missing adds a command to __sublet_tz for each option in the list $1 that is not in the list $2; IFS may be read-only.
__sublet_missing() {
	\builtin local __sublet__rest="$1:"
	while [[ $__sublet__rest ]]; do
		[[ :$2: == *:"${__sublet__rest%%:*}":* ]] || __sublet_tz+="$3 ${__sublet__rest%%:*};"
		__sublet__rest=${__sublet__rest#*:}
	done
}

# early stands behind that: it writes the state down and tells that the shell is ready while the line still runs, where no
# hook of the user can change anything behind it. Else the prompt hook does.
__sublet_early() {
	if [[ $__sublet_vars ]]; then
		__sublet_st=$__sublet_vars
		__sublet_left
	elif [[ $__sublet_alone && $__sublet_fast == q && ! $__sublet_n$__sublet_tr && -t 0 && -t 1 && $- != *[aefkuvxCET]* &&
		${#PROMPT_COMMAND[@]} == 2 ]]; then
		__sublet_hc=
		[[ ${HISTCMD:-x} == *[!0-9]* ]] || __sublet_hc=$((HISTCMD + 1)) # here it is still that of a line that is gone
		__sublet_next "$1"
		__sublet_d # silent: the line is
		__sublet_r
		if [[ -s $__sublet_dir/n ]]; then
			__sublet_ok=q # the prompt hook stands still
		else
			__sublet_w=
		fi
	fi
	\builtin return "$__sublet_st"
}

# y compares with what guard noted. Where that is bent it fails, and unbend leaves the text that puts it back in __sublet_tz. Traps
# are bent only by what may define functions, too (definers).
__sublet_y() {
	if [[ "$SHELLOPTS;$BASHOPTS;${IFS-unset}" == "$__sublet_so" && ( $__sublet_f != *f* || ! -s $__sublet_dir/t && ! -s $__sublet_dir/u ) ]]; then
		__sublet_so= __sublet_tr=
	else
		__sublet_unbend "$SHELLOPTS" "$BASHOPTS" "${IFS-unset}"
		\builtin return 1
	fi
}
__sublet_unbend() {
	\builtin local -
	\builtin set +aefkuvxCET
	\builtin local __sublet__so="${__sublet_so%%;*}" __sublet__bo="${__sublet_so#*;}" __sublet__ifs __sublet__now __sublet__was
	__sublet__ifs=${__sublet__bo#*;} __sublet__bo=${__sublet__bo%%;*}
	__sublet_tz=
	if [[ $1 != "$__sublet__so" ]]; then
		__sublet_missing "$1" "$__sublet__so:vi:emacs" '\builtin set +o'
		__sublet_missing "$__sublet__so" "$1" '\builtin set -o'
	fi
	if [[ $2 != "$__sublet__bo" ]]; then
		__sublet_missing "$2" "$__sublet__bo" '\builtin shopt -u'
		__sublet_missing "$__sublet__bo" "$2" '\builtin shopt -s'
	fi
	if [[ $3 != "$__sublet__ifs" && ${IFS@a} != *r* ]]; then
		if [[ $__sublet__ifs == unset ]]; then
			__sublet_tz+='\builtin unset -v IFS;'
		else
			__sublet_tz+="IFS=${__sublet__ifs@Q};"
		fi
	fi
	if [[ $__sublet_f == *f* ]]; then
		IFS= \builtin read -r -d '' __sublet__was <"$__sublet_dir/t" || \builtin : # an ERR trap under set -E would see it
		IFS= \builtin read -r -d '' __sublet__now <"$__sublet_dir/u" || \builtin :
	fi
	if [[ $__sublet__was != "$__sublet__now" ]]; then
		# Not each system has all these signals, and bash says so of each by itself.
		__sublet_tz+='\builtin trap - EXIT DEBUG RETURN ERR 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34'
		__sublet_tz+=' 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 2>/dev/null;'$__sublet__was
	fi
	__sublet_so= __sublet_tr=
}

# d writes down what a command can leave behind, in the file $1 (s). It has no variable of its own: declare would list it. A file that is
# emptied and written again is put on the disk when it is closed (ext4: auto_da_alloc, 3 ms), so it is written over; the
# number at both ends tells where it is whole, and what lies behind is of an earlier, longer one.
__sublet_d() {
	((++__sublet_i))
	{
		\builtin printf '%s\0' "$__sublet_i" "${PWD-}" "$SHELLOPTS" "$BASHOPTS" "${__sublet_f//[!f]/}"
		\builtin declare -p
		\builtin printf '\0'
		\builtin alias -p
		if [[ $__sublet_f == *f* ]]; then
			\builtin printf '\0'
			__sublet_functions
			__sublet_more
		else
			\builtin printf '\0\0\0\0\0\0'
		fi
		if [[ $- != *h* ]]; then # bash goes by the hash table under set +h, too, but does not show it
			\builtin local -
			\builtin set -h
		fi
		\builtin hash -l
		[[ $__sublet_f != *f* ]] || \builtin enable -a # only what may change functions may change these
		\builtin printf '\0'
		\builtin umask
		\builtin printf '\0%s\0' "$__sublet_i"
	} 1<>"$__sublet_dir/${1:-s}"
	\builtin return 0
}

# functions lists names and texts: the user's, for bash takes half a millisecond to print ours.
__sublet_functions() {
	if [[ ${IFS@a} == *r* ]]; then # the names could not be told apart
		\builtin compgen -A function
		\builtin printf '\0'
		\builtin declare -f
		\builtin return
	fi
	\builtin local IFS=$' \t\n'
	\builtin local -a __sublet__names
	{
		\builtin compgen -A function -X '__sublet_*' || \builtin : # there may be none
		\builtin printf '\0'
	} 1<>"$__sublet_dir/h" # see d
	\builtin read -r -d '' -a __sublet__names <"$__sublet_dir/h"
	\builtin printf '%s\n' "${__sublet__names[@]}"
	\builtin printf '\0'
	((${#__sublet__names[@]} == 0)) || \builtin declare -f "${__sublet__names[@]}"
}

# more lists what is seldom changed; what was open behind a borrower's text, and by how many lines the history grew: that stands
# behind the flags.
__sublet_more() {
	\builtin printf '\0'
	\builtin declare -Fx
	[[ $__sublet_f != *j* ]] || \builtin jobs -p
	\builtin dirs -l -p
	\builtin complete -p
	\builtin printf '\0%s\0%s\0' "${__sublet_fd[*]-}" "${__sublet_f//[!0-9-]/}"
	[[ ! ${__sublet_at+x}${__sublet_fd+x}${__sublet_hq+x} ]] || \builtin unset -v __sublet_at __sublet_fd __sublet_hq
}

# b and k stand around a text that runs in a subshell: what it leaves behind is written down for the shell itself.
__sublet_b() {
	__sublet_sub=$BASHPID
	__sublet_note
	\builtin trap '{ \__sublet_k; } 2>/dev/null' EXIT # silent under set -x
	# Without one, SIGINT now and then ends a subshell that no EXIT trap is run in.
	\builtin trap '{ \__sublet_k; } 2>/dev/null; \builtin trap - INT; \builtin kill -INT $BASHPID' INT
	[[ $- != *E* ]] || __sublet_st=0 # an ERR trap would see it
	\builtin return "$__sublet_st"
}
__sublet_k() {
	{ __sublet_st=$?; } 2>/dev/null
	# A child that SIGINT strikes before it is its program runs the trap, too.
	[[ $BASHPID == "$__sublet_sub" ]] || \builtin return "$__sublet_st"
	\builtin trap '' INT # a second one would cut it off
	__sublet_f=f __sublet_dir=$__sublet_dir/k __sublet_d
	\builtin return "$__sublet_st"
}

# What ends a command is not to be replaced by accident: a text that tries is told so by bash.
\builtin readonly -f __sublet_ret __sublet_h __sublet_hook __sublet_needs __sublet_mend __sublet_reopen __sublet_next \
	__sublet_z __sublet_ready __sublet_wait __sublet_stand __sublet_r __sublet_unlist \
	__sublet_line __sublet_answer __sublet_preexec __sublet_strip __sublet_elements __sublet_arm __sublet_g __sublet_guard __sublet_note __sublet_left __sublet_plain __sublet_e __sublet_again \
	__sublet_missing __sublet_early __sublet_y __sublet_unbend __sublet_d __sublet_functions __sublet_more __sublet_b __sublet_k __sublet_candidates __sublet_load __sublet_complete __sublet_list \
	__sublet_expands

if [[ $__sublet_private == 1 ]]; then
	unset -v HISTFILE
	set +o history
fi
if [[ $__sublet_rc && -r $__sublet_rc ]]; then
	bind() { :; } # there is no line editor here to bind keys in, and bash would say so each time
	. "$__sublet_rc"
	__sublet_tz=$_
	\builtin unset -f bind
	for __sublet_i in PROMPT_COMMAND PS0; do
		\builtin declare -n __sublet_x=$__sublet_i
		if [[ ${__sublet_x+x} && ${__sublet_x@a} == *r* ]]; then
			\builtin printf 'it makes %s read-only, which sublet needs a place in\n' "$__sublet_i" >&2
			\builtin exit 1
		fi
		\builtin unset -n __sublet_x
	done
	__sublet_i=0
	\builtin unset -v __sublet_x
fi
__sublet_keys
__sublet_v=
\builtin set +o vi +o emacs
if [[ $__sublet_private == 1 ]]; then
	\builtin unset -v HISTFILE
	[[ ${TMOUT@a} == *r* ]] || \builtin unset -v TMOUT # nobody can have left it
	\builtin set +o history
fi
[[ ! $__sublet_restore ]] || \builtin . "$__sublet_restore"
if [[ ${FUNCNEST-} == [1-9] || ${FUNCNEST-} == 1[0-9] ]]; then
	if [[ ${FUNCNEST@a} == *r* ]]; then
		\builtin printf 'FUNCNEST is read-only and %s: the functions of sublet need 20\n' "$FUNCNEST" >&2
		\builtin exit 1
	fi
	\builtin printf 'sublet: FUNCNEST was %s; its functions need 20, so it is 20 here\n' "$FUNCNEST" >&2
	FUNCNEST=20
fi
\builtin unset -v __sublet_rc __sublet_private __sublet_restore
__sublet_w=2 # PS1 is the user's now, also where it is empty
\builtin eval "$__sublet_inherit"
\builtin unset -v __sublet_inherit
\__sublet_again
\builtin : "${__sublet_tz-}" # which $_ then is
