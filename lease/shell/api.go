// Package shell is what is lent: the user's bash as a co-process on a PTY of its own. It runs one command at a time, a
// person's or a borrower's, tells its end without being fooled by output, keeps the shell whole whatever the command
// does, and renders what a model may see. Who may run something, and when, is left to the lease.
package shell

import (
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Size of a terminal, in cells and pixels.
type Size struct{ Cols, Rows, PixelWidth, PixelHeight int }

// Options for Start. The zero value of each but Folder has a meaning.
type Options struct {
	Path   string   // bash to run; "" = Find
	Dir    string   // "" = the caller's
	Env    []string // as os.Environ; nil = the caller's
	Size   Size     // zero = 80×24
	RC     string   // file to source in place of ~/.bashrc; NoRC for none
	Folder string   // a private 0700 folder for this shell's files; Start makes a folder of its own in it, Close removes that
	Spool  string   // folder for raw output that was cut; "" = keep none
	Head   int      // bytes of rendered output kept from the start; 0 = 32 KiB
	Tail   int      // bytes kept from the end; 0 = 32 KiB
	// Private switches onlcr off and history too: a shell of the daemon, which no person types into.
	Private bool
	// Termios are the settings the shell's terminal begins with: those of the caller's terminal, saved before it went raw
	// (T1h). nil = sane defaults. Echo, canonical input and signals are switched on whatever they say.
	Termios *unix.Termios
	// Unowned receives what the terminal prints while no command runs (background jobs, job notices). Called from the
	// reader; must not block.
	Unowned func([]byte)
	Log     *slog.Logger

	old bool // for tests: treat the bash as one before 5.1
}

// NoRC as Options.RC starts the shell without the user's start-up file.
const NoRC = "\x00none"

// EnvInside is exported to everything that runs in a lent shell; its value is the process id of the program that lends it.
// A second sublet started inside its own shell knows itself by it.
const EnvInside = "SUBLET_INSIDE"

// Command is one thing to run. Callbacks come from one goroutine, in order, and must not block.
type Command struct {
	Text string
	Dir  string // run there and stay; "" = where the shell is
	// User marks a person's own command: typed as they would where it is simple, never rewritten, its exit is the
	// shell's exit. Without it the guards for borrowers hold.
	User    bool
	Timeout time.Duration // from the start of execution; 0 = none
	Started func()
	Output  func(p []byte) // raw, as it comes; p is only valid during the call
	// Keyboard tells that the program wants the keyboard, or no longer does: why is "password" (echo off), "screen"
	// (alternate screen), "input" (waits for the terminal), or "" when it is over.
	Keyboard func(why string)
}

// Result of a command.
type Result struct {
	Status    string // ok, cancelled, timeout, shell_exited
	ExitCode  *int   // nil where there was none
	Signal    string // "SIGINT" and the like; "" = none
	Dir       string // where the shell is afterwards
	Output    []byte // rendered, bounded; nil for User commands longer than that only in the middle
	Truncated int64  // rendered bytes left out
	SpoolPath string // "" = nothing was spooled
	Duration  time.Duration
	Leftovers []Process // still running in the command's session
	Notes     []string  // what a borrower should know: ran in a subshell, shell was respawned, was answered at the keyboard
	Respawned bool
	Why       string // what became of the shell: it was started again and what is gone with it, or it could not be ended; else ""
	// Unread is what was typed while the command ran and what nobody read, as the terminal's line discipline left it:
	// Enter is a line feed, and what was erased is gone. It never reaches the shell; it is the caller's to use. nil where
	// something typed while a program had echo off may be in it: that may be a password.
	Unread []byte
}

// Process is one that a command left.
type Process struct {
	PID     int
	Command string
	User    string // whose it is where the shell's user may not signal it; "" otherwise
}

// String is what a person is told of it.
func (p Process) String() string {
	text := strconv.Itoa(p.PID) + " " + p.Command
	if p.User != "" {
		text += " (" + p.User + "'s: `sudo kill -KILL " + strconv.Itoa(p.PID) + "` ends it)"
	}
	return text
}

// State is what a command can change in the shell and leave behind.
type State struct {
	Dir       string
	Vars      map[string]string // exported variables
	Aliases   map[string]string
	Functions map[string]string // name to body
	Options   []string          // set -o and shopt names that are on, sorted
	Hashed    map[string]string // names that the hash table runs as another file than PATH finds (hash -p), with that file
	Disabled  []string          // builtins that are switched off (enable -n), sorted
	Loaded    []string          // builtins that were loaded from a file under a name of their own (enable -f), sorted
	Digest    string            // lower-case hex SHA-256 over all above

	// What no later command inherits, so that it is not judged by: seen by Difference and put back by Undo only.
	kept  map[string]string // variables that are not exported: name to the statement that makes them
	marks map[string]string // attributes of exported variables that have others, too, as in declare
	more  more
	umask string
	files map[string]string // "descriptor 7" for each that what it starts inherits, but the standard ones, with what tells the file from others; nil: unknown
	own   map[string]bool   // the variables that the borrower's command before it, or the undo, changed itself; nil: all that differ
}

// Completion is one candidate for the word at the cursor.
type Completion struct {
	Text        string // replaces the word
	Description string // kind: command, alias, function, file, directory, variable, option
}
