# What a lent shell reads at its start begins here: the prompt hook. Behind it come arm, borrow, state, complete and start. Go
# writes a few assignments above this text:
#
#   __sublet_dir      the shell's private folder       __sublet_tty      its terminal
#   __sublet_rc       the user's start-up file, or ''  __sublet_private  1: no person types here
#   __sublet_restore  what puts a dead shell's state back, or ''
#   __sublet_inherit  what takes options over from the environment
#   __sublet_old      1: bash before 5.1, where PROMPT_COMMAND is no array and there is no SRANDOM
#
# h begins the prompt hook and tells the end of a command; z ends the hook and tells that the shell is ready; next makes
# it so; g and e stand before and behind a sourced text, h behind one that changes nothing; guard and y note and put back
# what a borrower may bend; d writes the state down, left tells it before hooks of the user run. They return $?; h and z
# do so in an old bash only, for later ones put it back behind each element of PROMPT_COMMAND, and an ERR trap would see
# it. All is builtins, spelled so that no alias and no function of the user comes in between, and nothing forks. Local
# variables begin with __sublet__: bash refuses one whose name the user made read-only, and has it take over the
# attributes of theirs under localvar_inherit.

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

# ready makes the shell ready and tells so. Flags: a the file q is for the top level, d write the state down, f with functions, e with all builtins.
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
	# In a list, for errexit and an ERR trap; builtin before it would bring errexit into that (CMD_IGNORE_RETURN).
	[[ $__sublet_f != *a* ]] || __sublet_tr+='
\. "$__sublet_dir/q" || \builtin :'
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

# r tells that the shell is ready, and whether its state was written down. Where the user has prompt hooks it tells the prompt,
# too: a question would have them run once more. But for one that may take long, fail, or do anything else when it is expanded.
__sublet_r() {
	if [[ $- == *a* || ${__sublet_w@a} == *x* ]]; then # PS0 sets it under set -a
		\builtin local -
		\builtin set +a
		\builtin export -n "${!__sublet_@}"
	fi
	__sublet_tr= __sublet_l=() __sublet_quick=
	[[ $__sublet_alone$__sublet_hid$__sublet_v != 11 || ! ${HISTCMD-} || $- == *[aefkuvxCET]* ]] || __sublet_quick=$-
	\builtin local __sublet__p # in two steps, for set -k
	__sublet__p=
	if [[ ! $__sublet_alone && ! ${__sublet_pv-} && $- != *[aefkuvxCET]* && ${#__sublet_ps1} -lt 1000 ]]; then
		case ${__sublet_ps1/'${debian_chroot:+($debian_chroot)}'/} in
		*'$'[\(\{\[]* | *\`*) ;;
		*)
			__sublet_ret "$__sublet_st"
			__sublet__p=$'\1'${__sublet_ed-}$'\n'${__sublet_ps1@P}
			;;
		esac
	fi
	\builtin printf 'R %d %s%s %s %d%s\0' "$$" "$__sublet_n" "$__sublet_v" "${__sublet_f//[!d]/}" "$__sublet_i" "$__sublet__p" >"$__sublet_dir/fifo"
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
