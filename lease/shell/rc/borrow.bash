
# What stands around a sourced text.

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
		__sublet_left a # silent: the line is
		__sublet_next "$1"
		__sublet_f= # that was told
		__sublet_r
		if [[ -s $__sublet_dir/n ]]; then
			__sublet_ok=q # the prompt hook stands still
		else
			__sublet_w=
		fi
	fi
	\builtin return "$__sublet_st"
}

# y compares with what guard noted. Where that is bent it fails, and unbend leaves the text that puts it back in
# __sublet_tz. Traps are bent only by what may define functions, too (definers).
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
		# No editor again either: out of a text that is evaluated bash would read on in the terminal.
		__sublet_missing "$__sublet__so" "$1:vi:emacs" '\builtin set -o'
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
