package wire

// SecretTyped is what the user typed into a borrowed command that reads without echo. The daemon masks it in what it gives
// to models, the store and the log, and keeps it in memory only. Since protocol 1.
type SecretTyped struct {
	Value OSString `msgpack:"value"`
}

// LeaseRef is in every message of a lease. The daemon mints both ids; fences grow, and the client refuses a command whose
// fence is not the newest it has granted. RequestID is set only towards a client that sent LeaseRunRequest, which receives
// the messages that the daemon otherwise gets.
type LeaseRef struct {
	LeaseID   LeaseID   `msgpack:"lease_id"`
	Fence     uint64    `msgpack:"fence"`
	RequestID RequestID `msgpack:"request_id"`
}

// Ref returns the ids of the lease a message belongs to.
func (l *LeaseRef) Ref() *LeaseRef { return l }

func (*LeaseRef) isMessage() {}

// LeaseMessage is any message of a lease.
type LeaseMessage interface {
	Message
	Ref() *LeaseRef
}

// AcquireShellLease asks the client for its shell. ShellLeaseAcquired, ShellLeaseQueued or ShellLeaseDenied answers;
// after Queued one of the other two follows. Since protocol 1.
type AcquireShellLease struct {
	LeaseRef
	TurnID  TurnID `msgpack:"turn_id"`
	Agent   string `msgpack:"agent"`
	Purpose string `msgpack:"purpose"` // shown to the user; the command's first line
	WaitMS  int64  `msgpack:"wait_ms"` // how long the agent will still wait
	TermMS  int64  `msgpack:"term_ms"` // how long it may hold the shell without a running command
}

// ShellLeaseQueued reports that somebody else is using the shell. It may come again while a lease waits, with another
// reason. Since protocol 1.
type ShellLeaseQueued struct {
	LeaseRef
	Holder   string `msgpack:"holder"`   // who uses the shell: "user" or an agent
	HeldMS   int64  `msgpack:"held_ms"`  // how long already, in milliseconds
	Position int    `msgpack:"position"` // towards a client that sent LeaseRunRequest: how many are before it in the queue
	Why      string `msgpack:"why"`      // what the user is doing, for people: "the user is typing"; "" = not known
}

// ShellLeaseAcquired lends the shell. Since protocol 1.
type ShellLeaseAcquired struct {
	LeaseRef
	Cwd   OSString `msgpack:"cwd"`
	State string   `msgpack:"state"` // digest as in ShellState
}

// ShellLeaseDenied refuses. Since protocol 1.
type ShellLeaseDenied struct {
	LeaseRef
	Reason string `msgpack:"reason"` // one of Denied…
	Holder string `msgpack:"holder"` // who uses the shell, where that is the reason
	HeldMS int64  `msgpack:"held_ms"`
	Why    string `msgpack:"why"` // for people, where the reason is broken or timeout; "" = not known
}

const (
	DeniedUser         = "user"
	DeniedTimeout      = "timeout"
	DeniedNoShell      = "no_shell"
	DeniedShuttingDown = "shutting_down"
	DeniedBroken       = "broken" // the shell's line editor does not answer as it should; Why names the cause
)

// ExecuteLeasedCommand runs a command under a lease. CommandStarted, CommandOutput and exactly one CommandCompleted
// answer; the client recomputes Fingerprint and refuses what does not match. Since protocol 1.
type ExecuteLeasedCommand struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Command     OSString    `msgpack:"command"`
	Cwd         OSString    `msgpack:"cwd"` // where it runs; always set
	TimeoutMS   int64       `msgpack:"timeout_ms"`
	Fingerprint string      `msgpack:"fingerprint"`
	// Job is the private folder of a background job: the command becomes a job of the shell, and CommandCompleted reports that it
	// was started. Only set for clients with CapJobs. "" = it runs in the foreground.
	Job     OSString    `msgpack:"job"`
	Confine Confinement `msgpack:"confine"` // only sent with a reach to clients with CapConfine
	// Continue has the command go on as a job of the shell when its time has passed, and at ContinueLeasedCommand. Only set for
	// clients with CapContinue.
	Continue bool `msgpack:"continue"`
}

// Confinement is what the kernel must restrict a command to. Paths are absolute and clean.
type Confinement struct {
	Reach   string     `msgpack:"reach"`   // read, project; "" = not confined
	Project OSString   `msgpack:"project"` // the folder that a command with reach project may change
	Caches  []OSString `msgpack:"caches"`  // folders of build tools: project writes in them, read in a copy that is thrown away
	Hidden  []OSString `msgpack:"hidden"`  // files and folders with secrets
	Proxy   OSString   `msgpack:"proxy"`   // with project: the socket of a proxy to other hosts; "" = there is none
}

// CommandStarted starts the command's timeout. It is sent again when the command gets the user's keyboard, which stops the
// timeout, and when it loses it, which starts it again. Since protocol 1.
type CommandStarted struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Keyboard    bool        `msgpack:"keyboard"` // the command has the user's keyboard
	Stays       string      `msgpack:"stays"`    // answers ContinueLeasedCommand: why the command stays in the foreground; "" = nobody asked
}

// CommandOutput is live output; under pressure pieces are left out (then Offset jumps). Since protocol 1.
type CommandOutput struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Offset      int64       `msgpack:"offset"` // bytes since the command's start
	Data        []byte      `msgpack:"data"`
}

