package wire

import "strings"

// AgentRequest begins a turn: TurnStarted, then events, then exactly one AgentComplete answers; or one Error if it was
// refused. A turn already running in the session is finished first. Since protocol 1.
type AgentRequest struct {
	RequestID   `msgpack:"request_id"`
	SessionID   *SessionID     `msgpack:"session_id"` // nil: the connection's
	Agent       string         `msgpack:"agent"`      // "" = orchestrator
	Prompt      string         `msgpack:"prompt"`
	Attachments []Attachment   `msgpack:"attachments"`
	Context     RequestContext `msgpack:"context"`
	Options     RequestOptions `msgpack:"options"`
}

// ShowRequest asks for the first request that an AgentRequest would send to the model; the request_id inside is ignored.
// ShowReply answers. Nothing is sent to a model or stored and no tool runs, but MCP servers and api_key_command of the
// settings may be started. Since protocol 1.
type ShowRequest struct {
	RequestID `msgpack:"request_id"`
	Request   AgentRequest `msgpack:"request"`
}

type ShowReply struct {
	RequestID `msgpack:"request_id"`
	Model     string        `msgpack:"model"`
	Parts     []RequestPart `msgpack:"parts"` // in the order in which they are sent
}

// RequestPart is one part of a request to a model.
type RequestPart struct {
	Name   string `msgpack:"name"`   // system, tool NAME, conversation, prompt, context
	Tokens int64  `msgpack:"tokens"` // estimated
	Text   string `msgpack:"text"`   // for an image, its name
}

// Attachment is a file that goes with a prompt. The daemon reads it when the turn begins; the model gets the content of a
// text or an image, and of any other file only the name.
type Attachment struct {
	Path OSString `msgpack:"path"`
	MIME string   `msgpack:"mime"` // a hint; the content decides the type
}

// RequestContext is what the user saw when asking.
type RequestContext struct {
	Cwd            OSString        `msgpack:"cwd"`
	RecentCommands []RecentCommand `msgpack:"recent_commands"`
	RecentOutput   []byte          `msgpack:"recent_output"`
	OpenFiles      []OSString      `msgpack:"open_files"`
}

type RecentCommand struct {
	Command     OSString `msgpack:"command"`
	ExitCode    *int     `msgpack:"exit_code"`
	StartedAtMS int64    `msgpack:"started_at_ms"`
	OutputTail  []byte   `msgpack:"output_tail"`
}

type RequestOptions struct {
	Model           string   `msgpack:"model"` // "" = the configured one
	MaxTokens       *int     `msgpack:"max_tokens"`
	Temperature     *float64 `msgpack:"temperature"`
	Thinking        string   `msgpack:"thinking"` // "", off, low, medium, high
	Tools           []string `msgpack:"tools"`    // allow-list; nil = all, empty = none
	RequireApproval *bool    `msgpack:"require_approval"`
	Mode            string   `msgpack:"mode"`       // policy mode for this turn, stricter than the session's unless the peer may confirm
	TimeoutMS       int64    `msgpack:"timeout_ms"` // 0 = none
	// Steer adds the prompt to the running turn of the session, with the results of its next tool calls; TurnSteered then
	// answers. If no turn runs, it ends first, or there are attachments, the request becomes a turn of its own.
	Steer bool `msgpack:"steer"`
	// MaxSteps bounds the requests to the model. MaxCostUSD is the cost at which the user is asked whether to go on, beside
	// the settings' bound. 0 = as in the settings.
	MaxSteps   int     `msgpack:"max_steps"`
	MaxCostUSD float64 `msgpack:"max_cost_usd"`
	// System replaces the role's part of the system prompt, AppendSystem is added to it.
	System       string `msgpack:"system"`
	AppendSystem string `msgpack:"append_system"`
}

// TurnStarted reports that the turn of a request began. Since protocol 1.
type TurnStarted struct {
	Event
	Agent  string `msgpack:"agent"`
	Prompt string `msgpack:"prompt"`
	Model  string `msgpack:"model"`
}

// TurnSteered reports that a running turn took in a further prompt; it answers the AgentRequest of its RequestID. Since
// protocol 1.
type TurnSteered struct {
	Event
	Prompt string `msgpack:"prompt"`
}

// TurnQueueChanged lists the prompts that wait in a session, in order: those that its running turn is to take in, then those
// of the turns behind it. It is sent when the list changed, replaces the one before, and goes only to clients with CapTurns. For
// a client that is attached to another session, or connects again, the list is empty until the first one. Since protocol 1.
type TurnQueueChanged struct {
	SessionID SessionID    `msgpack:"session_id"`
	Waiting   []QueuedTurn `msgpack:"waiting"`
}

// QueuedTurn is a prompt that waits. A CancelRequest of its TurnID withdraws it, on any connection.
type QueuedTurn struct {
	TurnID    TurnID    `msgpack:"turn_id"`
	RequestID RequestID `msgpack:"request_id"` // by which the client that asked knows it
	Prompt    string    `msgpack:"prompt"`     // at most QueuedPrompt bytes of it
	Steer     bool      `msgpack:"steer"`      // the running turn is to take it in
}

