package wire

// EnvSnapshot is the client's first message, and is sent again whenever cwd, env or terminal size changed; then
// protocol_min, protocol_max, session_id, after_seq, leases and credentials are ignored, and nil mcp_servers leaves them as
// they are. Since protocol 1.
type EnvSnapshot struct {
	ProtocolMin  int                 `msgpack:"protocol_min"`
	ProtocolMax  int                 `msgpack:"protocol_max"`
	Client       ClientInfo          `msgpack:"client"`
	Capabilities []string            `msgpack:"capabilities"` // CapShell, CapConfirm, CapRestore, CapQueue, CapUse, CapConfine, CapJobs, CapContinue, CapTurns
	Env          map[string]OSString `msgpack:"env"`          // no value of a variable that looks like a secret
	Cwd          OSString            `msgpack:"cwd"`
	Shell        ShellInfo           `msgpack:"shell"`
	Term         TermInfo            `msgpack:"term"`
	Credentials  map[string]string   `msgpack:"credentials"` // only what the configuration's api_key_env names; kept in memory, never stored or logged
	SessionID    *SessionID          `msgpack:"session_id"`  // nil: a new session, stored once something happens in it
	AfterSeq     int64               `msgpack:"after_seq"`   // stored events after this number are sent first; -1: none
	Leases       []HeldLease         `msgpack:"leases"`      // what the client believes it has lent
	// MCPServers are servers whose tools agents have in this connection's turns, besides those of the settings; kept in
	// memory, never stored or logged, and ended with the connection and its last turn.
	MCPServers []MCPServer `msgpack:"mcp_servers"`
}

// MCPServer is a server of the Model Context Protocol: Command is started, or URL is reached.
type MCPServer struct {
	Name    string              `msgpack:"name"`    // what agents call it, in the names of its tools: mcp__NAME__TOOL
	Command OSString            `msgpack:"command"` // speaks MCP on standard input and output
	Args    []OSString          `msgpack:"args"`
	Env     map[string]OSString `msgpack:"env"` // in addition to that of a private shell
	URL     string              `msgpack:"url"` // streamable HTTP
	Headers map[string]string   `msgpack:"headers"`
}

// Client capabilities.
const (
	CapShell    = "shell"    // has a shell to lend
	CapConfirm  = "confirm"  // somebody is there to answer questions
	CapRestore  = "restore"  // knows RestoreShellState
	CapQueue    = "queue"    // knows ShellQueueChanged
	CapUse      = "use"      // answers ShellUseRequest
	CapTurns    = "turns"    // knows TurnQueueChanged
	CapJobs     = "jobs"     // runs a command as a background job
	CapContinue = "continue" // has a running command go on as a job
	CapConfine  = "confine"  // has the kernel enforce a command's Confinement, or does not run the command
)

// CapMCPServers, in Ready.Capabilities, reports that the daemon takes EnvSnapshot.MCPServers.
const CapMCPServers = "mcp_servers"

// CapBorrower, in Ready.Capabilities, reports that the daemon takes ToolRequest.Borrower.
const CapBorrower = "borrower"

type ClientInfo struct {
	Name    string `msgpack:"name"`
	Version string `msgpack:"version"`
	PID     int    `msgpack:"pid"`
}

type ShellInfo struct {
	Path    OSString `msgpack:"path"`
	Version string   `msgpack:"version"`
	Name    string   `msgpack:"name"` // as in its path: "zsh"; "" of a client that lends only bash
}

// TermInfo is the terminal; sizes are in cells and pixels, 0 where unknown.
type TermInfo struct {
	Cols        int    `msgpack:"cols"`
	Rows        int    `msgpack:"rows"`
	PixelWidth  int    `msgpack:"pixel_width"`
	PixelHeight int    `msgpack:"pixel_height"`
	Term        string `msgpack:"term"`
}

type HeldLease struct {
	LeaseID     LeaseID     `msgpack:"lease_id"`
	Fence       uint64      `msgpack:"fence"`
	ExecutionID ExecutionID `msgpack:"execution_id"` // empty: no command runs
}

