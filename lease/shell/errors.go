package shell

import (
	"errors"
	"fmt"
)

var (
	// ErrBusy is returned while another command runs.
	ErrBusy = errors.New("shell: busy")
	// ErrClosed is returned after Close, and after the user's own exit ended the shell.
	ErrClosed = errors.New("shell: closed")
)

// errDeaf is the cause where a shell reads lines and yet runs nothing of sublet's.
var errDeaf = errors.New("it reads lines, but what sublet puts before its prompt is not run")

// A StartError reports a shell that did not come to its first prompt: its start-up file asks something, starts another
// shell in its place, or hangs. Output is the end of what it printed.
type StartError struct {
	Path   string
	Output string
	Cause  error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s did not come to a prompt: %v", e.Path, e.Cause)
}

func (e *StartError) Unwrap() error { return e.Cause }

// Hint names the usual reason.
func (e *StartError) Hint() string {
	if errors.Is(e.Cause, errDeaf) {
		return "look at ~/.bashrc: under `shopt -s extdebug` a DEBUG trap that fails or returns keeps every command from running; or it starts another bash with exec"
	}
	return "look at ~/.bashrc: it may ask a question or start another shell; `bash -i` in a terminal shows what it does"
}

// A DirError reports that a command's directory cannot be entered; the command did not run.
type DirError struct{ Dir, Reason string }

func (e *DirError) Error() string { return fmt.Sprintf("cannot enter %s: %s", e.Dir, e.Reason) }
