package wire

// StatusRequest asks how the daemon is. StatusReply answers. Since protocol 1.
type StatusRequest struct {
	RequestID `msgpack:"request_id"`
	Shells    bool `msgpack:"shells"` // ask the clients who uses their shells, for at most ShellUseBound
	Look      bool `msgpack:"look"`   // describe the shell that a borrower would get, in LeaseStatus.Look
}

// StatusReply also answers ShutdownRequest and LeaseRevokeRequest. Since protocol 1.
type StatusReply struct {
	RequestID          `msgpack:"request_id"`
	State              string        `msgpack:"state"` // idle, busy, draining
	Version            string        `msgpack:"version"`
	PID                int           `msgpack:"pid"`
	UptimeMS           int64         `msgpack:"uptime_ms"`
	Clients            int           `msgpack:"clients"`
	Turns              int           `msgpack:"turns"` // running and queued
	Leases             []LeaseStatus `msgpack:"leases"`
	ConversationLength int           `msgpack:"conversation_length"` // events of this connection's session
	Memory             int64         `msgpack:"memory"`              // bytes the daemon has from the system
	Goroutines         int           `msgpack:"goroutines"`
	StoreSize          int64         `msgpack:"store_size"`  // bytes of the stored sessions on disk, journal included
	Connections        []Connections `msgpack:"connections"` // the same, by kind of client
	// MCPServers are those of the settings and those of the requesting connection's EnvSnapshot.
	MCPServers []MCPServerStatus `msgpack:"mcp_servers"`
}

// Connections counts the connections of one kind of client.
type Connections struct {
	Name  string `msgpack:"name"`  // ClientInfo.Name
	Shell bool   `msgpack:"shell"` // whether they lend a shell
	Count int    `msgpack:"count"`
}

// MCPServerStatus is a server whose tools agents may call, and its state.
type MCPServerStatus struct {
	Name   string   `msgpack:"name"`
	Client bool     `msgpack:"client"` // it is the connection's, not one of the settings
	What   string   `msgpack:"what"`   // the command or the URL, without secrets
	State  string   `msgpack:"state"`  // one of MCP…
	Error  string   `msgpack:"error"`  // of MCPFailed
	Tools  []string `msgpack:"tools"`  // as agents call them; those it had when it last ran
	Left   string   `msgpack:"left"`   // tools that are left out, and why
}

// States of an MCP server.
const (
	MCPResting  = "resting" // started when a turn needs it
	MCPStarting = "starting"
	MCPUp       = "up"
	MCPFailed   = "failed" // started again when a turn needs it, after a pause
)

// LeaseStatus is one lendable shell and who has it.
type LeaseStatus struct {
	ClientPID int           `msgpack:"client_pid"`
	LeaseID   LeaseID       `msgpack:"lease_id"` // "" = nobody holds it
	Holder    string        `msgpack:"holder"`
	Silent    bool          `msgpack:"silent"` // the client did not answer ShellUseRequest
	Purpose   string        `msgpack:"purpose"`
	Queue     []LeaseWaiter `msgpack:"queue"`
	HeldMS    int64         `msgpack:"held_ms"`
	TermMS    int64         `msgpack:"term_ms"`
	Look      *ShellLook    `msgpack:"look"` // nil: not asked for, or not of this shell
}

// ShellLook describes a live shell to those who may borrow it. It has no values of variables, and text that looks like a
// secret is masked.
type ShellLook struct {
	Shell     string              `msgpack:"shell"` // bash 5.2
	Cwd       OSString            `msgpack:"cwd"`
	Exported  []string            `msgpack:"exported"`
	Aliases   map[string]OSString `msgpack:"aliases"`
	Functions []string            `msgpack:"functions"`
	Recent    []RecentCommand     `msgpack:"recent"` // the user's own last commands in that window, oldest first
}

type LeaseWaiter struct {
	LeaseID  LeaseID `msgpack:"lease_id"`
	Agent    string  `msgpack:"agent"`
	Purpose  string  `msgpack:"purpose"`
	WaitedMS int64   `msgpack:"waited_ms"`
}

// ShutdownRequest stops the daemon once running turns ended or DrainMS passed. StatusReply{draining} answers, then the
// connections close. Since protocol 1.
type ShutdownRequest struct {
	RequestID `msgpack:"request_id"`
	DrainMS   int64 `msgpack:"drain_ms"`
	IfIdle    bool  `msgpack:"if_idle"` // refuse with Error{shutting_down} details{turns} when turns run
}

// Notice is something to show that belongs to no turn. Since protocol 1.
type Notice struct {
	Level     string    `msgpack:"level"` // info, warning, error
	Text      string    `msgpack:"text"`
	Hint      string    `msgpack:"hint"`
	SessionID SessionID `msgpack:"session_id"` // whose mode, or handling of secrets, has changed; "" = none
}

// Error answers a message that could not be served, or is stored in a turn that failed. Since protocol 1.
type Error struct {
	Event
	Code        string            `msgpack:"code"` // one of Code…
	Message     string            `msgpack:"message"`
	Hint        string            `msgpack:"hint"`
	Details     map[string]string `msgpack:"details"`
	Recoverable bool              `msgpack:"recoverable"`
}

// Error codes.
const (
	CodeInvalidMessage   = "invalid_message"
	CodeUnknownKind      = "unknown_kind"
	CodeVersion          = "version"
	CodeTooLarge         = "too_large"
	CodeRateLimited      = "rate_limited"
	CodeTooManyQueries   = "too_many_queries"
	CodeDuplicateID      = "duplicate_id"
	CodeNotFoundSession  = "not_found_session"
	CodeNotFoundAgent    = "not_found_agent"
	CodeToolNotAvailable = "tool_not_available"
	CodeToolFailed       = "tool_failed"
	CodeProvider         = "provider"
	CodeModel            = "model"
	CodeTokenLimit       = "token_limit"
	CodePermissionDenied = "permission_denied"
	CodeCancelled        = "cancelled"
	CodeTimeout          = "timeout"
	CodeLeaseStale       = "lease_stale"
	CodeLeaseDenied      = "lease_denied"
	CodeShuttingDown     = "shutting_down"
	CodeInternal         = "internal"
)

func (*Notice) isMessage() {}

func (*StatusRequest) AnsweredBy() *StatusReply   { return nil }
func (*ShutdownRequest) AnsweredBy() *StatusReply { return nil }
