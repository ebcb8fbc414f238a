package wire

// The states of a SubAgent.
const (
	AgentRunning = "running"
	AgentEnded   = "ended"
)

// AgentsRequest lists the agents that a session's agent has started, ends one, or shows, merges or drops what one has changed in
// its own working tree. AgentsReply answers. Since protocol 1.
type AgentsRequest struct {
	RequestID `msgpack:"request_id"`
	SessionID *SessionID `msgpack:"session_id"`
	Op        string     `msgpack:"op"`   // list, stop, show, merge, drop
	Name      string     `msgpack:"name"` // of all but list
}

// AgentsReply has all agents, or the one that was asked for. Since protocol 1.
type AgentsReply struct {
	RequestID `msgpack:"request_id"`
	Agents    []SubAgent `msgpack:"agents"`
	Text      string     `msgpack:"text"` // show: its newest report, with the changes in its working tree
}

// SubAgent is an agent that another one has started.
type SubAgent struct {
	Name        string    `msgpack:"name"`
	Role        string    `msgpack:"role"`
	Title       string    `msgpack:"title"`
	SessionID   SessionID `msgpack:"session_id"` // its own; "" = it works in the turn of the agent that started it
	State       string    `msgpack:"state"`      // running, ended
	Status      string    `msgpack:"status"`     // of one that has ended: success, error, cancelled, timeout
	StartedAtMS int64     `msgpack:"started_at_ms"`
	EndedAtMS   int64     `msgpack:"ended_at_ms"` // 0 while it runs
	Worktree    OSString  `msgpack:"worktree"`    // its own working tree; "" = none
}

func (*AgentsRequest) AnsweredBy() *AgentsReply { return nil }
