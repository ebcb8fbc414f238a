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
	Session() wire.SessionInfo // of the last Ready
	Ask(ctx context.Context, r *wire.AgentRequest) error
	Cancel(ctx context.Context, r *wire.CancelRequest) error
	Confirm(ctx context.Context, r *wire.ConfirmationResponse) error
	Compact(ctx context.Context, r *wire.CompactRequest) error
	Undo(ctx context.Context, r *wire.UndoRequest) error
	Sessions(ctx context.Context, r *wire.SessionRequest) (*wire.SessionReply, error)
	Policy(ctx context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error)
	Status(ctx context.Context) (*wire.StatusReply, error)
	// Resume attaches to another session; its events after afterSeq arrive as messages like any other.
	Resume(ctx context.Context, id wire.SessionID, afterSeq int64) (*wire.Ready, error)
	// UserCommand reports a command the user ran.
	UserCommand(ctx context.Context, r *wire.CommandResult) error
	// EnvChanged sends a new EnvSnapshot: cwd, environment or terminal size changed.
	EnvChanged(ctx context.Context) error
}

// Shell is what the screen needs of the user's own shell; lender implements it.
type Shell interface {
	// Run runs the user's command and returns at its end. While an agent's command runs it returns *lender.LentError,
	// unless takeBack: then that command is cancelled first. out is called with nothing when the command begins to run,
	// and then receives raw bytes, from one goroutine, in order. It may take its time.
	Run(ctx context.Context, text string, takeBack bool, out func([]byte)) (shell.Result, error)
	Write(p []byte) (int, error) // keyboard bytes for the program that has the terminal
	Resize(s shell.Size) error
	Prompt(ctx context.Context) (shell.Prompt, error)
	Complete(ctx context.Context, line string, cursor int) (from int, cs []shell.Completion, err error)
	History(ctx context.Context) ([]string, error)
	Dir() string
	Lending() lender.Lending
	// TakeBack cancels the running leased command and revokes its lease.
	TakeBack()
	// UndoShell puts back what the last borrowed command that changed the shell's state changed in it, and tells in one line
	// what that changed; "" where there was nothing.
	UndoShell(ctx context.Context) (changed string, err error)
	// Exited closes when the user's own `exit` ended the shell.
	Exited() <-chan struct{}
	ExitStatus() int
}

// What client.Run feeds the program with, besides key presses: every wire.Message that remote receives, the *wire.Ready
// of each link, the lender's events below, and LinkChanged. Program.Send takes any of them, from any goroutine, and never blocks its caller for
// longer than it takes to queue.
type (
	// LinkChanged tells that the daemon was lost or is back.
	LinkChanged struct {
		Connected bool
		Detail    string // one line for the user
	}
)
