// Package client is the program at the user's terminal: Run finds or starts the daemon, opens shell and screen, and ends
// them in order; Dial is for scripts and gateways, which need the daemon and no shell. Drawing is left to tui, lending the
// shell to lender, and agents to the daemon.
package client

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"sublet/client/internal/launch"
	"sublet/client/internal/remote"
	"sublet/wire"
	"sublet/wire/socket"
)

// Options for Run and Dial. Executable is required, and Paths, unless NoDaemon is set.
type Options struct {
	Paths       socket.Paths
	Executable  string         // path of this program, to start the daemon and the guard
	Version     string         // of this build, for people
	Env         []string       // as os.Environ
	Credentials []string       // names in Env whose values the daemon needs for its models; it keeps them in memory only
	Session     wire.SessionID // to attach to; "" = a new one
	Continue    bool           // Run only: resume the last session
	Stdin       *os.File       // Run only: the terminal
	Stdout      *os.File       // Run only: the terminal
	NoDaemon    error          // Run only: why there can be no daemon, in which case Paths may be empty; nil: there can
	ShellPath   string         // Run only: the shell to lend; "" = $SHELL, or bash
	Patience    time.Duration  // Run only: how long a non-empty input line must be unchanged before the shell is lent; 0 = 1 s
	SwitchKey   []byte         // Run only: bytes of a key that switches between the shell and AI mode; nil = none
	OutputHead  int            // Run only: bytes of a command's rendered output kept from its start; 0 = 32 KiB
	OutputTail  int            // Run only: bytes kept from its end; 0 = 32 KiB
	Limits      Limits         // Serve… only
	Log         *slog.Logger   // Dial and Serve… only; nil = none

	// Dial only.
	Name     string             // who connects, as `sublet lease ls` and the audit show it; "" = "sublet"
	Cwd      string             // "" = the current directory
	Confirm  bool               // a person can answer questions: Handle gets ConfirmationRequests, Conn.Notify answers
	NoStart  bool               // do not start a daemon: ErrNoDaemon if none runs
	AfterSeq int64              // with Session: stored events after this number are sent first; -1: none
	Handle   func(wire.Message) // receives every message that is not a reply, in order, from one goroutine that must not block; nil = none
}

// Conn is a connection to the daemon. Its methods for scripts:
//
//	Turn(ctx, wire.OfRequest, each func(wire.Message)) (*wire.AgentComplete, error)          one question or tool to its end; ctx cancels it
//	LeaseRun(ctx, *wire.LeaseRunRequest, each func(wire.LeaseMessage)) (*wire.CommandCompleted, error)
//	Request(ctx, wire.OfRequest) (wire.Message, error)                                       one request, one reply: see wire.Call
//	Post, Notify, Send                                                                        answers arrive at Options.Handle
//	Ready, Session, Connected, Done, Err, Close
//
// Request ids left empty are filled in. Errors of the daemon are *wire.Error (errors.Is(err, wire.ErrLeaseStale) and so on).
type Conn = remote.Conn

// Errors of a Conn and of Dial, for errors.As and errors.Is; each of the types has a Hint.
type (
	StartError  = launch.StartError  // the daemon was started but does not serve
	WedgedError = launch.WedgedError // a daemon accepts connections but does not answer
)

var (
	ErrNoDaemon     = launch.ErrNoDaemon // NoStart is set, and no daemon listens
	ErrDisconnected = remote.ErrDisconnected
)

// Dial connects to the daemon, starts it if none runs, and performs the handshake. The connection lends no shell: agents use a
// private one of the daemon. ctx bounds the dialling only; Close ends the connection.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	dir, env := o.cwd(), environment(o.Env)
	return remote.Dial(ctx, remote.Options{
		Open: launcher(o).Open,
		Snapshot: func() *wire.EnvSnapshot {
			s := &wire.EnvSnapshot{
				Client: wire.ClientInfo{Name: cmp.Or(o.Name, "sublet"), Version: o.Version, PID: os.Getpid()},
				Cwd:    wire.OSString(dir),
				Env:    env, Credentials: credentials(o),
				Capabilities: []string{},
				Leases:       []wire.HeldLease{},
			}
			if o.Confirm {
				s.Capabilities = append(s.Capabilities, wire.CapConfirm)
			}
			return s
		},
		Session: o.Session, AfterSeq: o.AfterSeq,
		Handle: o.Handle, Log: o.Log,
	})
}

// cwd returns the client's directory; "" if it was deleted.
func (o Options) cwd() string {
	if o.Cwd != "" {
		return o.Cwd
	}
	dir, _ := os.Getwd()
	return dir
}

// finder returns a launcher that starts no daemon.
func finder(o Options) *launch.Launcher {
	o.NoStart = true
	return launcher(o)
}

func launcher(o Options) *launch.Launcher {
	return launch.New(launch.Options{
		Paths: o.Paths, Executable: o.Executable, Env: daemonEnv(o.Env), NoStart: o.NoStart, NoDaemon: o.NoDaemon, Log: o.Log,
	})
}