// Ready answers the first EnvSnapshot. Since protocol 1.
type Ready struct {
	Protocol     int              `msgpack:"protocol"`
	Daemon       DaemonInfo       `msgpack:"daemon"`
	Capabilities []string         `msgpack:"capabilities"`
	Limits       map[string]int64 `msgpack:"limits"` // by the names Limit…
	Models       []ModelInfo      `msgpack:"models"` // the first is the one in use
	Session      SessionInfo      `msgpack:"session"`
	Leases       []HeldLease      `msgpack:"leases"` // what the daemon believes; the client drops the rest
	Mode         string           `msgpack:"mode"`   // the policy's mode
}

// Names in Ready.Limits.
const (
	LimitFrame             = "frame"               // bytes of a payload
	LimitRequestsPerSecond = "requests_per_second" // per connection
	LimitRunningTurns      = "running_turns"       // per connection, queued ones count
	LimitOutputHead        = "output_head"         // bytes of a command's rendered output kept from its start
	LimitOutputTail        = "output_tail"         // bytes kept from its end
	LimitLeaseGraceMS      = "lease_grace_ms"      // how long a fence is good after the link dropped
)

type DaemonInfo struct {
	Name     string `msgpack:"name"`
	Version  string `msgpack:"version"`
	PID      int    `msgpack:"pid"`
	UptimeMS int64  `msgpack:"uptime_ms"`
	// BuiltAtMS is when the daemon's program was made: the modification time of its file. 0 = not known.
	BuiltAtMS int64 `msgpack:"built_at_ms"`
	// Kept reports that a service manager decides which program is the daemon: no client replaces it.
	Kept bool `msgpack:"kept"`
}

type ModelInfo struct {
	Name          string `msgpack:"name"`     // as `model = "provider/name"` has it
	Provider      string `msgpack:"provider"` // the configuration's name for it
	ProviderKind  string `msgpack:"kind"`     // anthropic, openai, google, offline, scripted
	Loaded        bool   `msgpack:"loaded"`   // usable now: has its key, needs none
	ContextWindow int    `msgpack:"context_window"`
}

// Heartbeat is sent by the daemon every 15 s while a turn or a lease runs, and by a client that expects something and has heard
// nothing for 45 s. It is answered with the same nonce. A peer that sends nothing for 60 s is then taken for dead. Since protocol 1.
type Heartbeat struct {
	Nonce uint64 `msgpack:"nonce"`
	AtMS  int64  `msgpack:"at_ms"`
	Reply bool   `msgpack:"reply"`
}

// ShellState describes the live shell. It is sent where it differs from the last one: before a ShellLeaseAcquired, after
// the CommandCompleted of a leased command and before the next CommandStarted, and when the user is about to ask. Since
// protocol 1.
type ShellState struct {
	Digest    string              `msgpack:"digest"` // lower-case hex SHA-256 over everything below
	Cwd       OSString            `msgpack:"cwd"`
	Aliases   map[string]OSString `msgpack:"aliases"`
	Functions []ShellFunction     `msgpack:"functions"`
	Options   []string            `msgpack:"options"` // set -o and shopt names that are on, sorted
	// Hashed are the commands that the shell's hash table maps to another file than PATH does (hash -p), with that file;
	// Disabled the builtins that are switched off (enable -n), sorted.
	Hashed   map[string]OSString `msgpack:"hashed"`
	Disabled []string            `msgpack:"disabled"`
	Env      EnvChange           `msgpack:"env"` // against the last ShellState, or against EnvSnapshot.Env
	// Executions are the borrowed commands that ran, or were undone, since the last ShellState and may have made the changes.
	// Empty: the user made them. Nil, from a client that does not report it: nobody is known to have wanted them.
	Executions []ExecutionID `msgpack:"executions"`
}

// ShellFunction is a function defined in the shell. Body is empty when its hash was sent before on this connection.
type ShellFunction struct {
	Name string   `msgpack:"name"`
	Hash string   `msgpack:"hash"`
	Body OSString `msgpack:"body"`
}

type EnvChange struct {
	Set   map[string]OSString `msgpack:"set"`
	Unset []string            `msgpack:"unset"`
}

func (*EnvSnapshot) isMessage() {}
func (*Ready) isMessage()       {}
func (*Heartbeat) isMessage()   {}
func (*ShellState) isMessage()  {}