// CommandCompleted is the one end of a leased command. Since protocol 1.
type CommandCompleted struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Output      []byte      `msgpack:"output"` // as a person would have read it, bounded
	Truncated   *Truncation `msgpack:"truncated"`
	ExitCode    *int        `msgpack:"exit_code"` // nil where there was none
	Signal      string      `msgpack:"signal"`    // such as "SIGINT"; "" = none
	Status      string      `msgpack:"status"`    // ok, cancelled, timeout, shell_exited, refused
	Cwd         OSString    `msgpack:"cwd"`       // afterwards
	DurationMS  int64       `msgpack:"duration_ms"`
	Leftovers   []Process   `msgpack:"leftovers"`
	Notes       []string    `msgpack:"notes"`   // what the agent should know: ran in a subshell, shell respawned, the user answered a prompt
	JobPID      int         `msgpack:"job_pid"` // the process group in which the command goes on as a job of the shell; 0 = it has ended
}

// Truncation is how many bytes of rendered output are missing, and the file that has the whole output as it was written.
type Truncation struct {
	Bytes     int64    `msgpack:"bytes"`
	SpoolPath OSString `msgpack:"spool_path"`
}

type Process struct {
	PID     int      `msgpack:"pid"`
	Command OSString `msgpack:"command"`
}

// CancelLeasedCommand ends a running command. CommandCompleted answers. Since protocol 1.
type CancelLeasedCommand struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Reason      string      `msgpack:"reason"` // user_abort, timeout, stale
}

// ContinueLeasedCommand has a running command with Continue go on as a job of the shell. CommandCompleted answers or, where that is
// not possible, CommandStarted with Stays. Only for clients with CapContinue. Since protocol 1.
type ContinueLeasedCommand struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
}

// RestoreShellState undoes what the last borrowed command that changed the shell's state changed in it, or with All what
// every such command changed. It runs under a lease like a command: CommandStarted and exactly one CommandCompleted answer,
// and CancelLeasedCommand ends it. Only for clients with CapRestore. Since protocol 1.
type RestoreShellState struct {
	LeaseRef
	ExecutionID ExecutionID `msgpack:"execution_id"`
	TimeoutMS   int64       `msgpack:"timeout_ms"`
	All         bool        `msgpack:"all"`
}

// ReleaseShellLease gives the shell back, or leaves the queue. Idempotent; ShellLeaseReleased answers each. Since protocol 1.
type ReleaseShellLease struct {
	LeaseRef
	Reason string `msgpack:"reason"` // completed, cancelled, disconnected, expired, stale
}

// ShellLeaseReleased reports that a lease ended, whichever side ended it. Since protocol 1.
type ShellLeaseReleased struct {
	LeaseRef
	Reason string `msgpack:"reason"` // one of Released…
}

const (
	ReleasedReleased     = "released"
	ReleasedExpired      = "expired"
	ReleasedByUser       = "revoked_by_user"
	ReleasedUserFirst    = "user_first" // the user began a command before the borrower did: the lease goes back into the queue
	ReleasedShellExited  = "shell_exited"
	ReleasedDisconnected = "disconnected"
)

// ShellQueueNamed is how many waiters ShellQueueChanged lists.
const ShellQueueNamed = 16

// ShellQueueChanged is the queue for a client's shell behind the lease that is offered or held, in order. It is sent when
// the queue changed, replaces the one before, and goes only to clients with CapQueue. On a new connection the queue is
// empty until the first one. Since protocol 1.
type ShellQueueChanged struct {
	Waiting []LeaseWaiter `msgpack:"waiting"` // the first ShellQueueNamed of them
	More    int           `msgpack:"more"`    // how many wait behind those
}

// ShellUseRequest asks a client with CapUse who uses its shell. The daemon needs it for status: while nobody waits for the
// shell, clients do not report that the user runs a command. ShellUseReply answers at once. Since protocol 1.
type ShellUseRequest struct {
	Nonce uint64 `msgpack:"nonce"`
}

// ShellUseReply reports who has the client's shell; Nonce is that of the ShellUseRequest. Nonce 0 means that nobody asked: the
// user is beginning a command, so this window is the one last typed in. Since protocol 1.
type ShellUseReply struct {
	Nonce  uint64 `msgpack:"nonce"`
	Holder string `msgpack:"holder"` // "" = nobody, "user" or an agent
	HeldMS int64  `msgpack:"held_ms"`
}

// LeaseRunRequest borrows the shell of another client of the same user. Lease events answer, in the direction daemon to
// client and with request_id set, up to ShellLeaseReleased or ShellLeaseDenied; CancelRequest ends it. Since protocol 1.
type LeaseRunRequest struct {
	RequestID `msgpack:"request_id"`
	ClientPID int      `msgpack:"client_pid"` // 0 = the client last typed in
	Command   OSString `msgpack:"command"`
	Cwd       OSString `msgpack:"cwd"` // "" = the shell's own
	WaitMS    int64    `msgpack:"wait_ms"`
	TimeoutMS int64    `msgpack:"timeout_ms"`
}

// LeaseRevokeRequest takes a lease back: by id, or all of a client's. StatusReply answers. Since protocol 1.
type LeaseRevokeRequest struct {
	RequestID `msgpack:"request_id"`
	LeaseID   LeaseID `msgpack:"lease_id"`
	ClientPID int     `msgpack:"client_pid"`
}

func (*ShellQueueChanged) isMessage() {}
func (*ShellUseRequest) isMessage()   {}
func (*ShellUseReply) isMessage()     {}
func (*SecretTyped) isMessage()       {}

func (*LeaseRevokeRequest) AnsweredBy() *StatusReply { return nil }
