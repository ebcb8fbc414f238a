// Package dialect is what differs between the shells that can be lent: how one is started with its integration script,
// which keys reach the script's widget, how a word is quoted, and how the shell's state is read and put back. The shells
// themselves are in the packages below.
//
// The script and the client speak one protocol in all shells. The private folder holds the FIFOs "up" and "down", which the
// client keeps open for both, so that the shell's open never blocks, and the files "text" (the command to source), "line" (a
// half-typed line that comes back) and "state".
//
// Marks are printed to the terminal, ESC ] 7701 ; KIND ; PID ; NONCE BEL: P before each prompt, B where a
// command of the user's begins, A where the widget was called, C where it erased the prompt, T where it wrote the file
// "state", I where the directive "none" or "line" ended the widget, S and E around the text of a borrowed command.
//
// Records go to "up", each before the mark of the same kind, and end with NUL; C, T, I and S have none:
//
//	P PID STATUS DIR                       a prompt is about to be shown
//	B PID TEXT                             a command of the user's begins; bash sends its history entry before the next P
//	A PID CONTEXT FLAGS CURSOR LF LINE LF  the widget blocks; CONTEXT is "ready", or why nothing may be run; FLAGS holds e
//	                                       under errexit, and h if the prompt hook was replaced; LINE is the half-typed line
//	E PID NONCE STATUS DIR                 the borrowed command ended
//
// Directives come from "down", each a line padded with blanks to 20 bytes, which zsh reads at once. "state" and "screen"
// (erase what is shown, print mark C) leave the widget blocked. The others end it: "none" with the line as it was, "line CURSOR"
// with the file "line"; "run NONCE" erases too, and sets the line that sources "text", which the accept key then runs.
package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Dialect is one kind of shell. Its functions are pure.
type Dialect struct {
	Name        string   // as in its path: "bash"
	Oldest      [2]int   // the oldest version that has what the script needs: major, minor
	VersionArgs []string // with these the shell prints its version, as "5.2.15", and ends
	// HoldKey is typed to call the widget; it leaves nothing in the line of a shell that does not know it. AcceptKey is
	// typed to run the line that the widget set; like HoldKey it is bound by the script. "" = the widget runs the line by itself.
	HoldKey, AcceptKey string
	// ChildArgs are the arguments of another shell of this kind, which runs the script that is open as descriptor 3 and ends:
	// without start-up files, with aliases.
	ChildArgs []string
	// Background returns the text that starts a job in the background. With JobInChild, another shell of this kind runs it, which has
	// none of the functions and unexported variables of this one.
	Background func(j Job) string
	JobInChild bool
	// Stopped matches the beginning of what the shell prints last for a line whose job was stopped; nil = it prints nothing.
	Stopped func() *regexp.Regexp
	// Quote makes one word of any text without NUL.
	Quote func(text string) string
	// Start returns the file to be written into the folder before the shell is started, and how the shell is started.
	Start func(o Start) Launch
	// ReadState parses what the widget wrote into the folder's file "state". Dir is filled in by the caller.
	ReadState func(text []byte) (State, error)
	// Restore returns the text that undoes in the shell what differs between before and after, except for what has another value
	// in now than in after. left are the names of what the shell cannot put back.
	Restore func(before, after, now State) (text string, left []string)
	// Examine returns what is known about a command before it runs. known reports whether a name is an alias or a function of
	// the shell.
	Examine func(text string, known func(name string) bool) Examination
}

// Job is a command that is to run in the background.
type Job struct {
	Text   string
	Label  string // what the shell's own list of jobs shows of it
	Folder string // private; its output is appended to the file "output", its process id written to "pid" and its status to "status"
	Shell  string // path of the shell
}

// JobFunction is the function of bash's and zsh's integration that runs a job. Its name is shown by `jobs`.
const JobFunction = "sublet_job"

// Background implements Dialect.Background for a shell that has JobFunction.
func Background(j Job) string {
	return "__sublet_job_folder=" + Quote(j.Folder) + " __sublet_job_text=" + Quote(j.Text) + "\n" +
		JobFunction + " " + Quote(j.Label) + " &\n" +
		"builtin printf %s $! >|" + Quote(j.Folder+"/pid") + "\n" +
		"builtin unset __sublet_job_folder __sublet_job_text\n"
}

// Start is what a Dialect needs to know to start the shell.
type Start struct {
	Folder  string   // private; holds the FIFOs "up" and "down" and the files "text", "line" and "state"
	Nonce   string   // of the marks until the first "run" directive
	Env     []string // as os.Environ
	Private bool     // no person types into it, and it is bash: it reads no start-up files of the user's and keeps no history
	Restore string   // text to run once, before the first prompt: what a shell that died had; "" = none
}

// Script returns the text of an integration script, after statements that set its variables: __sublet_folder, __sublet_nonce,
// __sublet_restore, and more, a list of name, value, name, value. statement is the format for a name and its quoted value.
func (o Start) Script(text, statement string, quote func(text string) string, more ...string) string {
	var b strings.Builder
	for pair := range slices.Chunk(append(more, "folder", o.Folder, "nonce", o.Nonce, "restore", o.Restore), 2) {
		fmt.Fprintf(&b, statement+"\n", "__sublet_"+pair[0], quote(pair[1]))
	}
	return b.String() + text
}

// Launch is how a shell is started.
type Launch struct {
	File string   // path relative to the folder, to be written with mode 0600, folders in it with 0700
	Text string   // its content
	Args []string // with argv[0]
	Env  []string
}

// Examination is what is known about a command before it runs.
type Examination struct {
	Changes bool   // it may change the shell's state
	Lasts   string // the first builtin in it whose effect is meant to outlast it in the shell, such as cd or export; "" = none
	Ends    bool   // it may end or replace the shell: it is run in a subshell
	Text    string // what is sourced: the text itself, or the text in a subshell
	Job     string // a text of the same effect that is one job of the shell, which stops and continues as a whole; "" = there is none
	Refused string // why the shell cannot run it; "" = it can
}
