
# What ends a command is not to be replaced by accident: a text that tries is told so by bash.
\builtin readonly -f __sublet_ret __sublet_h __sublet_hook __sublet_needs __sublet_mend __sublet_reopen __sublet_next __sublet_z \
	__sublet_ready __sublet_wait __sublet_stand __sublet_r __sublet_unlist __sublet_line __sublet_answer \
	__sublet_preexec __sublet_strip __sublet_elements __sublet_arm __sublet_g __sublet_guard __sublet_note __sublet_left \
	__sublet_plain __sublet_e __sublet_again __sublet_missing __sublet_early __sublet_y __sublet_unbend __sublet_d \
	__sublet_functions __sublet_more __sublet_b __sublet_k __sublet_candidates __sublet_load __sublet_complete \
	__sublet_list __sublet_expands

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
