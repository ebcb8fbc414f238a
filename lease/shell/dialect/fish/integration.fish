# sublet's integration for fish, sourced after the user's own start-up files. It adds what lets sublet lend this shell: marks
# in the terminal's output (OSC 7701) before each prompt and each command, and a key that calls __sublet_widget. The protocol
# is described in the package comment of lease/shell/dialect.

# Prints the mark $argv[1].
function __sublet_mark
    builtin printf '\e]7701;%s;%s;%s\a' $argv[1] $fish_pid $__sublet_nonce
end

# Sends the record $argv[1], with the text $argv[2] after the process id.
function __sublet_send
    builtin printf '%s %s %s\0' $argv[1] $fish_pid "$argv[2]" >$__sublet_folder/up
end

# Fish calls this before each prompt, and when ^C has emptied the line.
function __sublet_prompt --on-event fish_prompt --on-event fish_cancel
    builtin set -l __sublet_found $status
    __sublet_resume # where the line never came to __sublet_begin
    if builtin set -q __sublet_running
        builtin set -e __sublet_running
    else
        builtin set -g __sublet_status $__sublet_found
    end
    __sublet_send P "$__sublet_found $PWD"
    __sublet_mark P
end

# Fish calls this when a line begins.
function __sublet_command --on-event fish_preexec
    builtin set -q __sublet_aside; and return
    __sublet_send B (builtin string sub -l 3000 -- $argv[1] | string collect)
    __sublet_mark B
end

# __sublet_begin and __sublet_end stand around a borrowed command's text in the line that __sublet_widget sets. The text is
# evaluated, not sourced: fish gives no process group of its own to a program of a sourced file; ^Z would stop it without a job.
function __sublet_begin
    __sublet_resume
    builtin read --global --null __sublet_text <$__sublet_folder/text
    builtin set -g __sublet_running
    __sublet_mark S
end
function __sublet_end
    builtin set -l __sublet_found $status
    __sublet_send E "$__sublet_nonce $__sublet_found $PWD"
    __sublet_mark E
    builtin set -e __sublet_running
    builtin return $__sublet_status
end

function __sublet_resume
    builtin set -q __sublet_aside; or builtin return
    builtin set -g fish_history $__sublet_aside # not erased before, because it may be exported
    builtin set -q __sublet_aside[1]; or builtin set -e fish_history
    builtin set -e __sublet_aside
    builtin functions --erase fish_title
    builtin functions --query __sublet_title; and builtin functions --copy __sublet_title fish_title
    builtin functions --erase __sublet_title
end

# Fish calls this when the client types the hold key. It reports the half-typed line and blocks until a directive of the
# client's ends it. Fish cannot erase its prompt here: the client does.
function __sublet_widget
    function __sublet_interrupted --on-signal INT # so that a signal does not end the loop below
    end
    begin # a substitution would hand its output over between threads, which takes longer than the rest
        builtin printf 'A %s ready - ' $fish_pid
        builtin commandline --cursor
        builtin commandline
        builtin printf '\0'
    end >$__sublet_folder/up
    __sublet_mark A
    while builtin read --local --delimiter ' ' __sublet_directive __sublet_word __sublet_rest <$__sublet_folder/down
        switch $__sublet_directive
            case state
                __sublet_state
            case screen
                __sublet_mark C
            case line
                builtin read --local --null __sublet_line <$__sublet_folder/line
                builtin commandline --replace -- $__sublet_line
                builtin commandline --cursor $__sublet_word
                builtin break
            case run
                builtin set -g __sublet_nonce $__sublet_word
                __sublet_mark C
                builtin set -g __sublet_aside $fish_history
                builtin set -g fish_history ''
                # Fish would set the window's title to the line, for which the user's function takes a third of a millisecond.
                builtin functions --query fish_title; and builtin functions --copy fish_title __sublet_title
                function fish_title
                end
                # After a quotation mark at its end, fish does not look for a suggestion.
                builtin commandline --replace -- ' __sublet_begin; builtin eval $__sublet_text; __sublet_end ""'
                builtin commandline -f execute
                builtin break
            case none
                builtin break
        end
    end
    builtin functions --erase __sublet_interrupted
    builtin set -q __sublet_aside; or __sublet_mark I
end

# Writes what a command can change in the shell, for ReadState in fish.go: fields that end with NUL. A value follows its name
# and begins with "="; a list has several, or none. Functions that fish would read from a file are left out: listing one reads it.
function __sublet_state
    builtin set -l __sublet_files $fish_function_path/*.fish
    builtin set -l __sublet_known (builtin string replace -rf '^.*/(.*)\.fish$' '$1' -- $__sublet_files | builtin string escape --style=regex)
    builtin set -l __sublet_hidden '^('(builtin string join '|' -- $__sublet_known '__sublet_.*')')$'
    begin
        builtin printf 'umask\0=%s\0' $umask
        for __sublet_name in (builtin set --export --names)
            builtin printf 'export %s\0=%s\0' $__sublet_name "$$__sublet_name"
        end
        for __sublet_scope in global universal
            for __sublet_name in (builtin set --$__sublet_scope --names | builtin string match -rv '^(history|status.*|pipestatus|last_pid|__sublet_.*)$')
                builtin set --query --export $__sublet_name; and continue
                builtin printf '%s %s\0' $__sublet_scope $__sublet_name
                builtin set --query "$__sublet_name"'[1]'; and builtin printf '=%s\0' $$__sublet_name
            end
        end
        for __sublet_name in (builtin functions --all --names | builtin string match -rv $__sublet_hidden)
            builtin printf 'function %s\0=%s\0' $__sublet_name (builtin functions --no-details $__sublet_name | builtin string collect)
        end
        builtin printf 'abbreviations\0'
        abbr --show | builtin string replace -r '^' = | builtin string join0
    end >$__sublet_folder/state
    __sublet_mark T
end

# What sh runs for a background job: $0 is what `jobs` shows, $1 the job's folder, and the rest is the command. A window that closes
# sends SIGHUP to the shell's jobs; a borrower's goes on. Fish's own kill signals sh alone, which therefore signals the job's group.
builtin set -g __sublet_job '
    folder=$1; shift
    trap "" HUP
    trap "trap : TERM; kill -s TERM -- -$$" TERM
    "$@" </dev/null >>"$folder/output" 2>&1 &
    wait $!
    printf %s $? >"$folder/status"'

builtin set -g __sublet_status 0
for __sublet_mode in default insert visual replace replace_one
    builtin bind -M $__sublet_mode \x1e\x1d __sublet_widget
end
builtin eval $__sublet_restore
builtin set -e __sublet_restore
builtin set -e SUBLET_STARTING