// QueuedPrompt is how much of a prompt QueuedTurn has, in bytes.
const QueuedPrompt = 1024

// AgentStreamChunk is a piece of an agent's text, tool call or output. SeqFirst is the number of the first of several
// chunks of text that were merged into this one, and equals Seq otherwise. Since protocol 1.
type AgentStreamChunk struct {
	Event
	SeqFirst int64  `msgpack:"seq_first"`
	Agent    string `msgpack:"agent"` // orchestrator, or a task's own name such as engineer-1
	Chunk    Chunk  `msgpack:"chunk"`
}

// Chunk is a union: only the fields of its Type are encoded; see chunkFields.
type Chunk struct {
	Type        string      `msgpack:"type"` // one of Chunk…
	Text        string      `msgpack:"text"`
	ExecutionID ExecutionID `msgpack:"execution_id"`
	Tool        string      `msgpack:"tool"`
	Arguments   string      `msgpack:"arguments"` // a JSON object as text
	Data        []byte      `msgpack:"data"`      // raw bytes as the program wrote them; live only, never stored
	Status      string      `msgpack:"status"`    // one of Status…; CommandResult has the details
	Signature   string      `msgpack:"signature"` // the provider's proof that the reasoning is its own, sent back with it
	Block       *Block      `msgpack:"block"`
	FromSeq     int64       `msgpack:"from_seq"` // of void: the first event that is withdrawn
}

// Chunk types.
const (
	ChunkText          = "text"
	ChunkReasoning     = "reasoning"
	ChunkToolCallDelta = "tool_call_delta" // text is a piece of the arguments as the model writes them
	ChunkToolCall      = "tool_call"
	ChunkToolOutput    = "tool_output"
	ChunkToolResult    = "tool_result"
	ChunkNotice        = "notice"
	ChunkBlock         = "block"
	ChunkVoid          = "void"    // withdraws the agent's text and reasoning from from_seq on; text is why
	ChunkContext       = "context" // text is sent to the model with the prompt or the results before it
)

// chunkFields are the fields that are encoded for each type of chunk, besides type.
var chunkFields = map[string][]string{
	ChunkText:          {"text"},
	ChunkReasoning:     {"text", "signature"},
	ChunkToolCallDelta: {"text", "execution_id", "tool"},
	ChunkToolCall:      {"execution_id", "tool", "arguments"},
	ChunkToolOutput:    {"execution_id", "data"},
	ChunkToolResult:    {"execution_id", "tool", "status"},
	ChunkNotice:        {"text"},
	ChunkBlock:         {"block"},
	ChunkVoid:          {"text", "from_seq"},
	ChunkContext:       {"text"},
}

// Block is a piece of content with structure of its own.
type Block struct {
	Type        string            `msgpack:"type"` // text, code, diff, error, tool_output, interactive
	Language    string            `msgpack:"language"`
	Content     string            `msgpack:"content"`
	Metadata    map[string]string `msgpack:"metadata"`
	Annotations []Annotation      `msgpack:"annotations"`
}

type Annotation struct {
	Line    int    `msgpack:"line"`
	Type    string `msgpack:"type"`
	Message string `msgpack:"message"`
}

// AgentThinking reports which phase an agent entered. Since protocol 1.
type AgentThinking struct {
	Event
	Agent   string `msgpack:"agent"`
	Phase   string `msgpack:"phase"` // one of Phase…
	Message string `msgpack:"message"`
}

const (
	PhaseAnalyzing  = "analyzing"
	PhasePlanning   = "planning"
	PhaseGenerating = "generating"
	PhaseExecuting  = "executing"
	PhaseWaiting    = "waiting" // for the provider, which is retried or sends nothing; the message says for how long and why
)

// AgentComplete is the one end of a turn. Since protocol 1.
type AgentComplete struct {
	Event
	Agent         string        `msgpack:"agent"`
	Status        string        `msgpack:"status"`      // success, error, cancelled, timeout
	StopReason    string        `msgpack:"stop_reason"` // end_turn, max_tokens, tool_use, refusal, error, cancelled, timeout
	Summary       string        `msgpack:"summary"`
	Usage         Usage         `msgpack:"usage"`
	Context       ContextUse    `msgpack:"context"`
	ToolsExecuted []string      `msgpack:"tools_executed"`
	Refused       []RefusedTool `msgpack:"refused"`
	Model         string        `msgpack:"model"`
	DurationMS    int64         `msgpack:"duration_ms"`
	Steps         int           `msgpack:"steps"` // requests that the agent's model answered, without sub-agents'
}

