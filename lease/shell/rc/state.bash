
# What the shell is like, written down for Go.

# note writes the variables down as a borrower's command finds them: hooks and traps of the user may have changed some since
# the state was. It has no variable of its own: declare would list it.
__sublet_note() {
	{ \builtin declare -p; \builtin printf '\0'; } 1<>"$__sublet_dir/v" 2>/dev/null # see d; what lies behind the NUL is old
}

# left writes down and tells what a borrower's command left behind before a hook of the user can change that or take its
# time; i: what it bent is not yet put back; a: no hook will run.
__sublet_left() {
	__sublet_vars=
	__sublet_d l # with the options as they are
	if [[ $- == *[aefkuvxCET]* ]]; then
		\builtin local -
		\builtin set +aefkuvxCET
	fi
	\builtin printf 'S %d %s %d\0' "$$" "${1-}" "$__sublet_i" >"$__sublet_dir/fifo"
}

# d writes down what a command can leave behind, in the file $1 (s). It has no variable of its own: declare would list it.
# A file that is emptied and written again is put on the disk when it is closed (ext4: auto_da_alloc, 3 ms), so it is
# written over; the number at both ends tells where it is whole, and what lies behind is of an earlier, longer one.
__sublet_d() {
	((++__sublet_i))
	{
		\builtin printf '%s\0' "$__sublet_i" "${PWD-}" "$SHELLOPTS" "$BASHOPTS" "${__sublet_f//[!ef]/}"
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
		case $__sublet_f in # only what may change functions may change these; to list all is 76 system calls
		*e*) \builtin enable -a ;;
		*f*) \builtin enable -n ;;
		esac || \builtin printf 'enable -n enable\n' # the one that lists them
		\builtin printf '\0'
		\builtin umask
		\builtin trap -p INT
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
	\builtin local IFS # in two steps, for set -k
	IFS=$' \t\n'
	\builtin local -a __sublet__names
	{
		\builtin compgen -A function -X '__sublet_*' || \builtin : # there may be none
		\builtin printf '\0'
	} 1<>"$__sublet_dir/h" # see d
	\builtin read -r -d '' -a __sublet__names <"$__sublet_dir/h"
	\builtin printf '%s ' "${__sublet__names[@]}"
	\builtin printf '\0'
	((${#__sublet__names[@]} == 0)) || \builtin declare -f "${__sublet__names[@]}" || \builtin : # under set -e it would end the shell
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
	__sublet_f=ef __sublet_dir=$__sublet_dir/k __sublet_d
	\builtin return "$__sublet_st"
}
