package tui

import (
	"context"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// Daemon is what the screen needs of the daemon; remote implements it. Every method returns when the request is on its
// way or, where it has a reply, answered; without a connection it returns an error at once.
type Daemon interface {
	Connected() bool
	// Request returns the reply to a request; Post makes one that is answered by events.
	Request(ctx context.Context, r wire.OfRequest) (wire.Message, error)
	Post(ctx context.Context, r wire.OfRequest) error
	// Notify sends a CancelRequest or a ConfirmationResponse, and Send what the user does not wait for, such as a command they ran.
	Notify(m wire.Message) error
	Send(m wire.Message) error
	// EnvChanged sends a new EnvSnapshot: cwd, environment or terminal size changed.
	EnvChanged() error
}

// Shell is what the screen needs of the user's own shell; *shell.Shell implements it.
type Shell interface {
	Keys(p []byte) error   // what the user types for the line editor or for their own program
	Answer(p []byte) error // what the user types for the borrowed command that has the keyboard
	// HoldIfEmpty takes the screen from the shell, unless its line is not empty or a program has the terminal. It returns within
	// moments. The cursor is in the first column of an empty row then.
	HoldIfEmpty(ctx context.Context) (bool, error)
	// TakeScreen does the same once the user is not busy. A half-typed line comes back with GiveScreen.
	TakeScreen(ctx context.Context) error
	// GiveScreen has the shell print its prompt at the cursor, which must be in the first column.
	GiveScreen(ctx context.Context) error
	// RunLine is GiveScreen with another line in the editor, which is entered as if the user had typed it.
	RunLine(ctx context.Context, line string) error
	Resize(s shell.Size) error
	Dir() string
	// Exited closes when the user's own `exit` ended the shell.
	Exited() <-chan struct{}
	ExitStatus() int
}

// Lender is what the screen needs of who lends that shell; *lender.Lender implements it.
type Lender interface {
	SetScreenTaken(taken bool)
	Typed(p []byte) // before the borrowed command that has the keyboard gets it
	Lending() lender.Lending
	// TakeBack cancels the running leased command and revokes its lease.
	TakeBack()
	// UndoShell puts back what the last borrowed command that changed the shell's state changed in it, or what all of them
	// did. changed is one line of what that did, "" where there was nothing; left is one line of what still differs.
	UndoShell(ctx context.Context, all bool) (changed, left string, err error)
}

// LinkChanged reports that the daemon was lost or is back. Program.Send takes it, and every wire.Message that remote
// receives, the *wire.Ready of each link included, and the *wire.SessionReply that led to another session.
type LinkChanged struct {
	Connected bool
	Detail    string // why it is down, in one line for the user
}