// Statuses of turns, tools and commands.
const (
	StatusSuccess     = "success"
	StatusError       = "error"
	StatusCancelled   = "cancelled"
	StatusTimeout     = "timeout"
	StatusDenied      = "denied"       // tools: refused by policy or user
	StatusOK          = "ok"           // commands: ran to its end, whatever its exit code
	StatusShellExited = "shell_exited" // commands: the shell ended with it
	StatusRefused     = "refused"      // commands: stale fence, changed fingerprint, busy
)

// Usage counts tokens. CostUSD is nil where the price is not known.
type Usage struct {
	Input      int64    `msgpack:"input"`
	Output     int64    `msgpack:"output"`
	CacheRead  int64    `msgpack:"cache_read"`
	CacheWrite int64    `msgpack:"cache_write"`
	Total      int64    `msgpack:"total"`
	CostUSD    *float64 `msgpack:"cost_usd"`
}

// ContextUse is how full the model's context window is, in tokens.
type ContextUse struct {
	Used   int64 `msgpack:"used"`
	Window int64 `msgpack:"window"`
}

type RefusedTool struct {
	Tool   string `msgpack:"tool"`
	Reason string `msgpack:"reason"`
}

// CancelRequest ends a turn of any connection (by turn_id) or of this one (by request_id). The turn's own AgentComplete
// answers. Since protocol 1.
type CancelRequest struct {
	TurnID    *TurnID    `msgpack:"turn_id"`
	RequestID *RequestID `msgpack:"request_id"`
	Reason    string     `msgpack:"reason"`
}

// CommandResult is, from the daemon, the stored end of a tool's execution, which screens show as a card. From the client
// it is a command that the user ran: Tool and all ids but ExecutionID, which the client chooses, are empty. Since
// protocol 1.
type CommandResult struct {
	Event
	Agent         string      `msgpack:"agent"`
	ExecutionID   ExecutionID `msgpack:"execution_id"`
	Tool          string      `msgpack:"tool"`
	Command       OSString    `msgpack:"command"`
	Status        string      `msgpack:"status"`
	Output        []byte      `msgpack:"output"`      // from the daemon: what the model was given
	OutputTail    []byte      `msgpack:"output_tail"` // from the client: rendered, bounded
	ExitCode      *int        `msgpack:"exit_code"`
	Cwd           OSString    `msgpack:"cwd"`
	FilesModified []OSString  `msgpack:"files_modified"`
	Truncated     *Truncation `msgpack:"truncated"`
	StartedAtMS   int64       `msgpack:"started_at_ms"`
	DurationMS    int64       `msgpack:"duration_ms"`
	Reach         string      `msgpack:"reach"` // the confinement it ran in: read, project; "" = none
}

// ToolRequest runs one tool for a person or a script or, with a Borrower, for an agent of another program, under the same
// policy as the agents here. It is a turn without a model: TurnStarted, CommandResult, AgentComplete. Since protocol 1.
type ToolRequest struct {
	RequestID `msgpack:"request_id"`
	SessionID *SessionID `msgpack:"session_id"`
	Tool      string     `msgpack:"tool"`
	Arguments string     `msgpack:"arguments"` // a JSON object as text
	Cwd       OSString   `msgpack:"cwd"`
	Borrower  Borrower   `msgpack:"borrower"`
	Private   bool       `msgpack:"private"`   // with a Borrower: bash runs in a private shell of the session
	AnswerMS  int64      `msgpack:"answer_ms"` // with a Borrower: how long a question waits for an answer; 0 = 5 min
	// Hosted is the value of HostedVariable, from the MCP server of a hosted agent: the tool runs in that agent's turn, whose
	// session has its events. CommandResult and AgentComplete answer, or Error. Without a Tool, the server's tools were listed.
	Hosted string `msgpack:"hosted"`
}

// HostedVariable is the variable that the daemon gives to the MCP server of an agent that it hosts.
const HostedVariable = "SUBLET_HOSTED"

// Borrower is an agent of another program that borrows the user's shell; without a Name there is none.
type Borrower struct {
	Name       string   `msgpack:"name"`       // such as codex
	Executable OSString `msgpack:"executable"` // "" = not known
	PID        int      `msgpack:"pid"`        // 0 = not known
}

// UndoRequest undoes the last change by a session's file tools (what = "file"), or by a borrowed command to the shell's
// state (what = "shell"). It is a turn without a model, like ToolRequest. Since protocol 1.
type UndoRequest struct {
	RequestID `msgpack:"request_id"`
	SessionID *SessionID `msgpack:"session_id"`
	What      string     `msgpack:"what"`
	All       bool       `msgpack:"all"` // shell: what all borrowed commands changed, not only the last
}

func (*TurnQueueChanged) isMessage() {}

func (*CancelRequest) isMessage() {}

// IsDelegate reports whether an agent works for another one: its name ends in the number of its task. Its text is part of that
// task's result, not of the answer.
func IsDelegate(agent string) bool {
	number := agent[strings.LastIndexByte(agent, '-')+1:]
	return number != agent && number != "" && strings.Trim(number, "0123456789") == ""
}

func (*ShowRequest) AnsweredBy() *ShowReply { return nil }
