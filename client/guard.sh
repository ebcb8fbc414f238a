# The guard of a terminal: a process that does nothing but outlive the client. A client that is killed cannot put its
# terminal back or end its shell; its guard notices by the end of a pipe, does both, and leaves. It is a few lines of
# sh because it waits for as long as the client lives: this takes a tenth of the memory of a second sublet.
#
#   $GUARD_TTY    the terminal
#   $GUARD_MODES  its modes as `stty -g` has them
#   $GUARD_RESET  what ends the modes of programs
#   $GUARD_FOLDER of the shell's files, to remove
#
# Descriptor 3 is the pipe: "shell PID" names the shell, "done" says that the client put everything right itself.
# Descriptor 4 keeps the terminal's name from becoming another terminal's.
trap '' INT QUIT HUP TERM TSTP TTIN TTOU PIPE
exec 2>/dev/null
tty=$GUARD_TTY saved=$GUARD_MODES pid=
while read -r word value <&3; do
	case $word in
	shell) pid=$value ;;
	done) exit 0 ;;
	esac
done

# The client's raw mode has no signals and no output processing. Other modes are those of the shell that waited for
# the client and has the terminal already: its line editor would be deaf under ours. The name is opened again, since
# the kernel hangs up the descriptors of a session whose leader was the client.
modes=$(stty -a <"$tty")
case $modes in
*-opost*)
	case $modes in
	*-isig*) stty "$saved" <"$tty" ;;
	esac
	;;
esac
printf '%s' "$GUARD_RESET" >"$tty"

# The shell's own terminal went with the client: it is on its way out, and its children with it. It is given a second,
# since a second hang-up would keep it from saving its history. A process that ended and was not collected is gone.
gone() {
	kill -0 "$pid" || return 0
	if [ -r "/proc/$pid/stat" ]; then
		read -r stat <"/proc/$pid/stat"
		set -- ${stat##*) } # state, parent, process group, session
		case $1 in
		[ZX]) return 0 ;;
		esac
		[ "$4" = "$pid" ] || return 0 # another's number by now: the shell leads its session
	fi
	return 1
}
if [ "$pid" ]; then
	for signal in 0 HUP KILL; do
		kill -s "$signal" "$pid"
		n=0
		while [ "$n" -lt 20 ]; do
			gone && break 2
			sleep 0.05
			n=$((n + 1))
		done
	done
fi
case $GUARD_FOLDER in
*/client-* | */sublet-client-*) rm -rf -- "$GUARD_FOLDER" ;;
esac
