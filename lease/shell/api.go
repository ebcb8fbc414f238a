// Package shell is what is lent: the user's own shell on a pseudo-terminal, with its own line editor.
//
// The shell is transparent: what the user types goes to it and what it prints is shown, except for private marks. A
// borrower's command enters through a widget of the shell's line editor, which sets the half-typed line aside and restores
// it afterwards. What differs between shells is in the packages below dialect; no shell is named outside of them. Who may
// run something, and when, is left to the lease.
package shell

import (
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
	"sublet/lease/shell/dialect"
	"sublet/lease/shell/procs"
	"sublet/lease/shell/term"
)

// Size of a terminal, in cells and pixels.
type Size = term.Size

// State is what a command can change in the shell and leave behind.
type State = dialect.State

// Process is one that a command left running.
type Process = procs.Process

// Options for Start. The zero value of each but Folder has a meaning.
type Options struct {
	Path   string   // the shell; "" = Find's choice
	Dir    string   // where it starts; "" = the caller's directory
	Env    []string // as os.Environ; nil = the caller's
	Size   Size     // zero = 80×24
	Folder string   // a private 0700 folder for this shell's files, absolute; Start makes a folder of its own in it, Close removes that
	Spool  string   // folder for raw output that was cut; "" = keep none
	Head   int      // bytes of rendered output kept from the start; 0 = 32 KiB
	Tail   int      // bytes kept from the end; 0 = 32 KiB

	// Private is a shell of the daemon, which no person types into: it reads no start-up files, keeps no history, and its
	// terminal does not turn line feeds into carriage return and line feed.
	Private bool
	// Termios are the settings that the shell's terminal begins with: those of the caller's terminal, saved before it went
	// raw. nil = sane defaults.
	Termios *unix.Termios
	// Patience is how long the user must not have typed into a line that is not empty before a borrower may have the
	// editor; 0 = one second.
	Patience time.Duration

	// Output receives what the terminal shows: all that the shell and its programs print, except marks, the output of a
	// borrower's command, and what the editor paints while it is held. It is called from one goroutine, in order with
	// Event, and may block: then the shell waits. p is only valid during the call. nil = dropped.
	Output func(p []byte)
	// Event receives the events below from the same goroutine. It must not block and must not call the Shell. nil = none.
	Event func(event any)
	Log   *slog.Logger
}

// Events, in the order in which they happened in the shell.
type (
	// PromptShown means that the shell reads a line.
	PromptShown struct{ Dir string }
	// UserBegan means that a command of the user's begins.
	UserBegan struct{}
	// UserEnded means that it ended. Output is the end of what it printed, rendered, at most 4 KiB; nil for a program that
	// used the alternate screen.
	UserEnded struct {
		Text     string
		ExitCode int
		Dir      string
		Output   []byte
		Started  time.Time
		Duration time.Duration
	}
	// KeysWaiting means that the user typed while the editor is held: it should be released soon.
	KeysWaiting struct{}
	// Restarted means that the shell ended without the user's doing and another was started in its place.
	Restarted struct{ Why string }
)

// EnvInside is exported to everything that runs in a lent shell; its value is the process id of the program that lends it.
// A second sublet started inside its own shell knows itself by it.
const EnvInside = "SUBLET_INSIDE"

// EnvStarting is exported while a lent shell reads its start-up files. A sublet that they start does nothing.
const EnvStarting = "SUBLET_STARTING"

// Command is one thing to run for a borrower. Callbacks come from one goroutine, in order, and must not block.
type Command struct {
	Text    string
	Dir     string        // run there and stay; "" = where the shell is
	Timeout time.Duration // of running, without the time in which the user has the keyboard; 0 = none
	// Confine has the kernel hold the command, in a child of the shell: it changes nothing in the shell itself. Launcher is
	// the program that does so (confine.Find). nil = it runs in the shell.
	Confine  *confine.Spec
	Launcher string
	// Job is the private folder of a background job: the command becomes a job of the shell, which Run starts and does not
	// wait for. See JobOutput. "" = it runs in the foreground. Timeout then bounds the start alone.
	Job string
	// Overdue is called once Timeout has passed: true lets the command go on without one. nil = it is cancelled.
	Overdue func() bool
	// Continue has the command go on as a job of the shell: when it receives, and once Timeout has passed. A command that cannot is
	// cancelled at its Timeout, else it stays in the foreground, and Stays reports why. nil = it does not become a job.
	Continue <-chan struct{}
	Stays    func(why string)
	Started  func()
	Output   func(p []byte) // raw, as it comes; p is only valid during the call
	// Keyboard reports that the program wants the keyboard, or no longer does: why is "password" (echo off, by a program of the
	// system that is known to ask for passwords), "secret" (echo off, by any other), "screen" (alternate screen), "input"
	// (waits for the terminal), or "" when it is over. who is the program that asks for a password or secret.
	Keyboard func(why, who string)
}

// refused is the Status of a command that was not run, because it could not be held to its reach.
const refused = "refused"

// Result of a command.
type Result struct {
	Status    string // ok, cancelled, timeout, shell_exited, refused
	ExitCode  *int   // nil where there was none
	Signal    string // "SIGINT" and the like; "" = none
	Dir       string // where the shell is afterwards
	Output    []byte // rendered, bounded
	Truncated int64  // rendered bytes left out
	SpoolPath string // "" = nothing was spooled
	Duration  time.Duration
	Leftovers []Process // still running in the command's session; background jobs are none
	JobPID    int       // the process group of the job that was started (Job) or that the command became (Continue); 0 = there is none
	Notes     []string  // what a borrower should know: ran in a subshell, shell was restarted, was answered at the keyboard
	Lost      string    // the builtin, such as cd, whose effect ended with the child of the shell that the command was held in; "" = none
	Stays     string    // why it could not go on as a job (Continue) when its time had passed; "" = it was not to
	// Changes reports whether the shell's state may have changed, by the text or because the shell was started again.
	Changes bool
}

// ErrClosed is returned after Close, and after the user's own exit ended the shell.
var ErrClosed = errors.New("shell: closed")

// A BrokenError reports that the shell's line editor does not answer as it should, so nothing can be lent until the user
// does what Hint says.
type BrokenError struct{ Why, Fix string }

func (e *BrokenError) Error() string { return "the shell cannot be lent: " + e.Why }

// Hint returns the way back.
func (e *BrokenError) Hint() string { return e.Fix }
