
# How h and z come to stand in PROMPT_COMMAND, and stay there.

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
		\builtin local __sublet__e __sublet__i=0 __sublet__replaced= __sublet__bp __sublet__guarded=
		__sublet__user=("${PROMPT_COMMAND[@]}") __sublet__ours=("$__sublet__first" "$__sublet__last" "$__sublet__sure")
		__sublet_preexec "${__sublet__user[*]}"
		[[ ! $__sublet_bp ]] || __sublet__ours[0]+=$__sublet__known
		# Under set -x or -v they are hidden; where neither is, that would cost two system calls more each.
		[[ ! $__sublet_trace ]] || __sublet__ours=("{ ${__sublet__ours[0]}; } 2>/dev/null" "{ ${__sublet__ours[1]}; } 2>/dev/null" "{ ${__sublet__ours[2]}; } 2>/dev/null")
		# Bash prints the text of each under set -v: none after it was told that the shell is ready.
		[[ $__sublet_trace != *v* ]] || \builtin unset -v '__sublet__ours[1]'
		# Element 0 was assigned: the user's own first one, which followed it, was meant to go. With ours in it somebody looked
		# whether a hook is in $PROMPT_COMMAND, which is ours alone, and put it there once more.
		if [[ ${__sublet__user[0]-} != *"$__sublet__first"* ]]; then
			__sublet__replaced=${__sublet_x:+1}
		elif [[ ${__sublet__user[0]} != "${__sublet__ours[0]}" ]]; then
			__sublet__guarded=1
		fi
		PROMPT_COMMAND=("${__sublet__ours[0]}")
		for __sublet__e in "${__sublet__user[@]}"; do
			[[ $__sublet__replaced && $((__sublet__i++)) -gt 0 && $__sublet__e == "$__sublet_x" ]] && continue
			__sublet__bp=$__sublet__e
			__sublet_strip
			if [[ $__sublet__guarded == 1 ]]; then
				__sublet__guarded=2$__sublet__e
			elif [[ $__sublet__guarded == 2"$__sublet__e" ]]; then
				continue
			fi
			if [[ $__sublet_bp == 2 && $__sublet__bp == *"${__bp_install_string:-__bp_install}"* ]]; then
				PROMPT_COMMAND=("${PROMPT_COMMAND[0]}" ${__sublet__e:+"$__sublet__e"} "${PROMPT_COMMAND[@]:1}")
			elif [[ $__sublet__e ]]; then
				PROMPT_COMMAND+=("$__sublet__e")
			fi
		done
		\builtin unset -v __sublet_x __sublet_traced
		__sublet_alone=
		[[ ! $__sublet_trace ]] || __sublet_traced=$__sublet_trace
		[[ ${#PROMPT_COMMAND[@]} == 1 ]] || __sublet_x=${PROMPT_COMMAND[1]}
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
